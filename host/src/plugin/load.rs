//! From a file to a module that instances can be made of: read, check the names at its boundary, compile. All that
//! can be wrong with it is a [`LoadError`].

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use wasmtime::component::InstancePre;

use super::builtin;
use super::engine::Engine;
use super::fault::Fault;
use super::inspect::{Boundary, Interface, NoComponent, Unserved};
use super::instance::State;
use super::journal::one_line;

/// Where a plugin's module is.
pub use crate::config::PluginModule as ModuleSource;

/// Larger files are not read. Compiled languages make tens of KB, JavaScript 12 MB, Python 18 MB.
const MODULE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What a plugin objects to in its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// JSON pointer into the settings, or "".
    pub at: String,
    /// The plugin's words.
    pub message: String,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => write!(formatter, "its settings: {}", self.message),
            at => write!(formatter, "{at}: {}", self.message),
        }
    }
}

/// Why a plugin can't be used. `module` is its file or `builtin:…`; `plugin` its name in quotes and its version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named in the sentences")]
pub enum LoadError {
    /// The file can't be read.
    #[error("could not read plugin {module}: {message}")]
    Read { module: String, message: String },
    /// There is no such plugin in the binary.
    #[error("tidegate carries no plugin {module}; it carries {}", builtin::list())]
    UnknownBuiltin { module: String },
    /// It is another module than the one that was pinned.
    #[error(
        "plugin {module} is not the module that sha256 pins: wanted {wanted}, found {found}; put that module back or, \
         if the new one is right, pin its digest"
    )]
    Digest { module: String, wanted: String, found: String },
    /// The file is too large to be a plugin.
    #[error(
        "plugin {module} has more than {MODULE_BYTES_MAX} bytes, which no plugin needs; is it the right file?"
    )]
    TooLarge { module: String },
    /// The file is no WebAssembly.
    #[error("plugin {module} is no WebAssembly component: {message}")]
    NoComponent { module: String, message: String },
    /// The file is WebAssembly, but no component.
    #[error(
        "plugin {module} is a core module, not a component; build it for wasm32-unknown-unknown \
         with linker = \"wasm-component-ld\" in .cargo/config.toml"
    )]
    CoreModule { module: String },
    /// It wants something that no plugin gets.
    #[error("{}", foreign_import(module, import))]
    ForeignImport { module: String, import: String },
    /// It was built for another version of the contract.
    #[error(
        "plugin {module} speaks {interface}, this host speaks tidegate:plugin@0.1; build it with tidegate-plugin 0.1"
    )]
    UnknownVersion { module: String, interface: String },
    /// It does not answer what it would be asked.
    #[error("plugin {module} exports no tidegate:plugin/{wanted}@0.1, {}", offered(offered_list))]
    MissingExport { module: String, wanted: &'static str, offered_list: Vec<String> },
    /// It answers nothing that a flow asks.
    #[error(
        "plugin {module} exports none of the hooks topic-naming, selection, acl-mapping and records; \
         is it a plugin of tidegate?"
    )]
    NoHook { module: String },
    /// The engine does not take it.
    #[error("plugin {module} does not compile: {message}")]
    Compile { module: String, message: String },
    /// Its names are right, its types are not.
    #[error(
        "plugin {module} does not fit tidegate:plugin@0.1: {message}; build it with tidegate-plugin 0.1.0 or run a later \
         tidegate"
    )]
    Misfit { module: String, message: String },
    /// The settings are no JSON object.
    #[error("the settings of plugin {module} must be one JSON object: {message}")]
    SettingsSyntax { module: String, message: String },
    /// Its JSON Schema is of no use.
    #[error("plugin {plugin} describes its settings by a JSON Schema that can't be used: {message}")]
    Schema { plugin: String, message: String },
    /// The settings are not as the plugin's schema says, or the plugin itself objects to them.
    #[error("plugin {plugin} can't work with its settings: {}", join(problems))]
    Settings { plugin: String, problems: Vec<SettingsProblem> },
    /// Its own test failed.
    #[error("plugin {plugin} failed its self-test: {message}")]
    SelfTest { plugin: String, message: String },
    /// It failed while it was started.
    #[error(transparent)]
    Fault(#[from] Fault),
}

fn foreign_import(module: &str, import: &str) -> String {
    let refusal = format!(
        "plugin {module} imports {import}, but a plugin gets tidegate:plugin/host@0.1 and nothing else"
    );
    if import.starts_with("wasi:") {
        return format!(
            "{refusal}; build it for wasm32-unknown-unknown with linker = \"wasm-component-ld\" in .cargo/config.toml"
        );
    }
    refusal
}

fn offered(interfaces: &[String]) -> String {
    match interfaces {
        [] => "nor anything else of the contract; is it a plugin of tidegate?".to_owned(),
        _ => format!("only: {}", interfaces.join(", ")),
    }
}

fn join(problems: &[SettingsProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A module of which instances are made; clones share it. Loading the same bytes again while it lives is free.
#[derive(Clone)]
pub struct CompiledModule {
    pub(super) engine: Engine,
    pub(super) name: Arc<str>,
    pub(super) compiled: Arc<Compiled>,
}

/// What depends on the bytes alone.
pub(super) struct Compiled {
    pub(super) digest: String,
    pub(super) size_bytes: usize,
    pub(super) boundary: Boundary,
    pub(super) pre: InstancePre<State>,
}

impl CompiledModule {
    /// Reads, checks and compiles. A plugin that exports only capabilities unknown here loads, and is refused where
    /// one is asked for.
    pub fn load(engine: &Engine, source: &ModuleSource) -> Result<Self, LoadError> {
        Self::compile(engine, &source.to_string(), &read_module(source)?)
    }

    /// SHA-256 of the module, 64 hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.compiled.digest
    }

    pub(super) fn compile(engine: &Engine, module: &str, bytes: &[u8]) -> Result<Self, LoadError> {
        let digest = digest(bytes);
        let compiled = engine.compiled(&digest, || compile(engine, module, &digest, bytes))?;
        Ok(Self { engine: engine.clone(), name: module.into(), compiled })
    }

    pub(super) fn require(&self, interface: Interface) -> Result<(), LoadError> {
        require(&self.compiled.boundary, &self.name, interface)
    }
}

/// The module's bytes, bounded in size.
pub fn read_module(source: &ModuleSource) -> Result<Cow<'static, [u8]>, LoadError> {
    match source {
        ModuleSource::Builtin(name) => match builtin::bytes(name) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => Err(LoadError::UnknownBuiltin { module: source.to_string() }),
        },
        ModuleSource::File(path) => read_file(path, source).map(Cow::Owned),
    }
}

fn read_file(path: &Path, source: &ModuleSource) -> Result<Vec<u8>, LoadError> {
    let module = source.to_string();
    let unreadable =
        |error: std::io::Error| LoadError::Read { module: module.clone(), message: error.to_string() };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MODULE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MODULE_BYTES_MAX {
        return Err(LoadError::TooLarge { module });
    }
    Ok(bytes)
}

/// What identifies a module: the SHA-256 of its bytes, 64 hexadecimal digits in lower case.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Before anything else is done with the bytes.
pub(super) fn check_digest(module: &str, wanted: &str, bytes: &[u8]) -> Result<(), LoadError> {
    let found = digest(bytes);
    if wanted.eq_ignore_ascii_case(&found) {
        return Ok(());
    }
    Err(LoadError::Digest { module: module.to_owned(), wanted: wanted.to_ascii_lowercase(), found })
}

/// Names first: a module that asks for what it won't get is not worth compiling, and the sentence is better.
fn compile(engine: &Engine, module: &str, digest: &str, bytes: &[u8]) -> Result<Compiled, LoadError> {
    let boundary = Boundary::read(bytes).map_err(|reason| no_component(module, reason))?;
    if let Some(unserved) = boundary.unserved() {
        let module = module.to_owned();
        return Err(match unserved {
            Unserved::Import(import) => LoadError::ForeignImport { module, import: import.to_owned() },
            Unserved::Version(interface) => {
                LoadError::UnknownVersion { module, interface: interface.to_owned() }
            }
        });
    }
    require(&boundary, module, Interface::Lifecycle)?;
    let component = engine.component(digest, bytes).map_err(|error| LoadError::Compile {
        module: module.to_owned(),
        message: one_line(&format!("{error:#}")),
    })?;
    let pre = engine.linker().instantiate_pre(&component).map_err(|error| misfit(module, &error))?;
    Ok(Compiled { digest: digest.to_owned(), size_bytes: bytes.len(), boundary, pre })
}

pub(super) fn misfit(module: &str, error: &wasmtime::Error) -> LoadError {
    LoadError::Misfit { module: module.to_owned(), message: one_line(&format!("{error:#}")) }
}

pub(super) fn no_component(module: &str, reason: NoComponent) -> LoadError {
    let module = module.to_owned();
    match reason {
        NoComponent::CoreModule => LoadError::CoreModule { module },
        NoComponent::Malformed(message) => LoadError::NoComponent { module, message },
    }
}

fn require(boundary: &Boundary, module: &str, interface: Interface) -> Result<(), LoadError> {
    if boundary.offers(interface) {
        return Ok(());
    }
    let offered_list = boundary.offered().into_iter().map(str::to_owned).collect();
    Err(LoadError::MissingExport { module: module.to_owned(), wanted: interface.name(), offered_list })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
