//! Settings of Kafka's consumer, producer and admin client.

use super::Plan::{Ignored, Mapped, NotYet, Only, Read, Refused};
use super::{Known, key};
use crate::config::values::{INT, Kind, LONG};

const METRICS: &str = "metrics are served at /metrics";
const FORCED: &str = "records are copied byte by byte; no (de)serializer runs";
const NO_GROUP: &str = "the source is read without a consumer group; positions are in the positions topic";
const NO_POLL: &str = "batches are taken as they come; see tidegate.worker.buffer.mb";
const NO_CLASS: &str = "Java classes can't run here, and this one would see every record; remove the key";
const ACCUMULATOR: &str = "nothing: batches pass as the source wrote them";
const RECOVERY: &str = "unknown brokers are always looked up at the bootstrap servers again";
const OWN_RHYTHM: &str =
    "a fetch that was refused is sent again after 100 ms, a partition that can't be read after 10 s";
const NEXT_ROUND: &str = "the control loop tries again in every round";
const PARTITIONER: &str = "a record keeps its partition number";
const EXACTLY_ONCE: &str = "exactly-once";

macro_rules! with_common {
    ($($entry:expr),* $(,)?) => {
        &[
            key("client.id", Kind::Text, Read),
            key("request.timeout.ms", INT, Read),
            key("metadata.max.age.ms", LONG, Read),
            key("reconnect.backoff.ms", LONG, Read),
            key("reconnect.backoff.max.ms", LONG, Read),
            key("connections.max.idle.ms", LONG, Read),
            key("socket.connection.setup.timeout.ms", LONG, Read),
            key("send.buffer.bytes", INT, Read),
            key("receive.buffer.bytes", INT, Read),
            key("bootstrap.servers", Kind::Text, Read),
            key("socket.connection.setup.timeout.max.ms", LONG, NotYet("the time for a connection does not grow")),
            key("client.dns.lookup", Kind::Text, NotYet("every address of a name is tried, as use_all_dns_ips says")),
            key("metadata.recovery.strategy", Kind::Text, Ignored(RECOVERY)),
            key("metadata.recovery.rebootstrap.trigger.ms", LONG, Ignored(RECOVERY)),
            key("enable.metrics.push", Kind::Boolean, Ignored(METRICS)),
            key("metric.reporters", Kind::Text, Ignored(METRICS)),
            key("metrics.num.samples", INT, Ignored(METRICS)),
            key("metrics.recording.level", Kind::Text, Ignored(METRICS)),
            key("metrics.sample.window.ms", LONG, Ignored(METRICS)),
            key("auto.include.jmx.reporter", Kind::Text, Ignored(METRICS)),
            key("security.providers", Kind::Text, Ignored("Java classes can't run here")),
            $($entry),*
        ]
    };
}

pub(crate) const CONSUMER: &[Known] = with_common![
    key("retry.backoff.ms", LONG, Ignored(OWN_RHYTHM)),
    key("retry.backoff.max.ms", LONG, Ignored(OWN_RHYTHM)),
    key("fetch.min.bytes", INT, Read),
    key("fetch.max.bytes", INT, Read),
    key("fetch.max.wait.ms", INT, Read),
    key("max.partition.fetch.bytes", INT, Read),
    key("auto.offset.reset", Kind::Text, Read),
    key("isolation.level", Kind::Text, Read),
    key("check.crcs", Kind::Boolean, Mapped("every batch's checksum is always checked")),
    key("client.rack", Kind::Text, NotYet("batches are always fetched from the leader")),
    key("default.api.timeout.ms", INT, Ignored("each request has request.timeout.ms")),
    key("allow.auto.create.topics", Kind::Boolean, Mapped("false: no topic is ever created by a lookup")),
    key("enable.auto.commit", Kind::Boolean, Ignored(NO_GROUP)),
    key("auto.commit.interval.ms", INT, Ignored(NO_GROUP)),
    key("group.id", Kind::Text, Ignored(NO_GROUP)),
    key("group.instance.id", Kind::Text, Ignored(NO_GROUP)),
    key("group.protocol", Kind::Text, Ignored(NO_GROUP)),
    key("group.remote.assignor", Kind::Text, Ignored(NO_GROUP)),
    key("partition.assignment.strategy", Kind::Text, Ignored(NO_GROUP)),
    key("session.timeout.ms", INT, Ignored(NO_GROUP)),
    key("heartbeat.interval.ms", INT, Ignored(NO_GROUP)),
    key("exclude.internal.topics", Kind::Boolean, Ignored(NO_GROUP)),
    key("max.poll.records", INT, Ignored(NO_POLL)),
    key("max.poll.interval.ms", INT, Ignored(NO_POLL)),
    key("key.deserializer", Kind::Text, Ignored(FORCED)),
    key("value.deserializer", Kind::Text, Ignored(FORCED)),
    key("interceptor.classes", Kind::Text, Only(&[""], NO_CLASS)),
];

pub(crate) const PRODUCER: &[Known] = with_common![
    key("retry.backoff.ms", LONG, Read),
    key("retry.backoff.max.ms", LONG, Read),
    key("max.request.size", INT, Read),
    key("compression.type", Kind::Text, Read),
    key("acks", Kind::Text, Mapped("all: a record counts as written when every in-sync replica has it")),
    key("enable.idempotence", Kind::Boolean, Mapped("true: a repeated request is never written twice")),
    key(
        "max.in.flight.requests.per.connection",
        INT,
        Mapped("5, in order, as the idempotent producer allows")
    ),
    key("retries", INT, Mapped("without end: a batch is never given up")),
    key("delivery.timeout.ms", INT, Mapped("without end: a batch is never given up")),
    key("max.block.ms", LONG, Mapped("without end: a batch is never given up")),
    key("linger.ms", LONG, Mapped(ACCUMULATOR)),
    key(
        "batch.size",
        INT,
        Mapped(
            "nothing: batches pass as the source wrote them; small ones that wait are merged up to max.request.size"
        )
    ),
    key("buffer.memory", LONG, Mapped("nothing: the bound is tidegate.worker.buffer.mb")),
    key("compression.gzip.level", INT, NotYet("the codec's own default level is used")),
    key("compression.lz4.level", INT, NotYet("the codec's own default level is used")),
    key("compression.zstd.level", INT, NotYet("the codec's own default level is used")),
    key("metadata.max.idle.ms", LONG, Ignored("topics of a flow are always kept known")),
    key("transactional.id", Kind::Text, NotYet(EXACTLY_ONCE)),
    key("transaction.timeout.ms", INT, NotYet(EXACTLY_ONCE)),
    key("transaction.two.phase.commit.enable", Kind::Boolean, NotYet(EXACTLY_ONCE)),
    key("partitioner.class", Kind::Text, Ignored(PARTITIONER)),
    key("partitioner.ignore.keys", Kind::Text, Ignored(PARTITIONER)),
    key("partitioner.adaptive.partitioning.enable", Kind::Boolean, Ignored(PARTITIONER)),
    key("partitioner.availability.timeout.ms", LONG, Ignored(PARTITIONER)),
    key("key.serializer", Kind::Text, Ignored(FORCED)),
    key("value.serializer", Kind::Text, Ignored(FORCED)),
    key("interceptor.classes", Kind::Text, Only(&[""], NO_CLASS)),
];

pub(crate) const ADMIN: &[Known] = with_common![
    key("retries", INT, Ignored(NEXT_ROUND)),
    key("retry.backoff.ms", LONG, Ignored(NEXT_ROUND)),
    key("retry.backoff.max.ms", LONG, Ignored(NEXT_ROUND)),
    key("default.api.timeout.ms", INT, Ignored("each request has request.timeout.ms")),
    key(
        "bootstrap.controllers",
        Kind::Text,
        Refused("clusters are reached through their brokers; remove the key")
    ),
];
