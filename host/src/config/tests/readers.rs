//! A key that is called honoured is read by somebody outside this folder: here is by which words.

use super::*;

/// A key, a value, and the words by which its field is read. No words: it is used within this folder.
type Reader = (&'static str, &'static str, Option<&'static str>);

const fn read_by(key: &'static str, value: &'static str, words: &'static str) -> Reader {
    (key, value, Some(words))
}

const FLOW_READERS: &[Reader] = &[
    ("A->B.enabled", "true", None),
    read_by("A->B.topics", "orders", "flow.topics"),
    read_by("A->B.topics.exclude", "x", "flow.topics"),
    read_by("A->B.config.properties.exclude", "x", ".config_properties_exclude"),
    read_by("A->B.use.defaults.from", "source", ".use_defaults_from_source"),
    read_by("A->B.replication.factor", "3", ".replication_factor"),
    read_by("A->B.replication.policy.class", "IdentityReplicationPolicy", "NamingConfig{module,"),
    read_by("A->B.replication.policy.separator", "_", ".internal_topics"),
    read_by("A->B.replication.policy.internal.topic.separator.enabled", "false", ".internal_topics"),
    read_by("A->B.refresh.topics.enabled", "true", ".refresh_topics"),
    read_by("A->B.refresh.topics.interval.seconds", "60", ".refresh_topics"),
    read_by("A->B.heartbeats.replication.enabled", "false", ".heartbeats_replication"),
    read_by("A->B.tidegate.naming.settings", "{}", "settings_json,deadline,memory_bytes,..}=&flow.naming"),
    read_by("A->B.tidegate.naming.deadline.ms", "60", "settings_json,deadline,memory_bytes,..}=&flow.naming"),
    read_by("A->B.tidegate.naming.memory.mb", "65", "settings_json,deadline,memory_bytes,..}=&flow.naming"),
];

const GLOBAL_READERS: &[Reader] = &[
    ("clusters", "A,B", None),
    read_by("bootstrap.servers", "x:1", ".bootstrap_servers"),
    ("security.protocol", "PLAINTEXT", None),
    ("config.providers", "env", None),
    ("config.providers.env.class", "EnvVarConfigProvider", None),
];

const WORKER_READERS: &[Reader] = &[
    read_by("B.bootstrap.servers", "b:1", ".bootstrap_servers"),
    read_by("B.group.id", "g", "group.id"),
    read_by("B.rebalance.timeout.ms", "50000", "group.rebalance_timeout"),
    read_by("B.offset.flush.interval.ms", "1000", "positions.flush_interval"),
    read_by("B.offset.storage.topic", "positions", "positions.topic"),
    read_by("B.offset.storage.partitions", "5", ".partitions"),
    read_by("B.offset.storage.replication.factor", "1", ".replication_factor"),
    read_by("B.offset.storage.segment.bytes", "1000000", "config.topic_configs"),
    read_by("B.request.timeout.ms", "7000", "connection.request_timeout"),
    read_by("B.retry.backoff.ms", "7", "connection.retry_backoff,"),
    read_by("B.retry.backoff.max.ms", "70", "connection.retry_backoff_max,"),
    read_by("B.reconnect.backoff.ms", "7", "connection.reconnect_backoff,"),
    read_by("B.reconnect.backoff.max.ms", "70", "connection.reconnect_backoff_max,"),
    read_by("B.metadata.max.age.ms", "7000", "connection.metadata_max_age"),
    read_by("B.connections.max.idle.ms", "-1", "connections_idle_max"),
    read_by("B.socket.connection.setup.timeout.ms", "7000", "connection_setup_timeout"),
    read_by("B.send.buffer.bytes", "7000", "connection.send_buffer_bytes"),
    read_by("B.receive.buffer.bytes", "7000", "connection.receive_buffer_bytes"),
];

/// Read in the same way for the reader, the writer and the control clients.
const CONNECTION_READERS: &[Reader] = &[
    read_by("request.timeout.ms", "7000", "connection.request_timeout"),
    read_by("metadata.max.age.ms", "7000", "connection.metadata_max_age"),
    read_by("reconnect.backoff.ms", "7", "connection.reconnect_backoff,"),
    read_by("reconnect.backoff.max.ms", "70", "connection.reconnect_backoff_max,"),
    read_by("connections.max.idle.ms", "-1", "connection.connections_idle_max"),
    read_by("socket.connection.setup.timeout.ms", "7000", "connection.connection_setup_timeout"),
    read_by("send.buffer.bytes", "7000", "connection.send_buffer_bytes"),
    read_by("receive.buffer.bytes", "7000", "connection.receive_buffer_bytes"),
];

const CONSUMER_READERS: &[Reader] = &[
    read_by("client.id", "me", "source.client_id"),
    read_by("fetch.min.bytes", "2", "source.fetch_min_bytes"),
    read_by("fetch.max.bytes", "2000", "source.fetch_max_bytes"),
    read_by("fetch.max.wait.ms", "2", "source.fetch_max_wait"),
    read_by("max.partition.fetch.bytes", "2000", "source.max_partition_fetch_bytes"),
    read_by("auto.offset.reset", "latest", "source.auto_offset_reset"),
    read_by("isolation.level", "read_committed", "source.isolation"),
];

const PRODUCER_READERS: &[Reader] = &[
    read_by("client.id", "me", "target.client_id"),
    read_by("compression.type", "lz4", "target.compression"),
    read_by("retry.backoff.ms", "7", "connection.retry_backoff,"),
    read_by("retry.backoff.max.ms", "70", "connection.retry_backoff_max,"),
];

const ADMIN_READERS: &[Reader] = &[read_by("client.id", "me", "admin.client_id")];

const PROCESS_READERS: &[Reader] = &[
    read_by("tidegate.http.listen", "127.0.0.1:1", "process.http_listen"),
    read_by("tidegate.workers", "2", "process.workers"),
    read_by("tidegate.worker.buffer.mb", "7", "process.worker_buffer_bytes"),
    read_by("tidegate.cache.dir", "/c", "process.cache_dir"),
    read_by("tidegate.log.format", "json", "process.log_format"),
    read_by("tidegate.start.timeout.ms", "7", "process.start_timeout"),
    read_by("tidegate.stop.timeout.ms", "7", "process.stop_timeout"),
    read_by("tidegate.wait.for.mirror.maker", "true", "process.wait_for_mirror_maker"),
    read_by("tidegate.http.token.file", "/t", "process.http_token_file"),
    read_by("tidegate.plugins.watch", "true", "process.plugins_watch"),
];

/// What the tables say is read, but not as honoured: mapped, refused, or a family whose members are listed themselves.
const OTHERWISE: [&str; 11] = [
    "groups",
    "groups.exclude",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "offset.storage.",
    "config.providers.",
    "consumer.",
    "producer.",
    "admin.",
    "max.request.size",
    "bootstrap.servers",
];

/// All readers with their full keys.
fn readers() -> Vec<(String, &'static str, Option<&'static str>)> {
    let mut all = Vec::new();
    let mut add = |prefix: &str, readers: &[Reader]| {
        all.extend(readers.iter().map(|(key, value, words)| (format!("{prefix}{key}"), *value, *words)));
    };
    for readers in [GLOBAL_READERS, FLOW_READERS, WORKER_READERS, PROCESS_READERS] {
        add("", readers);
    }
    for (prefix, readers) in [
        ("A.consumer.", CONSUMER_READERS),
        ("B.producer.", PRODUCER_READERS),
        ("A.admin.", ADMIN_READERS),
        ("B.admin.", ADMIN_READERS),
    ] {
        add(prefix, readers);
        add(prefix, CONNECTION_READERS);
    }
    all
}

/// The program's code without this folder, without tests and without blanks, which a chain of fields may be broken by.
fn add_code(folder: &Path, code: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "config" && name != "tests" {
            add_code(&path, code);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let tested = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            code.extend(tested.chars().filter(|character| !character.is_whitespace()));
        }
    }
}

#[test]
fn every_honoured_key_has_its_reader() {
    let readers = readers();
    let text: String = readers.iter().map(|(key, value, _)| format!("{key}={value}\n")).collect();
    let loaded = read(&text);
    for row in &loaded.report.rows {
        assert_eq!(row.fate, Fate::Honoured, "{} = {}: {}", row.key, row.value, row.note);
    }
    let mut code = String::new();
    add_code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut code);
    let unread: Vec<String> = readers
        .into_iter()
        .filter_map(|(key, _, words)| Some((key, words?)))
        .filter(|(_, words)| !code.contains(words))
        .map(|(key, words)| format!("{key}: {words}"))
        .collect();
    assert_eq!(unread, Vec::<String>::new());
}

#[test]
fn every_key_that_the_tables_call_read_is_listed_here() {
    let readers = readers();
    let check = |table: &[known::Known], prefix: &str| {
        for known in table.iter().filter(|known| known.plan == known::Plan::Read) {
            let key = format!("{prefix}{}", known.name);
            let is_listed = readers.iter().any(|(listed, ..)| *listed == key);
            assert!(is_listed || OTHERWISE.contains(&known.name), "{key}");
        }
    };
    check(known::FLOW_OPTIONS, "A->B.");
    check(known::GLOBAL, "");
    check(known::WORKER, "B.");
    check(known::CONSUMER, "A.consumer.");
    check(known::PRODUCER, "B.producer.");
    check(known::ADMIN, "A.admin.");
    for key in process::keys() {
        assert!(readers.iter().any(|(listed, ..)| listed == key), "{key}");
    }
}
