//! What instances of a plugin are made from once it has proved itself, and the proof: describe, settings against its
//! schema, init, needs, self-test.

use std::sync::Arc;

use super::fault::Fault;
use super::inspect::Interface;
use super::instance::{Instance, Link};
use super::journal::{Journal, one_line};
use super::limits::Limits;
use super::load::{CompiledModule, LoadError};
use super::loaded::About;
use super::records::Needed;
use super::schema;

/// A question is asked this often, each time on another instance, before its fault counts.
pub(super) const ATTEMPT_COUNT_MAX: u32 = 2;

/// What is ordered: a module for a flow, with settings and limits.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) module: &'a CompiledModule,
    /// The operator's name for the plugin; none = as it calls itself.
    pub(super) name: Option<&'a str>,
    pub(super) link: &'a Link,
    pub(super) settings_json: &'a str,
    pub(super) limits: Limits,
}

/// Makes instances that have their settings.
pub(super) struct Recipe {
    pub(super) module: CompiledModule,
    pub(super) link: Link,
    settings_json: String,
    limits: Limits,
    pub(super) journal: Arc<Journal>,
    /// As it is called in sentences: `"name" version`.
    label: String,
}

/// A plugin that may go live.
pub(super) struct Proven {
    pub(super) recipe: Arc<Recipe>,
    pub(super) about: About,
    /// Of a plugin that edits records.
    pub(super) needs: Option<Needed>,
    /// The trial instance, for whoever can use it.
    pub(super) instance: Instance,
}

impl Recipe {
    /// Without the self-test: that decides once whether a plugin goes live. About 0.1 ms for a compiled language.
    pub(super) fn instance(&self) -> Result<Instance, LoadError> {
        let mut instance = Instance::start(&self.module, &self.label, self.limits, &self.journal)?;
        instance.init(&self.link, &self.settings_json)?;
        Ok(instance)
    }

    /// In the place of an instance that a fault took.
    pub(super) fn another_instance(&self) -> Result<Instance, Fault> {
        self.instance().map_err(|error| match error {
            LoadError::Fault(fault) => fault,
            other => Fault::Refused { plugin: self.label.clone(), message: other.to_string() },
        })
    }
}

/// What the plugin refuses is final; after a fault a fresh instance is tried, as with a question.
pub(super) fn prove(order: Order<'_>) -> Result<Proven, LoadError> {
    let settings = schema::parse(&order.module.name, order.settings_json)?;
    let journal = Arc::new(Journal::new(order.name.unwrap_or(&order.module.name), &order.link.name));
    let mut attempt = 1;
    loop {
        match prove_once(order, &settings, &journal) {
            Err(LoadError::Fault(fault)) if attempt < ATTEMPT_COUNT_MAX => {
                tracing::warn!(flow = %order.link.name, %fault, "plugin fault at its start, trying a fresh instance");
                attempt += 1;
            }
            end => return end,
        }
    }
}

fn prove_once(
    order: Order<'_>,
    settings: &serde_json::Value,
    journal: &Arc<Journal>,
) -> Result<Proven, LoadError> {
    let Order { module, name, link, settings_json, limits } = order;
    let mut instance = Instance::start(module, &module.name, limits, journal)?;
    let about = describe(&mut instance, module)?;
    let label = label(name, &about);
    journal.rename(name.unwrap_or(&about.name));
    instance.rename(&label);
    if let Some(schema) = &about.settings_schema {
        schema::check(&label, schema, settings)?;
    }
    instance.init(link, settings_json)?;
    let edits_records = module.compiled.boundary.offers(Interface::Records);
    let needs = edits_records.then(|| instance.needs()).transpose()?;
    instance.self_test()?;
    let recipe = Recipe {
        module: module.clone(),
        link: link.clone(),
        settings_json: settings_json.to_owned(),
        limits,
        journal: Arc::clone(journal),
        label,
    };
    Ok(Proven { recipe: Arc::new(recipe), about, needs, instance })
}

/// `"mask" (redact 0.1.0)`, or `"redact" 0.1.0` where nobody gave it another name.
fn label(name: Option<&str>, about: &About) -> String {
    match name {
        Some(name) if name != about.name => format!("{name:?} ({} {})", about.name, about.version),
        _ => format!("{:?} {}", about.name, about.version),
    }
}

pub(super) fn describe(instance: &mut Instance, module: &CompiledModule) -> Result<About, LoadError> {
    let about = instance.describe()?;
    Ok(About {
        name: one_line(&about.name),
        version: one_line(&about.version),
        settings_schema: about.config_schema,
        digest: module.digest().to_owned(),
        size_bytes: module.compiled.size_bytes,
    })
}
