//! What a flow runs under a number: its plugins, all of them, in the list's order. A swap makes the next one.

use std::sync::Arc;

use super::chain::{Chain, ChainPlugin};
use super::load::LoadError;
use super::loaded::LoadedPlugin;

/// The plugins of a flow at one time. Never changes; workers share it.
#[derive(Debug)]
pub struct Generation {
    /// 1 is the first; each published one is higher.
    pub number: u64,
    /// In the order of `tidegate.plugins`. Those that edit records are the chain.
    pub plugins: Vec<Arc<LoadedPlugin>>,
}

impl Chain {
    /// Makes a worker's instance of each record plugin. Takes some 0.1 ms for compiled plugins and up to their deadlines for
    /// bad ones, so it is done beside the worker's thread.
    pub fn start(generation: &Arc<Generation>) -> Result<Self, LoadError> {
        let plugins = generation.plugins.iter().filter(|plugin| plugin.hooks.records);
        Self::of(generation.number, plugins.map(ChainPlugin::loaded).collect())
    }
}

impl ChainPlugin {
    /// As the plugin's configuration says. Whether it edits records is for the caller.
    pub fn loaded(plugin: &Arc<LoadedPlugin>) -> Self {
        let (config, about) = (&plugin.config, &plugin.about);
        Self {
            name: config.name.clone(),
            version: about.version.clone(),
            digest: about.digest.clone(),
            topics: config.topics.clone(),
            on_fault: config.on_fault,
            memory_bytes: config.memory_bytes,
            needed: plugin.needs.clone().unwrap_or_default(),
            source: Arc::<LoadedPlugin>::clone(plugin),
        }
    }
}
