//! MirrorMaker 2's file becomes a [`Config`]: Java's properties syntax, MirrorMaker 2's precedence, all checks.
//!
//! Every key of the file ends as honoured, mapped, ignored (why) or refused (why) in the [`Report`], and all problems
//! are told at once. Files are read and nothing else: no cluster is asked here.

mod absent_defaults;
pub mod client_config;
mod clients;
pub mod filter;
pub mod flow_config;
mod flows;
#[cfg(test)]
mod java_oracle;
mod java_regex;
mod judge;
mod key_shape;
mod known;
mod layers;
mod naming;
pub mod plugin_config;
mod plugins;
pub mod problem;
pub mod process;
pub mod properties;
pub mod report;
mod secrets;
mod security;
mod settings;
mod topology;
mod topology_checks;
mod values;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

pub use client_config::{
    AdminClientConfig, Compression, ConnectionConfig, Isolation, OffsetReset, SourceClientConfig,
    TargetClientConfig,
};
pub use filter::{GroupFilter, NameList, PropertyFilter, TopicFilter, Undecided};
pub use flow_config::{
    ClusterConfig, FlowConfig, GroupConfig, InternalTopics, NamingConfig, NamingModule, PositionsConfig,
};
pub use plugin_config::{
    NAMING_PLUGIN_NAME, OnFault, PluginConfig, PluginModule, QuarantineConfig, QuarantineSide,
};
pub use plugins::check_joining_name;
pub use problem::{LoadError, Problem};
pub use process::{LogFormat, ProcessConfig, ProcessOverrides};
pub use report::{Fate, Report, Row};

use crate::names::{ClusterAlias, FlowName};
use settings::{Entry, Settings};
use topology::Topology;
use variables::Providers;

/// All that a run is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The process.
    pub process: ProcessConfig,
    /// Every cluster of `clusters`.
    pub clusters: BTreeMap<ClusterAlias, ClusterConfig>,
    /// The flows that run here, by name; never empty.
    pub flows: Vec<FlowConfig>,
    /// Every flow that the file enables, also those that `--clusters` leaves to other processes: loops close over all.
    pub enabled_flows: Vec<FlowName>,
}

/// What else than the file decides.
#[derive(Clone, Default)]
pub struct LoadOptions {
    /// `--clusters`: the targets that this process serves; None: all.
    pub clusters: Option<Vec<ClusterAlias>>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// The command line's settings.
    pub flags: ProcessOverrides,
}

/// Without the environment's values, which hold secrets.
impl fmt::Debug for LoadOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LoadOptions")
            .field("clusters", &self.clusters)
            .field("environment", &format_args!("{} variables", self.environment.len()))
            .field("flags", &self.flags)
            .finish()
    }
}

/// A file that can be used.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What to do.
    pub config: Config,
    /// What became of each key.
    pub report: Report,
    /// What is strange, but does not stop us.
    pub warnings: Vec<Problem>,
}

/// Reads and checks `file`.
pub fn load(file: &Path, options: &LoadOptions) -> Result<Loaded, Box<LoadError>> {
    let name = file.display().to_string();
    match std::fs::read(file) {
        Ok(bytes) => load_bytes(&name, &bytes, file.parent().unwrap_or(Path::new("")), options),
        Err(error) => Err(Box::new(LoadError {
            file: name,
            problems: vec![Problem::of_file(format!("the file can't be read: {error}"))],
            warnings: Vec::new(),
            report: Report::default(),
        })),
    }
}

/// As [`load`], for bytes: `name` is what problems call the file, `folder` where its relative paths start.
pub fn load_bytes(
    name: &str,
    bytes: &[u8],
    folder: &Path,
    options: &LoadOptions,
) -> Result<Loaded, Box<LoadError>> {
    let mut settings = read_settings(bytes, options);
    let topology = Topology::read(&mut settings, options.clusters.as_deref());
    security::check(&mut settings, &topology);
    let process = process::read(&mut settings, options, folder);
    let clusters = topology::clusters(&mut settings, &topology);
    let flows: Vec<FlowConfig> =
        topology.served.iter().map(|flow| flows::flow_config(&mut settings, flow, folder)).collect();
    topology_checks::check(&mut settings, &topology, &clusters, &flows);
    judge::judge_the_rest(&mut settings, &topology, &clusters);

    let report = Report { rows: settings.rows() };
    let (mut problems, mut warnings) = (settings.problems, settings.warnings);
    for list in [&mut problems, &mut warnings] {
        list.sort_by_key(|problem| (problem.line.is_none(), problem.line));
    }
    if problems.is_empty() {
        return Ok(Loaded {
            config: Config { process, clusters, flows, enabled_flows: topology.enabled },
            report,
            warnings,
        });
    }
    Err(Box::new(LoadError { file: name.to_owned(), problems, warnings, report }))
}

/// The file's pairs, variables filled in.
fn read_settings(bytes: &[u8], options: &LoadOptions) -> Settings {
    let file = properties::parse(bytes);
    let providers = Providers::declared(&file.pairs, &options.environment);
    let mut unfilled = Vec::new();
    let mut entries = Vec::new();
    for pair in file.pairs {
        let is_provider = pair.key.starts_with("config.providers");
        let filled = if is_provider { None } else { Some(providers.fill(&pair.value)) };
        let value = match filled {
            Some(filled) => {
                unfilled.extend(filled.unfilled.into_iter().map(|variable| (pair.key.clone(), variable)));
                filled.value
            }
            None => pair.value.clone(),
        };
        entries.push(Entry::new(pair, value));
    }
    let mut settings = Settings::new(entries);
    settings.problems.extend(file.problems);
    settings.warnings.extend(file.warnings);
    settings.problems.extend(providers.problems);
    warn_of_values(&mut settings, unfilled);
    settings
}

fn warn_of_values(settings: &mut Settings, unfilled: Vec<(String, (String, String))>) {
    for (key, (variable, reason)) in unfilled {
        // Within a secret, what looks like a variable may be a part of it.
        let text = match settings.is_secret(&key) {
            true => "what looks like a variable in it could not be filled in and stays as it is".to_owned(),
            false => format!("{variable} stays as it is: {reason}"),
        };
        settings.warn(&key, text, None);
    }
    let holds_comment = |raw: &str| raw.contains(" #") || raw.contains("\t#");
    let commented: Vec<String> =
        settings.entries().filter(|entry| holds_comment(&entry.raw)).map(|entry| entry.key.clone()).collect();
    for key in commented {
        let text = "comments begin lines only, so all behind '#' is part of the value; give the comment a line of its own";
        settings.warn(&key, text, None);
    }
    let providers: Vec<String> = settings
        .entries()
        .filter(|entry| entry.key == "config.providers" || entry.key.starts_with("config.providers."))
        .map(|entry| entry.key.clone())
        .collect();
    for key in providers {
        settings.judge(&key, Fate::Honoured, "");
    }
}

#[cfg(test)]
mod tests;
