//! What the plugins of a flow are, as it is decided and written down: one decision makes one generation. Pure.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::cluster::digest_of;
use crate::config::{NameList, OnFault, PluginConfig, PluginModule, TopicFilter};
use crate::names::FlowName;
use crate::serve::orders::Who;

/// The form of the JSON; a later one is not read.
const FORM: u32 = 1;

/// What brought a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// What the configuration file says has changed, or was never decided on.
    File,
    /// A module took another's place.
    Swap,
    /// Only settings changed.
    Settings,
    /// Back to an earlier generation.
    Rollback,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Swap => "swap",
            Self::Settings => "settings",
            Self::Rollback => "rollback",
        }
    }
}

/// One generation of a flow's plugins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    pub(super) form: u32,
    /// `source->target`.
    pub(super) flow: String,
    /// Its number. Of two decisions of one number the later in the log holds.
    pub(super) generation: u64,
    pub(super) kind: Kind,
    pub(super) who: Who,
    /// When, in milliseconds since the epoch.
    pub(super) at_ms: i64,
    /// The node that was asked.
    pub(super) node: String,
    /// What the configuration file said then, as a digest.
    pub(super) fingerprint: String,
    /// What changed, in words.
    pub(super) what: String,
    /// In the list's order. The naming plugin of the file is the one called `naming`.
    pub(super) plugins: Vec<DecidedPlugin>,
}

/// One plugin of a generation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DecidedPlugin {
    pub(super) name: String,
    /// `builtin:NAME`, or the path where it was found.
    pub(super) module: String,
    /// SHA-256 of the module.
    pub(super) digest: String,
    pub(super) size_bytes: u64,
    /// What the module calls itself.
    pub(super) plugin: String,
    /// The module's version.
    pub(super) version: String,
    /// One JSON object as text. May hold secrets.
    pub(super) settings: String,
    pub(super) topics: String,
    pub(super) topics_exclude: String,
    pub(super) on_fault: String,
    pub(super) deadline_ms: u64,
    pub(super) memory_bytes: u64,
}

/// Without the settings, which may hold a secret.
impl fmt::Debug for DecidedPlugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("DecidedPlugin");
        text.field("name", &self.name).field("module", &self.module).field("digest", &self.digest);
        text.finish_non_exhaustive()
    }
}

/// What makes a decision this one and no other: two nodes may choose one number at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct DecisionId {
    pub(super) generation: u64,
    pub(super) node: String,
    pub(super) at_ms: i64,
}

/// All that a decision is made of but its plugins.
pub(super) struct Occasion {
    pub(super) kind: Kind,
    pub(super) who: Who,
    pub(super) at_ms: i64,
    pub(super) node: String,
    pub(super) fingerprint: String,
    pub(super) what: String,
}

impl Decision {
    pub(super) fn new(
        flow: &FlowName,
        generation: u64,
        occasion: Occasion,
        plugins: Vec<DecidedPlugin>,
    ) -> Self {
        let Occasion { kind, who, at_ms, node, fingerprint, what } = occasion;
        Self {
            form: FORM,
            flow: flow.to_string(),
            generation,
            kind,
            who,
            at_ms,
            node,
            fingerprint,
            what,
            plugins,
        }
    }

    pub(super) fn parse(json: &[u8]) -> anyhow::Result<Self> {
        // The text of serde's problems may quote settings.
        let decision: Self = serde_json::from_slice(json)
            .map_err(|_| anyhow::anyhow!("it is no decision of this version of Tidegate"))?;
        if decision.form != FORM {
            bail!("it has form {}, and this version of Tidegate reads form {FORM}", decision.form);
        }
        Ok(decision)
    }

    pub(super) fn json(&self) -> anyhow::Result<Vec<u8>> {
        serde_json::to_vec(self).context("a decision can't be written")
    }

    pub(super) fn id(&self) -> DecisionId {
        DecisionId { generation: self.generation, node: self.node.clone(), at_ms: self.at_ms }
    }

    /// Whether it says the same about plugins, whoever said it and when.
    pub(super) fn is_same_policy(&self, other: &Decision) -> bool {
        self.fingerprint == other.fingerprint && self.plugins == other.plugins
    }

    pub(super) fn plugin(&self, name: &str) -> Option<&DecidedPlugin> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }
}

impl DecidedPlugin {
    pub(super) fn new(config: &PluginConfig, identity: &ModuleIdentity) -> Self {
        Self {
            name: config.name.clone(),
            module: config.module.to_string(),
            digest: identity.digest.clone(),
            size_bytes: identity.size_bytes,
            plugin: identity.plugin.clone(),
            version: identity.version.clone(),
            settings: config.settings_json.clone(),
            topics: config.topics.include.pattern().to_owned(),
            topics_exclude: config.topics.exclude.pattern().to_owned(),
            on_fault: config.on_fault.to_string(),
            deadline_ms: u64::try_from(config.deadline.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: config.memory_bytes as u64,
        }
    }

    /// As the file would say it, with the digest as a pin.
    pub(super) fn config(&self) -> anyhow::Result<PluginConfig> {
        let list = |pattern: &str| {
            let expressions: &[&str] = if pattern.is_empty() { &[] } else { &[pattern] };
            NameList::parse(expressions).map_err(anyhow::Error::msg)
        };
        let on_fault = OnFault::WORDS.iter().find(|(word, _)| *word == self.on_fault);
        let (_, on_fault) =
            on_fault.with_context(|| format!("on.fault \"{}\" is unknown to this version", self.on_fault))?;
        let module = match self.module.strip_prefix("builtin:") {
            Some(name) => PluginModule::Builtin(name.to_owned()),
            None => PluginModule::File(PathBuf::from(&self.module)),
        };
        Ok(PluginConfig {
            name: self.name.clone(),
            module,
            sha256: Some(self.digest.clone()),
            settings_json: self.settings.clone(),
            topics: TopicFilter { include: list(&self.topics)?, exclude: list(&self.topics_exclude)? },
            on_fault: *on_fault,
            deadline: Duration::from_millis(self.deadline_ms),
            memory_bytes: usize::try_from(self.memory_bytes).unwrap_or(usize::MAX),
        })
    }
}

/// What a module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModuleIdentity {
    pub(super) digest: String,
    pub(super) size_bytes: u64,
    pub(super) plugin: String,
    pub(super) version: String,
}

/// What the configuration file says about plugins, as a digest: names, modules by their digests, settings, topics,
/// `on.fault`, limits. Where a module lies and how its JSON is spaced does not count.
pub(super) fn fingerprint(plugins: &[DecidedPlugin]) -> String {
    let canonical: Vec<_> = plugins
        .iter()
        .map(|plugin| {
            let settings: serde_json::Value = serde_json::from_str(&plugin.settings).unwrap_or_default();
            serde_json::json!([
                plugin.name,
                plugin.digest,
                settings,
                plugin.topics,
                plugin.topics_exclude,
                plugin.on_fault,
                plugin.deadline_ms,
                plugin.memory_bytes,
            ])
        })
        .collect();
    digest_of(serde_json::Value::from(canonical).to_string().as_bytes())
}

/// Which generation a flow starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AtStart {
    /// The last decision: the file says what it said then.
    Decision(Box<Decision>),
    /// What the file says, as this generation. To be written down if the flag says so.
    File { generation: u64, is_written: bool },
}

/// Chooses between the last decision in the log and the file. `has_plugins`: the file lists some.
pub(super) fn at_start(last: Option<&Decision>, fingerprint: &str, has_plugins: bool) -> AtStart {
    match last {
        Some(last) if last.fingerprint == fingerprint => AtStart::Decision(Box::new(last.clone())),
        Some(last) => AtStart::File { generation: last.generation + 1, is_written: true },
        None => AtStart::File { generation: 1, is_written: has_plugins },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::names::ClusterAlias;

    pub(in crate::flow) fn flow() -> FlowName {
        FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") }
    }

    pub(in crate::flow) fn plugin(name: &str, digest: &str) -> DecidedPlugin {
        DecidedPlugin {
            name: name.to_owned(),
            module: format!("/plugins/{name}.wasm"),
            digest: digest.to_owned(),
            size_bytes: 40_000,
            plugin: name.to_owned(),
            version: "0.1.0".to_owned(),
            settings: r#"{"a": 1, "b": 2}"#.to_owned(),
            topics: ".*".to_owned(),
            topics_exclude: String::new(),
            on_fault: "pause".to_owned(),
            deadline_ms: 50,
            memory_bytes: 64 << 20,
        }
    }

    pub(in crate::flow) fn decision(
        generation: u64,
        fingerprint: &str,
        plugins: Vec<DecidedPlugin>,
    ) -> Decision {
        let occasion = Occasion {
            kind: Kind::Swap,
            who: Who { user: "ann".to_owned(), host: "desk".to_owned() },
            at_ms: 1_000 + i64::try_from(generation).unwrap(),
            node: "n1".to_owned(),
            fingerprint: fingerprint.to_owned(),
            what: "x".to_owned(),
        };
        Decision::new(&flow(), generation, occasion, plugins)
    }

    #[test]
    fn what_counts_changes_the_fingerprint_and_nothing_else_does() {
        let one = plugin("mask", "d1");
        let same = [
            DecidedPlugin { module: "/elsewhere.wasm".to_owned(), ..one.clone() },
            DecidedPlugin { settings: "{\"b\":2,\"a\":1}".to_owned(), ..one.clone() },
        ];
        for same in same {
            assert_eq!(fingerprint(std::slice::from_ref(&one)), fingerprint(&[same]));
        }
        let others = [
            DecidedPlugin { name: "other".to_owned(), ..one.clone() },
            DecidedPlugin { digest: "d2".to_owned(), ..one.clone() },
            DecidedPlugin { settings: r#"{"a":1,"b":3}"#.to_owned(), ..one.clone() },
            DecidedPlugin { topics: "orders".to_owned(), ..one.clone() },
            DecidedPlugin { topics_exclude: "orders".to_owned(), ..one.clone() },
            DecidedPlugin { on_fault: "drop".to_owned(), ..one.clone() },
            DecidedPlugin { deadline_ms: 51, ..one.clone() },
            DecidedPlugin { memory_bytes: 1, ..one.clone() },
        ];
        for other in others {
            assert_ne!(
                fingerprint(std::slice::from_ref(&one)),
                fingerprint(std::slice::from_ref(&other)),
                "{other:?}"
            );
        }
        let two = plugin("region", "d1");
        let order = [fingerprint(&[one.clone(), two.clone()]), fingerprint(&[two, one])];
        assert_ne!(order[0], order[1], "the order of a chain counts");
    }

    #[test]
    fn the_file_wins_only_when_it_says_something_new() {
        let last = decision(7, "f1", vec![plugin("mask", "d2")]);
        assert_eq!(at_start(Some(&last), "f1", true), AtStart::Decision(Box::new(last.clone())));
        assert_eq!(at_start(Some(&last), "f2", true), AtStart::File { generation: 8, is_written: true });
        // Its plugins were taken out of the file.
        assert_eq!(at_start(Some(&last), "f0", false), AtStart::File { generation: 8, is_written: true });
        assert_eq!(at_start(None, "f1", true), AtStart::File { generation: 1, is_written: true });
        assert_eq!(at_start(None, "f1", false), AtStart::File { generation: 1, is_written: false });
    }

    #[test]
    fn a_decision_comes_back_as_it_was_written() {
        let one = decision(7, "f1", vec![plugin("mask", "d2")]);
        assert_eq!(Decision::parse(&one.json().unwrap()).unwrap(), one);
        let config = one.plugins[0].config().unwrap();
        assert_eq!(config.sha256.as_deref(), Some("d2"));
        let identity = ModuleIdentity {
            digest: "d2".to_owned(),
            size_bytes: 40_000,
            plugin: "mask".to_owned(),
            version: "0.1.0".to_owned(),
        };
        assert_eq!(DecidedPlugin::new(&config, &identity), one.plugins[0]);
    }

    #[test]
    fn a_decision_of_another_form_is_not_read_and_not_quoted() {
        let mut json: serde_json::Value =
            serde_json::from_slice(&decision(7, "f1", Vec::new()).json().unwrap()).unwrap();
        json["form"] = 2.into();
        assert_eq!(
            Decision::parse(json.to_string().as_bytes()).unwrap_err().to_string(),
            "it has form 2, and this version of Tidegate reads form 1"
        );
        assert_eq!(
            Decision::parse(br#"{"settings": "secret"}"#).unwrap_err().to_string(),
            "it is no decision of this version of Tidegate"
        );
    }

    #[test]
    fn settings_are_not_printed() {
        assert!(!format!("{:?}", plugin("mask", "d")).contains("\"a\""));
    }
}
