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

use super::{Failure, plugin_live};

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
    /// Show the plugins of a running flow.
    List(plugin_live::LookArguments),
    /// Put another module or other settings in a plugin's place while data flows.
    Swap(Box<plugin_live::SwapArguments>),
    /// Go back to an earlier generation of a flow's plugins.
    Rollback(plugin_live::RollbackArguments),
    /// Show what was decided about a flow's plugins, when and by whom.
    History(plugin_live::LookArguments),
}

pub(super) fn run(arguments: &PluginArguments) -> Result<(), Failure> {
    match &arguments.command {
        PluginCommand::New(arguments) => new::run(arguments),
        PluginCommand::Build(arguments) => build::run(arguments),
        PluginCommand::Test(arguments) => test::run(arguments),
        PluginCommand::Bench(arguments) => bench::run(arguments),
        PluginCommand::Inspect(arguments) => inspect::run(arguments),
        PluginCommand::List(arguments) => plugin_live::list(arguments),
        PluginCommand::Swap(arguments) => plugin_live::swap(arguments),
        PluginCommand::Rollback(arguments) => plugin_live::rollback(arguments),
        PluginCommand::History(arguments) => plugin_live::history(arguments),
    }
}
