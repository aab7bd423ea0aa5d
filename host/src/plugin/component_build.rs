//! Builds crates of the workspace as WebAssembly components. Not part of the library: the build script makes the
//! built-in plugins with it, and tests their guests.
//!
//! A cargo of its own does it, in a target folder of its own: in the outer one it would wait for the outer cargo's
//! lock for ever. The workspace's Cargo.lock decides the versions here too.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Where things are; one target folder for all components, so the SDK is compiled once.
pub(crate) struct ComponentBuild {
    /// The workspace's folder.
    pub(crate) workspace: PathBuf,
    /// The inner cargo's target folder.
    pub(crate) target_folder: PathBuf,
}

impl ComponentBuild {
    /// Gives the files of the components, in the order of `packages`.
    pub(crate) fn run(&self, packages: &[&str]) -> Result<Vec<PathBuf>, String> {
        check_target_is_installed()?;
        self.run_cargo(packages)?;
        packages.iter().map(|package| self.component(package)).collect()
    }

    fn component(&self, package: &str) -> Result<PathBuf, String> {
        let file = format!("{TARGET}/release/{}.wasm", package.replace('-', "_"));
        self.target_folder
            .join(&file)
            .canonicalize()
            .map_err(|error| format!("cargo wrote no {file} for {package}: {error}"))
    }

    fn run_cargo(&self, packages: &[&str]) -> Result<(), String> {
        let mut command = Command::new(env::var("CARGO").unwrap_or("cargo".to_owned()));
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_of_the_outer_build) {
                command.env_remove(name);
            }
        }
        command
            .current_dir(&self.workspace)
            .args(["build", "--release", "--locked", "--lib", "--target", TARGET, "--target-dir"])
            .arg(&self.target_folder)
            .args(packages.iter().flat_map(|package| ["--package", package]))
            // The linker that makes components; it is part of the toolchain.
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-component-ld")
            // "s" would save 5 % of the bytes; region-filter takes 85 ns a record instead of 91 (`examples/chain_cost`), redact 917
            // instead of 957.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
            .env("CARGO_PROFILE_RELEASE_LTO", "fat")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        let output = command.output().map_err(|error| format!("could not run cargo: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!(
            "{log}\n{} could not be built for {TARGET}; the lines above are cargo's",
            packages.join(", ")
        ))
    }
}

/// Without it rustc's answer would be "can't find crate for `core`", and more.
fn check_target_is_installed() -> Result<(), String> {
    let rustc = env::var("RUSTC").unwrap_or("rustc".to_owned());
    let output = Command::new(&rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("could not run {rustc}: {error}"))?;
    let library_folder = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && Path::new(library_folder.trim()).is_dir() {
        return Ok(());
    }
    Err(format!("plugins are WebAssembly, and its target is missing: rustup target add {TARGET}"))
}

/// Settings of the outer build (its flags, wrappers such as clippy's, its profile and target) that would leak into
/// the inner one. What says where cargo's home and registries are stays.
fn is_of_the_outer_build(name: &str) -> bool {
    const NAMES: [&str; 7] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_INCREMENTAL",
    ];
    const PREFIXES: [&str; 5] = ["CARGO_BUILD_", "CARGO_TARGET_", "CARGO_PROFILE_", "CARGO_CFG_", "CLIPPY_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
