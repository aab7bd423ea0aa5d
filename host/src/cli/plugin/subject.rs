//! Which component a command looks at, with what settings and limits.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::build::build_failure;
use crate::author::toolchain::built_component;
use crate::cli::{Exit, Failure};
use crate::config::PluginModule;
use crate::plugin::{About, Anatomy, Engine, Limits, LoadError, describe, digest, read_module};

/// Longer settings are a mistake.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// What begins the name of a plugin that comes with Tidegate.
const BUILTIN: &str = "builtin:";

#[derive(Debug, Args)]
pub(super) struct ModuleArguments {
    /// The component: a .wasm file or builtin:NAME [default: the one that was built in the project's folder]
    module: Option<String>,
    /// The project's folder.
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct LimitArguments {
    /// How long one call may take, in milliseconds.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    deadline_ms: u64,
    /// How much memory an instance may have, in MiB; JavaScript and Python need 256.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    memory_mb: u64,
}

impl ModuleArguments {
    /// The project's folder.
    pub(super) fn project(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new("."))
    }

    /// The module that is meant.
    pub(super) fn module(&self) -> Result<PluginModule, Failure> {
        match &self.module {
            Some(name) => Ok(module_named(name)),
            None => built_component(self.project()).map(PluginModule::File).map_err(build_failure),
        }
    }

    /// Its file, if it has one and is there.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match self.module().ok()? {
            PluginModule::File(path) => Some(path),
            PluginModule::Builtin(_) => None,
        }
    }
}

impl LimitArguments {
    pub(super) fn limits(&self) -> Limits {
        let memory_bytes = usize::try_from(self.memory_mb << 20).unwrap_or(usize::MAX);
        Limits { deadline: Duration::from_millis(self.deadline_ms), memory_bytes }
    }
}

/// `builtin:NAME` or a file.
pub(super) fn module_named(name: &str) -> PluginModule {
    match name.strip_prefix(BUILTIN) {
        Some(builtin) => PluginModule::Builtin(builtin.to_owned()),
        None => PluginModule::File(name.into()),
    }
}

/// Settings as they are given: JSON, `@FILE`, or none, which are `{}`. Their content is never shown.
pub(super) fn settings_text(argument: Option<&str>) -> Result<String, Failure> {
    let Some(argument) = argument else { return Ok("{}".to_owned()) };
    let Some(file) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    let read = || -> std::io::Result<String> {
        let length = fs::metadata(file)?.len();
        if length > SETTINGS_BYTES_MAX {
            let problem = format!("it has {length} bytes, more than {SETTINGS_BYTES_MAX}");
            return Err(std::io::Error::other(problem));
        }
        fs::read_to_string(file)
    };
    read().map_err(|error| {
        Exit::Usage.because(anyhow::anyhow!("could not read the settings from {file}: {error}"))
    })
}

/// The engine with the cache of compiled modules that `tidegate run` uses by default.
pub(super) fn engine() -> Result<Engine, Failure> {
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("TIDEGATE_CACHE_DIR")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("tidegate")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/tidegate")));
    Engine::new(cache).map_err(|problem| Exit::Internal.because(problem))
}

/// A module that can't be used is bad data; one that can't be read is a wrong command line.
pub(super) fn module_failure(error: LoadError) -> Failure {
    let exit = match error {
        LoadError::Read { .. } => Exit::Usage,
        _ => Exit::Data,
    };
    exit.because(error)
}

/// What can be said of a module, whether the host takes it or not.
pub(super) struct Looked {
    pub(super) digest: String,
    pub(super) size_bytes: usize,
    /// None: it is no component.
    pub(super) anatomy: Option<Anatomy>,
    /// None: it does not get as far as to describe itself.
    pub(super) about: Option<About>,
    /// Why the host does not take it.
    pub(super) refusal: Option<LoadError>,
}

impl Looked {
    pub(super) fn at(module: &PluginModule) -> Result<Self, Failure> {
        let bytes = read_module(module).map_err(module_failure)?;
        let name = module.to_string();
        let mut looked = Self {
            digest: digest(&bytes),
            size_bytes: bytes.len(),
            anatomy: None,
            about: None,
            refusal: None,
        };
        match Anatomy::read(&name, &bytes) {
            Ok(anatomy) => looked.anatomy = Some(anatomy),
            Err(refusal) => {
                looked.refusal = Some(refusal);
                return Ok(looked);
            }
        }
        match describe(&engine()?, &name, &bytes) {
            Ok(about) => looked.about = Some(about),
            Err(refusal) => looked.refusal = Some(refusal),
        }
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_from_the_line_or_a_file() {
        assert_eq!(settings_text(None).unwrap(), "{}");
        assert_eq!(settings_text(Some("{\"a\":1}")).unwrap(), "{\"a\":1}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.json");
        fs::write(&file, "{ }").unwrap();
        assert_eq!(settings_text(Some(&format!("@{}", file.display()))).unwrap(), "{ }");
        let failure = settings_text(Some("@/nowhere/s.json")).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "could not read the settings from /nowhere/s.json: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn builtin_plugins_are_named_as_in_the_file() {
        assert_eq!(module_named("builtin:rename"), PluginModule::Builtin("rename".into()));
        assert_eq!(module_named("dist/a.wasm"), PluginModule::File("dist/a.wasm".into()));
    }
}
