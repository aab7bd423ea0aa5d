//! The hooks beside the records': what `tidegate plan` says of names, choices and access rules, asked of real brokers.

use std::path::Path;

use tidegate_tests::access::{KEEPS_ACCESS_RULES, add_access_rule, commit_as_group};
use tidegate_tests::{FlowFile, KafkaCluster, KafkaOptions, KafkaVersion, Tidegate, shared, topics};

use crate::component_build;
use crate::scenario::{ARRIVAL_DEADLINE, Scenario};

/// The component of guests/selective, built as its author would build it.
fn selective() -> Vec<u8> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target_folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let build = component_build::ComponentBuild { workspace, target_folder };
    let components = build.run(&["tidegate-selective-guest"]).unwrap_or_else(|problem| panic!("{problem}"));
    std::fs::read(&components[0]).unwrap()
}

/// A rename table, a selection and a mapping of access rules in one list.
fn with_plugins(file: FlowFile) -> FlowFile {
    let plugins = [
        ("names", "builtin:rename", r#"{"topics": {"shop-orders": "bestellungen"}}"#),
        ("choice", "selective.wasm", r#"{"word": "shop"}"#),
        ("acls", "builtin:acl-map", r#"{"principals": {"User:alice": "User:anna"}}"#),
    ];
    let file = file.set("tidegate.plugins", "names, choice, acls").topics(".*orders");
    plugins.into_iter().fold(file, |file, (name, module, settings)| {
        let key = |setting: &str| format!("tidegate.plugin.{name}.{setting}");
        // So long because the machine may be busy with other tests.
        let file = file.set(&key("module"), module).set(&key("deadline.ms"), "10000");
        file.set(&key("settings"), settings)
    })
}

/// What the plan shows under a title, without the indent.
fn section<'a>(plan: &'a str, title: &str) -> Vec<&'a str> {
    let lines = plan.lines().skip_while(|line| line.trim() != title).skip(1);
    lines.take_while(|line| line.starts_with("    ")).map(str::trim).collect()
}

async fn guarded_cluster() -> KafkaCluster {
    let properties = KEEPS_ACCESS_RULES.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    KafkaCluster::start(KafkaVersion::V4_3_1, KafkaOptions { properties, ..KafkaOptions::default() })
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_shows_names_choices_and_access_rules() {
    let Some(clusters) = shared::clusters().await else { return };
    let source = guarded_cluster().await;
    for topic in ["shop-orders", "lab-orders", "shop-bills"] {
        topics::create_topic(&source, topic, 1, &[]).await.unwrap();
    }
    for group in ["shop-reader", "lab-reader", "console-consumer-shop"] {
        commit_as_group(&source, group, "shop-orders").unwrap();
    }
    for arguments in [
        &["--allow-principal", "User:alice", "--operation", "READ", "--topic", "shop-orders"][..],
        &["--allow-principal", "User:bob", "--operation", "WRITE", "--topic", "shop-orders"],
        &["--deny-principal", "User:eve", "--operation", "ALL", "--topic", "shop-orders"],
        &["--allow-principal", "User:bob", "--operation", "READ", "--topic", "lab-orders"],
        &[
            "--allow-principal",
            "User:bob",
            "--operation",
            "READ",
            "--topic",
            "shop",
            "--resource-pattern-type",
            "prefixed",
        ],
    ] {
        add_access_rule(&source, arguments).unwrap();
    }
    let scenario = Scenario::new("policies", &source, clusters.target, with_plugins);
    std::fs::write(scenario.file.parent().unwrap().join("selective.wasm"), selective()).unwrap();
    let file = scenario.file.to_str().unwrap();

    let plan = Tidegate::command(&["plan", file], ARRIVAL_DEADLINE).await.unwrap();
    let said = &plan.output;
    assert_eq!(plan.code, 0, "{said}");
    assert_eq!(section(said, "names:"), ["shop-orders -> bestellungen"], "{said}");
    assert_eq!(section(said, "left out by plugins:"), ["lab-orders (by \"choice\")"], "{said}");
    let groups = section(said, "groups whose offsets would be synced once that exists:");
    assert_eq!(groups, ["shop-reader"], "{said}");
    assert_eq!(section(said, "groups left out by plugins:"), ["lab-reader (by \"choice\")"], "{said}");
    let mut rules = section(said, "access rules that would be copied once that exists:");
    rules.sort_unstable();
    assert_eq!(
        rules,
        [
            "User:alice may READ shop-orders from * -> User:anna may READ bestellungen from *",
            "User:eve may not ALL shop-orders from * -> User:eve may not ALL bestellungen from *",
        ],
        "{said}"
    );
    assert_eq!(
        section(said, "beside that:"),
        [
            "1 access rule of the source for more than one topic: only rules about single topics are copied",
            "1 access rule of the source for WRITE: only the flow writes to a copy",
            "1 access rule of the source about topics that are not copied",
        ],
        "{said}"
    );
    let json = Tidegate::command(&["plan", file, "-o", "json"], ARRIVAL_DEADLINE).await.unwrap();
    assert_eq!(json.code, 0, "{}", json.output);
    assert!(json.output.contains("\"left_out\""), "{}", json.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_an_authorizer_is_a_note() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "unguarded", 1, &[]).await.unwrap();
    let scenario =
        Scenario::new("unguarded", clusters.source, clusters.target, |file| file.topics("unguarded"));
    let plan = Tidegate::command(&["plan", scenario.file.to_str().unwrap()], ARRIVAL_DEADLINE).await.unwrap();
    assert_eq!(plan.code, 0, "{}", plan.output);
    let note = "cluster \"unguarded\" has no access rules: no authorizer guards it";
    assert_eq!(section(&plan.output, "beside that:"), [note], "{}", plan.output);
}
