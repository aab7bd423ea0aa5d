//! The plugins of plugins/examples, built by their own commands in the user's cache folder, where their tools stay: npm and
//! PyPI are asked once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::jars::cache_directory;
use crate::process::{Process, Start};
use crate::skip;

/// The checkout's root.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Of one build; the first fetches some 100 MB of tools.
const BUILD_DEADLINE: Duration = Duration::from_secs(600);
/// What decides which tools are fetched: when one of these changes, the tools are fetched anew.
const TOOL_FILES: [&str; 3] = ["build.sh", "package.json", "requirements.txt"];
/// What a build leaves.
const COMPONENT: &str = "region-only.wasm";

/// A language with an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// plugins/examples/c.
    C,
    /// plugins/examples/javascript.
    JavaScript,
    /// plugins/examples/python.
    Python,
}

impl Language {
    /// Its folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::JavaScript => "javascript",
            Language::Python => "python",
        }
    }

    /// The programs that its build command runs, with what shows that they work.
    fn programs(self) -> &'static [&'static [&'static str]] {
        const PYTHON: &[&str] = &["python3", "-c", "import venv, ensurepip"];
        const NODE: &[&str] = &["node", "-e", "process.exit(+(parseInt(process.versions.node) < 20))"];
        const NPM: &[&str] = &["npm", "--version"];
        match self {
            Language::C => &[PYTHON, NODE, NPM],
            Language::JavaScript => &[NODE, NPM],
            Language::Python => &[PYTHON],
        }
    }
}

/// Why this machine can't build the example, with the remedy; `None` if it can.
pub fn why_not(language: Language) -> Option<String> {
    let missing = language.programs().iter().find(|program| !skip::runs(program[0], &program[1..]))?;
    let remedy = match missing[0] {
        "python3" => "apt-get install python3-venv",
        "node" => {
            "install Node.js 20 or later from https://nodejs.org, or apt-get install nodejs where that is new enough"
        }
        _ => "apt-get install npm",
    };
    Some(format!("`{}` fails on this machine; {remedy}", missing.join(" ")))
}

/// The component of an example. It is built when its sources or the contract are not those of the last build.
///
/// # Errors
/// When the build fails; the end of what it said is part of the message.
pub async fn built(language: Language) -> anyhow::Result<PathBuf> {
    let cache = cache_directory()?.join("languages");
    fs::create_dir_all(&cache)?;
    // Two test processes may build at once: the second waits here and then finds what the first has built.
    let lock = File::create(cache.join(format!("{}.lock", language.name())))?;
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await?;
    let _lock = lock.context("could not lock the folder of the example")?;
    let project = cache.join(language.name());
    let component = project.join(COMPONENT);
    let sources = sources(language)?;
    let has_changed = |(path, content): &&(PathBuf, Vec<u8>)| {
        fs::read(project.join(path)).map_or(true, |built| built != *content)
    };
    let changed: Vec<&(PathBuf, Vec<u8>)> = sources.iter().filter(has_changed).collect();
    if changed.is_empty() && component.is_file() {
        return Ok(component);
    }
    let is_tool = |path: &Path| TOOL_FILES.iter().any(|tool| path == Path::new(tool));
    if project.is_dir() && changed.iter().any(|(path, _)| is_tool(path)) {
        fs::remove_dir_all(&project)?;
    }
    // Before the sources: a build that fails leaves nothing that could be taken for its result.
    let _ = fs::remove_file(&component);
    for (path, content) in &sources {
        let file = project.join(path);
        fs::create_dir_all(file.parent().context("a file has a folder")?)?;
        fs::write(file, content)?;
    }
    build(language, &project).await?;
    ensure!(component.is_file(), "{}/build.sh made no {COMPONENT}", project.display());
    Ok(component)
}

/// Everything that the repository has of the example, and the contract as `wit/plugin.wit`.
fn sources(language: Language) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = Path::new(ROOT).join("plugins/examples").join(language.name());
    let contract = Path::new(ROOT).join("plugin-sdk/wit/0.1.0/plugin.wit");
    let mut sources = vec![(PathBuf::from("wit/plugin.wit"), fs::read(&contract)?)];
    for entry in fs::read_dir(&folder).with_context(|| format!("could not list {}", folder.display()))? {
        let path = entry?.path();
        let is_source = path.is_file() && path.extension().is_none_or(|extension| extension != "wasm");
        // npm writes it where someone builds in the checkout.
        if is_source && !path.ends_with("package-lock.json") {
            sources.push((path.file_name().context("an entry has a name")?.into(), fs::read(&path)?));
        }
    }
    Ok(sources)
}

async fn build(language: Language, project: &Path) -> anyhow::Result<()> {
    let mut process = Process::start(Start {
        name: format!("the build of the example in {}", language.name()),
        command: vec!["sh".into(), project.join("build.sh").into_os_string()],
        environment: vec![("WIT".to_owned(), "wit".to_owned())],
        log: project.join("build.log"),
        directory: None,
    })?;
    let code = process.ended(BUILD_DEADLINE).await?;
    ensure!(code == 0, "exit code {code}; {}", process.log_tail());
    Ok(())
}
