//! A file as people have it, and the whole table that they see.

use super::*;

const FILE: &str = "\
# Two data centres, one standby
clusters = primary, backup

primary.bootstrap.servers = p1:9092, p2:9092
backup.bootstrap.servers = b1:9092
primary.consumer.fetch.max.bytes = 104857600
primary.consumer.max.partition.fetch.bytes = 4194304
backup.producer.batch.size = 1000000
backup.producer.compression.type = lz4
backup.offset.flush.interval.ms = 10000

primary->backup.enabled = true
primary->backup.topics = orders.*, payments\\\\.v[0-9]+, \\
    customers
primary->backup.topics.exclude = .*-test, __.*
primary->backup.use.defaults.from = source
backup->primary.enabled = false

replication.factor = 3
tasks.max = 8
refresh.topics.interval.seconds = 60
sync.topic.acls.enabled = false
sync.group.offsets.enabled = true
checkpoints.topic.replication.factor = 3
offset-syncs.topic.replication.factor = 3
heartbeats.topic.replication.factor = 3
offset.storage.replication.factor = 3
status.storage.replication.factor = 3
config.storage.replication.factor = 3
replication.policy.separator = _
emit.heartbeats.interval.seconds = 5
dedicated.mode.enable.internal.rest = true
listeners = http://:8083

tidegate.http.listen = 127.0.0.1:9000
";

const TABLE: &str = "\
2  honoured clusters = primary, backup |
4  honoured primary.bootstrap.servers = p1:9092, p2:9092 |
5  honoured backup.bootstrap.servers = b1:9092 |
6  honoured primary.consumer.fetch.max.bytes = 104857600 | for primary->backup
7  honoured primary.consumer.max.partition.fetch.bytes = 4194304 | for primary->backup
8  mapped   backup.producer.batch.size = 1000000 | nothing: batches pass as the source wrote them; small ones that wait are merged up to max.request.size
9  honoured backup.producer.compression.type = lz4 | for primary->backup
10 mapped   backup.offset.flush.interval.ms = 10000 | positions are stored at least every 5000 ms
12 honoured primary->backup.enabled = true |
13 honoured primary->backup.topics = orders.*, payments\\.v[0-9]+, customers |
15 honoured primary->backup.topics.exclude = .*-test, __.* |
16 honoured primary->backup.use.defaults.from = source |
17 honoured backup->primary.enabled = false |
19 honoured replication.factor = 3 | for primary->backup
20 mapped   tasks.max = 8 | nothing: Tidegate shares work by slots, not by tasks; tidegate.workers sets the threads of a process
21 honoured refresh.topics.interval.seconds = 60 | for primary->backup
22 ignored  sync.topic.acls.enabled = false | not yet honoured: access rules
23 ignored  sync.group.offsets.enabled = true | not yet honoured: consumer groups
24 ignored  checkpoints.topic.replication.factor = 3 | not yet honoured: checkpoints
25 ignored  offset-syncs.topic.replication.factor = 3 | not yet honoured: offset syncs
26 ignored  heartbeats.topic.replication.factor = 3 | not yet honoured: heartbeats
27 honoured offset.storage.replication.factor = 3 | for primary->backup
28 ignored  status.storage.replication.factor = 3 | there are no connectors, so no topic keeps their state; see /api/v1/status
29 ignored  config.storage.replication.factor = 3 | there are no connectors, so no topic keeps their settings
30 honoured replication.policy.separator = _ | for primary->backup
31 ignored  emit.heartbeats.interval.seconds = 5 | not yet honoured: heartbeats
32 mapped   dedicated.mode.enable.internal.rest = true | nothing: processes of one flow share its slots through Kafka alone
33 ignored  listeners = http://:8083 | processes agree through Kafka and need no server between them; see tidegate.http.listen
35 honoured tidegate.http.listen = 127.0.0.1:9000 |
";

#[test]
fn every_key_of_a_realistic_file_has_its_fate() {
    let loaded = read(FILE);
    let rows = loaded.report.rows.iter();
    let table: String = rows
        .map(|row| {
            let text = format!("{:<2} {:<8} {} = {} | {}", row.line, row.fate, row.key, row.value, row.note);
            format!("{}\n", text.trim_end())
        })
        .collect();
    assert_eq!(table, TABLE);
}

#[test]
fn a_realistic_file_becomes_a_flow() {
    let config = read(FILE).config;
    let [flow] = config.flows.as_slice() else { panic!("{:?}", config.flows) };
    assert_eq!(flow.topics.include.pattern(), r"orders.*|payments\.v[0-9]+|customers");
    for (topic, expected) in [
        ("orders.eu", true),
        ("orders-test", false),
        ("payments.v2", true),
        ("paymentsxv2", false),
        ("customers", true),
    ] {
        assert_eq!(flow.topics.accepts(topic), Ok(expected), "{topic}");
    }
    assert_eq!(flow.naming.settings_json, "{\"separator\":\"_\"}");
    assert_eq!(flow.positions.topic, "mm2-offsets.primary.internal");
    assert_eq!(flow.positions.flush_interval, Duration::from_secs(5));
    assert_eq!(flow.source.fetch_max_bytes, 104_857_600);
    assert!(flow.use_defaults_from_source);
}
