//! A plugin of a flow's list, proved and ready: which hooks it has, and instances for each of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::acl::AclPlugin;
use super::engine::Engine;
use super::fault::Fault;
use super::inspect::{Boundary, Interface};
use super::instance::Link;
use super::limits::Limits;
use super::load::{CompiledModule, LoadError, check_digest, read_module};
use super::naming::NamingPlugin;
use super::recipe::{self, Order, Recipe};
use super::records::{CallFigures, Needed, RecordsCall, RecordsSource};
use super::records_instance::RecordsInstance;
use super::seat::Seat;
use super::selection::SelectionPlugin;
use super::stats::{PluginStats, RecordCounts};
use crate::config::PluginConfig;

/// What a plugin says of itself, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name, one line.
    pub name: String,
    /// Its version, one line.
    pub version: String,
    /// JSON Schema of its settings, if it gave one; settings are checked against it before `init`.
    pub settings_schema: Option<String>,
    /// SHA-256 of the module, 64 hexadecimal digits.
    pub digest: String,
    /// Size of the module.
    pub size_bytes: usize,
}

/// The hooks that a plugin has, by its exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hooks {
    /// It names topics.
    pub topic_naming: bool,
    /// It narrows which topics and groups go.
    pub selection: bool,
    /// It maps access rules.
    pub acl_mapping: bool,
    /// It edits records: part of the flow's chain.
    pub records: bool,
}

impl Hooks {
    pub(super) fn of(boundary: &Boundary) -> Self {
        Self {
            topic_naming: boundary.offers(Interface::TopicNaming),
            selection: boundary.offers(Interface::Selection),
            acl_mapping: boundary.offers(Interface::AclMapping),
            records: boundary.offers(Interface::Records),
        }
    }

    /// The contract's words, in its order.
    pub fn words(self) -> Vec<&'static str> {
        let all = [
            (self.topic_naming, Interface::TopicNaming),
            (self.selection, Interface::Selection),
            (self.acl_mapping, Interface::AclMapping),
            (self.records, Interface::Records),
        ];
        all.into_iter().filter(|(has, _)| *has).map(|(_, interface)| interface.name()).collect()
    }
}

impl fmt::Display for Hooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.words().join(", "))
    }
}

/// A plugin that passed its trial: digest, boundary, settings, self-test. Instances are made from it; they don't hold it.
pub struct LoadedPlugin {
    /// What the operator ordered.
    pub config: PluginConfig,
    /// What it is.
    pub about: About,
    /// What it can be asked.
    pub hooks: Hooks,
    /// The parts of records that it wants to see, if it edits them. Asked with these settings.
    pub needs: Option<Needed>,
    /// What it has done since it was loaded.
    pub stats: Arc<PluginStats>,
    recipe: Arc<Recipe>,
}

impl LoadedPlugin {
    /// Reads `config.module` and proves it. Compiles unless the engine or its cache has the module: call it where that may
    /// take its time (1 ms a KB).
    pub fn load(engine: &Engine, config: &PluginConfig, link: &Link) -> Result<Self, LoadError> {
        Self::load_bytes(engine, config, link, &read_module(&config.module)?)
    }

    /// The same with a module that came another way; `config.module` only names it in sentences.
    pub fn load_bytes(
        engine: &Engine,
        config: &PluginConfig,
        link: &Link,
        bytes: &[u8],
    ) -> Result<Self, LoadError> {
        let name = config.module.to_string();
        if let Some(wanted) = &config.sha256 {
            check_digest(&name, wanted, bytes)?;
        }
        let module = CompiledModule::compile(engine, &name, bytes)?;
        let hooks = Hooks::of(&module.compiled.boundary);
        if hooks == Hooks::default() {
            return Err(LoadError::NoHook { module: name });
        }
        let limits = Limits { deadline: config.deadline, memory_bytes: config.memory_bytes };
        let order = Order {
            module: &module,
            name: Some(&config.name),
            link,
            settings_json: &config.settings_json,
            limits,
        };
        let proven = recipe::prove(order)?;
        Ok(Self {
            config: config.clone(),
            about: proven.about,
            hooks,
            needs: proven.needs,
            stats: Arc::default(),
            recipe: proven.recipe,
        })
    }

    /// An instance for one worker's chain, ready to be asked. Some 0.1 ms for a compiled language.
    pub fn start_records(&self) -> Result<RecordsInstance, LoadError> {
        Ok(RecordsInstance::new(self.recipe.instance()?, Arc::clone(&self.stats)))
    }

    /// Asks with instances of its own; the first is made at the first question. Without the hook each question is a fault.
    pub fn selection(&self) -> SelectionPlugin {
        SelectionPlugin { about: self.about.clone(), seat: self.seat() }
    }

    /// See [`selection`](Self::selection).
    pub fn acl_mapping(&self) -> AclPlugin {
        AclPlugin { about: self.about.clone(), seat: self.seat() }
    }

    /// See [`selection`](Self::selection).
    pub fn naming(&self) -> NamingPlugin {
        NamingPlugin { about: self.about.clone(), seat: self.seat() }
    }

    /// What it counted, by its own names; over all its instances. At most 64.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        self.recipe.journal.counters()
    }

    fn seat(&self) -> Seat {
        Seat::new(Arc::clone(&self.recipe), Arc::clone(&self.stats), None)
    }
}

/// Without the settings, which may hold a secret.
impl fmt::Debug for LoadedPlugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LoadedPlugin")
            .field("config", &self.config)
            .field("about", &self.about)
            .field("hooks", &self.hooks)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

impl RecordsSource for LoadedPlugin {
    fn start(&self) -> Result<Box<dyn RecordsCall>, LoadError> {
        Ok(Box::new(self.start_records()?))
    }

    fn note(&self, call: &CallFigures<'_>) {
        self.stats.note_call(call.elapsed);
        match call.fault.map(Fault::kind) {
            Some(kind) => self.stats.note_fault(kind),
            None => self.stats.note_records(RecordCounts {
                records: call.records,
                dropped: call.dropped,
                changed: call.changed,
                rejected: call.rejected,
            }),
        }
    }
}
