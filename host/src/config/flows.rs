//! What each flow that runs is told.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::clients::{self, milliseconds};
use super::filter::{
    CONFIG_PROPERTIES_EXCLUDE_DEFAULT, GROUPS_EXCLUDE_DEFAULT, GroupFilter, NameList, PropertyFilter,
    TOPICS_EXCLUDE_DEFAULT, TopicFilter,
};
use super::flow_config::{FLUSH_INTERVAL_MS_MAX, FlowConfig, GroupConfig, InternalTopics, PositionsConfig};
use super::layers::{End, FlowReader, Layer};
use super::naming;
use super::plugins;
use super::report::Fate;
use super::settings::Settings;
use super::values;
use crate::names::{FlowName, TopicName};

/// Reads one flow.
pub(super) fn flow_config(settings: &mut Settings, flow: &FlowName, folder: &Path) -> FlowConfig {
    let mut reader = FlowReader { settings, flow: flow.clone() };
    let (naming, separators) = naming::read(&mut reader, folder);
    let reader = &mut reader;
    let plugins = plugins::read(reader, folder);
    let groups = groups(reader);
    FlowConfig {
        name: flow.clone(),
        topics: TopicFilter {
            include: names(reader, "topics", &[".*"]),
            exclude: names(reader, "topics.exclude", &TOPICS_EXCLUDE_DEFAULT),
        },
        groups,
        naming,
        plugins,
        quarantine: plugins::quarantine(reader),
        internal_topics: InternalTopics { separator: separators.internal },
        replication_factor: reader.replication_factor(Layer::Option, "replication.factor", 2),
        refresh_topics: reader.interval("refresh.topics", 600),
        config_properties_exclude: PropertyFilter {
            exclude: names(reader, "config.properties.exclude", &CONFIG_PROPERTIES_EXCLUDE_DEFAULT),
        },
        use_defaults_from_source: use_defaults_from_source(reader),
        heartbeats_replication: reader.boolean(Layer::Option, "heartbeats.replication.enabled", true),
        positions: positions(reader),
        group: group(reader),
        source: clients::source_client(reader),
        target: clients::target_client(reader),
        source_admin: clients::admin_client(reader, End::Source),
        target_admin: clients::admin_client(reader, End::Target),
    }
}

fn groups(reader: &mut FlowReader<'_>) -> GroupFilter {
    let filter = GroupFilter {
        include: names(reader, "groups", &[".*"]),
        exclude: names(reader, "groups.exclude", &GROUPS_EXCLUDE_DEFAULT),
    };
    plugins::judge_groups(reader);
    filter
}

fn names(reader: &mut FlowReader<'_>, name: &str, default: &[&str]) -> NameList {
    let (key, list) = match reader.find(Layer::Option, name) {
        Some(found) => (found.key, values::expressions(&found.value)),
        None => (name.to_owned(), NameList::parse(default)),
    };
    list.unwrap_or_else(|text| {
        reader.settings.refuse_quoting(&key, text);
        NameList::nothing()
    })
}

/// Anything but `source` counts as `target` in MirrorMaker 2; we say so.
fn use_defaults_from_source(reader: &mut FlowReader<'_>) -> bool {
    const WORDS: [(&str, bool); 2] = [("source", true), ("target", false)];
    reader.word(Layer::FlowOnly, "use.defaults.from", &WORDS, false)
}

fn positions(reader: &mut FlowReader<'_>) -> PositionsConfig {
    let layer = Layer::Worker;
    let topic = reader.parsed(layer, "offset.storage.topic", |value| {
        TopicName::parse(values::trim(value))
            .map(|topic| topic.to_string())
            .map_err(|illegal| illegal.to_string())
    });
    let parse_partitions = |value: &str| match values::number(value, -1, i32::MAX.into()) {
        Ok(number) if number != 0 => Ok(i32::try_from(number).unwrap_or(i32::MAX)),
        _ => Err("wants the number of partitions, or -1 for the broker's default".into()),
    };
    PositionsConfig {
        topic: topic.unwrap_or_else(|| format!("mm2-offsets.{}.internal", reader.flow.source)),
        partitions: reader.parsed(layer, "offset.storage.partitions", parse_partitions).unwrap_or(25),
        replication_factor: reader.replication_factor(layer, "offset.storage.replication.factor", 3),
        topic_configs: positions_topic_configs(reader),
        flush_interval: flush_interval(reader),
    }
}

/// `offset.storage.<topic setting>`, from the top level and the target's cluster.
fn positions_topic_configs(reader: &mut FlowReader<'_>) -> Vec<(String, String)> {
    const PREFIX: &str = "offset.storage.";
    const OWN: [&str; 4] = ["topic", "partitions", "replication.factor", "cleanup.policy"];
    let at_target = format!("{}.{PREFIX}", reader.flow.target);
    let names: BTreeSet<String> = reader
        .settings
        .entries()
        .filter_map(|entry| entry.key.strip_prefix(PREFIX).or_else(|| entry.key.strip_prefix(&at_target)))
        .filter(|name| !OWN.contains(name))
        .map(str::to_owned)
        .collect();
    let found = |name: String| {
        let found = reader.find(Layer::Worker, &format!("{PREFIX}{name}"))?;
        Some((name, found.value))
    };
    names.into_iter().filter_map(found).collect()
}

fn flush_interval(reader: &mut FlowReader<'_>) -> Duration {
    const NAME: &str = "offset.flush.interval.ms";
    let interval = milliseconds(reader, Layer::Worker, NAME, 1, FLUSH_INTERVAL_MS_MAX);
    let longest = Duration::from_millis(FLUSH_INTERVAL_MS_MAX);
    if let Some(found) = reader.find(Layer::Worker, NAME)
        && interval > longest
    {
        let note = format!("positions are stored at least every {FLUSH_INTERVAL_MS_MAX} ms");
        reader.settings.judge(&found.key, Fate::Mapped, note);
    }
    interval.min(longest)
}

fn group(reader: &mut FlowReader<'_>) -> GroupConfig {
    let layer = Layer::Worker;
    let name = |value: &str| match values::trim(value) {
        "" => Err("wants a name".to_owned()),
        value => Ok(value.to_owned()),
    };
    let config = GroupConfig {
        id: reader.parsed(layer, "group.id", name).unwrap_or_else(|| format!("{}-mm2", reader.flow.source)),
        session_timeout: classic_milliseconds(reader, "session.timeout.ms", 10_000),
        heartbeat_interval: classic_milliseconds(reader, "heartbeat.interval.ms", 3_000),
        rebalance_timeout: milliseconds(reader, layer, "rebalance.timeout.ms", 1, 60_000),
        connection: clients::connection(reader, layer),
    };
    if config.heartbeat_interval >= config.session_timeout {
        let target = &reader.flow.target;
        let keys = [format!("{target}.heartbeat.interval.ms"), format!("{target}.session.timeout.ms")];
        let key = keys.iter().find(|key| reader.settings.peek(key).is_some()).unwrap_or(&keys[0]).clone();
        let text = format!(
            "the group's heartbeat every {} ms must come sooner than its session of {} ms ends",
            config.heartbeat_interval.as_millis(),
            config.session_timeout.as_millis()
        );
        reader.settings.refuse(&key, text);
    }
    config
}

/// In the protocol of KIP-848 the broker decides, and takes no word from its members.
fn classic_milliseconds(reader: &mut FlowReader<'_>, name: &str, default: u64) -> Duration {
    if let Some(found) = reader.find(Layer::Worker, name) {
        let note = format!(
            "in the classic group protocol alone; a target that serves KIP-848 decides by its own group.consumer.{name}"
        );
        reader.settings.judge(&found.key, Fate::Mapped, note);
    }
    milliseconds(reader, Layer::Worker, name, 1, default)
}
