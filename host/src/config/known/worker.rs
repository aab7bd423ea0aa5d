//! Settings of Connect's worker, `T.name` for every flow to `T`, and those of the process, at the top level.

use super::Plan::{Ignored, Mapped, NotYet, Only, Read};
use super::{Known, key};
use crate::config::values::{INT, Kind, LONG, REPLICATION};

const NO_CONNECTORS: &str = "there are no connectors, so no topic keeps their settings";
const NO_STATUS: &str = "there are no connectors, so no topic keeps their state; see /api/v1/status";
const MEMBER_NAME: &str = "a member of the group is called tidegate-ID|S->T after its process, so that what a dead one left can be removed";
const NO_REST: &str =
    "processes agree through Kafka and need no server between them; see tidegate.http.listen";
const NO_PROTOCOL: &str = "slots are shared by Kafka's own consumer group";
const CONVERTER: &str = "records are copied byte by byte and no converter runs; remove the key";
const BYTES_CONVERTER: &[&str] =
    &["org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter"];

pub(crate) const WORKER: &[Known] = &[
    key("bootstrap.servers", Kind::Text, Read),
    key("group.id", Kind::Text, Read),
    key("client.id", Kind::Text, Ignored(MEMBER_NAME)),
    key("session.timeout.ms", INT, Read),
    key("heartbeat.interval.ms", INT, Read),
    key("rebalance.timeout.ms", INT, Read),
    key("offset.flush.interval.ms", LONG, Read),
    key("offset.storage.topic", Kind::Text, Read),
    key("offset.storage.partitions", INT, Read),
    key("offset.storage.replication.factor", REPLICATION, Read),
    key(
        "offset.storage.cleanup.policy",
        Kind::Text,
        Ignored("positions are always kept in a compacted topic"),
    ),
    key("offset.storage.", Kind::Text, Read),
    key("request.timeout.ms", INT, Read),
    key("retry.backoff.ms", LONG, Read),
    key("retry.backoff.max.ms", LONG, Read),
    key("reconnect.backoff.ms", LONG, Read),
    key("reconnect.backoff.max.ms", LONG, Read),
    key("metadata.max.age.ms", LONG, Read),
    key("connections.max.idle.ms", LONG, Read),
    key("socket.connection.setup.timeout.ms", LONG, Read),
    key("send.buffer.bytes", INT, Read),
    key("receive.buffer.bytes", INT, Read),
    key(
        "exactly.once.source.support",
        Kind::Text,
        Only(
            &["disabled", "preparing"],
            "exactly-once is not yet honoured, records come at least once; write disabled if that will do",
        ),
    ),
    key("offset.flush.timeout.ms", LONG, Mapped("nothing: storing positions has request.timeout.ms")),
    key("task.shutdown.graceful.timeout.ms", LONG, Mapped("nothing: a stop has tidegate.stop.timeout.ms")),
    key("config.storage.", Kind::Text, Ignored(NO_CONNECTORS)),
    key("status.storage.", Kind::Text, Ignored(NO_STATUS)),
    key("key.converter", Kind::Text, Only(BYTES_CONVERTER, CONVERTER)),
    key("value.converter", Kind::Text, Only(BYTES_CONVERTER, CONVERTER)),
    key("header.converter", Kind::Text, Only(BYTES_CONVERTER, CONVERTER)),
    key("key.converter.", Kind::Text, Ignored("no converter runs")),
    key("value.converter.", Kind::Text, Ignored("no converter runs")),
    key("header.converter.", Kind::Text, Ignored("no converter runs")),
    key("scheduled.rebalance.max.delay.ms", INT, Ignored(NO_PROTOCOL)),
    key("connect.protocol", Kind::Text, Ignored(NO_PROTOCOL)),
    key("worker.sync.timeout.ms", INT, Ignored(NO_PROTOCOL)),
    key("worker.unsync.backoff.ms", INT, Ignored(NO_PROTOCOL)),
    key("inter.worker.", Kind::Text, Ignored(NO_REST)),
    key("listeners", Kind::Text, Ignored(NO_REST)),
    key("listeners.https.", Kind::Text, Ignored(NO_REST)),
    key("rest.", Kind::Text, Ignored(NO_REST)),
    key("admin.listeners", Kind::Text, Ignored(NO_REST)),
    key("access.control.allow.origin", Kind::Text, Ignored(NO_REST)),
    key("access.control.allow.methods", Kind::Text, Ignored(NO_REST)),
    key("response.http.headers.config", Kind::Text, Ignored(NO_REST)),
    key(
        "topic.creation.enable",
        Kind::Boolean,
        Ignored("topics are created by the plan, before anything is written to them"),
    ),
    key(
        "topic.tracking.enable",
        Kind::Boolean,
        Ignored("there are no connectors whose topics could be tracked"),
    ),
    key(
        "topic.tracking.allow.reset",
        Kind::Boolean,
        Ignored("there are no connectors whose topics could be tracked"),
    ),
    key("plugin.path", Kind::Text, Ignored("Java plugins can't run here")),
    key("plugin.discovery", Kind::Text, Ignored("Java plugins can't run here")),
    key(
        "connector.client.config.override.policy",
        Kind::Text,
        Ignored("MirrorMaker 2 always takes every override"),
    ),
    key("metrics.sample.window.ms", LONG, Ignored("metrics are served at /metrics")),
    key("metrics.num.samples", INT, Ignored("metrics are served at /metrics")),
    key("metrics.recording.level", Kind::Text, Ignored("metrics are served at /metrics")),
    key("metrics.context.", Kind::Text, Ignored("metrics are served at /metrics")),
    key("metric.reporters", Kind::Text, Ignored("metrics are served at /metrics")),
    key("client.dns.lookup", Kind::Text, NotYet("every address of a name is tried, as use_all_dns_ips says")),
    key("consumer.", Kind::Text, Read),
    key("producer.", Kind::Text, Read),
    key("admin.", Kind::Text, Read),
];

pub(crate) const GLOBAL: &[Known] = &[
    key("clusters", Kind::Text, Read),
    key("bootstrap.servers", Kind::Text, Read),
    key("security.protocol", Kind::Text, Read),
    key("config.providers", Kind::Text, Read),
    key("config.providers.", Kind::Text, Read),
    key(
        "dedicated.mode.enable.internal.rest",
        Kind::Boolean,
        Mapped("nothing: processes of one flow share its slots through Kafka alone"),
    ),
    key("listeners", Kind::Text, Ignored(NO_REST)),
    key("listeners.https.", Kind::Text, Ignored(NO_REST)),
    key("rest.advertised.", Kind::Text, Ignored(NO_REST)),
    key("access.control.allow.origin", Kind::Text, Ignored(NO_REST)),
    key("access.control.allow.methods", Kind::Text, Ignored(NO_REST)),
    key("response.http.headers.config", Kind::Text, Ignored(NO_REST)),
    key("plugin.path", Kind::Text, Ignored("Java plugins can't run here")),
];
