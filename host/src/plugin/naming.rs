//! The plugin that names topics: started once for a flow (or for an alias whose names are looked at), then asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::Engine;
use super::fault::Fault;
use super::inspect::Interface;
use super::instance::{Instance, Link};
use super::journal::{Journal, one_line};
use super::limits::Limits;
use super::load::{CompiledModule, LoadError, ModuleSource};

/// A question is asked this often, each time on another instance, before its fault counts.
const ATTEMPT_COUNT_MAX: u32 = 2;

/// What a plugin says of itself, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name, one line.
    pub name: String,
    /// Its version, one line.
    pub version: String,
    /// JSON Schema of its settings, if it gave one; not checked against yet.
    pub settings_schema: Option<String>,
    /// SHA-256 of the module, 64 hexadecimal digits.
    pub digest: String,
}

/// A started plugin that names topics. The answers are pure: ask once a topic and keep what it says.
pub struct NamingPlugin {
    module: CompiledModule,
    link: Link,
    settings_json: String,
    limits: Limits,
    journal: Arc<Journal>,
    about: About,
    /// As it is called in sentences: `"name" version`.
    label: String,
    /// None after a fault; the next question makes one.
    instance: Option<Instance>,
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
        check_object(&module.name, settings_json)?;
        let journal = Arc::new(Journal::new(&module.name, &link.name));
        let mut attempt = 1;
        let (instance, about, label) = loop {
            match first_instance(module, link, settings_json, limits, &journal) {
                Err(LoadError::Fault(fault)) if attempt < ATTEMPT_COUNT_MAX => {
                    tracing::warn!(flow = %link.name, %fault, "plugin fault at its start, trying a fresh instance");
                    attempt += 1;
                }
                end => break end?,
            }
        };
        Ok(Self {
            module: module.clone(),
            link: link.clone(),
            settings_json: settings_json.to_owned(),
            limits,
            journal,
            about,
            label,
            instance: Some(instance),
        })
    }

    /// What it says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What it counted, by its own names; over all its instances. At most 64.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        self.journal.counters()
    }

    /// The name on the target of the source's `topic`, not checked for anything but a sane length. The inner error
    /// is the plugin's own: the topic shall not be replicated.
    pub fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, Fault> {
        self.ask(|instance| instance.name_on_target(topic))
    }

    /// The source's topic that `topic` on the target stands for; `None` if the plugin never makes that name.
    pub fn to_source(&mut self, topic: &str) -> Result<Option<String>, Fault> {
        self.ask(|instance| instance.name_on_source(topic))
    }

    fn ask<T>(&mut self, question: impl Fn(&mut Instance) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut attempt = 1;
        loop {
            let mut instance = match self.instance.take() {
                Some(instance) => instance,
                None => self.fresh_instance()?,
            };
            match question(&mut instance) {
                Ok(answer) => {
                    self.instance = Some(instance);
                    return Ok(answer);
                }
                Err(fault) if attempt == ATTEMPT_COUNT_MAX => return Err(fault),
                Err(fault) => {
                    tracing::warn!(flow = %self.link.name, %fault, "plugin fault, asking a fresh instance");
                    attempt += 1;
                }
            }
        }
    }

    /// Without the self-test: that decides once whether a plugin goes live.
    fn fresh_instance(&self) -> Result<Instance, Fault> {
        let start = || {
            let mut instance = Instance::start(&self.module, &self.label, self.limits, &self.journal)?;
            instance.init(&self.link, &self.settings_json)?;
            Ok(instance)
        };
        start().map_err(|error| match error {
            LoadError::Fault(fault) => fault,
            other => Fault::Refused { plugin: self.label.clone(), message: other.to_string() },
        })
    }
}

/// An instance that passed its self-test, what it says of itself, and its label.
fn first_instance(
    module: &CompiledModule,
    link: &Link,
    settings_json: &str,
    limits: Limits,
    journal: &Arc<Journal>,
) -> Result<(Instance, About, String), LoadError> {
    let mut instance = Instance::start(module, &module.name, limits, journal)?;
    let about = describe(&mut instance, module)?;
    let label = format!("{:?} {}", about.name, about.version);
    journal.rename(&about.name);
    instance.rename(&label);
    instance.init(link, settings_json)?;
    instance.self_test()?;
    Ok((instance, about, label))
}

fn describe(instance: &mut Instance, module: &CompiledModule) -> Result<About, LoadError> {
    let about = instance.describe()?;
    Ok(About {
        name: one_line(&about.name),
        version: one_line(&about.version),
        settings_schema: about.config_schema,
        digest: module.digest().to_owned(),
    })
}

/// The contract promises a plugin one JSON object.
fn check_object(module: &str, settings_json: &str) -> Result<(), LoadError> {
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(settings_json) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(LoadError::SettingsSyntax { module: module.to_owned(), message: error.to_string() })
        }
    }
}
