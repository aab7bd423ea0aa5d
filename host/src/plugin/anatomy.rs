//! What can be said of a module without its settings: its boundary, and its own description. For those who look, not
//! for those who run it.

use std::sync::Arc;

use super::engine::Engine;
use super::inspect::Boundary;
use super::instance::Instance;
use super::journal::Journal;
use super::limits::Limits;
use super::load::{CompiledModule, LoadError, no_component};
use super::loaded::{About, Hooks};
use super::recipe;

/// The names at a component's boundary, read without compiling it. Says nothing about whether the host takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// What it wants from outside.
    pub imports: Vec<String>,
    /// What it offers.
    pub exports: Vec<String>,
    /// Its hooks, as far as this host knows them.
    pub hooks: Hooks,
    /// The contract's version that it was built against, such as `0.1.0`.
    pub contract_version: Option<String>,
}

impl Anatomy {
    /// Reads the outermost component's names; `module` names it in sentences.
    pub fn read(module: &str, bytes: &[u8]) -> Result<Self, LoadError> {
        let boundary = Boundary::read(bytes).map_err(|reason| no_component(module, reason))?;
        let hooks = Hooks::of(&boundary);
        let Boundary { imports, exports } = boundary;
        let contract_version =
            exports.iter().chain(&imports).find_map(|name| version(name)).map(str::to_owned);
        Ok(Self { imports, exports, hooks, contract_version })
    }
}

fn version(interface: &str) -> Option<&str> {
    interface.strip_prefix("tidegate:plugin/")?.split_once('@').map(|(_, version)| version)
}

/// What the plugin says of itself; compiles it and asks an instance without settings.
pub fn describe(engine: &Engine, module: &str, bytes: &[u8]) -> Result<About, LoadError> {
    let module = CompiledModule::compile(engine, module, bytes)?;
    let journal = Arc::new(Journal::new(&module.name, "inspect"));
    let mut instance = Instance::start(&module, &module.name, Limits::default(), &journal)?;
    recipe::describe(&mut instance, &module)
}
