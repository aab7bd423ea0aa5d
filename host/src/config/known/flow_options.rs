//! MirrorMaker 2's options: `S->T.name`, or `name` at the top level for every flow.

use super::Plan::{Ignored, Mapped, NotYet, Only, Read, Refused};
use super::{Known, key};
use crate::config::values::{INT, Kind, LONG, REPLICATION};

const BYTES_CONVERTER: &[&str] =
    &["org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter"];
const CONVERTER: &str = "records are copied byte by byte and no converter runs; remove the key";
const SYNC_CONFIGS: &str = "settings are copied when a topic is created, as MirrorMaker 2 does in any case; later changes are not synced yet";
const GROUPS: &str = "consumer groups";
const CHECKPOINTS: &str = "checkpoints";
const HEARTBEATS: &str = "heartbeats";
const OFFSET_SYNCS: &str = "offset syncs";
const NO_ERRORS: &str = "no converter or transform runs that could fail";
const INTERNAL: &str = "MirrorMaker 2 sets it itself, within its tasks";

pub(crate) const FLOW_OPTIONS: &[Known] = &[
    key("enabled", Kind::Boolean, Read),
    key("topics", Kind::Expressions, Read),
    key("topics.exclude", Kind::Expressions, Read),
    key("config.properties.exclude", Kind::Expressions, Read),
    key("use.defaults.from", Kind::Text, Read),
    key("replication.factor", REPLICATION, Read),
    key("replication.policy.class", Kind::Text, Read),
    key("replication.policy.separator", Kind::Text, Read),
    key("replication.policy.internal.topic.separator.enabled", Kind::Boolean, Read),
    key("refresh.topics.enabled", Kind::Boolean, Read),
    key("refresh.topics.interval.seconds", Kind::Seconds, Read),
    key("sync.topic.configs.enabled", Kind::Boolean, Mapped(SYNC_CONFIGS)),
    key("heartbeats.replication.enabled", Kind::Boolean, Read),
    key(
        "sync.topic.configs.interval.seconds",
        Kind::Seconds,
        NotYet("later changes of settings are not synced"),
    ),
    key("sync.topic.acls.enabled", Kind::Boolean, NotYet("access rules")),
    key("sync.topic.acls.interval.seconds", Kind::Seconds, NotYet("access rules")),
    key("groups", Kind::Expressions, Read),
    key("groups.exclude", Kind::Expressions, Read),
    key("refresh.groups.enabled", Kind::Boolean, NotYet(GROUPS)),
    key("refresh.groups.interval.seconds", Kind::Seconds, NotYet(GROUPS)),
    key("sync.group.offsets.enabled", Kind::Boolean, NotYet(GROUPS)),
    key("sync.group.offsets.interval.seconds", Kind::Seconds, NotYet(GROUPS)),
    key("emit.checkpoints.enabled", Kind::Boolean, NotYet(CHECKPOINTS)),
    key("emit.checkpoints.interval.seconds", Kind::Seconds, NotYet(CHECKPOINTS)),
    key("checkpoints.topic.replication.factor", REPLICATION, NotYet(CHECKPOINTS)),
    key("emit.heartbeats.enabled", Kind::Boolean, NotYet(HEARTBEATS)),
    key("emit.heartbeats.interval.seconds", Kind::Seconds, NotYet(HEARTBEATS)),
    key("heartbeats.topic.replication.factor", REPLICATION, NotYet(HEARTBEATS)),
    key("emit.offset-syncs.enabled", Kind::Boolean, NotYet(OFFSET_SYNCS)),
    key("offset-syncs.topic.location", Kind::Text, NotYet(OFFSET_SYNCS)),
    key("offset-syncs.topic.replication.factor", REPLICATION, NotYet(OFFSET_SYNCS)),
    key("offset.lag.max", LONG, NotYet(OFFSET_SYNCS)),
    key(
        "tasks.max",
        Kind::Number(1, i32::MAX as i64),
        Mapped(
            "nothing: Tidegate shares work by slots, not by tasks; tidegate.workers sets the threads of a process",
        ),
    ),
    key("tasks.max.enforce", Kind::Boolean, Ignored("there are no tasks")),
    key(
        "admin.timeout.ms",
        LONG,
        Mapped("nothing: each request has request.timeout.ms, the start has tidegate.start.timeout.ms"),
    ),
    key("consumer.poll.timeout.ms", LONG, Mapped("nothing: a fetch waits fetch.max.wait.ms at the broker")),
    key("metric.reporters", Kind::Text, Ignored("metrics are served at /metrics")),
    key(
        "forwarding.admin.class",
        Kind::Text,
        Only(
            &["org.apache.kafka.clients.admin.ForwardingAdmin", "ForwardingAdmin"],
            "Java classes can't run here, and without this one topics would be created behind its back; remove the key to let Tidegate create them",
        ),
    ),
    key(
        "topic.filter.class",
        Kind::Text,
        Only(
            &["org.apache.kafka.connect.mirror.DefaultTopicFilter", "DefaultTopicFilter"],
            "Java classes can't run here; write the choice as topics and topics.exclude and remove the key",
        ),
    ),
    key(
        "config.property.filter.class",
        Kind::Text,
        Only(
            &["org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter", "DefaultConfigPropertyFilter"],
            "Java classes can't run here; write the choice as config.properties.exclude and remove the key",
        ),
    ),
    key(
        "group.filter.class",
        Kind::Text,
        Only(
            &["org.apache.kafka.connect.mirror.DefaultGroupFilter", "DefaultGroupFilter"],
            "Java classes can't run here; write the choice as groups and groups.exclude and remove the key",
        ),
    ),
    key(
        "source.cluster.alias",
        Kind::Text,
        Refused("the aliases of a flow are those in its name; remove the key"),
    ),
    key(
        "target.cluster.alias",
        Kind::Text,
        Refused("the aliases of a flow are those in its name; remove the key"),
    ),
    key(
        "transforms",
        Kind::Text,
        Only(
            &[""],
            "Java transforms can't run here; remove the key, and list a record plugin in tidegate.plugins if records must be edited",
        ),
    ),
    key("transforms.", Kind::Text, Ignored("settings of a transform that does not run")),
    key("predicates", Kind::Text, Ignored("predicates decide on transforms, and none run")),
    key("predicates.", Kind::Text, Ignored("predicates decide on transforms, and none run")),
    key("key.converter", Kind::Text, Only(BYTES_CONVERTER, CONVERTER)),
    key("value.converter", Kind::Text, Only(BYTES_CONVERTER, CONVERTER)),
    key("header.converter", Kind::Text, Only(BYTES_CONVERTER, CONVERTER)),
    key("key.converter.", Kind::Text, Ignored("no converter runs")),
    key("value.converter.", Kind::Text, Ignored("no converter runs")),
    key("header.converter.", Kind::Text, Ignored("no converter runs")),
    key("errors.retry.timeout", LONG, Ignored(NO_ERRORS)),
    key("errors.retry.delay.max.ms", LONG, Ignored(NO_ERRORS)),
    key("errors.tolerance", Kind::Text, Ignored(NO_ERRORS)),
    key("errors.log.enable", Kind::Boolean, Ignored(NO_ERRORS)),
    key("errors.log.include.messages", Kind::Boolean, Ignored(NO_ERRORS)),
    key("name", Kind::Text, Ignored("positions are always kept under MirrorSourceConnector")),
    key("connector.class", Kind::Text, Ignored("there are no connectors")),
    key("config.action.reload", Kind::Text, Ignored("there are no connectors")),
    key(
        "exactly.once.support",
        Kind::Text,
        Only(
            &["requested"],
            "exactly-once is not yet honoured, records come at least once; remove the key if that will do",
        ),
    ),
    key("transaction.boundary", Kind::Text, Ignored("belongs to exactly-once, which is not yet honoured")),
    key("transaction.boundary.", Kind::Text, Ignored("belongs to exactly-once, which is not yet honoured")),
    key(
        "offsets.storage.topic",
        Kind::Text,
        Refused("positions are kept in one topic of each flow; name it with offset.storage.topic"),
    ),
    key(
        "topic.creation.",
        Kind::Text,
        Ignored("topics are created with the source's partitions and settings; see replication.factor"),
    ),
    key("task.assigned.partitions", Kind::Text, Ignored(INTERNAL)),
    key("task.assigned.groups", Kind::Text, Ignored(INTERNAL)),
    key("task.index", INT, Ignored(INTERNAL)),
    key(
        "topics.blacklist",
        Kind::Text,
        Refused("Kafka 4.0 removed it, so the topics would be copied; write topics.exclude"),
    ),
    key("groups.blacklist", Kind::Text, Refused("Kafka 4.0 removed it; write groups.exclude")),
    key(
        "config.properties.blacklist",
        Kind::Text,
        Refused("Kafka 4.0 removed it, so the settings would be copied; write config.properties.exclude"),
    ),
    key(
        "use.incremental.alter.configs",
        Kind::Text,
        Ignored("Kafka 4.0 removed it; settings are always changed one by one"),
    ),
    key(
        "add.source.alias.to.metrics",
        Kind::Text,
        Ignored("Kafka 4.0 removed it; metrics always carry both aliases"),
    ),
    key(
        "auto.include.jmx.reporter",
        Kind::Text,
        Ignored("Kafka 4.0 removed it; metrics are served at /metrics"),
    ),
];
