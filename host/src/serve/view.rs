//! What status shows, as plain values: the JSON of `/api/v1/status` and what `tidegate status` prints.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rates::{Rate, Rates};
use crate::names::{FlowName, SourcePartition};
use crate::status::{FlowSnapshot, FlowState, PartitionStats, Paused, PluginFigures};

/// This process and its flows.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct StatusView {
    /// Tidegate's version.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// Seconds since its start.
    pub uptime_seconds: u64,
    /// By name.
    pub flows: Vec<FlowView>,
}

/// One flow.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct FlowView {
    /// `source->target`.
    pub name: String,
    /// `starting`, `running`, `waiting-for-mirror-maker`, `stopping`, `failed`.
    pub state: String,
    /// Slots (partitions of the positions topic) that this process owns.
    pub slots: Vec<i32>,
    /// Offsets between positions and the source's ends, where both are known.
    pub lag_records: u64,
    /// Records acknowledged per second.
    pub records_per_second: f64,
    /// Bytes acknowledged per second, as sent.
    pub bytes_per_second: f64,
    /// What the last plan would not do.
    pub refusals: Vec<String>,
    /// What went wrong last on the level of the flow.
    pub last_error: Option<ErrorView>,
    /// The plugins that it uses now, in the order of its list.
    #[serde(default)]
    pub plugins: Vec<PluginView>,
    /// The partitions that this process relays.
    pub partitions: Vec<PartitionView>,
}

/// One plugin of a flow. Figures are summed over this process's workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct PluginView {
    /// Its name in the configuration.
    pub name: String,
    /// The version that it says it has.
    pub version: String,
    /// SHA-256 of its module, 64 hex digits.
    pub digest: String,
    /// The generation that it belongs to.
    pub generation: u64,
    /// What it answers.
    pub hooks: Vec<String>,
    /// What becomes of a record that it fails at.
    pub on_fault: String,
    /// Calls for records.
    pub calls: u64,
    /// Records that it was shown.
    pub records: u64,
    /// Records that it dropped.
    pub dropped: u64,
    /// Records that it changed.
    pub changed: u64,
    /// Records that it rejected.
    pub rejected: u64,
    /// Calls without a usable answer.
    pub faults: u64,
    /// Memory of its instances together.
    pub memory_bytes: u64,
}

/// Why a partition stands still until it is resumed or a plugin is swapped.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct PausedView {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// The record that stopped it.
    pub offset: i64,
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// The generation that was asked.
    pub generation: u64,
    /// One sentence.
    pub reason: String,
}

/// One partition.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PartitionView {
    /// The topic on the source.
    pub topic: String,
    /// The same number on both sides.
    pub partition: i32,
    /// Its name on the target.
    pub target_topic: String,
    /// The slot that its position lies in.
    pub slot: i32,
    /// The source's end offset as of the last fetch.
    pub source_end: Option<i64>,
    /// First offset that is not settled.
    pub position: Option<i64>,
    /// Offsets between the two; gaps (compaction, transaction markers) count.
    pub lag_records: Option<u64>,
    /// Records acknowledged since this process took the partition.
    pub records: u64,
    /// Bytes acknowledged since then, as sent.
    pub bytes: u64,
    /// Records acknowledged per second.
    pub records_per_second: f64,
    /// Bytes acknowledged per second, as sent.
    pub bytes_per_second: f64,
    /// Batches by what happened to them.
    pub batches: TierView,
    /// Records that plugins dropped.
    #[serde(default)]
    pub dropped: u64,
    /// Records that plugins changed and that were sent so.
    #[serde(default)]
    pub changed: u64,
    /// Records that went to the quarantine topic instead.
    #[serde(default)]
    pub quarantined: u64,
    /// The generation of plugins that edits it.
    #[serde(default)]
    pub generation: Option<u64>,
    /// The first source offset that this generation edits.
    #[serde(default)]
    pub generation_first_offset: Option<i64>,
    /// Why it stands still, if a plugin stopped it.
    #[serde(default)]
    pub paused: Option<PausedView>,
    /// What went wrong last.
    pub last_error: Option<ErrorView>,
}

/// Batches by tier.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct TierView {
    /// Header patched, payload untouched.
    pub pass: u64,
    /// Several small ones sent as one; counted as sent.
    pub merge: u64,
    /// Re-encoded.
    pub rewrite: u64,
}

/// Something that went wrong.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct ErrorView {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// One sentence.
    pub message: String,
}

impl StatusView {
    pub(super) fn new(flows: &[FlowSnapshot], rates: &Rates, uptime: Duration) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: uptime.as_secs(),
            flows: flows.iter().map(|flow| flow_view(flow, rates)).collect(),
        }
    }
}

fn flow_view(flow: &FlowSnapshot, rates: &Rates) -> FlowView {
    let view = |(partition, stats): (&SourcePartition, &std::sync::Arc<PartitionStats>)| {
        partition_view(partition, stats, rates.of(&flow.name, partition))
    };
    let partitions: Vec<PartitionView> = flow.partitions.iter().map(view).collect();
    FlowView {
        name: name_text(&flow.name),
        state: state_word(flow.state).to_owned(),
        slots: flow.slots.iter().map(|slot| slot.0).collect(),
        lag_records: partitions.iter().filter_map(|partition| partition.lag_records).sum(),
        records_per_second: partitions.iter().fold(0.0, |sum, partition| sum + partition.records_per_second),
        bytes_per_second: partitions.iter().fold(0.0, |sum, partition| sum + partition.bytes_per_second),
        refusals: flow.refusals.clone(),
        last_error: flow.last_error.clone().map(error_view),
        plugins: flow.plugins.iter().map(plugin_view).collect(),
        partitions,
    }
}

fn partition_view(partition: &SourcePartition, stats: &PartitionStats, rate: Rate) -> PartitionView {
    let known = |value: i64| (value >= 0).then_some(value);
    let batches = |tier: usize| stats.batches[tier].load(Ordering::Relaxed);
    let changeover = stats.changeover();
    PartitionView {
        topic: partition.topic.to_string(),
        partition: partition.partition,
        target_topic: stats.target_topic.to_string(),
        slot: stats.slot.0,
        source_end: known(stats.source_end.load(Ordering::Relaxed)),
        position: known(stats.position.load(Ordering::Relaxed)),
        lag_records: stats.lag_records(),
        records: stats.records.load(Ordering::Relaxed),
        bytes: stats.bytes.load(Ordering::Relaxed),
        records_per_second: rate.records_per_second,
        bytes_per_second: rate.bytes_per_second,
        batches: TierView { pass: batches(0), merge: batches(1), rewrite: batches(2) },
        dropped: stats.dropped.load(Ordering::Relaxed),
        changed: stats.changed.load(Ordering::Relaxed),
        quarantined: stats.quarantined.load(Ordering::Relaxed),
        generation: changeover.map(|changeover| changeover.generation),
        generation_first_offset: changeover.and_then(|changeover| Some(changeover.first_offset?.0)),
        paused: stats.paused().map(paused_view),
        last_error: stats.last_error().map(error_view),
    }
}

fn paused_view(paused: Paused) -> PausedView {
    let Paused { at_ms, offset, plugin, generation, reason } = paused;
    PausedView { at_ms, offset: offset.0, plugin, generation, reason }
}

fn plugin_view(plugin: &PluginFigures) -> PluginView {
    PluginView {
        name: plugin.name.clone(),
        version: plugin.version.clone(),
        digest: plugin.digest.clone(),
        generation: plugin.generation,
        hooks: plugin.hooks.iter().map(|hook| (*hook).to_owned()).collect(),
        on_fault: plugin.on_fault.to_owned(),
        calls: plugin.calls,
        records: plugin.records,
        dropped: plugin.dropped,
        changed: plugin.changed,
        rejected: plugin.rejected,
        faults: plugin.faults.iter().map(|(_, count)| count).sum(),
        memory_bytes: plugin.memory_bytes,
    }
}

fn error_view(error: crate::status::LastError) -> ErrorView {
    ErrorView { at_ms: error.at_ms, message: error.message }
}

fn name_text(name: &FlowName) -> String {
    name.to_string()
}

/// The state as status spells it.
pub fn state_word(state: FlowState) -> &'static str {
    match state {
        FlowState::Starting => "starting",
        FlowState::Running => "running",
        FlowState::WaitingForMirrorMaker => "waiting-for-mirror-maker",
        FlowState::Stopping => "stopping",
        FlowState::Failed => "failed",
    }
}
