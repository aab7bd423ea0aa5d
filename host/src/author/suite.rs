//! Runs the cases of fixtures against a component: each case on a plugin of its own, with its settings.

mod acls;
mod junit;
mod names;
mod records;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fixture::{Case, FIXTURE_BYTES_MAX, Fixture};
use crate::config::{NameList, OnFault, PluginConfig, PluginModule, TopicFilter};
use crate::plugin::{Engine, Limits, Link, LoadError, LoadedPlugin, SelectionTopic, read_module};

pub use junit::junit;

/// The component that is looked at.
pub struct Subject {
    engine: Engine,
    module: PluginModule,
    bytes: Cow<'static, [u8]>,
    limits: Limits,
}

/// What came of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileResult {
    /// The file.
    pub file: PathBuf,
    /// Why its cases could not be run.
    pub problem: Option<String>,
    /// Its cases, in order.
    pub cases: Vec<CaseResult>,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// What it promises.
    pub name: String,
    /// Where it stands in the file.
    pub line: u64,
    /// How long it took, the plugin's start included.
    pub elapsed: Duration,
    /// What is not as expected; empty: all is well.
    pub failures: Vec<String>,
}

impl FileResult {
    /// Whether it was run and nothing failed.
    pub fn has_passed(&self) -> bool {
        self.problem.is_none() && self.cases.iter().all(|case| case.failures.is_empty())
    }
}

impl Subject {
    /// Reads the module.
    pub fn read(engine: &Engine, module: &PluginModule, limits: Limits) -> Result<Self, LoadError> {
        let bytes = read_module(module)?;
        Ok(Self { engine: engine.clone(), module: module.clone(), bytes, limits })
    }

    /// The module's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The plugin with these settings, proved, in this flow. What it rejects or fails on is always told with its reason.
    pub fn start(&self, link: &Link, settings_json: &str) -> Result<LoadedPlugin, LoadError> {
        let config = PluginConfig {
            name: self.module.to_string(),
            module: self.module.clone(),
            sha256: None,
            settings_json: settings_json.to_owned(),
            topics: every_topic(),
            on_fault: OnFault::Quarantine,
            deadline: self.limits.deadline,
            memory_bytes: self.limits.memory_bytes,
        };
        LoadedPlugin::load_bytes(&self.engine, &config, link, &self.bytes)
    }
}

fn every_topic() -> TopicFilter {
    let list = |expressions: &[&str]| NameList::parse(expressions).expect("constant expressions can be read");
    TopicFilter { include: list(&[".*"]), exclude: list(&[]) }
}

/// A flow's link.
pub fn link(source: &str, target: &str) -> Link {
    Link {
        name: format!("{source}->{target}"),
        source_cluster: source.to_owned(),
        target_cluster: target.to_owned(),
    }
}

/// The `*.yaml` and `*.yml` files of a folder, sorted.
pub fn fixture_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: std::io::Error| {
        format!(
            "could not list {}: {error}; the cases of a plugin are the *.yaml there: go to its folder, or give --path or \
             --fixtures",
            folder.display()
        )
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(format!("{} holds no *.yaml; without cases nothing is tested", folder.display())),
        false => Ok(files),
    }
}

/// Runs all cases of a file.
pub fn run_file(subject: &Subject, file: &Path) -> FileResult {
    let fixture = match read_fixture(file) {
        Ok(fixture) => fixture,
        Err(problem) => {
            return FileResult { file: file.to_owned(), problem: Some(problem), cases: Vec::new() };
        }
    };
    let run = |case: &Case| {
        let begin = Instant::now();
        let failures = run_case(subject, &fixture, case);
        CaseResult { name: case.name.value.clone(), line: case.line(), elapsed: begin.elapsed(), failures }
    };
    let cases = fixture.cases.iter().map(run).collect();
    FileResult { file: file.to_owned(), problem: None, cases }
}

fn read_fixture(file: &Path) -> Result<Fixture, String> {
    let unreadable = |error: std::io::Error| format!("could not be read: {error}");
    let length = fs::metadata(file).map_err(unreadable)?.len();
    if length > FIXTURE_BYTES_MAX {
        return Err(format!("has {length} bytes, more than {FIXTURE_BYTES_MAX}"));
    }
    let fixture = Fixture::parse(&fs::read_to_string(file).map_err(unreadable)?)?;
    match fixture.cases.is_empty() {
        true => Err("holds no cases; without cases nothing is tested".to_owned()),
        false => Ok(fixture),
    }
}

/// What is not as expected.
fn run_case(subject: &Subject, fixture: &Fixture, case: &Case) -> Vec<String> {
    let link = match case.flow(fixture) {
        Ok((source, target)) => link(&source, &target),
        Err(problem) => return vec![problem],
    };
    let started = subject.start(&link, &case.settings_json(fixture));
    match (started, &case.refused) {
        (Ok(plugin), None) => ask(&Arc::new(plugin), case),
        (Err(error), None) => vec![error.to_string()],
        (Ok(_), Some(text)) => vec![format!("the plugin starts, but should be refused: {text}")],
        (Err(error), Some(text)) => match error.to_string() {
            words if words.contains(text.as_str()) => Vec::new(),
            words => vec![format!("the refusal does not hold {text:?}: {words}")],
        },
    }
}

fn ask(plugin: &Arc<LoadedPlugin>, case: &Case) -> Vec<String> {
    let hooks = plugin.hooks;
    let asked = [
        (!case.records.is_empty(), hooks.records, "records"),
        (!case.names.is_empty(), hooks.topic_naming, "topic-naming"),
        (!case.topics.is_empty() || !case.groups.is_empty(), hooks.selection, "selection"),
        (!case.acls.is_empty(), hooks.acl_mapping, "acl-mapping"),
    ];
    let missing = asked.iter().filter(|(is_asked, has, _)| *is_asked && !has);
    let mut failures: Vec<String> = missing
        .map(|(_, _, hook)| format!("the case asks for {hook}, but the plugin has only: {hooks}"))
        .collect();
    if !failures.is_empty() {
        return failures;
    }
    failures.extend(records::check(plugin, case));
    failures.extend(names::check(plugin, case));
    failures.extend(check_topics(plugin, case));
    failures.extend(check_groups(plugin, case));
    failures.extend(acls::check(plugin, case));
    failures
}

fn check_topics(plugin: &LoadedPlugin, case: &Case) -> Vec<String> {
    if case.topics.is_empty() {
        return Vec::new();
    }
    let topics: Vec<SelectionTopic> = case
        .topics
        .iter()
        .map(|topic| SelectionTopic {
            name: topic.name.clone(),
            partition_count: topic.partitions,
            is_internal: topic.internal,
            settings: topic.settings.clone().into_iter().collect(),
        })
        .collect();
    match plugin.selection().topics(&topics) {
        Err(fault) => vec![fault.to_string()],
        Ok(answers) => {
            let expected = case.topics.iter().map(|topic| (topic.name.as_str(), topic.expect));
            differing("topic", expected, &answers)
        }
    }
}

fn check_groups(plugin: &LoadedPlugin, case: &Case) -> Vec<String> {
    if case.groups.is_empty() {
        return Vec::new();
    }
    let groups: Vec<String> = case.groups.iter().map(|group| group.name.clone()).collect();
    match plugin.selection().groups(&groups) {
        Err(fault) => vec![fault.to_string()],
        Ok(answers) => {
            let expected = case.groups.iter().map(|group| (group.name.as_str(), group.expect));
            differing("group", expected, &answers)
        }
    }
}

fn differing<'a>(
    noun: &str,
    expected: impl Iterator<Item = (&'a str, bool)>,
    answers: &[bool],
) -> Vec<String> {
    expected
        .zip(answers)
        .filter(|((_, expected), found)| expected != *found)
        .map(|((name, expected), _)| match expected {
            true => format!("{noun} \"{name}\": expected to go, it stays"),
            false => format!("{noun} \"{name}\": expected to stay, it goes"),
        })
        .collect()
}

#[cfg(test)]
mod tests;
