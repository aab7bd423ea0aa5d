//! The plugins of a flow, in the order in which the file lists them, and where their quarantine is.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::filter::TopicFilter;

/// The name that the naming plugin of `replication.policy.class` and `tidegate.naming.module` has; no plugin of the list
/// may take it.
pub const NAMING_PLUGIN_NAME: &str = "naming";

/// `.deadline.ms` when the file does not say.
pub(super) const DEADLINE_MS: i64 = 50;

/// `.memory.mb` when the file does not say.
pub(super) const MEMORY_MIB: i64 = 64;

/// Where a plugin's module comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginModule {
    /// `builtin:NAME`: comes with Tidegate. The name may be unknown until the module is loaded.
    Builtin(String),
    /// A file. A relative path starts at the folder of the properties file.
    File(PathBuf),
}

impl fmt::Display for PluginModule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin(name) => write!(formatter, "builtin:{name}"),
            Self::File(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// What happens to the one record on which a plugin fails, or which it rejects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFault {
    /// Its partition stops there until someone decides. Nothing is lost and nothing leaks.
    #[default]
    Pause,
    /// It goes on as this plugin got it. For plugins that keep nothing back.
    Pass,
    /// It is not copied.
    Drop,
    /// It is put into the quarantine topic as it was read, and not copied.
    Quarantine,
}

impl OnFault {
    /// Every one, by the word that the file has for it.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("pause", Self::Pause),
        ("pass", Self::Pass),
        ("drop", Self::Drop),
        ("quarantine", Self::Quarantine),
    ];
}

impl fmt::Display for OnFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Pause => "pause",
            Self::Pass => "pass",
            Self::Drop => "drop",
            Self::Quarantine => "quarantine",
        })
    }
}

/// One plugin of a flow, from `tidegate.plugin.NAME.*`.
#[derive(Clone, PartialEq, Eq)]
pub struct PluginConfig {
    /// Its name in `tidegate.plugins`: letters, digits, `_` and `-`.
    pub name: String,
    /// `.module`.
    pub module: PluginModule,
    /// `.sha256`: the module's digest in 64 lower-case hex digits; another module is refused. None: any module.
    pub sha256: Option<String>,
    /// `.settings` or the text of `.settings.file`, default `{}`: one JSON object. May hold secrets.
    pub settings_json: String,
    /// `.topics` (default `.*`) less `.topics.exclude` (default: none): the source topics whose records the plugin sees.
    /// Only the hook for records asks for it.
    pub topics: TopicFilter,
    /// `.on.fault`, default `pause`.
    pub on_fault: OnFault,
    /// `.deadline.ms`, default 50: how long one call may run. A batch takes some microseconds to a millisecond; 50 ms lets
    /// a loaded machine breathe and still ends an endless loop.
    pub deadline: Duration,
    /// `.memory.mb`, default 64 MiB: how much memory an instance may have; there is one for each worker. JavaScript and
    /// Python want 128 to 256.
    pub memory_bytes: usize,
}

impl PluginConfig {
    /// A plugin of which nothing but its module is said: the file's defaults for the rest.
    pub fn with_defaults(name: &str, module: PluginModule) -> Self {
        Self {
            name: name.to_owned(),
            module,
            sha256: None,
            settings_json: "{}".to_owned(),
            topics: TopicFilter::everything(),
            on_fault: OnFault::Pause,
            deadline: Duration::from_millis(DEADLINE_MS.unsigned_abs()),
            memory_bytes: MEMORY_MIB as usize * 1_048_576,
        }
    }
}

/// Without the settings, which may hold a secret.
impl fmt::Debug for PluginConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PluginConfig")
            .field("name", &self.name)
            .field("module", &self.module)
            .field("sha256", &self.sha256)
            .field("topics", &self.topics)
            .field("on_fault", &self.on_fault)
            .field("deadline", &self.deadline)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}

/// The cluster on which quarantined records are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuarantineSide {
    /// Where they come from, so that nothing crosses that a policy could not judge.
    #[default]
    Source,
    /// Where they would have gone.
    Target,
}

impl fmt::Display for QuarantineSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

/// Where records go that a plugin could not judge or rejected, and whose `on.fault` is `quarantine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineConfig {
    /// `tidegate.quarantine.topic`, default `tidegate-quarantine.<target>.internal`. Its name is one that no flow copies.
    pub topic: String,
    /// `tidegate.quarantine.side`, default `source`.
    pub side: QuarantineSide,
    /// `tidegate.quarantine.replication.factor`, default −1: the broker's default.
    pub replication_factor: i16,
}
