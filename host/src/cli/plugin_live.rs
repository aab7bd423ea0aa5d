//! What operators do with the plugins of a running flow: list, history, swap, rollback.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};

use super::client::{ClientArguments, encoded, who};
use super::{Exit, Failure, Output, print};
use crate::serve::orders::{
    HistoryLine, PluginsView, RollbackWish, SentModule, SwapView, SwapWish, TrialView,
};

/// Larger files are no plugins, in bytes.
const MODULE_BYTES_MAX: u64 = 64 << 20;

/// Longer settings are not sent, in bytes.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(super) struct SwapArguments {
    /// The flow, as in 'east->west'.
    flow: String,
    /// The plugin's name in tidegate.plugins, or naming.
    name: String,
    /// The new module: a file, or builtin:NAME. Without it only settings change.
    module: Option<String>,
    /// The new settings: a JSON object, or @FILE (other users of this machine can't see those). Kept when absent.
    #[arg(long, value_name = "JSON|@FILE")]
    settings: Option<String>,
    /// First try it on so many recent records of the source, old against new; 0 tries none.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    replay: usize,
    /// Don't ask after the trial.
    #[arg(long)]
    yes: bool,
    /// Swap although copied topics would be renamed, or the trial failed.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    client: ClientArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Args)]
pub(super) struct RollbackArguments {
    /// The flow, as in 'east->west'.
    flow: String,
    /// The generation to go back to [default: the one before]
    #[arg(long, value_name = "GENERATION")]
    to: Option<u64>,
    /// Go back although copied topics would be renamed.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    client: ClientArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Args)]
pub(super) struct LookArguments {
    /// The flow, as in 'east->west'.
    flow: String,
    #[command(flatten)]
    client: ClientArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn swap(arguments: &SwapArguments) -> Result<(), Failure> {
    if !arguments.yes && !std::io::stdin().is_terminal() {
        return Err(Exit::Usage.because(anyhow!(
            "standard input is no terminal, so nobody can be asked whether the trial looks well; give --yes"
        )));
    }
    let client = arguments.client.client()?;
    let mut wish = arguments.wish().map_err(|problem| Exit::Data.because(problem))?;
    let path = format!("plugins/{}", encoded(&arguments.name));
    let mut trial = None;
    if arguments.replay > 0 {
        let tried: TrialView = client.post(&arguments.flow, &format!("{path}/trial"), &wish)?;
        eprint!("{}", trial_text(&tried));
        if tried.fault_count > 0 && !arguments.force {
            return Err(Exit::Data.because(anyhow!(
                "the new plugin failed on {} of the records that it was tried on; nothing has changed; mend it, or give --force",
                tried.fault_count
            )));
        }
        wish.seen_generation = Some(tried.generation);
        // Once is enough.
        wish.replay = 0;
        trial = Some(tried);
    }
    if !arguments.yes && !is_confirmed()? {
        eprintln!("nothing has changed");
        return Ok(());
    }
    let swapped: SwapView = client.post(&arguments.flow, &format!("{path}/swap"), &wish)?;
    tell(&swapped, arguments.output, trial.as_ref())
}

pub(super) fn rollback(arguments: &RollbackArguments) -> Result<(), Failure> {
    let wish = RollbackWish { to: arguments.to, force: arguments.force, who: who() };
    let client = arguments.client.client()?;
    let swapped: SwapView = client.post(&arguments.flow, "plugins/rollback", &wish)?;
    tell(&swapped, arguments.output, None)
}

pub(super) fn list(arguments: &LookArguments) -> Result<(), Failure> {
    let view: PluginsView = arguments.client.client()?.get(&arguments.flow, "plugins")?;
    match arguments.output {
        Output::Json => print_json(&view),
        Output::Table => {
            print(&list_text(&view));
            Ok(())
        }
    }
}

pub(super) fn history(arguments: &LookArguments) -> Result<(), Failure> {
    let lines: Vec<HistoryLine> = arguments.client.client()?.get(&arguments.flow, "plugins/history")?;
    match arguments.output {
        Output::Json => print_json(&lines),
        Output::Table => {
            print(&history_text(&lines));
            Ok(())
        }
    }
}

impl SwapArguments {
    fn wish(&self) -> anyhow::Result<SwapWish> {
        let module = self.module.as_deref().map(module).transpose()?;
        let settings = match self.settings.as_deref().map(|text| (text, text.strip_prefix('@'))) {
            Some((_, Some(path))) => {
                let bytes = read(Path::new(path), SETTINGS_BYTES_MAX)?;
                Some(String::from_utf8(bytes).map_err(|_| anyhow!("{path} is no UTF-8 text"))?)
            }
            Some((text, None)) => Some(text.to_owned()),
            None => None,
        };
        Ok(SwapWish {
            name: self.name.clone(),
            module,
            settings,
            replay: self.replay,
            force: self.force,
            seen_generation: None,
            who: who(),
        })
    }
}

fn module(text: &str) -> anyhow::Result<SentModule> {
    if let Some(name) = text.strip_prefix("builtin:") {
        return Ok(SentModule::Builtin(name.to_owned()));
    }
    let path = Path::new(text);
    let bytes = read(path, MODULE_BYTES_MAX)?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(SentModule::Bytes { path: path.display().to_string(), bytes })
}

fn read(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let context = || format!("could not read {}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(context)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).with_context(context)?;
    anyhow::ensure!(bytes.len() as u64 <= bytes_max, "{} has more than {bytes_max} bytes", path.display());
    Ok(bytes)
}

fn is_confirmed() -> Result<bool, Failure> {
    eprint!("swap? [y/N] ");
    let mut line = String::new();
    let told = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut line));
    told.map_err(|problem| Exit::Internal.because(problem))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn trial_text(trial: &TrialView) -> String {
    let mut text = format!("{} (sha256 {})\n{}", trial.plugin, trial.digest, trial.text);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for rename in &trial.renames {
        text.push_str(&format!("would rename: {rename}\n"));
    }
    text
}

/// Tells what came of it. A swap that is not complete is a failure, so that scripts see it.
fn tell(swapped: &SwapView, output: Output, trial: Option<&TrialView>) -> Result<(), Failure> {
    match output {
        Output::Json => print_json(&serde_json::json!({ "swap": swapped, "trial": trial }))?,
        Output::Table => print(&swap_text(swapped)),
    }
    if swapped.is_complete {
        return Ok(());
    }
    let notes = swapped.notes.join("; ");
    Err(Exit::Unavailable
        .because(anyhow!("generation {} is not in use everywhere: {notes}", swapped.generation)))
}

fn print_json<T: serde::Serialize>(value: &T) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).map_err(|problem| Exit::Internal.because(problem))?;
    print(&format!("{json}\n"));
    Ok(())
}

fn swap_text(swapped: &SwapView) -> String {
    let mut table = table(["TOPIC", "PARTITION", "FIRST OFFSET", "NODE"]);
    for partition in &swapped.partitions {
        table.add_row([
            partition.topic.clone(),
            partition.partition.to_string(),
            partition.first_offset.map_or_else(|| "?".to_owned(), |offset| offset.to_string()),
            partition.node.clone(),
        ]);
    }
    let end = if swapped.is_complete { "in use everywhere" } else { "NOT in use everywhere" };
    format!("generation {} is {end}, {} ms\n{table}\n", swapped.generation, swapped.took_ms)
}

fn list_text(view: &PluginsView) -> String {
    let mut table = table(["NAME", "PLUGIN", "VERSION", "HOOKS", "ON FAULT", "TOPICS", "SHA256", "MODULE"]);
    for plugin in &view.plugins {
        let topics = match plugin.topics_exclude.as_str() {
            "" => plugin.topics.clone(),
            exclude => format!("{} but {exclude}", plugin.topics),
        };
        table.add_row([
            plugin.name.clone(),
            plugin.plugin.clone(),
            plugin.version.clone(),
            plugin.hooks.join(", "),
            plugin.on_fault.clone(),
            topics,
            short(&plugin.digest),
            plugin.module.clone(),
        ]);
    }
    format!("{}  generation {} ({})\n{table}\n", view.flow, view.generation, view.kind)
}

fn history_text(lines: &[HistoryLine]) -> String {
    let mut table = table(["GENERATION", "KIND", "AT", "WHO", "WHAT", "NODES"]);
    for line in lines {
        let generation =
            if line.is_current { format!("{} *", line.generation) } else { line.generation.to_string() };
        let refused = line.nodes.iter().filter(|node| node.refused.is_some()).count();
        let nodes = match refused {
            0 => line.nodes.len().to_string(),
            _ => format!("{} and {refused} refused", line.nodes.len() - refused),
        };
        table.add_row([
            generation,
            line.kind.clone(),
            line.at.clone(),
            line.who.to_string(),
            line.what.clone(),
            nodes,
        ]);
    }
    format!("{table}\n")
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::orders::{SwappedPartition, Who};

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn a_swap_is_told_with_the_first_offset_of_each_partition() {
        let partition = |number: i32, first_offset: Option<i64>| SwappedPartition {
            topic: "orders".to_owned(),
            partition: number,
            first_offset,
            node: "n1".to_owned(),
        };
        let swapped = SwapView {
            generation: 4,
            is_complete: true,
            notes: Vec::new(),
            partitions: vec![partition(0, Some(120)), partition(1, None)],
            took_ms: 83,
        };
        let expected = [
            "generation 4 is in use everywhere, 83 ms",
            "TOPIC PARTITION FIRST OFFSET NODE",
            "orders 0 120 n1",
            "orders 1 ? n1",
        ];
        assert_eq!(lines(&swap_text(&swapped)), expected);
        let incomplete =
            SwapView { is_complete: false, notes: vec!["nobody has reported".to_owned()], ..swapped };
        let failure = tell(&incomplete, Output::Json, None).unwrap_err();
        assert_eq!(
            (failure.exit.code(), failure.to_string().as_str()),
            (69, "generation 4 is not in use everywhere: nobody has reported")
        );
    }

    #[test]
    fn the_history_marks_what_runs() {
        let line = HistoryLine {
            generation: 2,
            kind: "swap".to_owned(),
            is_current: true,
            at: "2026-01-02T03:04:05.678Z".to_owned(),
            who: Who { user: "ann".to_owned(), host: "desk".to_owned() },
            what: "\"mask\" is /m.wasm".to_owned(),
            nodes: Vec::new(),
        };
        let expected = [
            "GENERATION KIND AT WHO WHAT NODES",
            "2 * swap 2026-01-02T03:04:05.678Z ann@desk \"mask\" is /m.wasm 0",
        ];
        assert_eq!(lines(&history_text(&[line])), expected);
    }
}
