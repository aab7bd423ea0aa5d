//! `tidegate flow resume FLOW`: lets partitions go on that a plugin's fault or refusal stopped.

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::client::ClientArguments;
use super::{Exit, Failure, print};
use crate::serve::orders::{PartitionName, ResumeView, ResumeWish};

#[derive(Debug, Args)]
pub(super) struct FlowArguments {
    #[command(subcommand)]
    command: FlowCommand,
}

#[derive(Debug, Subcommand)]
enum FlowCommand {
    /// Let partitions go on that a plugin stopped: the record in question is asked for again.
    Resume(ResumeArguments),
}

#[derive(Debug, Args)]
struct ResumeArguments {
    /// The flow, as in 'east->west'.
    flow: String,
    /// Only this partition of the source, as in 'orders[3]'.
    #[arg(long, value_name = "TOPIC[N]", value_parser = parse_partition)]
    partition: Option<PartitionName>,
    #[command(flatten)]
    client: ClientArguments,
}

pub(super) fn run(arguments: &FlowArguments) -> Result<(), Failure> {
    let FlowCommand::Resume(arguments) = &arguments.command;
    let wish = ResumeWish { partition: arguments.partition.clone() };
    let view: ResumeView = arguments.client.client()?.post(&arguments.flow, "resume", &wish)?;
    if view.resumed.is_empty() {
        let which = match &arguments.partition {
            Some(name) => format!("{}[{}] is not", name.topic, name.partition),
            None => "no partition is".to_owned(),
        };
        return Err(Exit::Data.because(anyhow!(
            "{which} stopped by a plugin in the process that was asked; tidegate status shows where each partition is"
        )));
    }
    for partition in &view.resumed {
        print(&format!("{}[{}] goes on\n", partition.topic, partition.partition));
    }
    Ok(())
}

fn parse_partition(text: &str) -> Result<PartitionName, String> {
    let parsed = text.strip_suffix(']').and_then(|text| {
        let (topic, number) = text.rsplit_once('[')?;
        Some(PartitionName { topic: topic.to_owned(), partition: number.parse().ok()? })
    });
    parsed
        .filter(|name| !name.topic.is_empty())
        .ok_or_else(|| "wants a topic and a partition, as in orders[3]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_written_as_logs_write_them() {
        let name = |topic: &str, partition| Ok(PartitionName { topic: topic.to_owned(), partition });
        assert_eq!(parse_partition("orders[3]"), name("orders", 3));
        assert_eq!(parse_partition("a.b-c[10]"), name("a.b-c", 10));
        for text in ["orders", "orders[]", "[3]", "orders[x]", "orders[3"] {
            assert!(parse_partition(text).is_err(), "{text}");
        }
    }
}
