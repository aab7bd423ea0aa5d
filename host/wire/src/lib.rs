//! Kafka's protocol for a data plane that moves whole record batches: connections, metadata, fetch, idempotent produce
//! and record batches v2. It knows nothing of flows or plugins.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod backoff;
pub mod batch;
pub mod buffer;
pub mod client;
pub mod connection;
pub mod error;
pub mod fetch;
pub mod list_offsets;
pub mod metadata;
pub mod produce;
pub mod transport;
pub mod versions;

pub use kafka_protocol::ResponseError;
pub use kafka_protocol::messages::ApiKey;
