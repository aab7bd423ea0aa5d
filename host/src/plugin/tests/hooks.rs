//! Plugins of a flow's list: all hooks of one module, its settings, its digest, its versions.

use std::path::Path;
use std::sync::LazyLock;

use super::*;
use crate::config::{NameList, OnFault, PluginConfig, TopicFilter};

/// Guests of tests/guests, built in one go: hooks, skew-later, skew-calling, skew-next, skew-record.
static GUESTS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target_folder = Path::new(env!("OUT_DIR")).join("plugins");
    let packages = ["hooks", "skew-later", "skew-calling", "skew-next", "skew-record"];
    let packages: Vec<String> = packages.iter().map(|name| format!("tidegate-{name}-guest")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    ComponentBuild { workspace, target_folder }.run(&packages).unwrap_or_else(|problem| panic!("{problem}"))
});
const HOOKS: usize = 0;

fn config(guest: usize, settings_json: &str) -> PluginConfig {
    PluginConfig {
        name: "mine".to_owned(),
        module: ModuleSource::File(GUESTS[guest].clone()),
        sha256: None,
        settings_json: settings_json.to_owned(),
        topics: TopicFilter {
            include: NameList::parse(&[".*"]).unwrap(),
            exclude: NameList::parse::<&str>(&[]).unwrap(),
        },
        on_fault: OnFault::Pause,
        deadline: PATIENT.deadline,
        memory_bytes: PATIENT.memory_bytes,
    }
}

fn load(config: &PluginConfig) -> Result<LoadedPlugin, String> {
    LoadedPlugin::load(&ENGINE, config, &link()).map_err(|error| without_folder(&error.to_string()))
}

fn with_mode(mode: &str) -> LoadedPlugin {
    load(&config(HOOKS, &format!(r#"{{"mode":"{mode}"}}"#))).unwrap()
}

fn without_folder(text: &str) -> String {
    let folder = GUESTS[HOOKS].parent().unwrap().display().to_string();
    text.replace(&format!("{folder}/"), "")
}

fn rule(principal: &str) -> AclRule {
    AclRule {
        kind: ResourceKind::Topic,
        name: "orders".to_owned(),
        pattern: Pattern::Literal,
        principal: principal.to_owned(),
        host: "*".to_owned(),
        operation: "READ".to_owned(),
        permission: Permission::Allow,
    }
}

#[test]
fn all_hooks_of_a_module_are_found_and_asked() {
    let plugin = load(&config(HOOKS, "{}")).unwrap();
    assert_eq!(plugin.hooks.to_string(), "topic-naming, selection, acl-mapping, records");
    assert_eq!(plugin.about.name, "hooks");
    assert_eq!(plugin.about.size_bytes as u64, fs::metadata(&GUESTS[HOOKS]).unwrap().len());
    let needs = plugin.needs.clone().unwrap();
    assert_eq!((needs.key, needs.value, needs.headers, needs.timestamps), (true, false, true, false));
    assert_eq!(needs.header_names, ["region"]);

    assert_eq!(plugin.naming().to_target("orders"), Ok(Ok("orders".to_owned())));
    let topic = |name: &str, partition_count: u32| SelectionTopic {
        name: name.to_owned(),
        partition_count,
        ..SelectionTopic::default()
    };
    let kept = SelectionTopic { settings: vec![("keep".to_owned(), "1".to_owned())], ..topic("c", 1) };
    let internal = SelectionTopic { is_internal: true, ..topic("d", 9) };
    let topics = [topic("a", 2), topic("b", 1), kept, internal];
    assert_eq!(plugin.selection().topics(&topics), Ok(vec![true, false, true, false]));
    // More than one call takes.
    let groups: Vec<String> =
        (0..1201).map(|index| format!("{}{index}", if index % 2 == 0 { 'a' } else { 'b' })).collect();
    let chosen = plugin.selection().groups(&groups).unwrap();
    assert!(
        chosen.len() == 1201
            && chosen.iter().enumerate().all(|(index, is_chosen)| *is_chosen == (index % 2 == 0))
    );
    assert_eq!(
        plugin.acl_mapping().map(&[rule("User:gone"), rule("User:two"), rule("User:x")]),
        Ok(vec![vec![], vec![rule("User:one"), rule("User:other")], vec![rule("User:x")]])
    );
    assert_eq!(plugin.stats.snapshot().calls, 6);
}

#[test]
fn records_cross_as_words_and_memory_is_told() {
    let plugin = with_mode("grow");
    let mut instance = plugin.start_records().unwrap();
    let start_bytes = instance.memory_bytes();
    let words = BatchWords {
        topic: "orders",
        partition: 3,
        base_offset: 100,
        count: 2,
        data: b"keepdrop",
        rec_words: RECORD_WORDS,
        recs: &[0, 3, 0, 4, 0, NONE_LENGTH, 0, 0, 1, 3, 4, 4, 0, NONE_LENGTH, 0, 0],
        headers: &[],
        timestamps: &[],
    };

    let answer = instance.process(&words).unwrap();

    assert_eq!(answer.ops, [1, 0, 0, 0, 0, 0]);
    assert!(instance.memory_bytes() >= start_bytes + (4 << 20), "{start_bytes} {}", instance.memory_bytes());
    assert_eq!(plugin.stats.snapshot().memory_bytes, instance.memory_bytes() as u64);
    drop(instance);
    assert_eq!(plugin.stats.snapshot().memory_bytes, 0);
}

#[test]
fn what_a_plugin_declines_is_a_fault_and_not_asked_again() {
    let plugin = with_mode("decline");
    let topics = vec![SelectionTopic::default()];
    assert_eq!(
        plugin.selection().topics(&topics).unwrap_err().to_string(),
        "plugin \"mine\" (hooks 0.1.0) refused topics(1 of them): not today"
    );
    assert_eq!(
        plugin.acl_mapping().map(&[rule("User:x")]).unwrap_err().to_string(),
        "plugin \"mine\" (hooks 0.1.0) refused map-acls(1 of them): no rules"
    );
    let stats = plugin.stats.snapshot();
    assert_eq!((stats.calls, stats.faults), (2, [0, 0, 0, 0, 2]));
}

#[test]
fn answers_are_counted_and_bounded() {
    let check = |mode: &str, message: &str| {
        let fault = with_mode(mode).acl_mapping().map(&[rule("User:x")]).unwrap_err();
        assert_eq!(fault.kind(), FaultKind::BadAnswer);
        assert_eq!(
            fault.to_string(),
            format!("plugin \"mine\" (hooks 0.1.0) gave no usable answer to map-acls(1 of them): {message}")
        );
    };
    check("many", "65 rules out of one, at most 64");
    check("long", "a text of 5000 bytes in a rule");
    let topics = vec![SelectionTopic::default(); 3];
    assert_eq!(
        with_mode("few").selection().topics(&topics).unwrap_err().to_string(),
        "plugin \"mine\" (hooks 0.1.0) gave no usable answer to topics(3 of them): 1 answers"
    );
    let plugin = with_mode("panic");
    assert_eq!(plugin.selection().topics(&topics).unwrap_err().kind(), FaultKind::Trap);
    assert_eq!(plugin.stats.snapshot().faults, [0, 0, 2, 0, 0], "asked twice");
}

#[test]
fn a_hook_that_is_not_there_is_a_fault_and_none_at_all_a_refusal() {
    let naming =
        PluginConfig { module: ModuleSource::Builtin("identity-policy".to_owned()), ..config(HOOKS, "{}") };
    let plugin = load(&naming).unwrap();
    assert_eq!(plugin.hooks, Hooks { topic_naming: true, ..Hooks::default() });
    assert_eq!(
        plugin.selection().groups(&["a".to_owned()]).unwrap_err().to_string(),
        "plugin \"mine\" (identity-policy 0.1.0) gave no usable answer to groups(1 of them): it exports no selection"
    );
    let nameless = PluginConfig { module: ModuleSource::Builtin("nothing".to_owned()), ..naming };
    let refusal = load(&nameless).err().unwrap();
    assert!(
        refusal.starts_with("tidegate carries no plugin builtin:nothing; it carries builtin:"),
        "{refusal}"
    );
    assert!(refusal.contains("builtin:default-policy, "), "{refusal}");
}

#[test]
fn a_pinned_digest_is_compared_before_anything_else() {
    let found = digest(&fs::read(&GUESTS[HOOKS]).unwrap());
    let pinned = |sha256: String| PluginConfig { sha256: Some(sha256), ..config(HOOKS, "no json") };
    assert_eq!(
        load(&pinned("ab".repeat(32))).err().unwrap(),
        format!(
            "plugin tidegate_hooks_guest.wasm is not the module that sha256 pins: wanted {}, found {found}; put that \
             module back or, if the new one is right, pin its digest",
            "ab".repeat(32)
        )
    );
    let right = PluginConfig { settings_json: "{}".to_owned(), ..pinned(found.to_uppercase()) };
    assert_eq!(load(&right).unwrap().about.digest, found);
}

#[test]
fn settings_are_checked_against_the_schema_and_never_quoted() {
    let check = |settings: &str, refusal: &str| {
        assert_eq!(load(&config(HOOKS, settings)).err().as_deref(), Some(refusal), "{settings}");
    };
    check(
        r#"{"mode":7,"salt":"S3CRET","level":"S3CRET","count":0,"extra":"S3CRET"}"#,
        "plugin \"mine\" (hooks 0.1.0) can't work with its settings: /count: must be at \
         least 1; /level: must be one of [\"low\",\"high\"]; /mode: must be string; /salt: must match ^[a-z]+$; its \
         settings: unknown field extra",
    );
    check(
        r#"{"count":"S3CRET"}"#,
        "plugin \"mine\" (hooks 0.1.0) can't work with its settings: /count: must be null or integer",
    );
    check(
        r#""S3CRET""#,
        "the settings of plugin tidegate_hooks_guest.wasm must be one JSON object: they are a string",
    );
    check(
        r#"{"salt":S3CRET}"#,
        "the settings of plugin tidegate_hooks_guest.wasm must be one JSON object: expected value at line 1 column 9",
    );
}

#[test]
fn a_module_built_against_a_later_0_1_runs_if_it_calls_nothing_new() {
    let mut naming = load(&config(1, "{}")).unwrap().naming();
    assert_eq!(naming.to_target("orders"), Ok(Ok("orders".to_owned())));
    assert_eq!(naming.counters().get("started"), Some(&2), "the trial's and this one's");
}

#[test]
fn a_module_that_calls_what_a_later_0_1_brought_is_refused() {
    assert_eq!(
        load(&config(2, "{}")).err().unwrap(),
        "plugin tidegate_skew_calling_guest.wasm does not fit tidegate:plugin@0.1: component imports instance \
         `tidegate:plugin/host@0.1.9`, but a matching implementation was not found in the linker: instance export `weigh` \
         has the wrong type: function implementation is missing; build it with tidegate-plugin 0.1.0 or run a later \
         tidegate"
    );
}

#[test]
fn a_module_built_against_0_2_is_refused() {
    assert_eq!(
        load(&config(3, "{}")).err().unwrap(),
        "plugin tidegate_skew_next_guest.wasm speaks tidegate:plugin/host@0.2.0, this host speaks tidegate:plugin@0.1; \
         build it with tidegate-plugin 0.1"
    );
}

#[test]
fn a_module_with_a_changed_record_is_refused() {
    assert_eq!(
        load(&config(4, "{}")).err().unwrap(),
        "plugin tidegate_skew_record_guest.wasm does not fit tidegate:plugin@0.1: failed to convert function to given \
         type: type mismatch with parameters: expected record of 3 fields, found 4 fields; build it with tidegate-plugin \
         0.1.0 or run a later tidegate"
    );
}
