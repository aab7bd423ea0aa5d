//! Topic settings: the names that Kafka 4 knows, their defaults, and what a topic has set itself.

use std::collections::BTreeMap;

use kafka_protocol::error::ResponseError;

use crate::refusal::Refusal;

/// Type numbers of DescribeConfigs (KIP-569).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingType {
    Boolean = 1,
    Text = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// Source numbers of DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingSource {
    Topic = 1,
    StaticBroker = 4,
    Default = 5,
}

/// One name that a topic may set.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) kind: SettingType,
    /// The words that are legal; empty: any.
    words: &'static [&'static str],
}

const fn setting(name: &'static str, kind: SettingType, default: &'static str) -> Setting {
    Setting { name, default, kind, words: &[] }
}

const fn choice(
    name: &'static str,
    kind: SettingType,
    default: &'static str,
    words: &'static [&'static str],
) -> Setting {
    Setting { name, default, kind, words }
}

const LONG_MAX: &str = "9223372036854775807";

/// Kafka 4's topic settings with its broker's defaults, by name.
pub(crate) const TOPIC_SETTINGS: &[Setting] = &[
    choice("cleanup.policy", SettingType::List, "delete", &["delete", "compact"]),
    setting("compression.gzip.level", SettingType::Int, "-1"),
    setting("compression.lz4.level", SettingType::Int, "9"),
    choice(
        "compression.type",
        SettingType::Text,
        "producer",
        &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"],
    ),
    setting("compression.zstd.level", SettingType::Int, "3"),
    setting("delete.retention.ms", SettingType::Long, "86400000"),
    setting("file.delete.delay.ms", SettingType::Long, "60000"),
    setting("flush.messages", SettingType::Long, LONG_MAX),
    setting("flush.ms", SettingType::Long, LONG_MAX),
    setting("follower.replication.throttled.replicas", SettingType::List, ""),
    setting("index.interval.bytes", SettingType::Int, "4096"),
    setting("leader.replication.throttled.replicas", SettingType::List, ""),
    setting("local.retention.bytes", SettingType::Long, "-2"),
    setting("local.retention.ms", SettingType::Long, "-2"),
    setting("max.compaction.lag.ms", SettingType::Long, LONG_MAX),
    setting(MAX_MESSAGE_BYTES, SettingType::Int, "1048588"),
    setting(TIMESTAMP_AFTER_MAX, SettingType::Long, "3600000"),
    setting(TIMESTAMP_BEFORE_MAX, SettingType::Long, LONG_MAX),
    choice(TIMESTAMP_TYPE, SettingType::Text, "CreateTime", &["CreateTime", "LogAppendTime"]),
    setting("min.cleanable.dirty.ratio", SettingType::Double, "0.5"),
    setting("min.compaction.lag.ms", SettingType::Long, "0"),
    setting("min.insync.replicas", SettingType::Int, "1"),
    setting("preallocate", SettingType::Boolean, "false"),
    setting("remote.log.copy.disable", SettingType::Boolean, "false"),
    setting("remote.log.delete.on.disable", SettingType::Boolean, "false"),
    setting("remote.storage.enable", SettingType::Boolean, "false"),
    setting(RETENTION_BYTES, SettingType::Long, "-1"),
    setting("retention.ms", SettingType::Long, "604800000"),
    setting("segment.bytes", SettingType::Int, "1073741824"),
    setting("segment.index.bytes", SettingType::Int, "10485760"),
    setting("segment.jitter.ms", SettingType::Long, "0"),
    setting("segment.ms", SettingType::Long, "604800000"),
    setting("unclean.leader.election.enable", SettingType::Boolean, "false"),
];

const MAX_MESSAGE_BYTES: &str = "max.message.bytes";
const TIMESTAMP_AFTER_MAX: &str = "message.timestamp.after.max.ms";
const TIMESTAMP_BEFORE_MAX: &str = "message.timestamp.before.max.ms";
const TIMESTAMP_TYPE: &str = "message.timestamp.type";
const RETENTION_BYTES: &str = "retention.bytes";

/// What a topic has set itself; everything else has Kafka's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TopicSettings {
    own: BTreeMap<String, String>,
}

impl TopicSettings {
    /// Sets or, with `None`, resets one setting.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Refusal> {
        let known = known(name)?;
        match value {
            None => {
                self.own.remove(name);
            }
            Some(value) => {
                known.check(value)?;
                self.own.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    /// Adds words to (or takes them from) a list setting, as IncrementalAlterConfigs' APPEND and SUBTRACT do.
    pub(crate) fn edit_list(&mut self, name: &str, words: &str, add: bool) -> Result<(), Refusal> {
        let known = known(name)?;
        if known.kind != SettingType::List {
            return Err(Refusal::new(
                ResponseError::InvalidConfig,
                format!("can't append to or subtract from {name}: it is not a list"),
            ));
        }
        let words: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
        let mut list: Vec<String> = self.get(known).split(',').map(str::to_owned).collect();
        list.retain(|word| !word.is_empty() && !words.contains(&word.as_str()));
        if add {
            list.extend(words.into_iter().map(str::to_owned));
        }
        let joined = list.join(",");
        self.set(name, Some(&joined))
    }

    /// What the topic has set itself.
    pub(crate) fn own(&self) -> &BTreeMap<String, String> {
        &self.own
    }

    /// The value that holds.
    pub(crate) fn get<'a>(&'a self, setting: &'a Setting) -> &'a str {
        self.own.get(setting.name).map_or(setting.default, String::as_str)
    }

    pub(crate) fn source(&self, setting: &Setting) -> SettingSource {
        if self.own.contains_key(setting.name) { SettingSource::Topic } else { SettingSource::Default }
    }

    pub(crate) fn max_message_bytes(&self) -> usize {
        usize::try_from(self.number(MAX_MESSAGE_BYTES)).unwrap_or(0)
    }

    pub(crate) fn is_log_append_time(&self) -> bool {
        self.own.get(TIMESTAMP_TYPE).is_some_and(|value| value == "LogAppendTime")
    }

    /// How far a record's timestamp may lie before and behind the broker's clock, in milliseconds.
    pub(crate) fn timestamp_bounds_ms(&self) -> (i64, i64) {
        (self.number(TIMESTAMP_BEFORE_MAX), self.number(TIMESTAMP_AFTER_MAX))
    }

    /// `None`: no limit of its own.
    pub(crate) fn retention_bytes(&self) -> Option<usize> {
        usize::try_from(self.number(RETENTION_BYTES)).ok()
    }

    fn number(&self, name: &str) -> i64 {
        let setting = TOPIC_SETTINGS.iter().find(|setting| setting.name == name);
        setting.and_then(|setting| self.get(setting).parse().ok()).unwrap_or(-1)
    }
}

impl Setting {
    fn check(&self, value: &str) -> Result<(), Refusal> {
        let legal = match self.kind {
            SettingType::Boolean => value == "true" || value == "false",
            SettingType::Int => value.parse::<i32>().is_ok(),
            SettingType::Long => value.parse::<i64>().is_ok(),
            SettingType::Double => value.parse::<f64>().is_ok(),
            SettingType::Text => self.words.is_empty() || self.words.contains(&value),
            SettingType::List => {
                self.words.is_empty() || value.split(',').all(|word| self.words.contains(&word.trim()))
            }
        };
        if legal {
            return Ok(());
        }
        Err(Refusal::new(
            ResponseError::InvalidConfig,
            format!("invalid value {value} for configuration {}", self.name),
        ))
    }
}

fn known(name: &str) -> Result<&'static Setting, Refusal> {
    TOPIC_SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
        Refusal::new(ResponseError::InvalidConfig, format!("unknown topic config name: {name}"))
    })
}
