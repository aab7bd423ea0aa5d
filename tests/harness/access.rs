//! Access rules made by Kafka's own tool, and groups by librdkafka.

use std::process::Command;

use anyhow::{Context, ensure};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::Servers;
use crate::jars;
use crate::kafka::{KafkaVersion, java_command, write_log_settings};

/// Broker settings under which access rules are kept and everybody is let in all the same.
pub const KEEPS_ACCESS_RULES: [(&str, &str); 2] = [
    ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
    ("super.users", "User:ANONYMOUS"),
];

/// Runs `kafka-acls.sh --add` with these arguments: a second or two of a core.
///
/// # Errors
/// With what the tool said when it failed.
pub fn add_access_rule(cluster: &dyn Servers, arguments: &[&str]) -> anyhow::Result<()> {
    const HEAP_MIB: u32 = 128;
    let jars = jars::fetch(KafkaVersion::V4_3_1)?;
    let directory = tempfile::Builder::new().prefix("tidegate-acls-").tempdir()?;
    write_log_settings(directory.path())?;
    let mut command = java_command(&jars, HEAP_MIB, directory.path(), "org.apache.kafka.tools.AclCommand");
    let servers = cluster.bootstrap_servers();
    command.extend(["--bootstrap-server", &servers, "--add"].map(Into::into));
    command.extend(arguments.iter().map(Into::into));
    let (program, rest) = command.split_first().context("java is named")?;
    let output = Command::new(program).args(rest).output()?;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    ensure!(output.status.success(), "kafka-acls failed: {said}");
    Ok(())
}

/// Makes a consumer group by committing an offset.
///
/// # Errors
/// When the broker refuses.
pub fn commit_as_group(cluster: &dyn Servers, group: &str, topic: &str) -> anyhow::Result<()> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("group.id", group).set("log_level", "0");
    let consumer: BaseConsumer = config.create()?;
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(topic, 0, Offset::Offset(0))?;
    consumer.commit(&offsets, CommitMode::Sync).with_context(|| format!("group {group:?} could not commit"))
}
