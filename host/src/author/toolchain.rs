//! Builds a plugin's project with the tools of its language, and finds the component.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// How a project is built; told by the files in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// `Cargo.toml`.
    Cargo,
    /// `build.sh`.
    Script,
    /// `package.json` alone.
    Npm,
    /// `Makefile` alone.
    Make,
}

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No project in the folder.
    #[error(
        "{} holds no Cargo.toml, build.sh, package.json or Makefile; go to the plugin's folder or give --path",
        .0.display()
    )]
    NoProject(PathBuf),
    /// A tool is not installed.
    #[error("{tool} is missing: {remedy}")]
    MissingTool {
        /// Its command.
        tool: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// A tool ended with an error; its words stand above.
    #[error("`{command}` failed ({status}); its own words stand above")]
    Failed {
        /// What was run.
        command: String,
        /// How it ended.
        status: String,
    },
    /// The build left nothing, or too much.
    #[error("{0}")]
    NoComponent(String),
    /// The file system.
    #[error("could not look into {}: {message}", path.display())]
    Unreadable {
        /// Which folder.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}

impl fmt::Display for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Cargo => "cargo",
            Self::Script => "build.sh",
            Self::Npm => "npm",
            Self::Make => "make",
        })
    }
}

impl Recipe {
    /// Looks at the folder.
    pub fn of(project: &Path) -> Result<Self, BuildError> {
        let files = [
            ("Cargo.toml", Self::Cargo),
            ("build.sh", Self::Script),
            ("package.json", Self::Npm),
            ("Makefile", Self::Make),
        ];
        let found = files.into_iter().find(|(file, _)| project.join(file).is_file());
        found.map(|(_, recipe)| recipe).ok_or_else(|| BuildError::NoProject(project.to_owned()))
    }
}

/// Builds the project and gives the component's file. The tools' words go to standard error.
pub fn build(project: &Path) -> Result<PathBuf, BuildError> {
    let recipe = Recipe::of(project)?;
    if recipe != Recipe::Cargo {
        check_interpreters(project)?;
    }
    match recipe {
        Recipe::Cargo => return cargo(project),
        Recipe::Script => run(project, "sh", &["build.sh"])?,
        Recipe::Npm => npm(project)?,
        Recipe::Make => run(project, "make", &[])?,
    }
    component_in(project)
}

/// The component of a project that was built before, for commands that don't build.
pub fn built_component(project: &Path) -> Result<PathBuf, BuildError> {
    if Recipe::of(project)? != Recipe::Cargo {
        return component_in(project);
    }
    let metadata = cargo_metadata(project)?;
    let file = metadata.target_directory.join(WASM_TARGET).join("release").join(metadata.file_name(project)?);
    match file.is_file() {
        true => Ok(file),
        false => Err(BuildError::NoComponent(format!(
            "{} is not there yet; `tidegate plugin build` makes it",
            file.display()
        ))),
    }
}

fn cargo(project: &Path) -> Result<PathBuf, BuildError> {
    check_rust(project)?;
    let arguments = [
        "build",
        "--release",
        "--lib",
        "--target",
        WASM_TARGET,
        "--message-format",
        "json-render-diagnostics",
    ];
    let mut child = command(project, "cargo")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| not_started("cargo", &error))?;
    let manifest = project.join("Cargo.toml").canonicalize().unwrap_or_default();
    let mut component = None;
    if let Some(output) = child.stdout.take() {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        component = lines.filter_map(|line| artifact(&line, &manifest)).last();
    }
    let status = child.wait().map_err(|error| not_started("cargo", &error))?;
    if !status.success() {
        let command = format!("cargo build --release --lib --target {WASM_TARGET}");
        return Err(BuildError::Failed { command, status: status.to_string() });
    }
    component.ok_or_else(|| {
        BuildError::NoComponent(format!(
            "cargo made no component; {} needs `crate-type = [\"cdylib\", \"rlib\"]` below [lib]",
            project.join("Cargo.toml").display()
        ))
    })
}

/// A line of cargo's that tells of the project's own component.
fn artifact(line: &str, manifest: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        manifest_path: PathBuf,
        filenames: Vec<PathBuf>,
    }
    let message: Message = serde_json::from_str(line).ok()?;
    if message.reason != "compiler-artifact" || message.manifest_path != manifest {
        return None;
    }
    message.filenames.into_iter().find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// Without the target, rustc's answer would be "can't find crate for `core`", and more.
fn check_rust(project: &Path) -> Result<(), BuildError> {
    require(project, "cargo", "install Rust from https://rustup.rs")?;
    let output = command(project, "rustc")
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .stderr(Stdio::null())
        .output()
        .map_err(|error| not_started("rustc", &error))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    Err(BuildError::MissingTool {
        tool: "Rust's WebAssembly target".to_owned(),
        remedy: "rustup target add wasm32-unknown-unknown",
    })
}

fn check_interpreters(project: &Path) -> Result<(), BuildError> {
    let has = |file: &str| project.join(file).is_file();
    if has("package.json") {
        require(project, "node", "install Node.js 20 or later from https://nodejs.org")?;
        require(project, "npm", "install Node.js 20 or later from https://nodejs.org, npm comes with it")?;
    }
    if has("requirements.txt") || has("pyproject.toml") {
        require(project, "python3", "install Python 3.10 or later from https://python.org")?;
    }
    Ok(())
}

fn npm(project: &Path) -> Result<(), BuildError> {
    let install = if project.join("package-lock.json").is_file() { "ci" } else { "install" };
    run(project, "npm", &[install, "--no-audit", "--no-fund"])?;
    run(project, "npm", &["run", "build"])
}

fn require(project: &Path, tool: &str, remedy: &'static str) -> Result<(), BuildError> {
    let status = command(project, tool).arg("--version").stderr(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(BuildError::MissingTool { tool: tool.to_owned(), remedy }),
    }
}

/// Runs a tool; what it prints goes to standard error, since standard output is for the command's own answer.
fn run(project: &Path, tool: &str, arguments: &[&str]) -> Result<(), BuildError> {
    let status = command(project, tool)
        .args(arguments)
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .map_err(|error| not_started(tool, &error))?;
    if status.success() {
        return Ok(());
    }
    let command = [&[tool], arguments].concat().join(" ");
    Err(BuildError::Failed { command, status: status.to_string() })
}

fn command(project: &Path, tool: &str) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(project).stdin(Stdio::null());
    let contract = project.join("wit");
    if contract.is_dir() {
        command.env("WIT", contract.canonicalize().unwrap_or(contract));
    }
    command
}

fn not_started(tool: &str, error: &std::io::Error) -> BuildError {
    BuildError::NoComponent(format!("could not run {tool}: {error}"))
}

/// The one `*.wasm` in the project's folder or in `dist`.
fn component_in(project: &Path) -> Result<PathBuf, BuildError> {
    let mut found = wasm_files(project)?;
    let dist = project.join("dist");
    if dist.is_dir() {
        found.extend(wasm_files(&dist)?);
    }
    found.sort();
    match found.as_slice() {
        [component] => Ok(component.clone()),
        [] => Err(BuildError::NoComponent(format!(
            "there is no .wasm file in {} or in its dist folder; `tidegate plugin build` should make one",
            project.display()
        ))),
        several => Err(BuildError::NoComponent(format!(
            "there are several components: {}; remove those that are not the plugin, or name one",
            several.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn wasm_files(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let unreadable = |error: std::io::Error| BuildError::Unreadable {
        path: folder.to_owned(),
        message: error.to_string(),
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") && path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

#[derive(Deserialize)]
struct CargoMetadata {
    target_directory: PathBuf,
    packages: Vec<CargoPackage>,
}

#[derive(Deserialize)]
struct CargoPackage {
    manifest_path: PathBuf,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    crate_types: Vec<String>,
}

impl CargoMetadata {
    fn file_name(&self, project: &Path) -> Result<String, BuildError> {
        let manifest = project.join("Cargo.toml").canonicalize().unwrap_or_default();
        let is_component = |target: &&CargoTarget| target.crate_types.iter().any(|kind| kind == "cdylib");
        self.packages
            .iter()
            .filter(|package| package.manifest_path == manifest)
            .find_map(|package| package.targets.iter().find(is_component))
            .map(|target| format!("{}.wasm", target.name.replace('-', "_")))
            .ok_or_else(|| {
                BuildError::NoComponent(format!(
                    "{} needs `crate-type = [\"cdylib\", \"rlib\"]` below [lib]",
                    project.join("Cargo.toml").display()
                ))
            })
    }
}

fn cargo_metadata(project: &Path) -> Result<CargoMetadata, BuildError> {
    require(project, "cargo", "install Rust from https://rustup.rs, or name the component's file")?;
    let output = command(project, "cargo")
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started("cargo", &error))?;
    if !output.status.success() {
        let command = "cargo metadata".to_owned();
        return Err(BuildError::Failed { command, status: output.status.to_string() });
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| BuildError::NoComponent(format!("cargo metadata answered no metadata: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_told_by_its_files() {
        let check = |files: &[&str], recipe: Option<Recipe>| {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                fs::write(folder.path().join(file), "").unwrap();
            }
            assert_eq!(Recipe::of(folder.path()).ok(), recipe, "{files:?}");
        };
        check(&["Cargo.toml", "build.sh"], Some(Recipe::Cargo));
        check(&["build.sh", "package.json", "requirements.txt"], Some(Recipe::Script));
        check(&["package.json"], Some(Recipe::Npm));
        check(&["Makefile"], Some(Recipe::Make));
        check(&["requirements.txt"], None);
    }

    #[test]
    fn one_component_is_taken_and_several_are_asked_about() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        assert_eq!(
            component_in(folder.path()).unwrap_err().to_string(),
            format!(
                "there is no .wasm file in {place} or in its dist folder; `tidegate plugin build` should make one"
            )
        );
        fs::write(folder.path().join("a.wasm"), "").unwrap();
        assert_eq!(component_in(folder.path()).unwrap(), folder.path().join("a.wasm"));
        fs::create_dir(folder.path().join("dist")).unwrap();
        fs::write(folder.path().join("dist/b.wasm"), "").unwrap();
        assert_eq!(
            component_in(folder.path()).unwrap_err().to_string(),
            format!(
                "there are several components: {place}/a.wasm, {place}/dist/b.wasm; remove those that are not the \
                 plugin, or name one"
            )
        );
    }

    #[test]
    fn only_the_projects_own_component_is_taken_from_cargos_messages() {
        let manifest = Path::new("/p/Cargo.toml");
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/t/p.rlib","/t/p.wasm"]}"#;
        assert_eq!(artifact(line, manifest), Some("/t/p.wasm".into()));
        assert_eq!(artifact(line, Path::new("/q/Cargo.toml")), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#, manifest), None);
        assert_eq!(artifact("no json", manifest), None);
    }

    #[test]
    fn a_folder_without_a_project_is_said() {
        assert_eq!(
            build(Path::new("/nowhere/at/all")).unwrap_err().to_string(),
            "/nowhere/at/all holds no Cargo.toml, build.sh, package.json or Makefile; go to the plugin's folder or give --path"
        );
    }
}
