//! A chain of one plugin, for looking at it alone.

use std::sync::Arc;

use crate::plugin::{Chain, ChainPlugin, LoadError, LoadedPlugin};

/// Makes the plugin's instance and a chain of it.
pub fn alone(plugin: &Arc<LoadedPlugin>) -> Result<Chain, LoadError> {
    let needed = plugin.needs.clone().unwrap_or_default();
    let chained = ChainPlugin {
        name: plugin.config.name.clone(),
        version: plugin.about.version.clone(),
        digest: plugin.about.digest.clone(),
        topics: plugin.config.topics.clone(),
        on_fault: plugin.config.on_fault,
        memory_bytes: plugin.config.memory_bytes,
        needed,
        source: Arc::clone(plugin) as Arc<_>,
    };
    Chain::of(1, vec![chained])
}
