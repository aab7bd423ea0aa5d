//! Kafka's record batch format 2, as it lies in a log and travels in fetch answers and produce requests.
//!
//! A batch is a header of 61 bytes and a payload: the records, compressed as one piece or not at all. Most
//! batches only need their header read ([`BatchHeader`]) and rewritten ([`produce_header`]). Records are
//! looked at with a [`Decompressor`] and written with a [`BatchBuilder`]; both keep their buffers, so have
//! one of each per worker.
//!
//! Everything here takes bytes from the network: wrong ones are a [`BatchError`] with their position, never a
//! panic, and no allocation is larger than what really arrived can justify.

mod build;
mod codec;
mod error;
mod header;
mod iterate;
mod patch;
mod pool;
mod records;
#[cfg(test)]
mod tests;
mod varint;

pub use build::{BatchBuilder, BuiltBatch};
pub use codec::{Codec, DECOMPRESSED_BYTES_MAX_DEFAULT, Decompressor};
pub use error::{BatchError, Flaw, Part};
pub use header::{BatchHeader, HEADER_BYTES, record_timestamp};
pub use iterate::{Batch, Batches};
pub use patch::{ProducerFields, produce_header};
pub use records::{Headers, HeadersView, RecordView, Records};
