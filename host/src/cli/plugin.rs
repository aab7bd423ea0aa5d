//! `tidegate plugin …`: what authors of plugins need, and what operators do with plugins of a running flow.

mod bench;
mod build;
mod inspect;
mod new;
mod subject;
mod test;
mod trial;
mod watch;

use clap::{Args, Subcommand};

use super::Failure;

#[derive(Debug, Args)]
pub(super) struct PluginArguments {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// Make a project for a new plugin, which builds and passes its tests at once.
    New(new::NewArguments),
    /// Build a plugin's project and check the component.
    Build(build::BuildArguments),
    /// Run the cases of fixtures/*.yaml, or try a plugin on real records.
    Test(test::TestArguments),
    /// Measure what a plugin costs: a record, memory, start.
    Bench(bench::BenchArguments),
    /// Say what a plugin is: name, version, digest, hooks, imports, needs, schema.
    Inspect(inspect::InspectArguments),
}

pub(super) fn run(arguments: &PluginArguments) -> Result<(), Failure> {
    match &arguments.command {
        PluginCommand::New(arguments) => new::run(arguments),
        PluginCommand::Build(arguments) => build::run(arguments),
        PluginCommand::Test(arguments) => test::run(arguments),
        PluginCommand::Bench(arguments) => bench::run(arguments),
        PluginCommand::Inspect(arguments) => inspect::run(arguments),
    }
}
