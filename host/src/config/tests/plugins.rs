//! Plugins of a flow: what is read, and what is said of it.

use super::*;

fn load_in(folder: &Path, extra: &str) -> Result<Loaded, Box<LoadError>> {
    load_bytes("mm2.properties", format!("{BASE}{SILENCED}{extra}").as_bytes(), folder, &options())
}

fn list(expressions: &[&str]) -> NameList {
    NameList::parse(expressions).unwrap()
}

#[test]
fn a_flow_without_plugins_has_its_quarantine_all_the_same() {
    let flow = flow_of("");
    assert_eq!(flow.plugins, []);
    let expected = QuarantineConfig {
        topic: "tidegate-quarantine.B.internal".into(),
        side: QuarantineSide::Source,
        replication_factor: -1,
    };
    assert_eq!(flow.quarantine, expected);
    let own = "tidegate.quarantine.topic=bad.internal\nA->B.tidegate.quarantine.side=TARGET\ntidegate.quarantine.replication.factor=3\n";
    let expected = QuarantineConfig {
        topic: "bad.internal".into(),
        side: QuarantineSide::Target,
        replication_factor: 3,
    };
    assert_eq!(flow_of(own).quarantine, expected);
}

#[test]
fn a_quarantine_topic_that_flows_would_copy_is_refused() {
    for name in ["dlq", "internal", "a.internal.b"] {
        let refused =
            load_in(Path::new("."), &format!("A->B.tidegate.quarantine.topic={name}\n")).unwrap_err();
        let text = refused.to_string();
        let wanted = "must end with .internal or -internal: flows copy topics of other names, and with them what is kept \
                      from the target";
        assert!(text.contains(wanted), "{text}");
    }
    for name in ["dlq.internal", "dlq-internal"] {
        assert_eq!(flow_of(&format!("tidegate.quarantine.topic={name}\n")).quarantine.topic, name);
    }
}

#[test]
fn plugins_are_read_in_the_lists_order_and_the_flow_beats_the_top_level() {
    let folder = tempfile::tempdir().unwrap();
    let digest = "AB".repeat(32);
    std::fs::write(folder.path().join("mask.wasm"), "").unwrap();
    std::fs::write(folder.path().join("mask.json"), " {\"fields\":[\n\"/a\"]}\n").unwrap();
    let loaded = load_in(
        folder.path(),
        &format!(
            "tidegate.plugins=region\nA->B.tidegate.plugins=mask, region\n\
             tidegate.plugin.mask.module=mask.wasm\nA->B.tidegate.plugin.mask.settings.file=mask.json\n\
             tidegate.plugin.mask.settings={{}}\ntidegate.plugin.mask.sha256={digest}\ntidegate.plugin.mask.topics=a, b\n\
             A->B.tidegate.plugin.mask.topics.exclude=b\ntidegate.plugin.mask.on.fault=Quarantine\n\
             tidegate.plugin.mask.deadline.ms=7\ntidegate.plugin.mask.memory.mb=2\n\
             tidegate.plugin.region.module=builtin:region-filter\n"
        ),
    )
    .unwrap();
    let mask = PluginConfig {
        name: "mask".into(),
        module: PluginModule::File(folder.path().join("mask.wasm")),
        sha256: Some(digest.to_lowercase()),
        settings_json: "{\"fields\":[\n\"/a\"]}".into(),
        topics: TopicFilter { include: list(&["a", "b"]), exclude: list(&["b"]) },
        on_fault: OnFault::Quarantine,
        deadline: Duration::from_millis(7),
        memory_bytes: 2 * 1_048_576,
    };
    let region = PluginConfig {
        name: "region".into(),
        module: PluginModule::Builtin("region-filter".into()),
        sha256: None,
        settings_json: "{}".into(),
        topics: TopicFilter::everything(),
        on_fault: OnFault::Pause,
        deadline: Duration::from_millis(50),
        memory_bytes: 64 * 1_048_576,
    };
    assert_eq!(loaded.config.flows[0].plugins, [mask, region]);
    assert_eq!(loaded.warnings, []);
    let rows = loaded.report.rows.iter().skip(9);
    let fates: Vec<String> =
        rows.map(|row| format!("{} = {}: {} {}", row.key, row.value, row.fate, row.note)).collect();
    assert_eq!(fates[0], "tidegate.plugins = region: ignored A->B.tidegate.plugins on line 11 is stronger");
    assert_eq!(fates[2], "tidegate.plugin.mask.module = mask.wasm: honoured for A->B");
    assert_eq!(fates[3], "A->B.tidegate.plugin.mask.settings.file = mask.json: honoured ");
    assert_eq!(
        fates[4],
        "tidegate.plugin.mask.settings = {…}: ignored A->B.tidegate.plugin.mask.settings.file on line 13 is stronger"
    );
}

#[test]
fn all_that_is_wrong_with_plugins_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("broken.json"), "{\n\"pin\": hunter2}").unwrap();
    let error = load_in(
        folder.path(),
        "tidegate.plugins=region, mask,, naming, mask, a b, gone, two\n\
         tidegate.plugin.regoin.module=builtin:region-filter\n\
         tidegate.plugin.mask.module=builtin:readct\ntidegate.plugin.mask.sha256=abc\n\
         tidegate.plugin.mask.settings=[\"hunter2\"]\ntidegate.plugin.mask.on.fault=quarantain\n\
         tidegate.plugin.mask.deadline.ms=0\ntidegate.plugin.mask.memory.mb=hunter2\n\
         tidegate.plugin.mask.topics=a[\ntidegate.plugin.gone.module=gone.wasm\n\
         tidegate.plugin.gone.settings.file=broken.json\ntidegate.plugin.gone.settins={}\n\
         tidegate.plugin.two.module=builtin:rename\ntidegate.plugin.two.settings={}\n\
         tidegate.plugin.two.settings.file=broken.json\nA->B.tidegate.plugin=x\n",
    )
    .unwrap_err();
    let said = error.to_string();
    let said: Vec<&str> = said.lines().skip(1).map(str::trim).collect();
    let expected = [
        "line 10: tidegate.plugins = \"region, mask,, naming, mask, a b, gone, two\": has an empty name; write the names with one \
         comma between them",
        "line 12: tidegate.plugin.mask.module = \"builtin:readct\": no such built-in plugin; there are builtin:acl-map, \
         builtin:default-policy, builtin:header-rules, builtin:identity-policy, builtin:redact, builtin:region-filter, \
         builtin:rename; did you mean \"builtin:redact\"?",
        "line 13: tidegate.plugin.mask.sha256 = \"abc\": wants the module's SHA-256 in 64 hexadecimal digits, as sha256sum prints \
         it",
        "line 14: tidegate.plugin.mask.settings = \"{…}\": wants one JSON object, as in {\"prefix\":\"eu\"}",
        "line 15: tidegate.plugin.mask.on.fault = \"quarantain\": wants one of pause, pass, drop, quarantine; did you mean \
         \"quarantine\"?",
        "line 16: tidegate.plugin.mask.deadline.ms = \"0\": wants a whole number from 1 to 60000",
        "line 17: tidegate.plugin.mask.memory.mb = \"hunter2\": wants a whole number from 1 to 4096",
        "line 18: tidegate.plugin.mask.topics = \"a[\": a '[' is not closed; write \\[ for the sign, in \"a[\" at character 2",
        "line 19: tidegate.plugin.gone.module = \"gone.wasm\": there is no such file; a relative path starts at the folder of the \
         properties file",
        "line 20: tidegate.plugin.gone.settings.file = \"broken.json\": is no JSON at line 2, character 8; wants one object",
        "line 21: tidegate.plugin.gone.settins = \"(hidden)\": unknown key of a plugin; did you mean \
         \"tidegate.plugin.gone.settings\"?",
        "line 24: tidegate.plugin.two.settings.file = \"broken.json\": tidegate.plugin.two.settings gives the settings already; \
         remove one of the two",
        "line 25: A->B.tidegate.plugin = \"(hidden)\": unknown key of Tidegate; did you mean \"A->B.tidegate.plugins\"?",
        "tidegate.plugin.region.module: is missing, and tidegate.plugins lists \"region\"; name the plugin's file, or \
         builtin:NAME for one that comes with Tidegate; did you mean \"tidegate.plugin.regoin.module\"?",
    ];
    assert_eq!(said, expected);
    let warnings: Vec<String> = error.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "line 11: tidegate.plugin.regoin.module = \"builtin:region-filter\": no flow lists the plugin \"regoin\" in \
          tidegate.plugins, so nothing is done with it; did you mean \"tidegate.plugin.region.module\"?"
        ]
    );
}

#[test]
fn each_bad_name_of_the_list_has_its_reason() {
    let module = "tidegate.plugin.mask.module=builtin:redact\n";
    for (list, expected) in [
        (
            "naming, mask",
            "\"naming\" is what the plugin of replication.policy.class and tidegate.naming.module is called; choose another name",
        ),
        ("mask, mask", "lists \"mask\" twice; a plugin has one place in the chain"),
        ("a.b, mask", "\"a.b\" is no name for a plugin; it wants 1 to 64 letters, digits, '_' and '-'"),
    ] {
        let said = problems_of(&format!("tidegate.plugins={list}\n{module}"));
        assert_eq!(said, format!("  line 6: tidegate.plugins = \"{list}\": {expected}"));
    }
    let many: Vec<String> = (0..33).map(|number| format!("p{number}")).collect();
    let modules: String =
        many.iter().map(|name| format!("tidegate.plugin.{name}.module=builtin:redact\n")).collect();
    let said = problems_of(&format!("tidegate.plugins={}\n{modules}", many.join(",")));
    assert!(said.ends_with("lists 33 plugins, and a flow has at most 32"), "{said}");
}

#[test]
fn a_plugin_that_no_flow_lists_is_told_once() {
    let warnings = warnings_of("tidegate.plugin.mask.module=x\ntidegate.plugin.mask.topics=x\n");
    let text = "no flow lists the plugin \"mask\" in tidegate.plugins, so nothing is done with it";
    assert_eq!(warnings, [format!("line 6: tidegate.plugin.mask.module = \"x\": {text}")]);
    let fates = fates_of("tidegate.plugin.mask.module=x\ntidegate.plugin.mask.topics=x\n");
    assert_eq!(fates[1], format!("tidegate.plugin.mask.topics: ignored {text}"));
}

#[test]
fn settings_of_a_plugin_are_in_no_print() {
    let loaded = read(&format!(
        "{BASE}{SILENCED}tidegate.plugins=mask\ntidegate.plugin.mask.module=builtin:redact\n\
         A->B.tidegate.plugin.mask.settings={{\"salt\":\"hunter2\"}}\n"
    ));
    assert_eq!(loaded.config.flows[0].plugins[0].settings_json, "{\"salt\":\"hunter2\"}");
    let said = format!("{loaded:?}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn an_identity_plugin_in_a_circle_is_refused_before_anything_runs() {
    let said = problems_of(
        "B->A.enabled=true\ntidegate.plugins=names\ntidegate.plugin.names.module=builtin:identity-policy\n",
    );
    assert!(said.contains("records would run in a circle, A->B->A"), "{said}");
}

#[test]
fn the_files_naming_plugin_has_a_reserved_name() {
    let flow = flow_of("replication.policy.class=IdentityReplicationPolicy\n");
    let plugin = flow.naming.as_plugin();
    assert_eq!(
        (plugin.name.as_str(), plugin.module.to_string().as_str()),
        ("naming", "builtin:identity-policy")
    );
    assert!(flow.naming.is_explicit);
    assert!(!flow_of("").naming.is_explicit);
}

#[test]
fn groups_go_by_mirror_makers_lists() {
    let flow = flow_of("");
    for (group, expected) in
        [("payments", true), ("console-consumer-7", false), ("connect-x", false), ("__x", false)]
    {
        assert_eq!(flow.groups.accepts(group), Ok(expected), "{group}");
    }
    assert_eq!(flow_of("A->B.groups=a, b\ngroups.exclude=b\n").groups.accepts("b"), Ok(false));
}
