//! The hook that names topics: started once for a flow (or for an alias whose names are looked at), then asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::Engine;
use super::fault::Fault;
use super::inspect::Interface;
use super::instance::{Instance, Link, Question};
use super::journal::one_line;
use super::limits::Limits;
use super::load::{CompiledModule, LoadError, ModuleSource};
use super::loaded::About;
use super::recipe::{self, Order};
use super::seat::Seat;
use super::stats::PluginStats;

/// Longer answers are no answers; Kafka takes names of 249 bytes.
const NAME_BYTES_MAX: usize = 4096;

/// A started plugin that names topics. The answers are pure: ask once a topic and keep what it says.
pub struct NamingPlugin {
    pub(super) about: About,
    pub(super) seat: Seat,
}

impl NamingPlugin {
    /// Loads the module (free if it is loaded already) and starts it.
    pub fn load(
        engine: &Engine,
        source: &ModuleSource,
        link: &Link,
        settings_json: &str,
        limits: Limits,
    ) -> Result<Self, LoadError> {
        Self::start(&CompiledModule::load(engine, source)?, link, settings_json, limits)
    }

    /// Makes an instance, gives it its settings and has it test itself: about 0.1 ms. What the plugin refuses is final;
    /// after a fault a fresh instance is tried, as with a question.
    pub fn start(
        module: &CompiledModule,
        link: &Link,
        settings_json: &str,
        limits: Limits,
    ) -> Result<Self, LoadError> {
        module.require(Interface::TopicNaming)?;
        let proven = recipe::prove(Order { module, name: None, link, settings_json, limits })?;
        let stats = Arc::new(PluginStats::default());
        Ok(Self { about: proven.about, seat: Seat::new(proven.recipe, stats, Some(proven.instance)) })
    }

    /// What it says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What it counted, by its own names; over all its instances. At most 64.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        self.seat.recipe.journal.counters()
    }

    /// The name on the target of the source's `topic`, not checked for anything but a sane length. The inner error
    /// is the plugin's own: the topic shall not be replicated.
    pub fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, Fault> {
        self.seat.ask(|instance| instance.name_on_target(topic))
    }

    /// The source's topic that `topic` on the target stands for; `None` if the plugin never makes that name.
    pub fn to_source(&mut self, topic: &str) -> Result<Option<String>, Fault> {
        self.seat.ask(|instance| instance.name_on_source(topic))
    }
}

impl Instance {
    /// The inner error is the plugin's own: it does not want this topic to be replicated.
    fn name_on_target(&mut self, topic: &str) -> Result<Result<String, String>, Fault> {
        let question = Question::ToTarget(topic);
        match self.ask(question, |exports, store| exports.naming()?.call_to_target(store, topic))? {
            Ok(name) => self.checked_name(question, name).map(Ok),
            Err(message) => Ok(Err(one_line(&message))),
        }
    }

    fn name_on_source(&mut self, topic: &str) -> Result<Option<String>, Fault> {
        let question = Question::ToSource(topic);
        let name = self.ask(question, |exports, store| exports.naming()?.call_to_source(store, topic))?;
        name.map(|name| self.checked_name(question, name)).transpose()
    }

    fn checked_name(&self, question: Question<'_>, name: String) -> Result<String, Fault> {
        if name.len() <= NAME_BYTES_MAX {
            return Ok(name);
        }
        Err(self.bad_answer(question, format!("a name of {} bytes", name.len())))
    }
}
