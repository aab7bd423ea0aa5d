//! Every key that MirrorMaker 2 and its clients know, and what Tidegate makes of it. Keys that are honoured are read
//! elsewhere; a table says so with [`Plan::Read`], so that a mistyped key finds its neighbour.

mod clients;
mod flow_options;
mod security;
mod worker;

pub(super) use clients::{ADMIN, CONSUMER, PRODUCER};
pub(super) use flow_options::FLOW_OPTIONS;
pub(super) use security::SECURITY;
pub(super) use worker::{GLOBAL, WORKER};

use super::process;
use super::values::Kind;

/// What becomes of a key that nobody read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Honoured where it counts.
    Read,
    /// Not yet: what is missing.
    NotYet(&'static str),
    /// Something near to it happens.
    Mapped(&'static str),
    /// Nothing happens, for this reason.
    Ignored(&'static str),
    /// Honoured with one of these values; any other stops the start, for this reason.
    Only(&'static [&'static str], &'static str),
    /// It stops the start.
    Refused(&'static str),
}

/// A key below its prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The name; one that ends in `.` stands for all that begin with it.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) plan: Plan,
}

const fn key(name: &'static str, kind: Kind, plan: Plan) -> Known {
    Known { name, kind, plan }
}

/// The entry for `name`, exact before prefix.
pub(super) fn find(tables: &[&'static [Known]], name: &str) -> Option<&'static Known> {
    let all = || tables.iter().flat_map(|table| table.iter());
    let is_prefix = |known: &&Known| known.name.ends_with('.') && name.starts_with(known.name);
    all().find(|known| known.name == name).or_else(|| all().find(is_prefix))
}

/// Whether `name` is exactly a key that is known somewhere, or within a family whose names are known. What only shares a
/// known beginning, as `transforms.mask.field` does, is not.
pub(super) fn is_name(name: &str) -> bool {
    let is_exact = |known: &Known| !known.name.ends_with('.') && known.name == name;
    let tables = [FLOW_OPTIONS, GLOBAL, WORKER, CONSUMER, PRODUCER, ADMIN];
    tables.iter().any(|table| table.iter().any(is_exact))
        || TIDEGATE_FLOW.contains(&name)
        || process::keys().any(|key| key == name)
        || plugin_setting(name).is_some_and(|(_, setting)| PLUGIN_SETTINGS.contains(&setting))
        || is_in_family(name)
}

/// Names behind a known prefix.
fn is_in_family(name: &str) -> bool {
    const WORKERS: [&str; 8] = [
        "inter.worker.key.generation.algorithm",
        "inter.worker.key.size",
        "inter.worker.key.ttl.ms",
        "inter.worker.signature.algorithm",
        "inter.worker.verification.algorithms",
        "rest.advertised.host.name",
        "rest.advertised.port",
        "rest.advertised.listener",
    ];
    const STORAGE: [&str; 3] = ["offset.storage.", "config.storage.", "status.storage."];
    const PROVIDER: [&str; 3] = [".class", ".param.allowed.paths", ".param.allowlist.pattern"];
    let stored = STORAGE.iter().find_map(|prefix| name.strip_prefix(prefix));
    let provided = name.strip_prefix("config.providers.");
    WORKERS.contains(&name)
        || stored.is_some_and(|setting| OWN_TOPICS_SETTINGS.contains(&setting))
        || provided.is_some_and(|rest| PROVIDER.iter().any(|end| rest.ends_with(end)))
}

/// What may be said of Connect's own topics: their place, and the settings of a topic.
const OWN_TOPICS_SETTINGS: [&str; 28] = [
    "topic",
    "partitions",
    "replication.factor",
    "cleanup.policy",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
];

/// What clients need to reach a cluster, MirrorMaker 2's "client properties", less `bootstrap.servers`.
pub(super) fn is_security(name: &str) -> bool {
    name == "security.protocol" || name.starts_with("ssl.") || name.starts_with("sasl.")
}

/// Worker settings that hold from the top level too, where they are stronger than the cluster's.
pub(super) const WORKER_PREFIXES_AT_TOP: [&str; 9] = [
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
];

/// A plugin's own settings; see `secrets` for how they are printed.
pub(super) const NAMING_SETTINGS: &str = "tidegate.naming.settings";

/// Tidegate's own keys of a flow, at the top level for every flow.
pub(super) const TIDEGATE_FLOW: [&str; 8] = [
    "tidegate.naming.module",
    NAMING_SETTINGS,
    "tidegate.naming.deadline.ms",
    "tidegate.naming.memory.mb",
    PLUGINS,
    "tidegate.quarantine.topic",
    "tidegate.quarantine.side",
    "tidegate.quarantine.replication.factor",
];

/// The list of a flow's plugins.
pub(super) const PLUGINS: &str = "tidegate.plugins";

/// What stands before a plugin's name in the keys that speak of it.
pub(super) const PLUGIN_SECTION: &str = "tidegate.plugin.";

/// What may be said of a plugin, behind its name.
pub(super) const PLUGIN_SETTINGS: [&str; 9] = [
    "module",
    "sha256",
    "settings",
    "settings.file",
    "topics",
    "topics.exclude",
    "on.fault",
    "deadline.ms",
    "memory.mb",
];

/// The plugin's name and the setting of `tidegate.plugin.NAME.SETTING`.
pub(super) fn plugin_setting(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PLUGIN_SECTION).map(|behind| behind.split_once('.').unwrap_or((behind, "")))
}

/// Whether the value of `name` is a plugin's settings, one JSON object whose fields are the plugin's own.
pub(super) fn is_plugin_settings(name: &str) -> bool {
    name == NAMING_SETTINGS || plugin_setting(name).is_some_and(|(_, setting)| setting == "settings")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_key_stands_twice_in_a_table() {
        for table in [FLOW_OPTIONS, GLOBAL, WORKER, CONSUMER, PRODUCER, ADMIN] {
            let names: BTreeSet<&str> = table.iter().map(|known| known.name).collect();
            assert_eq!(names.len(), table.len());
        }
    }
}
