//! A cluster as one handle: finds its brokers, keeps a connection to each that is needed, and sends a request to a given broker,
//! to any, to the controller or to a group's coordinator.

mod brokers;
mod call;
mod misrouted;
mod options;
mod refresh;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use tokio::time::Instant;

use crate::connection::PendingAnswer;
use crate::error::WireError;
use crate::metadata::{BrokerAddress, ClusterMetadata, TopicSelection};
use crate::versions::ApiVersions;

pub use crate::error::NodeId;
pub use misrouted::Misrouted;
pub use options::ClientOptions;

pub use crate::fetch::{AbortedTransaction, FetchAnswer, FetchParameters, FetchPartition, FetchedPartition};
pub use crate::list_offsets::{ListedOffset, OffsetAt};

/// What a reader of a transactional topic sees (`isolation.level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Everything below the high watermark, aborted transactions as well. Kafka's default for consumers.
    #[default]
    ReadUncommitted,
    /// Everything below the last stable offset; aborted transactions are to be skipped by the list in the answer.
    ReadCommitted,
}

impl Isolation {
    pub(crate) fn level(self) -> i8 {
        match self {
            Isolation::ReadUncommitted => 0,
            Isolation::ReadCommitted => 1,
        }
    }
}

/// Handle of a cluster. Clones share connections and metadata. A fetch that waits at the broker blocks its connection, so use
/// separate clients for fetching, for producing and for everything else.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ClientOptions,
    bootstrap: Vec<BrokerAddress>,
    brokers: brokers::Brokers,
    /// Shared with clients that have connections of their own.
    known: Arc<Mutex<Known>>,
}

#[derive(Debug)]
struct Known {
    metadata: Arc<ClusterMetadata>,
    refreshed_at: Instant,
    coordinators: HashMap<Arc<str>, NodeId>,
}

impl Client {
    /// Finds the cluster: one round over the bootstrap servers, the first that answers ApiVersions and Metadata wins. Must be
    /// called on the runtime that is to carry the connections.
    pub async fn connect(options: ClientOptions) -> Result<Client, WireError> {
        let bootstrap = options.bootstrap()?;
        let brokers = brokers::Brokers::new(&options, tokio::runtime::Handle::current());
        let known =
            Known { metadata: Arc::default(), refreshed_at: Instant::now(), coordinators: HashMap::new() };
        let inner = Inner { options, bootstrap, brokers, known: Arc::new(Mutex::new(known)) };
        let client = Client { inner: Arc::new(inner) };
        client.refresh_metadata(TopicSelection::None).await?;
        Ok(client)
    }

    /// A handle of the same cluster that shares what is known of it, with connections of its own: for requests that must not
    /// wait behind a fetch that waits. Must be called on the runtime that is to carry the connections.
    pub fn with_own_connections(&self) -> Client {
        let options = self.inner.options.clone();
        let brokers = brokers::Brokers::new(&options, tokio::runtime::Handle::current());
        let bootstrap = self.inner.bootstrap.clone();
        let inner = Inner { options, bootstrap, brokers, known: Arc::clone(&self.inner.known) };
        Client { inner: Arc::new(inner) }
    }

    /// What was last heard of the cluster.
    pub fn metadata(&self) -> Arc<ClusterMetadata> {
        Arc::clone(&self.known().metadata)
    }

    /// How old that is.
    pub fn metadata_age(&self) -> Duration {
        self.known().refreshed_at.elapsed()
    }

    /// Whether it is older than `metadata.max.age.ms`.
    pub fn metadata_is_stale(&self) -> bool {
        self.metadata_age() >= self.inner.options.metadata_max_age
    }

    /// How the client was made.
    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    /// What a broker of the cluster speaks: the first that answers.
    pub async fn api_versions(&self) -> Result<ApiVersions, WireError> {
        let mut tried = Vec::new();
        for node in self.nodes_by_promise() {
            let versions = match self.connection(node) {
                Ok(connection) => connection.versions().await,
                Err(error) => Err(error),
            };
            match versions {
                Ok(versions) => return Ok(ApiVersions::clone(&versions)),
                Err(error) if error.is_retriable() => tried.push(error),
                Err(error) => return Err(error),
            }
        }
        Err(call::no_broker(tried))
    }

    /// The version in which `node` is spoken to, for prebuilt requests; connects if need be.
    pub async fn version_for(&self, node: NodeId, api: ApiKey) -> Result<i16, WireError> {
        let connection = self.connection(node)?;
        connection.versions().await?.negotiate(connection.address(), api)
    }

    /// Queues a prebuilt request body of that version. Frames are written in the order of these calls, vectored, without copying
    /// the parts. After a connection is lost everything queued or in flight on it fails with a retriable error, and nothing
    /// is sent again from here.
    pub fn send_parts(&self, node: NodeId, api: ApiKey, version: i16, parts: Vec<Bytes>) -> PendingAnswer {
        match self.connection(node) {
            Ok(connection) => connection.send_parts(api, version, parts),
            Err(error) => PendingAnswer::failed(Arc::from(""), api, error),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
