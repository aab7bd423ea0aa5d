//! What is known about each flow and partition while it runs: written by workers and control loops once a batch or
//! round, read by status, metrics and the terminal. Nothing here decides anything.

mod partition;
mod plugin;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

pub use self::partition::{Changeover, LastError, PartitionStats, Paused};
pub use self::plugin::{PluginFigures, PluginSource, TimeHistogram};
use std::time::Duration;

use crate::names::{FlowName, Slot, SourcePartition};

/// What happened to a batch on its way (design: tiers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Header patched, payload untouched.
    Pass,
    /// Several small batches became one.
    Merge,
    /// Re-encoded: cut, gaps, append time, split.
    Rewrite,
}

/// Where a flow stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowState {
    /// Connecting, creating internal topics, joining the group.
    Starting,
    /// In the group; owns its slots (perhaps none).
    Running,
    /// MirrorMaker 2 holds the group; waiting for it to leave.
    WaitingForMirrorMaker,
    /// Settling and leaving.
    Stopping,
    /// Ended by an error; the flow's last error says which.
    Failed,
}

/// One flow as this process sees it.
#[derive(Debug)]
pub struct FlowStats {
    /// `source->target`.
    pub name: FlowName,
    /// The longest time that batches waited for a worker to change chains, in nanoseconds.
    chain_wait_ns_max: AtomicU64,
    inner: RwLock<FlowInner>,
}

#[derive(Debug)]
struct FlowInner {
    state: FlowState,
    has_run: bool,
    slots: Vec<Slot>,
    refusals: Vec<String>,
    last_error: Option<LastError>,
    partitions: BTreeMap<SourcePartition, Arc<PartitionStats>>,
    plugins: PluginSource,
}

/// A copy of a flow's facts at one moment.
#[derive(Clone, Debug)]
pub struct FlowSnapshot {
    /// `source->target`.
    pub name: FlowName,
    /// Where it stands.
    pub state: FlowState,
    /// Slots that this process owns.
    pub slots: Vec<Slot>,
    /// What the last plan would not do, in words.
    pub refusals: Vec<String>,
    /// What went wrong last on the level of the flow.
    pub last_error: Option<LastError>,
    /// The partitions that this process relays.
    pub partitions: BTreeMap<SourcePartition, Arc<PartitionStats>>,
    /// The plugins that it uses now, in the order of its list.
    pub plugins: Vec<PluginFigures>,
    /// The longest time that batches waited for a worker to change chains.
    pub chain_wait_max: Duration,
}

impl FlowStats {
    fn new(name: FlowName) -> Self {
        let inner = FlowInner {
            state: FlowState::Starting,
            has_run: false,
            slots: Vec::new(),
            refusals: Vec::new(),
            last_error: None,
            partitions: BTreeMap::new(),
            plugins: PluginSource::default(),
        };
        Self { name, chain_wait_ns_max: AtomicU64::new(0), inner: RwLock::new(inner) }
    }

    /// Changes the state.
    pub fn set_state(&self, state: FlowState) {
        let mut inner = self.write();
        inner.state = state;
        inner.has_run |= state == FlowState::Running;
    }

    /// Whether it was ever running: then what ended it may pass by itself.
    pub fn has_run(&self) -> bool {
        self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner).has_run
    }

    /// Says which slots this process owns.
    pub fn set_slots(&self, slots: Vec<Slot>) {
        self.write().slots = slots;
    }

    /// Says what the last plan refused.
    pub fn set_refusals(&self, refusals: Vec<String>) {
        self.write().refusals = refusals;
    }

    /// Says where the figures of its plugins come from; called anew with each generation.
    pub fn set_plugins(&self, plugins: PluginSource) {
        self.write().plugins = plugins;
    }

    /// Notes how long a worker took to change chains; its batches waited meanwhile.
    pub fn note_chain_wait(&self, wait: Duration) {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.chain_wait_ns_max.fetch_max(wait_ns, Ordering::Relaxed);
    }

    /// Remembers what went wrong.
    pub fn set_error(&self, at_ms: i64, message: String) {
        self.write().last_error = Some(LastError { at_ms, message });
    }

    /// Adds a partition that this process begins to relay.
    pub fn add_partition(&self, partition: SourcePartition, stats: Arc<PartitionStats>) {
        let mut inner = self.write();
        inner.partitions.insert(partition, stats);
    }

    /// Removes a partition that this process let go.
    pub fn remove_partition(&self, partition: &SourcePartition) {
        let mut inner = self.write();
        inner.partitions.remove(partition);
    }

    /// A copy of everything.
    pub fn snapshot(&self) -> FlowSnapshot {
        let inner = self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let plugins = inner.plugins.clone();
        let mut snapshot = FlowSnapshot {
            name: self.name.clone(),
            state: inner.state,
            slots: inner.slots.clone(),
            refusals: inner.refusals.clone(),
            last_error: inner.last_error.clone(),
            partitions: inner.partitions.clone(),
            plugins: Vec::new(),
            chain_wait_max: Duration::from_nanos(self.chain_wait_ns_max.load(Ordering::Relaxed)),
        };
        // Plugins have locks of their own: theirs are not taken under ours.
        drop(inner);
        snapshot.plugins = plugins.figures();
        snapshot
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, FlowInner> {
        self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// All flows of this process.
#[derive(Debug, Default)]
pub struct Registry {
    flows: RwLock<BTreeMap<FlowName, Arc<FlowStats>>>,
}

impl Registry {
    /// The flow's facts; made at the first call.
    pub fn flow(&self, name: &FlowName) -> Arc<FlowStats> {
        let mut flows = self.flows.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let make = || Arc::new(FlowStats::new(name.clone()));
        Arc::clone(flows.entry(name.clone()).or_insert_with(make))
    }

    /// A copy of every flow's facts, by name.
    pub fn snapshot(&self) -> Vec<FlowSnapshot> {
        let flows = self.flows.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        flows.values().map(|flow| flow.snapshot()).collect()
    }
}

/// Milliseconds since the epoch, for what is shown and stored; nothing is decided by it.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
