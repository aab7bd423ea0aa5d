//! `tidegate plugin test --from-topic`: a plugin on the last real records of a topic, alone or against an older one.

use std::sync::Arc;

use clap::Args;
use tidegate_wire::client::{Client, ClientOptions};

use super::subject::{LimitArguments, ModuleArguments, module_failure, module_named, settings_text};
use crate::author::chain::alone;
use crate::author::suite::{Subject, link};
use crate::cli::run::runtime;
use crate::cli::{Exit, Failure, Output};
use crate::cluster::recent::{RECENT_RECORD_COUNT_MAX, recent_records};
use crate::config::PluginModule;
use crate::names::TopicName;
use crate::plugin::trial::{TrialBatch, TrialReport, compare};
use crate::plugin::{Chain, Engine, LoadError, LoadedPlugin};

#[derive(Debug, Args)]
pub(super) struct TrialArguments {
    /// Try the plugin on the last records of this topic; nothing is written anywhere.
    #[arg(long, value_name = "TOPIC", requires = "bootstrap")]
    pub(super) from_topic: Option<String>,
    /// Brokers of the cluster that has the topic.
    #[arg(long, value_name = "HOST:PORT,…", requires = "from_topic")]
    bootstrap: Option<String>,
    /// So many records at most.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=RECENT_RECORD_COUNT_MAX as u64))]
    max: u64,
    /// The plugin's settings for --from-topic: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON|@FILE", requires = "from_topic")]
    settings: Option<String>,
    /// Compare with this older component instead of with the records as they are.
    #[arg(long, value_name = "MODULE", requires = "from_topic")]
    against: Option<String>,
    /// The older component's settings, if they differ.
    #[arg(long, value_name = "JSON|@FILE", requires = "against")]
    against_settings: Option<String>,
    /// The flow that the plugin is told of.
    #[arg(long, value_name = "SOURCE->TARGET", default_value = "east->west")]
    flow: String,
    /// How to print what --from-topic finds.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// What both sides have in common.
struct Place<'a> {
    engine: &'a Engine,
    limits: &'a LimitArguments,
    flow: (&'a str, &'a str),
}

pub(super) fn run(
    topic: &str,
    arguments: &TrialArguments,
    module: &ModuleArguments,
    limits: &LimitArguments,
    engine: &Engine,
) -> Result<(), Failure> {
    let topic = TopicName::parse(topic).map_err(|error| Exit::Usage.because(error))?;
    let Some(flow) = arguments.flow.split_once("->") else {
        let problem = format!("{:?} is no flow; it looks like east->west", arguments.flow);
        return Err(Exit::Usage.because(anyhow::anyhow!("{problem}")));
    };
    let place = Place { engine, limits, flow };
    let settings = settings_text(arguments.settings.as_deref())?;
    let mut new = place.chain(&module.module()?, &settings)?;
    let mut old = match &arguments.against {
        None => None,
        Some(against) => {
            let settings = match &arguments.against_settings {
                Some(own) => settings_text(Some(own))?,
                None => settings,
            };
            Some(place.chain(&module_named(against), &settings)?)
        }
    };
    let batches = read(&topic, arguments)?;
    let report = compare(old.as_mut(), &mut new, &batches);
    show(&report, arguments.output)?;
    match report.new.faulted_count {
        0 => Ok(()),
        count => Err(Exit::Data.because(anyhow::anyhow!("the plugin failed on {count} records"))),
    }
}

impl Place<'_> {
    fn chain(&self, module: &PluginModule, settings_json: &str) -> Result<Chain, Failure> {
        let start = || -> Result<LoadedPlugin, LoadError> {
            let subject = Subject::read(self.engine, module, self.limits.limits())?;
            subject.start(&link(self.flow.0, self.flow.1), settings_json)
        };
        let plugin = start().map_err(module_failure)?;
        if !plugin.hooks.records {
            let problem = format!(
                "{module} edits no records, so there is nothing to try on them; it has only: {}",
                plugin.hooks
            );
            return Err(Exit::Data.because(anyhow::anyhow!("{problem}")));
        }
        alone(&Arc::new(plugin)).map_err(module_failure)
    }
}

fn read(topic: &TopicName, arguments: &TrialArguments) -> Result<Vec<TrialBatch>, Failure> {
    let bootstrap = arguments.bootstrap.as_deref().unwrap_or_default();
    let options = ClientOptions {
        bootstrap_servers: bootstrap.split(',').map(|server| server.trim().to_owned()).collect(),
        client_id: "tidegate-plugin-test".to_owned(),
        ..ClientOptions::default()
    };
    let count = usize::try_from(arguments.max).unwrap_or(RECENT_RECORD_COUNT_MAX);
    let read = runtime()?.block_on(async {
        let client = Client::connect(options).await?;
        recent_records(&client, topic, count).await
    });
    read.map_err(|error| Exit::Unavailable.because(error.context(format!("could not read from {bootstrap}"))))
}

fn show(report: &TrialReport, output: Output) -> Result<(), Failure> {
    let text = match output {
        Output::Table => report.to_string(),
        Output::Json => {
            let json = serde_json::to_string_pretty(report).map_err(|error| Exit::Internal.because(error))?;
            json + "\n"
        }
    };
    crate::cli::print(&text);
    Ok(())
}
