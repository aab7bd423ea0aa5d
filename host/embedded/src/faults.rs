//! Faults by request: which request, which time, and what goes wrong.

pub(crate) mod fault;
pub(crate) mod plan;
pub(crate) mod random;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey;
use tokio::sync::Notify;

pub use self::fault::{Effect, Fault, Times};
pub use self::plan::{FaultPlan, FaultSpace};

/// Fired faults that [`Faults::fired`] remembers; the oldest are forgotten first.
pub const FIRED_KEPT_MAX: usize = 1000;

/// Names an added fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaultId(u64);

/// A fault that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The fault.
    pub id: FaultId,
    /// Which matching request it was, from 1.
    pub request: u64,
    /// The node that it happened on.
    pub node: i32,
    /// The request's API.
    pub api: ApiKey,
    /// What was done.
    pub effect: Effect,
}

/// The faults of a cluster. All that match a request happen to it: delays add up, and the first error per
/// partition wins.
#[derive(Debug, Default)]
pub struct Faults {
    inner: Mutex<Inner>,
    rang: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    next_id: u64,
    armed: Vec<Armed>,
    fired: VecDeque<Fired>,
}

#[derive(Debug)]
struct Armed {
    id: FaultId,
    fault: Fault,
    seen: u64,
    fired: u64,
}

/// A request as far as faults look at it.
#[derive(Debug)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) api: ApiKey,
    pub(crate) node: i32,
    pub(crate) client_id: &'a str,
    /// Topics and partitions that it names.
    pub(crate) touched: &'a [Touched],
}

/// A topic, or one partition of it, that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) topic: String,
    pub(crate) partition: Option<i32>,
}

impl Faults {
    /// Arms a fault.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut inner = self.lock();
        inner.next_id += 1;
        let id = FaultId(inner.next_id);
        inner.armed.push(Armed { id, fault, seen: 0, fired: 0 });
        id
    }

    /// Arms every fault of a plan.
    pub fn add_plan(&self, plan: &FaultPlan) -> Vec<FaultId> {
        plan.faults.iter().cloned().map(|fault| self.add(fault)).collect()
    }

    /// Disarms one fault; nothing happens if it is not there.
    pub fn remove(&self, id: FaultId) {
        self.lock().armed.retain(|armed| armed.id != id);
    }

    /// Disarms all faults; what has fired stays remembered.
    pub fn clear(&self) {
        self.lock().armed.clear();
    }

    /// How often an armed fault has happened.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.lock().armed.iter().find(|armed| armed.id == id).map_or(0, |armed| armed.fired)
    }

    /// Whether every armed fault that is meant to happen a number of times has done so.
    pub fn is_exhausted(&self) -> bool {
        self.lock().armed.iter().all(|armed| armed.fault.times.is_over_after(armed.seen))
    }

    /// The last [`FIRED_KEPT_MAX`] faults that happened, oldest first.
    pub fn fired(&self) -> Vec<Fired> {
        self.lock().fired.iter().cloned().collect()
    }

    /// Waits until an armed fault has happened `count` times. Waits for ever if it never does: use a timeout.
    pub async fn wait_for(&self, id: FaultId, count: u64) {
        loop {
            let rang = self.rang.notified();
            tokio::pin!(rang);
            rang.as_mut().enable();
            if self.hits(id) >= count {
                return;
            }
            rang.await;
        }
    }

    /// Counts a request and says what happens to it.
    pub(crate) fn decide(&self, facts: &RequestFacts<'_>) -> Injected {
        let mut injected = Injected::default();
        let mut inner = self.lock();
        let Inner { armed, fired, .. } = &mut *inner;
        let mut rings = false;
        for armed in armed.iter_mut().filter(|armed| armed.fault.matches(facts)) {
            armed.seen += 1;
            if !armed.fault.times.includes(armed.seen) {
                continue;
            }
            armed.fired += 1;
            rings = true;
            injected.take(&armed.fault, facts.touched);
            if fired.len() == FIRED_KEPT_MAX {
                fired.pop_front();
            }
            fired.push_back(Fired {
                id: armed.id,
                request: armed.seen,
                node: facts.node,
                api: facts.api,
                effect: armed.fault.effect.clone(),
            });
        }
        drop(inner);
        if rings {
            self.rang.notify_waiters();
        }
        injected
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happens to one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Injected {
    pub(crate) delay: Duration,
    pub(crate) throttle_ms: i32,
    pub(crate) cut_before: bool,
    pub(crate) cut_after: bool,
    pub(crate) body_bytes_max: Option<usize>,
    pub(crate) frame_bytes_max: Option<usize>,
    /// Partitions whose leader moves before the request is served.
    pub(crate) moves: Vec<(Touched, Option<i32>)>,
    errors: Vec<InjectedError>,
}

#[derive(Debug, Clone)]
struct InjectedError {
    topic: Option<String>,
    partition: Option<i32>,
    error: ResponseError,
    applied: bool,
}

impl Injected {
    fn take(&mut self, fault: &Fault, touched: &[Touched]) {
        match &fault.effect {
            Effect::Error(error) => self.push_error(fault, *error, false),
            Effect::ErrorAfterApply(error) => self.push_error(fault, *error, true),
            Effect::Delay(delay) => self.delay += *delay,
            Effect::Throttle { throttle_ms } => self.throttle_ms = self.throttle_ms.max(*throttle_ms),
            Effect::CutBefore => self.cut_before = true,
            Effect::CutAfter => self.cut_after = true,
            Effect::TruncateAnswer { body_bytes_max } => self.body_bytes_max = Some(*body_bytes_max),
            Effect::CutWithinAnswer { frame_bytes_max } => self.frame_bytes_max = Some(*frame_bytes_max),
            Effect::MoveLeader { to } => {
                let hit = touched.iter().filter(|touched| fault.names(touched));
                self.moves.extend(hit.cloned().map(|touched| (touched, *to)));
            }
        }
    }

    fn push_error(&mut self, fault: &Fault, error: ResponseError, applied: bool) {
        let (topic, partition) = (fault.topic.clone(), fault.partition);
        self.errors.push(InjectedError { topic, partition, error, applied });
    }

    /// The error that the answer must carry for this part of the request, and whether that part is done all
    /// the same. Without a topic: the request as a whole.
    pub(crate) fn error(&self, topic: Option<&str>, partition: Option<i32>) -> Option<(ResponseError, bool)> {
        let meant = |error: &&InjectedError| {
            let topic_meant = error.topic.is_none() || error.topic.as_deref() == topic;
            let partition_meant =
                error.partition.is_none() || partition.is_none() || error.partition == partition;
            topic_meant && partition_meant
        };
        self.errors.iter().find(meant).map(|error| (error.error, error.applied))
    }
}

#[cfg(test)]
mod tests;
