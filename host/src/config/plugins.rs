//! The plugins of a flow: `tidegate.plugins` and what `tidegate.plugin.NAME.*` says of each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::filter::{NameList, TopicFilter};
use super::flow_config::NamingModule;
use super::known::{PLUGIN_SECTION, PLUGINS};
use super::layers::{FlowReader, Layer};
use super::plugin_config::{
    DEADLINE_MS, MEMORY_MIB, NAMING_PLUGIN_NAME, OnFault, PluginConfig, PluginModule, QuarantineConfig,
    QuarantineSide,
};
use super::problem::Problem;
use super::report::Fate;
use super::settings::{Found, Settings};
use super::values::{self, closest};
use crate::names::{FlowName, TopicName};

/// The plugins that come with Tidegate, as `builtin:NAME`.
pub(super) const BUILTIN_PLUGINS: [&str; 7] =
    ["acl-map", "default-policy", "header-rules", "identity-policy", "redact", "region-filter", "rename"];

/// A flow has at most so many plugins: each has an instance, with its own memory, in every worker.
const PLUGINS_COUNT_MAX: usize = 32;

/// A plugin's name is at most so long; it becomes a label of metrics and a part of keys.
const NAME_CHARACTERS_MAX: usize = 64;

/// A file of settings is at most so large.
const SETTINGS_FILE_BYTES_MAX: u64 = 1_048_576;

/// Reads the plugins of one flow, in their order. What is wrong with one is told, and it is left out.
pub(super) fn read(reader: &mut FlowReader<'_>, folder: &Path) -> Vec<PluginConfig> {
    let Some(found) = reader.find(Layer::Option, PLUGINS) else { return Vec::new() };
    let names = names(reader, &found);
    names.into_iter().filter_map(|name| plugin(reader, &found, name, folder)).collect()
}

/// The legal names of the list.
fn names(reader: &mut FlowReader<'_>, found: &Found) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in values::list(&found.value) {
        match check_name(name, &names) {
            Ok(()) => names.push(name.to_owned()),
            Err(text) => reader.settings.refuse_quoting(&found.key, text),
        }
    }
    if names.len() > PLUGINS_COUNT_MAX {
        let text = format!("lists {} plugins, and a flow has at most {PLUGINS_COUNT_MAX}", names.len());
        reader.settings.refuse(&found.key, text);
        names.truncate(PLUGINS_COUNT_MAX);
    }
    names
}

/// Whether `name` may join a list of plugins that has the names `before`; what is wrong in words.
pub fn check_joining_name(name: &str, before: &[String]) -> Result<(), String> {
    if before.len() >= PLUGINS_COUNT_MAX {
        return Err(format!("has {PLUGINS_COUNT_MAX} plugins already, and a flow has no more"));
    }
    check_name(name, before)
}

fn check_name(name: &str, before: &[String]) -> Result<(), String> {
    let is_legal = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if name.is_empty() {
        return Err("has an empty name; write the names with one comma between them".into());
    }
    if !name.chars().all(is_legal) || name.len() > NAME_CHARACTERS_MAX {
        return Err(format!(
            "\"{name}\" is no name for a plugin; it wants 1 to {NAME_CHARACTERS_MAX} letters, digits, '_' and '-'"
        ));
    }
    if name == NAMING_PLUGIN_NAME {
        return Err(format!(
            "\"{name}\" is what the plugin of replication.policy.class and tidegate.naming.module is called; choose another \
             name"
        ));
    }
    match before.iter().any(|known| known == name) {
        true => Err(format!("lists \"{name}\" twice; a plugin has one place in the chain")),
        false => Ok(()),
    }
}

fn plugin(reader: &mut FlowReader<'_>, list: &Found, name: String, folder: &Path) -> Option<PluginConfig> {
    let key = |setting: &str| format!("{PLUGIN_SECTION}{name}.{setting}");
    // Everything is read before something is missed, so that all problems are told at once.
    let module = reader.find(Layer::Option, &key("module"));
    let sha256 = reader.parsed_unquoted(Layer::Option, &key("sha256"), sha256);
    let settings_json = settings_json(reader, &name, folder);
    let topics = TopicFilter {
        include: name_list(reader, &key("topics"), &[".*"]),
        exclude: name_list(reader, &key("topics.exclude"), &[]),
    };
    let on_fault = reader.word(Layer::Option, &key("on.fault"), &OnFault::WORDS, OnFault::Pause);
    let deadline_ms = reader.number(Layer::Option, &key("deadline.ms"), 1, 60_000).unwrap_or(DEADLINE_MS);
    let memory_mib = reader.number(Layer::Option, &key("memory.mb"), 1, 4_096).unwrap_or(MEMORY_MIB);
    let Some(module) = module else {
        miss_module(reader.settings, list, &name);
        return None;
    };
    let module = plugin_module(reader.settings, &module, folder)?;
    Some(PluginConfig {
        module,
        sha256,
        settings_json,
        topics,
        on_fault,
        deadline: Duration::from_millis(deadline_ms.unsigned_abs()),
        memory_bytes: usize::try_from(memory_mib).unwrap_or(64) * 1_048_576,
        name,
    })
}

fn miss_module(settings: &mut Settings, list: &Found, name: &str) {
    let key = format!("{PLUGIN_SECTION}{name}.module");
    let sections = sections(settings);
    let closest = closest(name, sections.iter().map(String::as_str));
    let problem = Problem {
        key: Some(key),
        closest: closest.map(|name| format!("{PLUGIN_SECTION}{name}.module")),
        ..Problem::of_file(format!(
            "is missing, and {} lists \"{name}\"; name the plugin's file, or builtin:NAME for one that comes with Tidegate",
            list.key
        ))
    };
    if !settings.problems.contains(&problem) {
        settings.problems.push(problem);
    }
}

/// Every plugin of which the file says something, listed or not.
fn sections(settings: &Settings) -> BTreeSet<String> {
    let name = |key: &str| {
        let (_, behind) = key.split_once(PLUGIN_SECTION)?;
        Some(behind.split_once('.')?.0.to_owned())
    };
    settings.entries().filter_map(|entry| name(&entry.key)).collect()
}

/// The names that the file's enabled flows list, read or not.
pub(super) fn listed(settings: &Settings, flows: &[FlowName]) -> BTreeSet<String> {
    let names = |flow: &FlowName| {
        let keys = Layer::Option.keys(flow, PLUGINS);
        let list = keys.iter().find_map(|key| settings.peek(key)).unwrap_or_default();
        values::list(list).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    flows.iter().flat_map(names).collect()
}

/// Whether one of the flow's plugins is the policy that keeps names.
pub(super) fn lists_identity(settings: &Settings, flow: &FlowName) -> bool {
    let value = |name: &str| {
        let keys = Layer::Option.keys(flow, name);
        keys.into_iter().find_map(|key| settings.peek(&key).map(values::trim))
    };
    let module = |name: &str| value(&format!("{PLUGIN_SECTION}{name}.module"));
    values::list(value(PLUGINS).unwrap_or_default())
        .into_iter()
        .any(|name| module(name) == Some("builtin:identity-policy"))
}

/// `builtin:NAME` or a file that is there.
fn plugin_module(settings: &mut Settings, found: &Found, folder: &Path) -> Option<PluginModule> {
    let value = values::trim(&found.value);
    let Some(name) = value.strip_prefix("builtin:") else {
        return existing_file(settings, &found.key, value, folder).map(PluginModule::File);
    };
    if BUILTIN_PLUGINS.contains(&name) {
        return Some(PluginModule::Builtin(name.to_owned()));
    }
    let closest = closest(name, BUILTIN_PLUGINS.into_iter()).map(|name| format!("builtin:{name}"));
    let text = format!("no such built-in plugin; there are builtin:{}", BUILTIN_PLUGINS.join(", builtin:"));
    settings.refuse_with(&found.key, text, closest);
    None
}

/// A path of the file that leads to a file.
pub(super) fn existing_file(
    settings: &mut Settings,
    key: &str,
    value: &str,
    folder: &Path,
) -> Option<PathBuf> {
    let path = folder.join(value);
    if value.is_empty() || !path.is_file() {
        let text = "there is no such file; a relative path starts at the folder of the properties file";
        settings.refuse(key, text);
        return None;
    }
    Some(path)
}

fn sha256(value: &str) -> Result<String, String> {
    const DIGITS_COUNT: usize = 64;
    let digest = values::trim(value);
    match digest.len() == DIGITS_COUNT && digest.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => Ok(digest.to_ascii_lowercase()),
        false => Err("wants the module's SHA-256 in 64 hexadecimal digits, as sha256sum prints it".into()),
    }
}

fn name_list(reader: &mut FlowReader<'_>, name: &str, default: &[&str]) -> NameList {
    let list = match reader.find(Layer::Option, name) {
        Some(found) => {
            values::expressions(&found.value).map_err(|text| reader.settings.refuse_quoting(&found.key, text))
        }
        None => NameList::parse(default).map_err(drop),
    };
    list.unwrap_or_else(|()| NameList::nothing())
}

/// `.settings` or the text of `.settings.file`; what stands at the flow is stronger, and both at one place is a problem.
fn settings_json(reader: &mut FlowReader<'_>, name: &str, folder: &Path) -> String {
    const DEFAULT: &str = "{}";
    let flow = reader.flow.clone();
    let keys: Vec<String> = ["settings", "settings.file"]
        .iter()
        .flat_map(|setting| Layer::Option.keys(&flow, &format!("{PLUGIN_SECTION}{name}.{setting}")))
        .collect();
    // At the flow, its file, at the top level, its file.
    let [own, top, own_file, top_file] = [0, 1, 2, 3].map(|at| keys[at].clone());
    for (text, file) in [(&own, &own_file), (&top, &top_file)] {
        if reader.settings.peek(text).is_some() && reader.settings.peek(file).is_some() {
            reader.settings.refuse(file, format!("{text} gives the settings already; remove one of the two"));
        }
    }
    let keys = [own, own_file, top, top_file];
    let Some(found) = reader.settings.strongest(&keys, &flow.to_string()) else { return DEFAULT.to_owned() };
    let parsed = match found.key.ends_with(".file") {
        false => json_object(&found.value),
        true => settings_file(&folder.join(values::trim(&found.value))).and_then(|text| json_object(&text)),
    };
    parsed.unwrap_or_else(|text| {
        reader.settings.refuse(&found.key, text);
        DEFAULT.to_owned()
    })
}

fn settings_file(path: &Path) -> Result<String, String> {
    let unread = |error: std::io::Error| {
        format!(
            "the file can't be read: {error}; a relative path starts at the folder of the properties file"
        )
    };
    let size = std::fs::metadata(path).map_err(unread)?.len();
    if size > SETTINGS_FILE_BYTES_MAX {
        return Err(format!(
            "the file has {size} bytes, and settings have at most {SETTINGS_FILE_BYTES_MAX}"
        ));
    }
    let bytes = std::fs::read(path).map_err(unread)?;
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned())
}

/// One JSON object. What is said of another thing never quotes it: settings may hold secrets.
pub(super) fn json_object(text: &str) -> Result<String, String> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(_)) => Ok(values::trim(text).to_owned()),
        Ok(_) => Err("wants one JSON object, as in {\"prefix\":\"eu\"}".into()),
        Err(error) if error.line() > 1 => Err(format!(
            "is no JSON at line {}, character {}; wants one object",
            error.line(),
            error.column()
        )),
        Err(error) => Err(format!("is no JSON at character {}; wants one object", error.column())),
    }
}

/// Said of a quarantine topic that is like any other topic.
const QUARANTINE_COPIED: &str = "must end with .internal or -internal: flows copy topics of other names, and with them what \
     is kept from the target";

/// Whether no flow copies a topic of this name, whatever its lists and its naming policy say.
fn is_left_by_flows(topic: &str) -> bool {
    topic.ends_with(".internal") || topic.ends_with("-internal")
}

/// Where the flow's quarantine is.
pub(super) fn quarantine(reader: &mut FlowReader<'_>) -> QuarantineConfig {
    const SIDES: [(&str, QuarantineSide); 2] =
        [("source", QuarantineSide::Source), ("target", QuarantineSide::Target)];
    let layer = Layer::Option;
    let topic = reader.parsed(layer, "tidegate.quarantine.topic", |value| {
        let topic = TopicName::parse(values::trim(value)).map_err(|illegal| illegal.to_string())?;
        if is_left_by_flows(topic.as_str()) {
            Ok(topic.to_string())
        } else {
            Err(QUARANTINE_COPIED.to_owned())
        }
    });
    QuarantineConfig {
        topic: topic.unwrap_or_else(|| format!("tidegate-quarantine.{}.internal", reader.flow.target)),
        side: reader.word(layer, "tidegate.quarantine.side", &SIDES, QuarantineSide::Source),
        replication_factor: reader.replication_factor(layer, "tidegate.quarantine.replication.factor", -1),
    }
}

/// The naming plugin of the file as a plugin with the reserved name.
pub(super) fn naming_module(module: &NamingModule) -> PluginModule {
    match module {
        NamingModule::DefaultPolicy => PluginModule::Builtin("default-policy".to_owned()),
        NamingModule::IdentityPolicy => PluginModule::Builtin("identity-policy".to_owned()),
        NamingModule::File(path) => PluginModule::File(path.clone()),
    }
}

/// Says of the groups' lists what they do by now.
pub(super) fn judge_groups(reader: &mut FlowReader<'_>) {
    for name in ["groups", "groups.exclude"] {
        if let Some(found) = reader.find(Layer::Option, name) {
            let note = "`tidegate plan` shows which groups they choose; offsets of groups are not synced yet";
            reader.settings.judge(&found.key, Fate::Mapped, note);
        }
    }
}
