//! Builds the plugins of plugins/ as components, and lists the files for new plugins, so that the binary carries them:
//! the components as `builtin:NAME`.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use component_build::ComponentBuild;

#[path = "src/author/bundle_build.rs"]
mod bundle_build;
#[path = "src/plugin/component_build.rs"]
mod component_build;

/// Folders of plugins/, sorted; each is a crate `tidegate-FOLDER` and becomes `builtin:FOLDER`. Those that are not there
/// are left out.
const BUILTINS: [&str; 7] =
    ["acl-map", "default-policy", "header-rules", "identity-policy", "redact", "region-filter", "rename"];
/// What the components are made of besides their own crates, from the workspace's folder.
const SOURCES: [&str; 8] = [
    "plugin-sdk/src",
    "plugin-sdk/wit",
    "plugin-sdk/Cargo.toml",
    "plugins/json-fields",
    "plugins/patterns",
    "plugins/setting-tables",
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
    let out_folder = PathBuf::from(variable("OUT_DIR")?);
    let present: Vec<&str> = BUILTINS
        .into_iter()
        .filter(|name| workspace.join("plugins").join(name).join("Cargo.toml").is_file())
        .collect();
    rerun_when_sources_change(&workspace, &present);
    bundle_build::write(&workspace, &out_folder)?;
    let packages: Vec<String> = present.iter().map(|name| format!("tidegate-{name}")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let components =
        ComponentBuild { workspace, target_folder: out_folder.join("plugins") }.run(&packages)?;
    let table = out_folder.join("builtins.rs");
    fs::write(&table, rust_table(&present, &components))
        .map_err(|error| format!("could not write {}: {error}", table.display()))
}

/// For `include!` in src/plugin/builtin.rs.
fn rust_table(names: &[&str], components: &[PathBuf]) -> String {
    let mut text = format!("static BUILTINS: [(&str, &[u8]); {}] = [\n", names.len());
    for (name, component) in names.iter().zip(components) {
        // Writing to a String can't fail.
        let _ = writeln!(text, "    ({name:?}, include_bytes!({:?})),", component.display().to_string());
    }
    text.push_str("];\n");
    text
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}; build scripts are run by cargo"))
}

/// A crate that comes to plugins/ changes Cargo.lock.
fn rerun_when_sources_change(workspace: &Path, present: &[&str]) {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/plugin/component_build.rs");
    println!("cargo::rerun-if-changed=src/author/bundle_build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    for name in present {
        let folder = workspace.join("plugins").join(name);
        for source in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", folder.join(source).display());
        }
    }
}
