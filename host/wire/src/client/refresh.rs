//! Asking for metadata: of the brokers that are known, then of the bootstrap servers, until one answers.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{ApiKey, MetadataResponse};
use tokio::time::Instant;

use crate::connection::{Connection, decode_answer};
use crate::error::WireError;
use crate::metadata::{ClusterMetadata, TopicSelection};

use super::Client;
use super::call::{encode, no_broker};

impl Client {
    /// Asks for the brokers and these topics. Never lets a broker create a topic. Every known broker and then every bootstrap server is
    /// tried before it fails.
    pub async fn refresh_metadata(&self, topics: TopicSelection) -> Result<Arc<ClusterMetadata>, WireError> {
        let mut tried = Vec::new();
        for node in self.nodes_by_promise() {
            // A concurrent refresh may just have taken it off the list.
            let Ok(connection) = self.connection(node) else { continue };
            match self.refresh_from(&connection, &topics).await {
                Err(error) if may_ask_another(&error) => tried.push(error),
                outcome => return outcome,
            }
        }
        for address in &self.inner.bootstrap {
            let connection = self.inner.brokers.passing(address);
            match self.refresh_from(&connection, &topics).await {
                Err(error) if may_ask_another(&error) => tried.push(error),
                outcome => return outcome,
            }
        }
        Err(no_broker(tried))
    }

    async fn refresh_from(
        &self,
        connection: &Connection,
        topics: &TopicSelection,
    ) -> Result<Arc<ClusterMetadata>, WireError> {
        let request = topics.request();
        let queued = connection.queue(ApiKey::Metadata, move |version| encode(&request, version)).await?;
        let answer = queued.answer().await?;
        let decoded: MetadataResponse = decode_answer(ApiKey::Metadata, &answer)?;
        let refused = |error| WireError::Refused {
            address: Arc::clone(connection.address()),
            api: ApiKey::Metadata,
            error,
            message: None,
        };
        if let Some(error) = ResponseError::try_from_code(decoded.error_code) {
            return Err(refused(error));
        }
        // A broker that is still starting may know of none; with that nothing could be done.
        if decoded.brokers.is_empty() {
            return Err(refused(ResponseError::LeaderNotAvailable));
        }
        Ok(self.take(topics, &decoded, answer.version))
    }

    fn take(&self, topics: &TopicSelection, answer: &MetadataResponse, version: i16) -> Arc<ClusterMetadata> {
        let metadata = {
            let mut known = self.known();
            known.metadata = Arc::new(known.metadata.updated(topics, answer, version));
            known.refreshed_at = Instant::now();
            Arc::clone(&known.metadata)
        };
        self.inner.brokers.retain(&metadata.brokers);
        metadata
    }
}

/// Whether another broker may do better. Kafka 4 says REBOOTSTRAP_REQUIRED to a client whose view is too old (KIP-1102): the
/// bootstrap servers are the way back, and they come last.
fn may_ask_another(error: &WireError) -> bool {
    let rebootstrap = matches!(error, WireError::Refused { error: ResponseError::RebootstrapRequired, .. });
    rebootstrap || error.is_retriable()
}
