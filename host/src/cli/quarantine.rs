//! `tidegate quarantine list|show|replay FLOW`: records that plugins could not judge or refused.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use comfy_table::{ContentArrangement, Table, presets};

use super::client::ClientArguments;
use super::{Exit, Failure, Output, print, visible};
use crate::serve::orders::{QuarantineWish, QuarantinedView, ReplayView};

#[derive(Debug, Args)]
pub(super) struct QuarantineArguments {
    #[command(subcommand)]
    command: QuarantineCommand,
}

#[derive(Debug, Subcommand)]
enum QuarantineCommand {
    /// Show which records are there, and why.
    List(ListArguments),
    /// Show records with their content.
    Show(PickArguments),
    /// Run the chain of now over them; what passes is written to the target.
    Replay(PickArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// The flow, as in 'east->west'.
    flow: String,
    /// Also those that were played again.
    #[arg(long)]
    all: bool,
    /// At most so many, the last ones.
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    #[command(flatten)]
    client: ClientArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Args)]
struct PickArguments {
    /// The flow, as in 'east->west'.
    flow: String,
    /// Records by the ID that list shows; all that were not played again when none is named.
    #[arg(value_name = "ID")]
    records: Vec<String>,
    #[command(flatten)]
    client: ClientArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn run(arguments: &QuarantineArguments) -> Result<(), Failure> {
    match &arguments.command {
        QuarantineCommand::List(arguments) => list(arguments),
        QuarantineCommand::Show(arguments) => show(arguments),
        QuarantineCommand::Replay(arguments) => replay(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let wish = QuarantineWish { records: Vec::new(), with_replayed: arguments.all, count_max: arguments.max };
    let views: Vec<QuarantinedView> =
        arguments.client.client()?.post(&arguments.flow, "quarantine/list", &wish)?;
    match arguments.output {
        Output::Json => print_json(&views),
        Output::Table => {
            print(&list_text(&views));
            Ok(())
        }
    }
}

fn show(arguments: &PickArguments) -> Result<(), Failure> {
    let wish = QuarantineWish { records: arguments.records.clone(), ..QuarantineWish::default() };
    let views: Vec<QuarantinedView> =
        arguments.client.client()?.post(&arguments.flow, "quarantine/show", &wish)?;
    match arguments.output {
        Output::Json => print_json(&views),
        Output::Table => {
            print(&views.iter().map(show_text).collect::<Vec<_>>().join("\n"));
            Ok(())
        }
    }
}

fn replay(arguments: &PickArguments) -> Result<(), Failure> {
    let wish = QuarantineWish { records: arguments.records.clone(), ..QuarantineWish::default() };
    let view: ReplayView = arguments.client.client()?.post(&arguments.flow, "quarantine/replay", &wish)?;
    match arguments.output {
        Output::Json => print_json(&view)?,
        Output::Table => {
            print(&format!(
                "{} written to the target, {} dropped by the chain, {} failed again\n",
                view.replayed.len(),
                view.dropped.len(),
                view.failed.len()
            ));
            for (id, reason) in &view.failed {
                print(&format!("  {id}: {}\n", visible(reason)));
            }
        }
    }
    if view.failed.is_empty() {
        return Ok(());
    }
    Err(Exit::Data.because(anyhow!("{} records stay in quarantine", view.failed.len())))
}

fn print_json<T: serde::Serialize>(value: &T) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).map_err(|problem| Exit::Internal.because(problem))?;
    print(&format!("{json}\n"));
    Ok(())
}

fn list_text(views: &[QuarantinedView]) -> String {
    if views.is_empty() {
        return "nothing is in quarantine\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["ID", "RECORD", "AT", "PLUGIN", "REASON"]);
    for view in views {
        let replayed = if view.is_replayed { " (played again)" } else { "" };
        table.add_row([
            view.id.clone(),
            format!("{}[{}] {}", view.topic, view.partition, view.offset),
            view.at.clone(),
            format!("{} {}", view.plugin, view.version),
            format!("{}{replayed}", visible(&view.reason)),
        ]);
    }
    format!("{table}\n")
}

fn show_text(view: &QuarantinedView) -> String {
    let mut text = format!(
        "{}  {}[{}] offset {}  {}  {} {}\n  reason: {}\n",
        view.id,
        view.topic,
        view.partition,
        view.offset,
        view.at,
        view.plugin,
        view.version,
        visible(&view.reason)
    );
    let null = || "null".to_owned();
    if let Some(content) = &view.content {
        text.push_str(&format!("  key: {}\n", content.key.as_deref().map_or_else(null, visible)));
        for (name, value) in &content.headers {
            text.push_str(&format!(
                "  header {}: {}\n",
                visible(name),
                value.as_deref().map_or_else(null, visible)
            ));
        }
        text.push_str(&format!("  value: {}\n", content.value.as_deref().map_or_else(null, visible)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::orders::QuarantinedContent;

    fn view() -> QuarantinedView {
        QuarantinedView {
            id: "0:10".to_owned(),
            topic: "orders".to_owned(),
            partition: 3,
            offset: 812,
            at: "2026-01-02T03:04:05.678Z".to_owned(),
            plugin: "mask".to_owned(),
            version: "0.1.0".to_owned(),
            reason: "is no JSON".to_owned(),
            is_replayed: false,
            content: None,
        }
    }

    #[test]
    fn the_list_says_which_record_and_why() {
        let text = list_text(&[view()]);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "ID RECORD AT PLUGIN REASON",
            "0:10 orders[3] 812 2026-01-02T03:04:05.678Z mask 0.1.0 is no JSON",
        ];
        assert_eq!(lines, expected);
        assert_eq!(list_text(&[]), "nothing is in quarantine\n");
    }

    #[test]
    fn null_and_empty_look_different() {
        let content = QuarantinedContent {
            key: None,
            value: Some(String::new()),
            headers: vec![("a".to_owned(), None)],
        };
        assert_eq!(
            show_text(&QuarantinedView { content: Some(content), ..view() }),
            "0:10  orders[3] offset 812  2026-01-02T03:04:05.678Z  mask 0.1.0\n  reason: is no JSON\n  key: null\n  \
             header a: null\n  value: \n"
        );
    }
}
