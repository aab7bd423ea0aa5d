//! The plugins of a flow, loaded: from what is wanted to a generation that workers and the control loop can take. Loading may
//! compile, so it is done beside the loop; whatever can't be loaded is an error, and nothing runs without it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;

use super::decision::{DecidedPlugin, ModuleIdentity};
use crate::config::{FlowConfig, NAMING_PLUGIN_NAME, OnFault, PluginConfig, PluginModule};
use crate::control::{Naming, Policies, TopicNaming};
use crate::names::ClusterAlias;
use crate::plugin::{
    CALL_TIME_BOUNDS_NS, Chain, ChainPlugin, Engine, FaultKind, Link, LoadedPlugin, read_module,
};
use crate::status::{PluginFigures, PluginSource, TimeHistogram};

/// Where a wanted plugin comes from.
#[derive(Clone)]
pub(super) enum Origin {
    /// It runs already, just so.
    Loaded(Arc<LoadedPlugin>),
    /// A module that came over the network.
    Bytes(Bytes),
    /// As its configuration says.
    Config,
}

/// A plugin that shall be part of a generation.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) config: PluginConfig,
    pub(super) origin: Origin,
}

/// What the configuration file says: the list, and behind it the naming plugin.
pub(super) fn of_file(flow: &FlowConfig) -> Vec<Wanted> {
    let configs = flow.plugins.iter().cloned().chain([flow.naming.as_plugin()]);
    configs.map(|config| Wanted { config, origin: Origin::Config }).collect()
}

/// The bytes of modules, by their digests.
pub(super) type Modules = BTreeMap<String, Bytes>;

/// Loads plugins of one flow.
#[derive(Clone)]
pub(super) struct Loader {
    pub(super) engine: Engine,
    pub(super) flow: Arc<FlowConfig>,
    /// Every cluster of the file.
    pub(super) aliases: Arc<[ClusterAlias]>,
    pub(super) reverse_is_enabled: bool,
    pub(super) worker_count: usize,
}

/// Plugins that were proved, in the list's order; the naming plugin of the file is the last.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) plugins: Vec<Arc<LoadedPlugin>>,
    /// Their modules; those that the binary carries are not here.
    pub(super) modules: Modules,
}

/// A generation that workers and the control loop can take.
pub(super) struct Ready {
    pub(super) number: u64,
    pub(super) loaded: Loaded,
    /// One for each worker.
    pub(super) chains: Vec<Chain>,
    /// For the control loop.
    pub(super) policies: Policies,
}

impl Loader {
    /// Loads what is wanted. Blocks; compiles what is not in the cache.
    /// `known` are modules that were loaded before; those that are used again are kept.
    pub(super) fn load(&self, wanted: Vec<Wanted>, known: &Modules) -> anyhow::Result<Loaded> {
        let mut loaded = Loaded { plugins: Vec::new(), modules: Modules::new() };
        for Wanted { config, origin } in wanted {
            let plugin = self.load_one(&config, origin, &mut loaded.modules).with_context(|| match config
                .name
                .as_str()
            {
                NAMING_PLUGIN_NAME => format!("could not load the naming plugin of flow {}", self.flow.name),
                name => format!("could not load plugin \"{name}\" of flow {}", self.flow.name),
            })?;
            if let Some(bytes) = known.get(&plugin.about.digest) {
                loaded.modules.insert(plugin.about.digest.clone(), bytes.clone());
            }
            loaded.plugins.push(plugin);
        }
        loaded.namer()?;
        Ok(loaded)
    }

    fn load_one(
        &self,
        config: &PluginConfig,
        origin: Origin,
        modules: &mut Modules,
    ) -> anyhow::Result<Arc<LoadedPlugin>> {
        let bytes = match origin {
            Origin::Loaded(plugin) => return Ok(plugin),
            Origin::Bytes(bytes) => bytes,
            Origin::Config => match read_module(&config.module)? {
                std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
            },
        };
        let plugin =
            LoadedPlugin::load_bytes(&self.engine, config, &self.link(&self.flow.name.source), &bytes)?;
        if matches!(config.module, PluginModule::File(_)) {
            modules.insert(plugin.about.digest.clone(), bytes);
        }
        Ok(Arc::new(plugin))
    }

    /// Makes the workers' instances, and those that the control loop asks. Blocks.
    pub(super) fn ready(&self, number: u64, loaded: Loaded) -> anyhow::Result<Ready> {
        let chains = (0..self.worker_count.max(1))
            .map(|_| loaded.chain(number, None))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let wants_quarantine = loaded.listed().any(|plugin| plugin.config.on_fault == OnFault::Quarantine);
        let mut policies = Policies::new(self.naming(&loaded)?).wanting_quarantine(wants_quarantine);
        for plugin in loaded.listed() {
            if plugin.hooks.selection {
                policies = policies.selecting(&plugin.config.name, plugin.selection());
            }
            if plugin.hooks.acl_mapping {
                policies = policies.mapping(&plugin.config.name, plugin.acl_mapping());
            }
        }
        Ok(Ready { number, loaded, chains, policies })
    }

    /// What names topics, for this flow and in the place of each other cluster of the file.
    pub(super) fn naming(&self, loaded: &Loaded) -> anyhow::Result<Naming> {
        let own = loaded.namer()?;
        let is_listed = own.config.name != NAMING_PLUGIN_NAME;
        ensure!(
            !is_listed || !self.flow.naming.is_explicit,
            "plugin \"{}\" names topics, and the file names another for that; take one of them out of the file \
             (tidegate.plugins, or replication.policy.class and tidegate.naming.module)",
            own.config.name
        );
        let context = || format!("could not load the naming plugin of flow {}", self.flow.name);
        let config = &own.config;
        let mut others: BTreeMap<ClusterAlias, Box<dyn TopicNaming>> = BTreeMap::new();
        for alias in self.aliases.iter().filter(|alias| **alias != self.flow.name.source) {
            let link = self.link(alias);
            let other = match loaded.modules.get(&own.about.digest) {
                Some(bytes) => LoadedPlugin::load_bytes(&self.engine, config, &link, bytes),
                None => LoadedPlugin::load(&self.engine, config, &link),
            };
            others.insert(alias.clone(), Box::new(other.with_context(context)?.naming()));
        }
        Ok(Naming::new(&self.flow, Box::new(own.naming()), others, self.reverse_is_enabled))
    }

    fn link(&self, source: &ClusterAlias) -> Link {
        let target = &self.flow.name.target;
        Link {
            name: format!("{source}->{target}"),
            source_cluster: source.to_string(),
            target_cluster: target.to_string(),
        }
    }
}

impl Loaded {
    /// As it is written down.
    pub(super) fn decided(&self) -> Vec<DecidedPlugin> {
        let decided = |plugin: &Arc<LoadedPlugin>| {
            let about = &plugin.about;
            let identity = ModuleIdentity {
                digest: about.digest.clone(),
                size_bytes: about.size_bytes as u64,
                plugin: about.name.clone(),
                version: about.version.clone(),
            };
            DecidedPlugin::new(&plugin.config, &identity)
        };
        self.plugins.iter().map(decided).collect()
    }

    /// The plugin of that name.
    pub(super) fn plugin(&self, name: &str) -> Option<&Arc<LoadedPlugin>> {
        self.plugins.iter().find(|plugin| plugin.config.name == name)
    }

    /// The plugin that names topics: one of the list that can, else the file's naming plugin.
    pub(super) fn namer(&self) -> anyhow::Result<&Arc<LoadedPlugin>> {
        let can = |plugin: &&Arc<LoadedPlugin>| plugin.hooks.topic_naming;
        let (own, listed): (Vec<_>, Vec<_>) =
            self.plugins.iter().partition(|plugin| plugin.config.name == NAMING_PLUGIN_NAME);
        let mut listed = listed.into_iter().filter(can);
        match (listed.next(), listed.next()) {
            (Some(one), Some(other)) => bail!(
                "plugins \"{}\" and \"{}\" both name topics, and only one may; take one of them out of tidegate.plugins",
                one.config.name,
                other.config.name
            ),
            (Some(one), None) => Ok(one),
            (None, _) => {
                let own = own.into_iter().next().context("no plugin names topics")?;
                ensure!(
                    own.hooks.topic_naming,
                    "plugin {} does not name topics: it exports {}",
                    own.config.module,
                    own.hooks
                );
                Ok(own)
            }
        }
    }

    /// Whether the plugin that names topics is the same one.
    pub(super) fn names_as(&self, other: &Loaded) -> bool {
        matches!((self.namer(), other.namer()), (Ok(one), Ok(other)) if Arc::ptr_eq(one, other))
    }

    /// A chain of the plugins that edit records; instances of its own. `on_fault` in place of each plugin's.
    pub(super) fn chain(&self, number: u64, on_fault: Option<OnFault>) -> anyhow::Result<Chain> {
        let stage = |plugin| {
            let stage = chain_plugin(plugin)?;
            Some(ChainPlugin { on_fault: on_fault.unwrap_or(stage.on_fault), ..stage })
        };
        let stages = self.listed().filter_map(stage).collect();
        Chain::of(number, stages).context("could not start the chain")
    }

    /// The plugins of the list.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Arc<LoadedPlugin>> {
        self.plugins.iter().filter(|plugin| plugin.config.name != NAMING_PLUGIN_NAME)
    }

    /// For metrics and status.
    pub(super) fn figures(&self, number: u64) -> PluginSource {
        let plugins = self.plugins.clone();
        PluginSource::new(move || plugins.iter().map(|plugin| figures(plugin, number)).collect())
    }
}

fn chain_plugin(plugin: &Arc<LoadedPlugin>) -> Option<ChainPlugin> {
    if !plugin.hooks.records {
        return None;
    }
    let config = &plugin.config;
    Some(ChainPlugin {
        name: config.name.clone(),
        version: plugin.about.version.clone(),
        digest: plugin.about.digest.clone(),
        topics: config.topics.clone(),
        on_fault: config.on_fault,
        memory_bytes: config.memory_bytes,
        needed: plugin.needs.clone().unwrap_or_default(),
        source: Arc::clone(plugin) as _,
    })
}

fn figures(plugin: &LoadedPlugin, generation: u64) -> PluginFigures {
    let stats = plugin.stats.snapshot();
    let bounds = CALL_TIME_BOUNDS_NS.iter().map(|bound_ns| *bound_ns as f64 / 1e9);
    let on_fault = OnFault::WORDS.iter().find(|(_, value)| *value == plugin.config.on_fault);
    PluginFigures {
        name: plugin.config.name.clone(),
        version: plugin.about.version.clone(),
        digest: plugin.about.digest.clone(),
        generation,
        hooks: plugin.hooks.words(),
        on_fault: on_fault.map_or("pause", |(word, _)| word),
        calls: stats.calls,
        records: stats.records,
        dropped: stats.dropped,
        changed: stats.changed,
        rejected: stats.rejected,
        faults: FaultKind::ALL.iter().map(|kind| kind.word()).zip(stats.faults).collect(),
        call_seconds: TimeHistogram {
            buckets: bounds.zip(stats.call_time_buckets).collect(),
            sum_seconds: stats.call_time_ns_sum as f64 / 1e9,
            count: stats.calls,
        },
        memory_bytes: stats.memory_bytes,
        counters: plugin.counters().into_iter().collect(),
    }
}
