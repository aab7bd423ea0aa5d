//! MirrorMaker 2's precedence, its traps included.

use super::*;

#[test]
fn defaults_are_mirror_makers() {
    let flow = flow_of("");
    assert_eq!(flow.name.to_string(), "A->B");
    assert_eq!(flow.topics.include.pattern(), ".*");
    assert_eq!(flow.topics.exclude.pattern(), r".*[\-\.]internal|.*\.replica|__.*");
    assert_eq!(
        flow.naming,
        NamingConfig {
            is_explicit: false,
            module: NamingModule::DefaultPolicy,
            settings_json: "{\"separator\":\".\"}".into(),
            deadline: Duration::from_millis(50),
            memory_bytes: 64 * 1_048_576,
        }
    );
    assert_eq!(flow.internal_topics.separator, ".");
    assert_eq!(flow.replication_factor, 2);
    assert_eq!(flow.refresh_topics, Some(Duration::from_secs(600)));
    assert!(flow.heartbeats_replication && !flow.use_defaults_from_source);
    assert_eq!(
        flow.positions,
        PositionsConfig {
            topic: "mm2-offsets.A.internal".into(),
            partitions: 25,
            replication_factor: 3,
            topic_configs: vec![],
            flush_interval: Duration::from_secs(5),
        }
    );
    let connection = ConnectionConfig::default();
    assert_eq!(
        flow.group,
        GroupConfig {
            id: "A-mm2".into(),
            session_timeout: Duration::from_secs(10),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(60),
            connection: ConnectionConfig { request_timeout: Duration::from_secs(40), ..connection.clone() },
        }
    );
    assert_eq!(
        flow.source,
        SourceClientConfig {
            client_id: "A->B|tidegate|replication-consumer".into(),
            fetch_min_bytes: 1,
            fetch_max_bytes: 52_428_800,
            fetch_max_wait: Duration::from_millis(500),
            max_partition_fetch_bytes: 1_048_576,
            auto_offset_reset: OffsetReset::Earliest,
            isolation: Isolation::ReadUncommitted,
            connection: connection.clone(),
        }
    );
    assert_eq!(
        flow.target,
        TargetClientConfig {
            client_id: "A->B|tidegate|replication-producer".into(),
            batch_bytes_max: None,
            max_request_bytes: 8 * 1_048_576,
            compression: None,
            acks_timeout: Duration::from_secs(30),
            connection: connection.clone(),
        }
    );
    let admin = ConnectionConfig { connections_idle_max: Some(Duration::from_secs(300)), ..connection };
    assert_eq!(flow.source_admin.connection, admin);
    assert_eq!(flow.target_admin.client_id, "A->B|tidegate|replication-target-admin");
}

#[test]
fn a_flows_option_beats_the_top_level() {
    let flow = flow_of("topics=x\nA->B.topics=y\nreplication.factor=1\nA.topics=z\n");
    assert_eq!(flow.topics.include.pattern(), "y");
    assert_eq!(flow.replication_factor, 1);
}

#[test]
fn a_clusters_consumer_beats_the_flows() {
    let flow = flow_of(
        "A->B.consumer.fetch.min.bytes=1\nA.consumer.fetch.min.bytes=2\nconsumer.fetch.min.bytes=9\n",
    );
    assert_eq!(flow.source.fetch_min_bytes, 2);
    let flow = flow_of(
        "A.consumer.fetch.min.bytes=2\nA->B.source.consumer.fetch.min.bytes=3\nB.consumer.fetch.min.bytes=9\n",
    );
    assert_eq!(flow.source.fetch_min_bytes, 3);
}

#[test]
fn a_flows_producer_never_reaches_the_data() {
    let flow = flow_of(
        "A->B.producer.compression.type=gzip\nA.producer.compression.type=gzip\nproducer.compression.type=gzip\n",
    );
    assert_eq!(flow.target.compression, None);
    let flow = flow_of("B.producer.compression.type=lz4\n");
    assert_eq!(flow.target.compression, Some(Compression::Lz4));
    let flow = flow_of("B.producer.compression.type=lz4\nA->B.producer.override.compression.type=zstd\n");
    assert_eq!(flow.target.compression, Some(Compression::Zstd));
}

#[test]
fn the_top_levels_offset_storage_beats_the_clusters() {
    let flow = flow_of(
        "offset.storage.replication.factor=1\nB.offset.storage.replication.factor=2\nB.offset.storage.partitions=5\n\
         A->B.offset.storage.partitions=9\nB.offset.storage.min.insync.replicas=2\noffset.storage.segment.bytes=1000000\n\
         B.offset.storage.segment.bytes=5\nB.offset.storage.cleanup.policy=delete\nB.offset.storage.topic=positions\n",
    );
    assert_eq!(
        flow.positions,
        PositionsConfig {
            topic: "positions".into(),
            partitions: 5,
            replication_factor: 1,
            topic_configs: vec![
                ("min.insync.replicas".into(), "2".into()),
                ("segment.bytes".into(), "1000000".into())
            ],
            flush_interval: Duration::from_secs(5),
        }
    );
}

#[test]
fn workers_are_read_at_the_target_alone() {
    let flow = flow_of(
        "group.id=top\nA.group.id=source\nB.group.id=target\nB.session.timeout.ms=20000\nB.heartbeat.interval.ms=5000\n\
         B.rebalance.timeout.ms=1000\nB.offset.flush.interval.ms=1000\nB.request.timeout.ms=7\n",
    );
    assert_eq!(flow.group.id, "target");
    assert_eq!(flow.group.session_timeout, Duration::from_secs(20));
    assert_eq!(flow.group.heartbeat_interval, Duration::from_secs(5));
    assert_eq!(flow.group.rebalance_timeout, Duration::from_secs(1));
    assert_eq!(flow.group.connection.request_timeout, Duration::from_millis(7));
    assert_eq!(flow.target.connection.request_timeout, Duration::from_secs(30));
    assert_eq!(flow.positions.flush_interval, Duration::from_secs(1));
}

#[test]
fn bootstrap_servers_leak_from_the_top_level() {
    let text = "clusters=A,B\nbootstrap.servers=x:1, PLAINTEXT://[::1]:2 ,\nB.bootstrap.servers=b:9092\nA->B.enabled=true\n";
    let config = read(text).config;
    let servers = |alias: &str| config.clusters[&ClusterAlias::new(alias)].bootstrap_servers.clone();
    assert_eq!(servers("A"), ["x:1", "[::1]:2"]);
    assert_eq!(servers("B"), ["b:9092"]);
}

#[test]
fn client_settings_are_parsed() {
    let flow = flow_of(
        "A.consumer.auto.offset.reset=latest\nA.consumer.isolation.level=read_committed\nA.consumer.fetch.max.wait.ms= 50 \n\
         A.consumer.client.id=me\nA.consumer.connections.max.idle.ms=-1\nA.consumer.reconnect.backoff.ms=5000\n\
         A.consumer.receive.buffer.bytes=65536\nA.consumer.send.buffer.bytes=-1\nB.producer.max.request.size=20000000\n\
         B.producer.request.timeout.ms=1500\nB.producer.retry.backoff.ms=7\nB.retry.backoff.ms=8\nA.admin.retry.backoff.ms=9\n\
         A.consumer.retry.backoff.ms=9\nA.admin.request.timeout.ms=7\nA->B.admin.request.timeout.ms=8\n",
    );
    assert_eq!(flow.source.auto_offset_reset, OffsetReset::Latest);
    assert_eq!(flow.source.isolation, Isolation::ReadCommitted);
    assert_eq!(flow.source.fetch_max_wait, Duration::from_millis(50));
    assert_eq!(flow.source.client_id, "me|A->B|tidegate|replication-consumer");
    assert_eq!(
        flow.source.connection,
        ConnectionConfig {
            connections_idle_max: None,
            reconnect_backoff: Duration::from_secs(5),
            reconnect_backoff_max: Duration::from_secs(5),
            receive_buffer_bytes: Some(65_536),
            ..ConnectionConfig::default()
        }
    );
    assert_eq!(flow.target.batch_bytes_max, Some(20_000_000));
    assert_eq!(flow.target.merged_batch_bytes_max(), 20_000_000);
    assert_eq!(flow.target.max_request_bytes, 20_000_000);
    assert_eq!(flow.target.acks_timeout, Duration::from_millis(1_500));
    assert_eq!(flow.target.connection.retry_backoff, Duration::from_millis(7));
    assert_eq!(flow.group.connection.retry_backoff, Duration::from_millis(8));
    assert_eq!(flow.source_admin.connection.retry_backoff, Duration::from_millis(100));
    assert_eq!(flow.source_admin.connection.request_timeout, Duration::from_millis(7));
    assert_eq!(flow.target_admin.connection.request_timeout, Duration::from_millis(8));
}

#[test]
fn intervals_can_be_switched_off() {
    assert_eq!(flow_of("refresh.topics.enabled=false\n").refresh_topics, None);
    assert_eq!(flow_of("refresh.topics.interval.seconds=-1\n").refresh_topics, None);
    assert_eq!(
        flow_of("A->B.refresh.topics.interval.seconds=5\n").refresh_topics,
        Some(Duration::from_secs(5))
    );
}

#[test]
fn names_are_chosen() {
    let module = |extra: &str| flow_of(extra).naming.module;
    let full = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n";
    assert_eq!(module(full), NamingModule::IdentityPolicy);
    assert_eq!(
        module("A->B.replication.policy.class= DefaultReplicationPolicy \n"),
        NamingModule::DefaultPolicy
    );
    assert_eq!(module("tidegate.naming.module=builtin:identity-policy\n"), NamingModule::IdentityPolicy);
    let flow = flow_of(
        "replication.policy.separator=_\nreplication.policy.internal.topic.separator.enabled=false\n",
    );
    assert_eq!(flow.naming.settings_json, "{\"separator\":\"_\"}");
    assert_eq!(flow.internal_topics.separator, ".");
    assert_eq!(flow_of("replication.policy.separator=_\n").internal_topics.separator, "_");
    // The flag is looked at only where a separator is set.
    assert_eq!(
        flow_of("replication.policy.internal.topic.separator.enabled=false\n").internal_topics.separator,
        "."
    );
}

#[test]
fn a_module_of_ones_own_stands_beside_a_class_for_mirror_maker() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("names.wasm"), b"").unwrap();
    let text = format!(
        "{BASE}replication.policy.class=com.example.Names\nA->B.tidegate.naming.module=names.wasm\n\
         tidegate.naming.settings={{\"prefix\":\"eu\"}}\ntidegate.naming.deadline.ms=10\nA->B.tidegate.naming.memory.mb=1\n"
    );
    let loaded = load_bytes("f", text.as_bytes(), folder.path(), &options()).unwrap();
    assert_eq!(
        loaded.config.flows[0].naming,
        NamingConfig {
            is_explicit: true,
            module: NamingModule::File(folder.path().join("names.wasm")),
            settings_json: "{\"prefix\":\"eu\"}".into(),
            deadline: Duration::from_millis(10),
            memory_bytes: 1_048_576,
        }
    );
    let row = &loaded.report.rows[5];
    assert_eq!((row.fate, row.note.as_str()), (Fate::Mapped, "A->B.tidegate.naming.module names the topics"));
}

#[test]
fn only_enabled_flows_to_served_targets_run() {
    let text =
        "clusters=A,B,C\nbootstrap.servers=x:1\nA->B.enabled=true\nA->C.enabled=TRUE\nB->A.enabled=false\n";
    let names = |clusters: Option<&[&str]>| -> Vec<String> {
        let clusters = clusters.map(|aliases| aliases.iter().map(|alias| ClusterAlias::new(alias)).collect());
        let loaded = load_with(text, &LoadOptions { clusters, ..options() }).unwrap();
        let enabled: Vec<String> = loaded.config.enabled_flows.iter().map(ToString::to_string).collect();
        assert_eq!(enabled, ["A->B", "A->C"]);
        loaded.config.flows.iter().map(|flow| flow.name.to_string()).collect()
    };
    assert_eq!(names(None), ["A->B", "A->C"]);
    assert_eq!(names(Some(&["C"])), ["A->C"]);
    assert_eq!(names(Some(&["A", "B"])), ["A->B"]);
}
