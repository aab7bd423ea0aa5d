//! What one flow is told to do, parsed and checked. Below this folder no setting is a string that someone must still
//! read; the defaults are MirrorMaker 2's unless the field says otherwise.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::client_config::{AdminClientConfig, ConnectionConfig, SourceClientConfig, TargetClientConfig};
use super::filter::{GroupFilter, PropertyFilter, TopicFilter};
use super::plugin_config::{NAMING_PLUGIN_NAME, OnFault, PluginConfig, QuarantineConfig};
use super::plugins;
use crate::names::{ClusterAlias, FlowName};

/// Where a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The alias in `clusters`.
    pub alias: ClusterAlias,
    /// `X.bootstrap.servers`, else the top level `bootstrap.servers` (as MirrorMaker 2: the top level leaks into every
    /// cluster). At least one `host:port` for each cluster of a flow that runs.
    pub bootstrap_servers: Vec<String>,
}

/// One direction that runs: `S->T.enabled = true` and `T` among `--clusters`.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// `S->T`.
    pub name: FlowName,
    /// `topics` (default `.*`) less `topics.exclude` (default `.*[\-\.]internal, .*\.replica, __.*`).
    pub topics: TopicFilter,
    /// `groups` (default `.*`) less `groups.exclude` (default `console-consumer-.*, connect-.*, __.*`).
    pub groups: GroupFilter,
    /// Who names the topics on the target: `replication.policy.class` or `tidegate.naming.module`.
    pub naming: NamingConfig,
    /// `tidegate.plugins`: every plugin of the flow, in the order in which they are asked.
    pub plugins: Vec<PluginConfig>,
    /// Where records are kept that a plugin could not judge.
    pub quarantine: QuarantineConfig,
    /// How MirrorMaker 2's own topics are recognised.
    pub internal_topics: InternalTopics,
    /// `replication.factor` of topics that are created on the target; −1 is the target broker's default. MirrorMaker 2's
    /// default is 2, which a cluster of one broker refuses.
    pub replication_factor: i16,
    /// `refresh.topics.interval.seconds` (default 600 s): how long a new topic or partition waits at most. None:
    /// `refresh.topics.enabled = false` or a negative interval; then topics are looked up at start only.
    pub refresh_topics: Option<Duration>,
    /// `config.properties.exclude`: topic settings that are not copied when a topic is created.
    pub config_properties_exclude: PropertyFilter,
    /// `S->T.use.defaults.from = source` (default `target`; the top level is not read): also copy the settings that the
    /// source topic only has by default.
    pub use_defaults_from_source: bool,
    /// `heartbeats.replication.enabled` (default true): heartbeats topics go past the topic filter.
    pub heartbeats_replication: bool,
    /// Where positions are kept.
    pub positions: PositionsConfig,
    /// The consumer group on the target that shares the slots out.
    pub group: GroupConfig,
    /// The source's reader.
    pub source: SourceClientConfig,
    /// The target's writer.
    pub target: TargetClientConfig,
    /// The control loop's client of the source.
    pub source_admin: AdminClientConfig,
    /// The control loop's client of the target.
    pub target_admin: AdminClientConfig,
}

/// The flow's positions topic, MirrorMaker 2's `mm2-offsets.S.internal` on the target: a running MirrorMaker 2 can be
/// replaced, and put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionsConfig {
    /// `offset.storage.topic`, default `mm2-offsets.S.internal`.
    pub topic: String,
    /// `offset.storage.partitions`, default 25: the number of slots, so the most workers that can share the flow.
    /// −1 is the target broker's default.
    pub partitions: i32,
    /// `offset.storage.replication.factor`, default 3; −1 is the target broker's default.
    pub replication_factor: i16,
    /// `offset.storage.<topic setting>`, used at creation. `cleanup.policy` is always `compact` and never in here.
    pub topic_configs: Vec<(String, String)>,
    /// How often progress is stored: `T.offset.flush.interval.ms`, at most [`FLUSH_INTERVAL_MS_MAX`], which is also the
    /// default (MirrorMaker 2: 60 s). A shorter time means fewer records twice after a crash and more small writes.
    pub flush_interval: Duration,
}

/// Positions are stored at least this often, in milliseconds. MirrorMaker 2 waits a minute by default and so repeats
/// up to a minute of records after a crash; storing costs one small record per busy partition, which is cheap here.
pub const FLUSH_INTERVAL_MS_MAX: u64 = 5_000;

/// The consumer group on the target whose members share the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `T.group.id`, default `S-mm2`.
    pub id: String,
    /// `T.session.timeout.ms`, default 10 s: a process that is silent so long has lost its slots. Shorter finds a dead
    /// process sooner and takes a slow network for death. In the classic group protocol alone; with KIP-848 the broker
    /// decides.
    pub session_timeout: Duration,
    /// `T.heartbeat.interval.ms`, default 3 s; less than the session timeout. In the classic group protocol alone.
    pub heartbeat_interval: Duration,
    /// `T.rebalance.timeout.ms`, default 60 s: how long a member may settle before slots are taken from it.
    pub rebalance_timeout: Duration,
    /// Connection settings of the member, from `T.<setting>`.
    pub connection: ConnectionConfig,
}

/// Which component names topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamingModule {
    /// MirrorMaker 2's DefaultReplicationPolicy: `source.topic`.
    DefaultPolicy,
    /// MirrorMaker 2's IdentityReplicationPolicy: names stay.
    IdentityPolicy,
    /// One's own component. A relative path starts at the folder of the properties file.
    File(PathBuf),
}

/// The naming plugin of a flow.
#[derive(Clone, PartialEq, Eq)]
pub struct NamingConfig {
    /// The file names the module or the class; then no plugin of the list may name topics beside it.
    pub is_explicit: bool,
    /// `tidegate.naming.module` (a path or `builtin:default-policy`, `builtin:identity-policy`), else
    /// `replication.policy.class`.
    pub module: NamingModule,
    /// One JSON object. `{"separator":"."}` from `replication.policy.separator` for the two built in;
    /// `tidegate.naming.settings`, default `{}`, for one's own.
    pub settings_json: String,
    /// `tidegate.naming.deadline.ms`, default 50: how long one call may run. A name takes microseconds; 50 ms lets a
    /// loaded machine breathe and still ends an endless loop. No Kafka property.
    pub deadline: Duration,
    /// `tidegate.naming.memory.mb`, default 64 MiB: how much memory an instance may have. No Kafka property.
    pub memory_bytes: usize,
}

impl NamingConfig {
    /// The same as a plugin, under its reserved name.
    pub fn as_plugin(&self) -> PluginConfig {
        PluginConfig {
            name: NAMING_PLUGIN_NAME.to_owned(),
            module: plugins::naming_module(&self.module),
            sha256: None,
            settings_json: self.settings_json.clone(),
            topics: TopicFilter::everything(),
            on_fault: OnFault::Pause,
            deadline: self.deadline,
            memory_bytes: self.memory_bytes,
        }
    }
}

/// Without the settings, which may hold a secret.
impl fmt::Debug for NamingConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NamingConfig")
            .field("module", &self.module)
            .field("deadline", &self.deadline)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}

/// How the topics of MirrorMaker 2 itself are spelled (`mm2-offset-syncs<sep>B<sep>internal`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopics {
    /// `replication.policy.separator`, or `.` when `replication.policy.internal.topic.separator.enabled = false`
    /// (KIP-949).
    pub separator: String,
}
