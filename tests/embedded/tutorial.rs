//! The tutorial of plugin-sdk/README.md as a person would follow it: a new project builds, passes its cases, and shows
//! what it would do to real records, each by one command.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_tests::producer::produce_contents;
use tidegate_tests::record::Content;
use tidegate_tests::{Isolation, ProducerOptions, Tidegate, read_all};

use super::{Pair, TARGET_TOPIC, TOPIC};
use crate::scenario::{report, stops};

/// Of one command; a build compiles wit-bindgen the first time.
const COMMAND_DEADLINE: Duration = Duration::from_secs(180);
/// Built projects share it from test to test, so that the SDK's dependencies are compiled once.
const TARGET_FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/author");

/// A project somewhere else.
struct Project {
    parent: tempfile::TempDir,
    name: &'static str,
}

impl Project {
    fn new(name: &'static str) -> Self {
        Self { parent: tempfile::tempdir().unwrap(), name }
    }

    fn folder(&self) -> PathBuf {
        self.parent.path().join(self.name)
    }

    async fn make(&self, kind: &str) {
        let parent = self.parent.path().to_str().unwrap();
        run(&["new", self.name, "--kind", kind, "--path", parent], 0).await;
    }

    /// A command that works in the project's folder.
    async fn run(&self, command: &str, more: &[&str], code: i32) -> String {
        let folder = self.folder();
        let arguments = [&[command, "--path", folder.to_str().unwrap()], more].concat();
        run(&arguments, code).await
    }
}

/// Runs `tidegate plugin …` and gives what it printed.
async fn run(arguments: &[&str], code: i32) -> String {
    let arguments = [&["plugin"], arguments].concat();
    let environment = [("CARGO_TARGET_DIR", TARGET_FOLDER), ("TIDEGATE_CACHE_DIR", TARGET_FOLDER)];
    let finished = Tidegate::command_with(&arguments, &environment, COMMAND_DEADLINE).await.unwrap();
    assert_eq!(finished.code, code, "{arguments:?}: {}", finished.output);
    finished.output
}

fn replace(file: &Path, old: &str, new: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{} has no {old:?}", file.display());
    std::fs::write(file, text.replacen(old, new, 1)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_builds_and_passes_at_once() {
    for (name, kind, hooks) in [
        ("first-rename", "rename", "topic-naming"),
        ("first-headers", "headers", "records"),
        ("first-acl", "acl", "acl-mapping"),
    ] {
        let project = Project::new(name);
        project.make(kind).await;
        let built = project.run("build", &[], 0).await;
        assert!(built.contains(&format!("hooks      {hooks}\n")), "{built}");
        let tested = project.run("test", &[], 0).await;
        assert!(tested.contains(" passed, 0 failed\n"), "{tested}");
        let inspected = project.run("inspect", &[], 0).await;
        assert!(inspected.contains(&format!("name      {name}\n")), "{inspected}");
        assert!(inspected.contains("imports   tidegate:plugin/host@0.1.0\n"), "{inspected}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_goes_from_new_to_real_records() {
    let project = Project::new("first-filter");
    project.make("filter").await;
    project.run("build", &[], 0).await;
    project.run("test", &[], 0).await;

    let pair = Pair::start(1).await;
    let record = |region: &str, value: &str| {
        let headers = vec![("region".to_owned(), Some(region.as_bytes().to_vec()))];
        let value = Some(value.as_bytes().to_vec());
        (0, Content { key: None, value, headers, timestamp_ms: 1_700_000_000_000 })
    };
    let contents = vec![record("eu", "stays home"), record("us", "goes west"), record("eu", "too")];
    produce_contents(&pair.source, TOPIC, contents, &ProducerOptions::default()).await.unwrap();
    let bootstrap = pair.source.bootstrap_servers();
    let settings = r#"{"allow": ["eu"]}"#;
    let real = ["--from-topic", TOPIC, "--bootstrap", &bootstrap, "--settings", settings];
    let tried = project.run("test", &real, 0).await;
    assert!(tried.contains("new: 2 kept, 0 changed, 1 dropped, 0 rejected, 0 failed\n"), "{tried}");
    assert!(tried.contains("orders[0] offset 1: dropped, was kept\n"), "{tried}");
    assert!(tried.contains("  - value: \"goes west\"\n"), "{tried}");

    // The same component on both sides: nothing is different.
    let component = format!("{TARGET_FOLDER}/wasm32-unknown-unknown/release/first_filter.wasm");
    let same = project.run("test", &[&real[..], &["--against", &component]].concat(), 0).await;
    assert!(same.contains("no record fares differently\n"), "{same}");

    let cost = ["--settings", settings, "--records", "20000", "-o", "json"];
    let measured: serde_json::Value = serde_json::from_str(&project.run("bench", &cost, 0).await).unwrap();
    assert_eq!(measured["records"]["record_count"], 20_000, "{measured}");
    assert_eq!(measured["records"]["dropped_count"], 10_000, "{measured}");
    assert!(measured["records"]["ns_per_record"].as_f64().unwrap() > 0.0, "{measured}");
}

/// The four commands of the tutorial, on a flow that runs and has no plugin yet.
#[tokio::test(flavor = "multi_thread")]
async fn four_commands_lead_from_nothing_to_live_traffic_within_three_minutes() {
    const MINUTES_MAX: u64 = 3;
    let pair = Pair::start(1).await;
    let scenario = pair.scenario();
    let mut process = scenario.run();
    let record = |region: &str, number: usize| {
        let headers = vec![("region".to_owned(), Some(region.as_bytes().to_vec()))];
        let value = Some(format!("{region} {number}").into_bytes());
        (0, Content { key: None, value, headers, timestamp_ms: 1_700_000_000_000 })
    };
    let produce = async |numbers: std::ops::Range<usize>| {
        let contents =
            numbers.map(|number| record(if number % 2 == 0 { "eu" } else { "us" }, number)).collect();
        produce_contents(&pair.source, TOPIC, contents, &ProducerOptions::default()).await.unwrap();
    };
    produce(0..100).await;
    scenario.holds(&mut process, TARGET_TOPIC, 100).await;

    let started = Instant::now();
    let project = Project::new("region-only");
    project.make("filter").await;
    project.run("build", &[], 0).await;
    project.run("test", &[], 0).await;
    let component = format!("{TARGET_FOLDER}/wasm32-unknown-unknown/release/region_only.wasm");
    let http = process.http_address();
    let settings = r#"{"allow": ["eu"]}"#;
    let token = tidegate_tests::jars::cache_directory().unwrap().join("http.token");
    let swap =
        ["swap", "mem->target", "region-only", &component, "--settings", settings, "--yes", "--http", &http];
    let swapped = run(&[&swap[..], &["--token-file", token.to_str().unwrap()]].concat(), 0).await;
    let took = started.elapsed();
    assert!(swapped.contains(" is in use everywhere"), "{swapped}");
    assert!(swapped.contains("50 dropped"), "{swapped}");

    produce(100..200).await;
    scenario.holds(&mut process, TARGET_TOPIC, 150).await;
    let target = read_all(&pair.target, TARGET_TOPIC, Isolation::ReadUncommitted).await.unwrap();
    let values: Vec<String> = target
        .iter()
        .map(|record| String::from_utf8(record.content.value.clone().unwrap()).unwrap())
        .collect();
    let expected: Vec<String> = (0..200)
        .filter(|number| *number < 100 || number % 2 == 0)
        .map(|number| format!("{} {number}", if number % 2 == 0 { "eu" } else { "us" }))
        .collect();
    assert_eq!(values, expected);
    report(&format!("from new to live traffic in {took:?}"));
    assert!(took < Duration::from_secs(MINUTES_MAX * 60), "it took {took:?}");
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_fails_is_shown_and_ends_with_65() {
    let project = Project::new("failing-filter");
    project.make("filter").await;
    replace(&project.folder().join("fixtures/basic.yaml"), "expect: keep", "expect: drop");
    project.run("build", &[], 0).await;
    let report = project.folder().join("report.xml");

    let tested = project.run("test", &["--junit", report.to_str().unwrap()], 65).await;

    let expected = "  FAIL  an allowed region leaves (line 7)\n        \
                    record 1 (offset 0): expected drop, but it was kept unchanged\n";
    assert!(tested.contains(expected), "{tested}");
    assert!(tested.contains("3 passed, 1 failed\n"), "{tested}");
    let xml = std::fs::read_to_string(report).unwrap();
    assert!(xml.contains("failures=\"1\""), "{xml}");
    // Nothing is ever written over.
    let parent = project.parent.path().to_str().unwrap();
    let refused = run(&["new", "failing-filter", "--kind", "filter", "--path", parent], 64).await;
    assert!(refused.contains("is there already; nothing was written"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_would_be_refused_shows_why() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("core.wasm");
    std::fs::write(&module, b"\0asm\x01\0\0\0").unwrap();

    let inspected = run(&["inspect", module.to_str().unwrap()], 65).await;

    assert!(inspected.contains("size      8 B\n"), "{inspected}");
    assert!(inspected.contains("is a core module, not a component; build it for"), "{inspected}");
    let builtin = run(&["inspect", "builtin:default-policy"], 0).await;
    assert!(builtin.contains("hooks     topic-naming\n"), "{builtin}");
}
