//! A plan for people and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::{Action, Plan, Preview};
use crate::control::selection::LeftOut;
use crate::names::{SourcePartition, TopicName};
use crate::topic_map::TopicMap;

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics = count(self.topic_map.len(), "topic");
        let ready = count(self.ready.len(), "partition");
        writeln!(formatter, "flow {}: {topics} to copy, {ready} ready", self.flow)?;
        section(formatter, "would do", &self.actions)?;
        let refusals: Vec<&str> = self.attention().map(|refusal| refusal.text.as_str()).collect();
        section(formatter, "would not do", &refusals)?;
        section(formatter, "would leave alone", &self.summary_lines())?;
        section(formatter, "noticed", &self.events)?;
        section(formatter, "not known at this moment", &self.unclear)?;
        let names = |(source, target): (&TopicName, &TopicName)| format!("{source} -> {target}");
        section(formatter, "names", &self.topic_map.iter().map(names).collect::<Vec<_>>())?;
        section(formatter, "left out by plugins", &self.left_out)?;
        self.preview.iter().try_for_each(|preview| preview.fmt(formatter))
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        section(formatter, "groups whose offsets would be synced once that exists", &self.groups)?;
        section(formatter, "groups left out by plugins", &self.groups_left_out)?;
        section(formatter, "access rules that would be copied once that exists", &self.access.rules)?;
        section(formatter, "access rules that would not be copied", &self.access.refusals)?;
        let notes: Vec<&String> = self.access.notes.iter().chain(&self.notes).collect();
        section(formatter, "beside that", &notes)
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (by \"{}\")", self.name, self.plugin)
    }
}

fn section(formatter: &mut fmt::Formatter<'_>, title: &str, lines: &[impl fmt::Display]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(formatter, "  {title}:")?;
    for line in lines {
        writeln!(formatter, "    {line}")?;
    }
    Ok(())
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreatePositionsTopic { topic, partition_count, replication_factor } => write!(
                formatter,
                "create positions topic \"{topic}\": {}, {}, cleanup.policy = compact",
                partitions(*partition_count),
                factor(*replication_factor)
            ),
            Self::CreateTopic { source_topic, topic, partition_count, replication_factor, settings } => {
                write!(
                    formatter,
                    "create topic \"{topic}\" for \"{source_topic}\": {}, {}",
                    partitions(*partition_count),
                    factor(*replication_factor)
                )?;
                settings.iter().try_for_each(|(name, value)| write!(formatter, ", {name} = {value}"))
            }
            Self::CreateQuarantineTopic { topic, side, replication_factor } => write!(
                formatter,
                "create quarantine topic \"{topic}\" on the {side}: 1 partition, {}",
                factor(*replication_factor)
            ),
            Self::AddPartitions { source_topic, topic, from_count, to_count } => write!(
                formatter,
                "add partitions to topic \"{topic}\" for \"{source_topic}\": from {from_count} to {to_count}"
            ),
        }
    }
}

fn partitions(partition_count: i32) -> String {
    match usize::try_from(partition_count) {
        Ok(partition_count) => count(partition_count, "partition"),
        Err(_) => "the broker's default of partitions".to_owned(),
    }
}

fn factor(replication_factor: i16) -> String {
    if replication_factor < 0 {
        "the broker's default replication factor".to_owned()
    } else {
        format!("replication factor {replication_factor}")
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `{"orders": "A.orders"}`.
pub(super) fn topic_map<S: Serializer>(topic_map: &TopicMap, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(topic_map.len()))?;
    for (source, target) in topic_map.iter() {
        map.serialize_entry(source, target)?;
    }
    map.end()
}

/// `[{"topic": "orders", "partition": 0, "target": "A.orders"}]`.
pub(super) fn ready<S: Serializer>(
    ready: &BTreeMap<SourcePartition, TopicName>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct Row<'a> {
        topic: &'a TopicName,
        partition: i32,
        target: &'a TopicName,
    }
    let mut rows = serializer.serialize_seq(Some(ready.len()))?;
    for (SourcePartition { topic, partition }, target) in ready {
        rows.serialize_element(&Row { topic, partition: *partition, target })?;
    }
    rows.end()
}
