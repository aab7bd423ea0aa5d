//! Texts of the settings files: small, one replica of everything, no waiting where Kafka waits for a fleet.

use std::path::Path;

/// Warnings and errors to standard output, which the harness keeps.
pub(super) const LOG4J2_XML: &str = r#"<Configuration status="ERROR">
  <Appenders><Console name="console"><PatternLayout pattern="%d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex{3}"/></Console></Appenders>
  <Loggers><Root level="warn"><AppenderRef ref="console"/></Root></Loggers>
</Configuration>
"#;

/// Holds for both versions.
const COMMON: &[(&str, &str)] = &[
    ("num.partitions", "1"),
    ("offsets.topic.num.partitions", "4"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.num.partitions", "4"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("auto.create.topics.enable", "false"),
    // Some records are from 1970 or 2020: they must not be too old to keep.
    ("log.retention.ms", "-1"),
    // Room for the largest batches of the scenarios; Kafka's default is a little over 1 MiB.
    ("message.max.bytes", "8388608"),
    // The cleaner looks every 200 ms instead of every 15 s, with a few megabytes instead of 128.
    ("log.cleaner.backoff.ms", "200"),
    ("log.cleaner.dedupe.buffer.size", "4194304"),
    ("num.network.threads", "2"),
    ("num.io.threads", "4"),
];

/// Broker and controller in one process.
pub(super) fn kraft(port: u16, controller_port: u16, data: &Path, more: &[(String, String)]) -> String {
    let listeners = format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}");
    let own = [
        ("process.roles", "broker,controller".to_owned()),
        ("node.id", "1".to_owned()),
        ("controller.quorum.voters", format!("1@127.0.0.1:{controller_port}")),
        ("listeners", listeners),
        ("advertised.listeners", format!("PLAINTEXT://127.0.0.1:{port}")),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned()),
        ("inter.broker.listener.name", "PLAINTEXT".to_owned()),
        ("controller.listener.names", "CONTROLLER".to_owned()),
        ("log.dirs", data.display().to_string()),
        ("share.coordinator.state.topic.replication.factor", "1".to_owned()),
        ("share.coordinator.state.topic.min.isr", "1".to_owned()),
        // A member that was killed is found dead after 6 s instead of the new group protocol's 45 s.
        ("group.consumer.min.session.timeout.ms", "6000".to_owned()),
        ("group.consumer.session.timeout.ms", "6000".to_owned()),
        ("group.consumer.min.heartbeat.interval.ms", "1000".to_owned()),
        ("group.consumer.heartbeat.interval.ms", "1000".to_owned()),
    ];
    properties(&own, more)
}

/// A broker of the time before KRaft.
pub(super) fn with_zookeeper(
    port: u16,
    zookeeper_port: u16,
    data: &Path,
    more: &[(String, String)],
) -> String {
    let own = [
        ("broker.id", "1".to_owned()),
        ("listeners", format!("PLAINTEXT://127.0.0.1:{port}")),
        ("log.dirs", data.display().to_string()),
        ("zookeeper.connect", format!("127.0.0.1:{zookeeper_port}/kafka")),
        // A broker that was killed may come back only when its old session has ended.
        ("zookeeper.session.timeout.ms", "2000".to_owned()),
        ("zookeeper.connection.timeout.ms", "60000".to_owned()),
    ];
    properties(&own, more)
}

/// One ZooKeeper without its HTTP server.
pub(super) fn zookeeper(port: u16, data: &Path) -> String {
    format!(
        "dataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=500\nmaxClientCnxns=0\n",
        data.display()
    )
}

/// The last of two lines with the same key counts, so `more` replaces.
fn properties(own: &[(&str, String)], more: &[(String, String)]) -> String {
    let common = COMMON.iter().map(|(key, value)| format!("{key}={value}\n"));
    let own = own.iter().map(|(key, value)| format!("{key}={value}\n"));
    let more = more.iter().map(|(key, value)| format!("{key}={value}\n"));
    common.chain(own).chain(more).collect()
}
