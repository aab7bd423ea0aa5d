//! A member of a classic consumer group.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// One way of sharing partitions that a member can do, with its own metadata for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Protocol {
    pub(crate) name: String,
    pub(crate) metadata: Bytes,
}

/// What a JoinGroup request says.
#[derive(Debug, Clone)]
pub(crate) struct Joining {
    /// Empty for a new member.
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) protocol_type: String,
    pub(crate) protocols: Vec<Protocol>,
    /// The client knows MEMBER_ID_REQUIRED (KIP-394).
    pub(crate) must_know_its_id: bool,
}

/// What a JoinGroup answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) member_id: String,
    pub(crate) generation: i32,
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) leader: String,
    /// All members, for the leader alone.
    pub(crate) members: Vec<JoinedMember>,
}

/// A member as the leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinedMember {
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) metadata: Bytes,
}

/// A JoinGroup that failed; the member id is the one to use from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinRefusal {
    pub(crate) error: ResponseError,
    pub(crate) member_id: String,
}

pub(crate) type JoinAnswer = Result<Joined, JoinRefusal>;

/// What a SyncGroup answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) assignment: Bytes,
}

pub(crate) type SyncAnswer = Result<Synced, ResponseError>;

/// A member and the requests of it that wait for an answer.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    /// When it is thrown out unless it is heard of before.
    pub(crate) expires: Instant,
    pub(crate) join: Option<oneshot::Sender<JoinAnswer>>,
    pub(crate) sync: Option<oneshot::Sender<SyncAnswer>>,
}

impl Member {
    pub(crate) fn new(id: String, joining: &Joining, now: Instant) -> Member {
        Member {
            id,
            instance_id: joining.instance_id.clone(),
            client_id: joining.client_id.clone(),
            client_host: joining.client_host.clone(),
            session_timeout: joining.session_timeout,
            rebalance_timeout: joining.rebalance_timeout,
            protocols: joining.protocols.clone(),
            assignment: Bytes::new(),
            expires: now + joining.session_timeout,
            join: None,
            sync: None,
        }
    }

    pub(crate) fn update(&mut self, joining: &Joining, now: Instant) {
        self.client_id.clone_from(&joining.client_id);
        self.client_host.clone_from(&joining.client_host);
        self.session_timeout = joining.session_timeout;
        self.rebalance_timeout = joining.rebalance_timeout;
        self.protocols.clone_from(&joining.protocols);
        self.heard_of(now);
    }

    pub(crate) fn heard_of(&mut self, now: Instant) {
        self.expires = now + self.session_timeout;
    }

    /// A member that waits for an answer of ours can't be expected to send heartbeats.
    pub(crate) fn is_waiting(&self) -> bool {
        self.join.is_some() || self.sync.is_some()
    }

    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|own| own.name == protocol);
        found.map(|own| own.metadata.clone()).unwrap_or_default()
    }

    pub(crate) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|own| own.name == protocol)
    }
}
