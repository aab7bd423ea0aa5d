//! Gives every key that nobody read its fate: not yet honoured, mapped to something else, without effect here or in
//! MirrorMaker 2 itself, refused, or unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::flow_config::ClusterConfig;
use super::key_shape::{self, Scope};
use super::known::{
    ADMIN, CONSUMER, FLOW_OPTIONS, GLOBAL, Known, PLUGIN_SECTION, PLUGIN_SETTINGS, PLUGINS, PRODUCER, Plan,
    SECURITY, TIDEGATE_FLOW, WORKER, WORKER_PREFIXES_AT_TOP, find, is_security, plugin_setting,
};
use super::plugins;
use super::process;
use super::report::Fate;
use super::secrets::CLIENT_PREFIXES;
use super::settings::Settings;
use super::topology::{self, Topology};
use super::values::{self, Kind, closest};
use crate::names::{ClusterAlias, FlowName};

enum Verdict {
    Judged(Fate, String),
    Refused(String, Option<String>),
    /// Refused with a text that quotes the value.
    RefusedQuoting(String),
    Unknown(String, Option<String>),
    /// Speaks of a plugin that no flow lists: its name, and the listed one that was most likely meant.
    Unlisted(String, Option<String>),
}

/// Judges all keys that are left.
pub(super) fn judge_the_rest(
    settings: &mut Settings,
    topology: &Topology,
    clusters: &BTreeMap<ClusterAlias, ClusterConfig>,
) {
    let plugins = plugins::listed(settings, &topology.enabled);
    let judge = Judge { topology, clusters, plugins };
    let mut unlisted = BTreeSet::new();
    for (key, value) in settings.untouched() {
        match judge.key(&key, &value) {
            Verdict::Judged(fate, note) => settings.judge(&key, fate, note),
            Verdict::Refused(text, closest) => settings.refuse_with(&key, text, closest),
            Verdict::RefusedQuoting(text) => settings.refuse_quoting(&key, text),
            Verdict::Unlisted(name, closest) => {
                let text =
                    format!("no flow lists the plugin \"{name}\" in {PLUGINS}, so nothing is done with it");
                settings.judge(&key, Fate::Ignored, text.clone());
                // Once for all keys of a plugin.
                if unlisted.insert(name) {
                    settings.warn(&key, text, closest);
                }
            }
            Verdict::Unknown(text, closest) => {
                let suggestion = closest.as_ref().map(|closest| format!("; did you mean {closest:?}?"));
                settings.judge(&key, Fate::Ignored, format!("{text}{}", suggestion.unwrap_or_default()));
                settings.warn(&key, text, closest);
            }
        }
    }
}

struct Judge<'a> {
    topology: &'a Topology,
    clusters: &'a BTreeMap<ClusterAlias, ClusterConfig>,
    /// The plugins that enabled flows list.
    plugins: BTreeSet<String>,
}

fn ignored(note: impl Into<String>) -> Verdict {
    Verdict::Judged(Fate::Ignored, note.into())
}

fn not_yet(what: &str) -> Verdict {
    ignored(format!("not yet honoured: {what}"))
}

const UNKNOWN: &str = "unknown key, which MirrorMaker 2 ignores too";

/// An unknown key; `prefix` stands before the names of `tables`.
fn unknown(prefix: &str, name: &str, tables: &[&'static [Known]]) -> Verdict {
    let names = tables.iter().flat_map(|table| table.iter()).map(|known| known.name.trim_end_matches('.'));
    let closest = closest(name, names).map(|name| format!("{prefix}{name}"));
    Verdict::Unknown(UNKNOWN.into(), closest)
}

fn planned(known: &Known, value: &str) -> Verdict {
    let checked = match values::check(known.kind, value) {
        Ok(()) => known.plan,
        Err(text) if known.kind == Kind::Expressions => return Verdict::RefusedQuoting(text),
        Err(text) => return Verdict::Refused(text, None),
    };
    match checked {
        Plan::Read => ignored("no running flow reads it here"),
        Plan::NotYet(what) => not_yet(what),
        Plan::Mapped(note) => Verdict::Judged(Fate::Mapped, note.into()),
        Plan::Ignored(note) => ignored(note),
        Plan::Only(values, why) => {
            let value = values::trim(value);
            match values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                true => Verdict::Judged(Fate::Honoured, String::new()),
                false => Verdict::Refused(why.into(), None),
            }
        }
        Plan::Refused(why) => Verdict::Refused(why.into(), None),
    }
}

/// A security setting behind `prefix`; `security.protocol` itself has been judged wherever it is in effect.
fn security(prefix: &str, name: &str) -> Verdict {
    if name == "security.protocol" {
        return ignored("no client that runs here reads it");
    }
    if SECURITY.iter().any(|known| known.name == name) {
        return not_yet("TLS and SASL");
    }
    let closest = closest(name, SECURITY.iter().map(|known| known.name));
    let text = "unknown key of TLS or SASL, which are not yet honoured";
    Verdict::Unknown(text.into(), closest.map(|name| format!("{prefix}{name}")))
}

impl Judge<'_> {
    fn key(&self, key: &str, value: &str) -> Verdict {
        match key_shape::split(key, &self.topology.aliases) {
            (Scope::Top, _) => self.top(key, value),
            // An alias may be the first word of MirrorMaker 2's own keys, as `source` is.
            (Scope::Cluster(_), _) if is_at_top(key) => self.top(key, value),
            (Scope::Cluster(alias), name) => self.cluster(&alias, name, value),
            (Scope::Flow(flow), name) => self.flow(&flow, name, value),
            (Scope::UnknownAlias(alias), _) => self.unknown_alias(key, &alias),
            (Scope::SameEnds, _) => ignored("a flow from a cluster to itself does not exist"),
        }
    }

    fn unknown_alias(&self, key: &str, alias: &str) -> Verdict {
        let closest = closest(alias, self.topology.aliases.iter().map(ClusterAlias::as_str));
        Verdict::Unknown(
            format!("\"{alias}\" is not among clusters, so MirrorMaker 2 ignores the key too"),
            closest.map(|closest| key.replacen(alias, closest, 1)),
        )
    }

    fn top(&self, key: &str, value: &str) -> Verdict {
        if key.starts_with("tidegate.") {
            return self.tidegate(key, "", TIDEGATE_FLOW.into_iter().chain(process::keys()));
        }
        if let Some(verdict) = self.top_only(key, value) {
            return verdict;
        }
        if let Some(known) = find(&[FLOW_OPTIONS, GLOBAL], key) {
            return planned(known, value);
        }
        if is_security(key) {
            return security("", key);
        }
        if let Some((client @ ("consumer" | "producer" | "admin"), _)) = key.split_once('.') {
            return ignored(format!(
                "MirrorMaker 2 does not read {client} settings at the top level; write {}.{key}",
                self.an_alias()
            ));
        }
        match find(&[WORKER], key) {
            Some(known) if WORKER_PREFIXES_AT_TOP.iter().any(|prefix| key.starts_with(prefix)) => {
                planned(known, value)
            }
            Some(_) => ignored(format!(
                "MirrorMaker 2 does not read it at the top level; write {}.{key}",
                self.a_target()
            )),
            None => self.unknown_top(key),
        }
    }

    /// Keys that mean something else at the top level than at a flow.
    fn top_only(&self, key: &str, value: &str) -> Option<Verdict> {
        const DROPPED: [&str; 5] = [
            "use.defaults.from",
            "exactly.once.support",
            "offsets.storage.topic",
            "transaction.boundary",
            "topic.creation.enable",
        ];
        const DROPPED_PREFIXES: [&str; 4] =
            ["transforms.", "predicates.", "transaction.boundary.", "topic.creation."];
        if key == "enabled" {
            return Some(match values::boolean(value) {
                Ok(true) => Verdict::Refused(
                    format!(
                        "at the top level MirrorMaker 2 would run every flow that has heartbeats; write {}.enabled = true, and \
                     so for each flow that is meant",
                        self.a_flow()
                    ),
                    None,
                ),
                Ok(false) => ignored("flows are enabled one by one"),
                Err(text) => Verdict::Refused(text, None),
            });
        }
        let is_dropped =
            DROPPED.contains(&key) || DROPPED_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
        is_dropped.then(|| {
            ignored(format!(
                "MirrorMaker 2 does not read it at the top level; write {}.{key} for one flow",
                self.a_flow()
            ))
        })
    }

    /// `C.bootstrap.servers` where `C` is not among the clusters, or a slip of the pen.
    fn unknown_top(&self, key: &str) -> Verdict {
        let cluster_key = key.split_once('.').filter(|(_, name)| {
            find(&[WORKER], name).is_some() || is_security(name) || find(&[FLOW_OPTIONS], name).is_some()
        });
        match cluster_key {
            Some((alias, _)) if !alias.is_empty() => self.unknown_alias(key, alias),
            _ => unknown("", key, &[FLOW_OPTIONS, GLOBAL]),
        }
    }

    fn a_flow(&self) -> String {
        self.topology.served.first().map_or_else(|| "A->B".to_owned(), ToString::to_string)
    }

    fn an_alias(&self) -> &str {
        let alias =
            self.topology.served.first().map(|flow| &flow.source).or_else(|| self.topology.aliases.first());
        alias.map_or("A", ClusterAlias::as_str)
    }

    fn a_target(&self) -> &str {
        let alias =
            self.topology.served.first().map(|flow| &flow.target).or_else(|| self.topology.aliases.last());
        alias.map_or("B", ClusterAlias::as_str)
    }

    fn cluster(&self, alias: &ClusterAlias, name: &str, value: &str) -> Verdict {
        let served = &self.topology.served;
        let is_source = served.iter().any(|flow| flow.source == *alias);
        let is_target = served.iter().any(|flow| flow.target == *alias);
        if name.starts_with("tidegate.") {
            let text = "Tidegate's own keys stand at the top level or at a flow, not at a cluster";
            return Verdict::Refused(text.into(), Some(name.to_owned()));
        }
        if !is_source && !is_target {
            return ignored(format!("no flow that runs here has the cluster {alias}"));
        }
        if is_security(name) {
            return security(&format!("{alias}."), name);
        }
        let prefix = |client: &str| format!("{alias}.{client}.");
        match name.split_once('.') {
            Some(("consumer", name)) => {
                let unread = (!is_source).then_some("only offset syncs and checkpoints would be read there");
                self.client(&prefix("consumer"), CONSUMER, name, value, Some(alias), unread)
            }
            Some(("producer", name)) => {
                let unread = (!is_target).then_some("only offset syncs would be written there");
                self.client(&prefix("producer"), PRODUCER, name, value, Some(alias), unread)
            }
            Some(("admin", name)) => self.client(&prefix("admin"), ADMIN, name, value, Some(alias), None),
            _ => match (find(&[WORKER], name), find(&[FLOW_OPTIONS, GLOBAL], name)) {
                (Some(known), _) if is_target => planned(known, value),
                (Some(_), _) => ignored(format!("only flows to {alias} read it, and none runs here")),
                (None, Some(_)) => ignored(format!(
                    "MirrorMaker 2 does not read it at a cluster; write {name}, or {}.{name} for one flow",
                    self.a_flow()
                )),
                (None, None) => unknown(&format!("{alias}."), name, &[WORKER]),
            },
        }
    }

    /// A setting of a client; `unread` when that client does not run here yet, with what it would do.
    fn client(
        &self,
        prefix: &str,
        table: &'static [Known],
        name: &str,
        value: &str,
        cluster: Option<&ClusterAlias>,
        unread: Option<&str>,
    ) -> Verdict {
        if is_security(name) {
            return security(prefix, name);
        }
        if name == "bootstrap.servers" {
            return self.other_servers(value, cluster);
        }
        match (find(&[table], name), unread) {
            (None, _) => unknown(prefix, name, &[table]),
            (Some(_), Some(what)) => not_yet(what),
            (Some(known), None) => planned(known, value),
        }
    }

    /// Servers for one client alone.
    fn other_servers(&self, value: &str, cluster: Option<&ClusterAlias>) -> Verdict {
        let own =
            cluster.and_then(|alias| self.clusters.get(alias)).map(|cluster| &cluster.bootstrap_servers);
        match topology::bootstrap_list(value) {
            Ok(servers) if Some(&servers) == own => {
                Verdict::Judged(Fate::Mapped, "the cluster's own list, which is the same".into())
            }
            _ => Verdict::Refused(
                "Tidegate reaches a cluster at one list of servers; write it as the cluster's bootstrap.servers".into(),
                None,
            ),
        }
    }

    fn flow(&self, flow: &FlowName, name: &str, value: &str) -> Verdict {
        if !self.topology.served.contains(flow) {
            return ignored(match self.topology.enabled.contains(flow) {
                true => format!("{flow} does not run here: --clusters leaves {} out", flow.target),
                false => format!("{flow} does not run: {flow}.enabled is not true"),
            });
        }
        if name.starts_with("tidegate.") {
            return self.tidegate(name, &format!("{flow}."), TIDEGATE_FLOW.into_iter());
        }
        if let Some(known) = find(&[FLOW_OPTIONS], name) {
            return planned(known, value);
        }
        if let Some(verdict) = self.flow_client(flow, name, value) {
            return verdict;
        }
        match (find(&[WORKER], name), find(&[GLOBAL], name)) {
            _ if is_security(name) => {
                ignored("MirrorMaker 2 does not read it at a flow; write it at the clusters")
            }
            (Some(_), _) => {
                ignored(format!("MirrorMaker 2 never reads it at a flow; write {}.{name}", flow.target))
            }
            (None, Some(_)) => ignored(format!("MirrorMaker 2 reads it at the top level only; write {name}")),
            (None, None) => unknown(&format!("{flow}."), name, &[FLOW_OPTIONS]),
        }
    }

    /// The clients' settings at a flow, by the prefix of the client that reads them.
    fn flow_client(&self, flow: &FlowName, name: &str, value: &str) -> Option<Verdict> {
        let prefix = CLIENT_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix))?;
        let name = &name[prefix.len()..];
        let full = format!("{flow}.{prefix}");
        let (source, target) = (Some(&flow.source), Some(&flow.target));
        let client = |table, cluster, unread| self.client(&full, table, name, value, cluster, unread);
        Some(match prefix {
            "source.consumer." | "consumer." => client(CONSUMER, source, None),
            "producer.override." => client(PRODUCER, target, None),
            "source.admin." | "admin." => client(ADMIN, source, None),
            "target.admin." => client(ADMIN, target, None),
            "target.consumer." => {
                client(CONSUMER, target, Some("only checkpoints and offset syncs are read there"))
            }
            "producer." | "source.producer." | "target.producer." => {
                if is_security(name) {
                    return Some(security(&full, name));
                }
                not_yet(&format!(
                    "it is for the writer of offset syncs alone, in MirrorMaker 2 too; for the data write \
                     {flow}.producer.override.{name}, or {}.producer.{name}",
                    flow.target
                ))
            }
            "source.cluster." => self.cluster_at_flow(&full, name, value, source),
            "target.cluster." => self.cluster_at_flow(&full, name, value, target),
            _ => ignored(format!("it is for Connect's own clients; write {}.{name}", flow.target)),
        })
    }

    fn cluster_at_flow(
        &self,
        prefix: &str,
        name: &str,
        value: &str,
        cluster: Option<&ClusterAlias>,
    ) -> Verdict {
        match name {
            "bootstrap.servers" => self.other_servers(value, cluster),
            _ if is_security(name) => security(prefix, name),
            _ => ignored("MirrorMaker 2 reads only servers, ssl and sasl settings there"),
        }
    }
}

/// Whether the whole key is one of the top level's own.
fn is_at_top(key: &str) -> bool {
    [FLOW_OPTIONS, GLOBAL].iter().any(|table| table.iter().any(|known| known.name == key))
}

impl Judge<'_> {
    /// Tidegate's own keys: a mistyped one stops the start, since nobody else reads them.
    fn tidegate(
        &self,
        name: &str,
        prefix: &str,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> Verdict {
        if known.clone().any(|known| known == name) {
            return ignored("no running flow reads it");
        }
        if let Some((plugin, setting)) = plugin_setting(name) {
            return self.plugin(plugin, setting, prefix);
        }
        if !prefix.is_empty() && process::keys().any(|key| key == name) {
            let text = "is a setting of the process and stands at the top level";
            return Verdict::Refused(text.into(), Some(name.to_owned()));
        }
        let closest = closest(name, known).map(|name| format!("{prefix}{name}"));
        Verdict::Refused("unknown key of Tidegate".into(), closest)
    }

    /// `tidegate.plugin.NAME.SETTING` that no flow has read.
    fn plugin(&self, name: &str, setting: &str, prefix: &str) -> Verdict {
        if !PLUGIN_SETTINGS.contains(&setting) {
            let text = "unknown key of a plugin";
            let closest = closest(setting, PLUGIN_SETTINGS.into_iter());
            return Verdict::Refused(
                text.into(),
                closest.map(|setting| format!("{prefix}{PLUGIN_SECTION}{name}.{setting}")),
            );
        }
        if self.plugins.contains(name) {
            return ignored("no running flow reads it");
        }
        let closest = closest(name, self.plugins.iter().map(String::as_str));
        Verdict::Unlisted(
            name.to_owned(),
            closest.map(|name| format!("{prefix}{PLUGIN_SECTION}{name}.{setting}")),
        )
    }
}
