//! Figures of a flow's plugins, as plain values: the plugins themselves are on a floor above, so the flow says where
//! the figures come from.

use std::fmt;
use std::sync::Arc;

/// What one plugin of a flow did, summed over all workers, since it was loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginFigures {
    /// Its name in the configuration.
    pub name: String,
    /// The version that it says it has.
    pub version: String,
    /// SHA-256 of its module, 64 hex digits.
    pub digest: String,
    /// The generation that it belongs to.
    pub generation: u64,
    /// What it answers: `records`, `topic-naming`, `selection`, `acl-mapping`.
    pub hooks: Vec<&'static str>,
    /// What becomes of a record that it fails at: `pause`, `pass`, `drop`, `quarantine`.
    pub on_fault: &'static str,
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
    /// Faults by kind (`trap`, `deadline`, `memory`, `answer`).
    pub faults: Vec<(&'static str, u64)>,
    /// How long its calls took.
    pub call_seconds: TimeHistogram,
    /// Linear memory of all its instances together, in bytes.
    pub memory_bytes: u64,
    /// The plugin's own counters, by name.
    pub counters: Vec<(String, u64)>,
}

/// Times by bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeHistogram {
    /// Upper bound of each bucket in seconds, rising, and how many lie in it alone (not cumulated). What is longer than
    /// the last bound is in `count` only.
    pub buckets: Vec<(f64, u64)>,
    /// All times together, in seconds.
    pub sum_seconds: f64,
    /// How many.
    pub count: u64,
}

/// Where the figures of a flow's plugins come from. Asked when somebody looks, never by the data path.
#[derive(Clone, Default)]
pub struct PluginSource(Option<Arc<dyn Fn() -> Vec<PluginFigures> + Send + Sync>>);

impl PluginSource {
    /// Figures that `ask` brings.
    pub fn new(ask: impl Fn() -> Vec<PluginFigures> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ask)))
    }

    /// The figures now; none where no source was named.
    pub fn figures(&self) -> Vec<PluginFigures> {
        self.0.as_ref().map(|ask| ask()).unwrap_or_default()
    }
}

impl fmt::Debug for PluginSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PluginSource").field(&self.0.is_some()).finish()
    }
}
