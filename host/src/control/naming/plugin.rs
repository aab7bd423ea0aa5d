//! The naming plugin as the flow's namer.

use std::collections::BTreeMap;

use anyhow::Context;

use super::{Naming, TopicNaming};
use crate::config::{FlowConfig, NamingConfig, NamingModule};
use crate::names::ClusterAlias;
use crate::plugin::{Engine, Limits, Link, ModuleSource, NamingPlugin};

impl TopicNaming for NamingPlugin {
    fn name(&self) -> &str {
        &self.about().name
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        NamingPlugin::to_target(self, topic).map_err(|fault| fault.to_string())
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        NamingPlugin::to_source(self, topic).map_err(|fault| fault.to_string())
    }
}

impl Naming {
    /// Loads the flow's naming plugin, once for the flow and once in the place of each other cluster of the file.
    pub fn load(
        engine: &Engine,
        flow: &FlowConfig,
        aliases: &[ClusterAlias],
        reverse_is_enabled: bool,
    ) -> anyhow::Result<Self> {
        let own: Box<dyn TopicNaming> = Box::new(load(engine, flow, &flow.name.source)?);
        let mut others: BTreeMap<ClusterAlias, Box<dyn TopicNaming>> = BTreeMap::new();
        for alias in aliases.iter().filter(|alias| **alias != flow.name.source) {
            others.insert(alias.clone(), Box::new(load(engine, flow, alias)?));
        }
        Ok(Self::new(flow, own, others, reverse_is_enabled))
    }
}

fn load(engine: &Engine, flow: &FlowConfig, source: &ClusterAlias) -> anyhow::Result<NamingPlugin> {
    let NamingConfig { module, settings_json, deadline, memory_bytes, .. } = &flow.naming;
    let link = Link {
        name: format!("{source}->{}", flow.name.target),
        source_cluster: source.to_string(),
        target_cluster: flow.name.target.to_string(),
    };
    let limits = Limits { deadline: *deadline, memory_bytes: *memory_bytes };
    NamingPlugin::load(engine, &module_source(module), &link, settings_json, limits)
        .with_context(|| format!("could not load the naming plugin of flow {}", flow.name))
}

fn module_source(module: &NamingModule) -> ModuleSource {
    match module {
        NamingModule::DefaultPolicy => ModuleSource::Builtin("default-policy".to_owned()),
        NamingModule::IdentityPolicy => ModuleSource::Builtin("identity-policy".to_owned()),
        NamingModule::File(path) => ModuleSource::File(path.clone()),
    }
}
