//! One request to one broker: by its number, to any, to the controller, to a group's coordinator.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{ApiKey, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::{Decodable, HeaderVersion, Message, Request, StrBytes};

use crate::backoff::{Backoff, seed_by_chance};
use crate::connection::{Connection, decode_answer};
use crate::error::{NodeId, WireError};
use crate::metadata::TopicSelection;

use super::{Client, Misrouted};

/// FindCoordinator takes several groups at once from this version on (KIP-699).
const FIND_COORDINATORS_VERSION: i16 = 4;
/// Rounds over the brokers before a group counts as having no coordinator: some 6 s with the waits below.
const COORDINATOR_ROUNDS_MAX: u32 = 10;
const COORDINATOR_BACKOFF: Duration = Duration::from_millis(50);
const COORDINATOR_BACKOFF_MAX: Duration = Duration::from_secs(1);

impl Client {
    /// Sends to `node` and waits for its answer. Dropping the future does no harm to the connection.
    pub async fn call<R>(&self, node: NodeId, request: R) -> Result<R::Response, WireError>
    where
        R: Request + Send + 'static,
    {
        self.call_with(node, move |_| request).await
    }

    /// As [`Client::call`], for requests whose content depends on the version: `build` gets the negotiated one. The codec refuses a
    /// field that is set and that the version lacks.
    pub async fn call_with<R>(
        &self,
        node: NodeId,
        build: impl FnOnce(i16) -> R + Send + 'static,
    ) -> Result<R::Response, WireError>
    where
        R: Request,
    {
        let write = move |version| encode(&build(version), version);
        queue_and_decode(&self.connection(node)?, api_of::<R>(), write).await
    }

    /// Sends to a broker, and to the next one if that one can't be reached: connected ones first, failed ones last. The request
    /// must be one that may be done twice.
    pub async fn call_any<R>(&self, request: R) -> Result<R::Response, WireError>
    where
        R: Request + Clone + Send + 'static,
    {
        let mut tried = Vec::new();
        for node in self.nodes_by_promise() {
            match self.call(node, request.clone()).await {
                Err(error) if error.is_retriable() => tried.push(error),
                outcome => return outcome,
            }
        }
        Err(no_broker(tried))
    }

    /// Sends to the controller; asks for its new place once when it has moved.
    pub async fn call_controller<R>(&self, request: R) -> Result<R::Response, WireError>
    where
        R: Request + Clone + Send + 'static,
        R::Response: Misrouted,
    {
        if let Some(controller) = self.metadata().controller {
            match self.call(controller, request.clone()).await {
                Ok(answer) if answer.misrouted() => {}
                Err(error) if error.is_retriable() => {}
                outcome => return outcome,
            }
        }
        let metadata = self.refresh_metadata(TopicSelection::None).await?;
        match metadata.controller {
            Some(controller) => self.call(controller, request).await,
            // A cluster that names none is in an election, or is KRaft's, where every broker passes changes on.
            None => self.call_any(request).await,
        }
    }

    /// Sends to the coordinator of a consumer group; asks for its new place once when it has moved.
    pub async fn call_coordinator<R>(&self, group: &str, request: R) -> Result<R::Response, WireError>
    where
        R: Request + Clone + Send + 'static,
        R::Response: Misrouted,
    {
        self.call_coordinator_with(group, move |_| request.clone()).await
    }

    /// As [`Client::call_coordinator`], for requests whose content depends on the version, as OffsetFetch's does: several groups
    /// from version 8 on, one before.
    pub async fn call_coordinator_with<R>(
        &self,
        group: &str,
        build: impl Fn(i16) -> R + Clone + Send + 'static,
    ) -> Result<R::Response, WireError>
    where
        R: Request,
        R::Response: Misrouted,
    {
        let remembered = self.known().coordinators.get(group).copied();
        let coordinator = match remembered {
            Some(coordinator) => coordinator,
            None => self.find_coordinator(group).await?,
        };
        match self.call_with(coordinator, build.clone()).await {
            Ok(answer) if answer.misrouted() => {}
            Err(error) if error.is_retriable() => {}
            outcome => return outcome,
        }
        self.known().coordinators.remove(group);
        let coordinator = self.find_coordinator(group).await?;
        self.call_with(coordinator, build).await
    }

    /// Asks until a broker knows. The first question of a cluster's life makes it create the topic of its groups, which takes it
    /// some seconds.
    async fn find_coordinator(&self, group: &str) -> Result<NodeId, WireError> {
        let mut backoff = Backoff::new(COORDINATOR_BACKOFF, COORDINATOR_BACKOFF_MAX, seed_by_chance());
        let mut round_count = 0;
        loop {
            round_count += 1;
            match self.find_coordinator_once(group).await {
                Err(error) if error.is_retriable() && round_count < COORDINATOR_ROUNDS_MAX => {
                    tracing::debug!(group, %error, "no coordinator yet");
                    tokio::time::sleep(backoff.next_wait()).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn find_coordinator_once(&self, group: &str) -> Result<NodeId, WireError> {
        let mut tried = Vec::new();
        for node in self.nodes_by_promise() {
            match self.ask_coordinator(node, group).await {
                Err(error) if error.is_retriable() => tried.push(error),
                Err(error) => return Err(error),
                Ok(coordinator) => return self.remember_coordinator(group, coordinator).await,
            }
        }
        Err(no_broker(tried))
    }

    async fn ask_coordinator(&self, node: NodeId, group: &str) -> Result<NodeId, WireError> {
        let connection = self.connection(node)?;
        let key = StrBytes::from_string(group.to_owned());
        let encode = move |version| {
            let request = FindCoordinatorRequest::default();
            let request = if version >= FIND_COORDINATORS_VERSION {
                request.with_coordinator_keys(vec![key])
            } else {
                request.with_key(key)
            };
            encode(&request, version)
        };
        let answer = queue_and_decode(&connection, ApiKey::FindCoordinator, encode).await?;
        coordinator_of(&connection, &answer)
    }

    async fn remember_coordinator(&self, group: &str, coordinator: NodeId) -> Result<NodeId, WireError> {
        if !self.metadata().brokers.contains_key(&coordinator) {
            self.refresh_metadata(TopicSelection::None).await?;
        }
        self.known().coordinators.insert(Arc::from(group), coordinator);
        Ok(coordinator)
    }

    /// The connection to a broker of the cluster.
    pub(crate) fn connection(&self, node: NodeId) -> Result<Connection, WireError> {
        let metadata = self.metadata();
        match metadata.brokers.get(&node) {
            Some(address) => Ok(self.inner.brokers.connection(node, address)),
            None => {
                let known: Vec<String> = metadata.brokers.keys().map(NodeId::to_string).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(WireError::UnknownNode { node, known })
            }
        }
    }

    pub(super) fn nodes_by_promise(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.metadata().brokers.keys().copied().collect();
        nodes.sort_by_key(|node| self.inner.brokers.rank(*node));
        nodes
    }
}

fn coordinator_of(connection: &Connection, answer: &FindCoordinatorResponse) -> Result<NodeId, WireError> {
    let (error_code, node, message) = match answer.coordinators.first() {
        Some(found) => (found.error_code, *found.node_id, &found.error_message),
        None => (answer.error_code, *answer.node_id, &answer.error_message),
    };
    match ResponseError::try_from_code(error_code) {
        None => Ok(node),
        Some(error) => Err(WireError::Refused {
            address: Arc::clone(connection.address()),
            api: ApiKey::FindCoordinator,
            error,
            message: message.as_ref().map(|message| message.to_string()),
        }),
    }
}

async fn queue_and_decode<R: Decodable + Message + HeaderVersion>(
    connection: &Connection,
    api: ApiKey,
    encode: impl FnOnce(i16) -> Result<Bytes, WireError> + Send + 'static,
) -> Result<R, WireError> {
    let answer = connection.queue(api, encode).await?.answer().await?;
    decode_answer(api, &answer)
}

/// Writes a request's body.
pub(crate) fn encode<R: Request>(request: &R, version: i16) -> Result<Bytes, WireError> {
    let mut body = BytesMut::new();
    match request.encode(&mut body, version) {
        Ok(()) => Ok(body.freeze()),
        Err(error) => Err(WireError::Unwritable { api: api_of::<R>(), version, reason: error.to_string() }),
    }
}

fn api_of<R: Request>() -> ApiKey {
    ApiKey::try_from(R::KEY).expect("every request of the codec has its number in its own list")
}

pub(super) fn no_broker(tried: Vec<WireError>) -> WireError {
    let tried: Vec<String> = tried.iter().map(WireError::to_string).collect();
    let tried = if tried.is_empty() { "none, since none is known".to_owned() } else { tried.join("; ") };
    WireError::NoBroker { tried }
}
