//! Builds the two naming policies of plugins/ as components, and lists the files for new plugins, so that the binary
//! carries them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use component_build::ComponentBuild;

#[path = "src/author/bundle_build.rs"]
mod bundle_build;
#[path = "src/plugin/component_build.rs"]
mod component_build;

const POLICIES: [&str; 2] = ["tidegate-default-policy", "tidegate-identity-policy"];
/// For `include_bytes!(env!(…))`, in the order of `POLICIES`.
const VARIABLES: [&str; 2] = ["TIDEGATE_DEFAULT_POLICY", "TIDEGATE_IDENTITY_POLICY"];
/// What the components are made of, from the workspace's folder.
const SOURCES: [&str; 9] = [
    "plugins/default-policy/src",
    "plugins/default-policy/Cargo.toml",
    "plugins/identity-policy/src",
    "plugins/identity-policy/Cargo.toml",
    "plugin-sdk/src",
    "plugin-sdk/wit",
    "plugin-sdk/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            for line in problem.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    rerun_when_sources_change(&workspace);
    bundle_build::write(&workspace, Path::new(&variable("OUT_DIR")?))?;
    let target_folder = PathBuf::from(variable("OUT_DIR")?).join("plugins");
    let components = ComponentBuild { workspace, target_folder }.run(&POLICIES)?;
    for (variable, component) in VARIABLES.iter().zip(components) {
        println!("cargo::rustc-env={variable}={}", component.display());
    }
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}; build scripts are run by cargo"))
}

fn rerun_when_sources_change(workspace: &Path) {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/plugin/component_build.rs");
    println!("cargo::rerun-if-changed=src/author/bundle_build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
}
