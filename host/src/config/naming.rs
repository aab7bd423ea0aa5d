//! Who names the topics of a flow.

use std::path::Path;
use std::time::Duration;

use super::flow_config::{NamingConfig, NamingModule};
use super::known::NAMING_SETTINGS;
use super::layers::{FlowReader, Layer};
use super::plugins::{self, BUILTIN_PLUGINS, existing_file, json_object};
use super::report::Fate;
use super::settings::Settings;
use super::values::{self, closest};
use crate::names::FlowName;

/// What the two built-in policies are called in `tidegate.naming.module`.
const BUILTINS: [(&str, NamingModule); 2] =
    [("default-policy", NamingModule::DefaultPolicy), ("identity-policy", NamingModule::IdentityPolicy)];

const POLICY_CLASS: &str = "replication.policy.class";
const PACKAGE: &str = "org.apache.kafka.connect.mirror.";

/// Separators of names.
pub(super) struct Separators {
    /// Of copied topics.
    pub(super) topics: String,
    /// Of MirrorMaker 2's own topics.
    pub(super) internal: String,
}

pub(super) fn read(reader: &mut FlowReader<'_>, folder: &Path) -> (NamingConfig, Separators) {
    let separators = separators(reader);
    let module = module(reader, folder);
    let settings_json = settings_json(reader, &module, &separators.topics);
    let deadline_ms = reader.number(Layer::Option, "tidegate.naming.deadline.ms", 1, 60_000).unwrap_or(50);
    let memory_mib = reader.number(Layer::Option, "tidegate.naming.memory.mb", 1, 4_096).unwrap_or(64);
    let is_explicit = [POLICY_CLASS, "tidegate.naming.module"]
        .iter()
        .any(|name| reader.find(Layer::Option, name).is_some());
    let config = NamingConfig {
        is_explicit,
        module,
        settings_json,
        deadline: Duration::from_millis(deadline_ms.unsigned_abs()),
        memory_bytes: usize::try_from(memory_mib).unwrap_or(64) * 1_048_576,
    };
    (config, separators)
}

/// The policy reads its separator raw, blanks and all, and looks at the flag only where a separator is set (KIP-949).
fn separators(reader: &mut FlowReader<'_>) -> Separators {
    let found = reader.find(Layer::Option, "replication.policy.separator");
    let own_internal =
        reader.boolean(Layer::Option, "replication.policy.internal.topic.separator.enabled", true);
    let Some(found) = found else {
        return Separators { topics: ".".into(), internal: ".".into() };
    };
    let is_legal =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    if !found.value.chars().all(is_legal) {
        let text = "wants letters, digits, '.', '_' and '-' only, since it becomes part of topic names";
        reader.settings.refuse(&found.key, text);
    }
    let internal = if own_internal { found.value.clone() } else { ".".into() };
    Separators { topics: found.value, internal }
}

fn module(reader: &mut FlowReader<'_>, folder: &Path) -> NamingModule {
    let class = reader.find(Layer::Option, POLICY_CLASS);
    if let Some(found) = reader.find(Layer::Option, "tidegate.naming.module") {
        if let Some(class) = class {
            reader.settings.judge(&class.key, Fate::Mapped, format!("{} names the topics", found.key));
        }
        return own_module(reader, &found.key, values::trim(&found.value), folder);
    }
    let Some(class) = class else { return NamingModule::DefaultPolicy };
    policy_of_class(&class.value).unwrap_or_else(|| {
        let known = BUILTIN_CLASSES.into_iter();
        let closest = closest(values::simple_name(values::trim(&class.value)), known).map(str::to_owned);
        let text = "Java classes can't run here; write the names as a naming plugin and set tidegate.naming.module to its \
                    file, which MirrorMaker 2 ignores";
        reader.settings.refuse_with(&class.key, text, closest);
        NamingModule::DefaultPolicy
    })
}

const BUILTIN_CLASSES: [&str; 2] = ["DefaultReplicationPolicy", "IdentityReplicationPolicy"];

/// MirrorMaker 2's two classes, by their full or simple name.
fn policy_of_class(class: &str) -> Option<NamingModule> {
    let class = values::trim(class);
    match class.strip_prefix(PACKAGE).unwrap_or(class) {
        "DefaultReplicationPolicy" => Some(NamingModule::DefaultPolicy),
        "IdentityReplicationPolicy" => Some(NamingModule::IdentityPolicy),
        _ => None,
    }
}

fn own_module(reader: &mut FlowReader<'_>, key: &str, value: &str, folder: &Path) -> NamingModule {
    if let Some(name) = value.strip_prefix("builtin:") {
        if let Some((_, module)) = BUILTINS.iter().find(|(builtin, _)| *builtin == name) {
            return module.clone();
        }
        let closest = closest(name, BUILTINS.iter().map(|(builtin, _)| *builtin));
        let closest = closest.map(|name| format!("builtin:{name}"));
        let text = match BUILTIN_PLUGINS.contains(&name) {
            true => {
                "stands in tidegate.plugins instead; here are builtin:default-policy and builtin:identity-policy"
            }
            false => "no such built-in plugin; there are builtin:default-policy and builtin:identity-policy",
        };
        reader.settings.refuse_with(key, text, closest);
        return NamingModule::DefaultPolicy;
    }
    let file = existing_file(reader.settings, key, value, folder);
    NamingModule::File(file.unwrap_or_else(|| folder.join(value)))
}

fn settings_json(reader: &mut FlowReader<'_>, module: &NamingModule, separator: &str) -> String {
    let own = reader.parsed_unquoted(Layer::Option, NAMING_SETTINGS, json_object);
    own.unwrap_or_else(|| match module {
        NamingModule::File(_) => "{}".to_owned(),
        NamingModule::DefaultPolicy | NamingModule::IdentityPolicy => {
            serde_json::json!({ "separator": separator }).to_string()
        }
    })
}

/// Whether a flow keeps names, without reading it. A module of one's own may do anything and counts as no.
pub(super) fn keeps_names(settings: &Settings, flow: &FlowName) -> bool {
    if plugins::lists_identity(settings, flow) {
        return true;
    }
    let value = |name: &str| Layer::Option.keys(flow, name).into_iter().find_map(|key| settings.peek(&key));
    match value("tidegate.naming.module") {
        Some(module) => values::trim(module) == "builtin:identity-policy",
        None => value(POLICY_CLASS).and_then(policy_of_class) == Some(NamingModule::IdentityPolicy),
    }
}
