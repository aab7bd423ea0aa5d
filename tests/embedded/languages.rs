//! The same small filter in C, JavaScript and Python, each in a flow of its own plugin: what a host may take for granted of a
//! component is what these prove, since no SDK of ours made them.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use tidegate_tests::examples::{Language, built, why_not};
use tidegate_tests::producer::produce_contents;
use tidegate_tests::record::Content;
use tidegate_tests::skip::skipped;
use tidegate_tests::{FlowFile, Isolation, ProducerOptions, Tidegate, end_offsets, eventually, read_all};

use super::Pair;
use crate::scenario::{Scenario, report, stops};

const LANGUAGES: [Language; 3] = [Language::C, Language::JavaScript, Language::Python];
/// What the records of a topic need until they are there. Compiling CPython takes 13 s of an idle core, once.
const COPY_DEADLINE: Duration = Duration::from_secs(300);
/// Of `plugin test`, which compiles too if nobody did before.
const TEST_DEADLINE: Duration = Duration::from_secs(300);
/// Interpreters need more than the defaults. Generous, for machines that have other things to do.
const LIMITS: [(&str, &str); 2] = [("deadline.ms", "20000"), ("memory.mb", "256")];
/// The cases that a new plugin in these languages starts with.
const CASES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../host/src/author/templates/other/filter/fixtures");
/// Of `plugin new` and `plugin build`.
const BUILD_DEADLINE: Duration = Duration::from_secs(300);
/// What a build fetches; new projects borrow it from the example.
const TOOLS: [&str; 2] = ["node_modules", "build/venv"];
const TIME_MS: i64 = 1_700_000_000_000;
const PARTITION_COUNT: usize = 2;

/// The examples that can be built here. What can't fails the test with CI=true, else it is told.
async fn examples() -> Vec<(Language, std::path::PathBuf)> {
    let mut examples = Vec::new();
    for language in LANGUAGES {
        match why_not(language) {
            Some(why) => skipped(&format!("{}: {why}", language.name())),
            None => examples.push((language, built(language).await.unwrap())),
        }
    }
    examples
}

/// Compiled modules are kept beside the examples: they change as rarely.
fn module_cache(component: &Path) -> String {
    component.ancestors().nth(2).unwrap().join("modules").to_str().unwrap().to_owned()
}

/// Records and whether they leave: by the first header `region`, and by nothing else.
fn records() -> Vec<(Content, bool)> {
    type Headers<'a> = &'a [(&'a str, Option<&'a str>)];
    let shapes: [(Option<&str>, Headers<'_>, bool); 12] = [
        (Some("elsewhere"), &[("region", Some("us"))], false),
        (Some("nowhere"), &[], false),
        (Some("null region"), &[("region", None)], false),
        (Some("empty region"), &[("region", Some(""))], false),
        (None, &[("region", Some("eu"))], true),
        (Some(""), &[("trace", None), ("region", Some("eu")), ("trace", Some("ö\u{1f30a}"))], true),
        (Some("the first counts"), &[("region", Some("eu")), ("region", Some("us"))], true),
        (Some("the first counts"), &[("region", Some("us")), ("region", Some("eu"))], false),
        (Some("the first counts"), &[("region", None), ("region", Some("eu"))], false),
        (Some("longer"), &[("region", Some("eu-west"))], false),
        (Some("other case"), &[("Region", Some("eu")), ("region", Some("EU"))], false),
        // The last leaves: when it has arrived, nothing can still come.
        (Some("plain"), &[("region", Some("eu"))], true),
    ];
    let bytes = |text: &str| text.as_bytes().to_vec();
    let record = |index: usize| {
        let (value, headers, leaves) = shapes[index / PARTITION_COUNT % shapes.len()];
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(bytes))).collect();
        let key = (!index.is_multiple_of(5)).then(|| bytes(&format!("k{index}")));
        let content = Content { key, value: value.map(bytes), headers, timestamp_ms: TIME_MS + index as i64 };
        (content, leaves)
    };
    (0..shapes.len() * PARTITION_COUNT * 50).map(record).collect()
}

fn with_plugin(file: FlowFile, language: Language, component: &Path) -> FlowFile {
    let key = |what: &str| format!("tidegate.plugin.{}.{what}", language.name());
    let file = file.set(&key("module"), component.to_str().unwrap()).set(&key("topics"), language.name());
    LIMITS.iter().fold(file, |file, (what, value)| file.set(&key(what), value))
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_in_c_javascript_and_python_let_exactly_their_region_pass() {
    let examples = examples().await;
    let Some((_, component)) = examples.first() else { return };
    let names: Vec<&str> = examples.iter().map(|(language, _)| language.name()).collect();
    let pair = Pair::start(1).await;
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.set("replication.factor", "-1").set("tidegate.cache.dir", &module_cache(component));
        let file = file.topics(&names.join(",")).set("tidegate.plugins", &names.join(","));
        examples.iter().fold(file, |file, (language, component)| with_plugin(file, *language, component))
    });
    let records = records();
    let dealt = || records.iter().enumerate().map(|(index, record)| (index % PARTITION_COUNT, record));
    for name in &names {
        pair.source.create_topic(name, PARTITION_COUNT as i32, &[]).unwrap();
        let contents = dealt().map(|(partition, (content, _))| (partition as i32, content.clone())).collect();
        produce_contents(&pair.source, name, contents, &ProducerOptions::default()).await.unwrap();
    }
    let mut process = scenario.run();
    for name in names {
        let begin = std::time::Instant::now();
        let expected: Vec<Vec<&Content>> = (0..PARTITION_COUNT)
            .map(|own| {
                let leaving = dealt().filter(|(partition, (_, leaves))| *partition == own && *leaves);
                leaving.map(|(_, (content, _))| content).collect()
            })
            .collect();
        let target_topic = format!("mem.{name}");
        arrives(&scenario, &mut process, &target_topic, expected.iter().map(Vec::len).sum()).await;
        let copied = read_all(&pair.target, &target_topic, Isolation::ReadUncommitted).await.unwrap();
        for (partition, expected) in expected.iter().enumerate() {
            let copied = copied.iter().filter(|record| record.partition == partition as i32);
            let contents: Vec<&Content> = copied.map(|record| &record.content).collect();
            assert_eq!(contents, *expected, "{name}, partition {partition}");
        }
        report(&format!("{name}: all there after {:.1} s", begin.elapsed().as_secs_f64()));
    }
    let calls = process.metric("tidegate_plugin_calls_total").await.unwrap();
    let faults = process.metric("tidegate_plugin_faults_total").await.unwrap();
    assert!(calls > 0.0 && faults == 0.0, "{calls} calls, {faults} faults; {}", process.log_tail());
    stops(process).await;
}

/// Waits until at least so many records are there.
async fn arrives(scenario: &Scenario<'_>, process: &mut Tidegate, target_topic: &str, count: usize) {
    let what = format!("{count} records in {target_topic}");
    let arrived = eventually(&what, COPY_DEADLINE, async || {
        process.still_runs()?;
        let found: i64 = end_offsets(scenario.target, target_topic).await?.values().sum();
        ensure!(found >= count as i64, "{found} are there");
        Ok(())
    });
    if let Err(error) = arrived.await {
        panic!("{error:#}\n{}", process.log_tail());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn their_settings_are_read_or_refused_in_words() {
    for (language, component) in examples().await {
        let name = language.name();
        let module = component.to_str().unwrap();
        let cache = module_cache(&component);
        let environment = [("TIDEGATE_CACHE_DIR", cache.as_str())];
        let limits = ["--deadline-ms", "20000", "--memory-mb", "256"];
        let run = async |arguments: &[&str]| {
            let arguments = [&["plugin"], arguments, &limits].concat();
            Tidegate::command_with(&arguments, &environment, TEST_DEADLINE).await.unwrap()
        };
        let tested = run(&["test", module, "--fixtures", CASES]).await;
        assert_eq!(tested.code, 0, "{name}: {}", tested.output);
        assert!(tested.output.contains("3 passed, 0 failed\n"), "{name}: {}", tested.output);
        let inspected = run(&["inspect", module, "--settings", r#"{"region": "us"}"#]).await;
        assert!(inspected.output.contains("\nneeds     header region\n"), "{name}: {}", inspected.output);
        let refused = run(&["inspect", module, "--settings", r#"{"region": 7}"#]).await;
        assert_eq!(refused.code, 65, "{name}: {}", refused.output);
        assert!(refused.output.contains("must be"), "{name}: {}", refused.output);
    }
}

/// The kinds of new projects beside the filter, with the hook and the count of cases of each.
fn other_kinds(language: Language) -> &'static [(&'static str, &'static str, usize)] {
    const KINDS: [(&str, &str, usize); 3] =
        [("rename", "topic-naming", 3), ("headers", "records", 4), ("acl", "acl-mapping", 2)];
    match language {
        // Each takes half a minute to compile.
        Language::Python => &KINDS[..1],
        Language::C | Language::JavaScript => &KINDS,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_projects_of_the_other_kinds_build_and_pass_at_once() {
    let parent = tempfile::tempdir().unwrap();
    for (language, component) in examples().await {
        let example = component.parent().unwrap();
        let cache = module_cache(&component);
        let environment = [("TIDEGATE_CACHE_DIR", cache.as_str())];
        let run = async |arguments: &[&str]| {
            let arguments = [&["plugin"], arguments].concat();
            let finished = Tidegate::command_with(&arguments, &environment, BUILD_DEADLINE).await.unwrap();
            assert_eq!(finished.code, 0, "{arguments:?}: {}", finished.output);
            finished.output
        };
        for (kind, hook, case_count) in other_kinds(language) {
            let name = format!("{}-{kind}", language.name());
            let folder = parent.path().join(&name);
            let path = folder.to_str().unwrap();
            let place = parent.path().to_str().unwrap();
            run(&["new", &name, "--kind", kind, "--lang", language.name(), "--path", place]).await;
            for tool in TOOLS.iter().filter(|tool| example.join(tool).is_dir()) {
                let link = folder.join(tool);
                std::fs::create_dir_all(link.parent().unwrap()).unwrap();
                symlink(example.join(tool), link).unwrap();
            }
            let built = run(&["build", "--path", path]).await;
            assert!(built.contains(&format!("hooks      {hook}\n")), "{name}: {built}");
            let limits = ["--deadline-ms", "20000", "--memory-mb", "256"];
            let tested = run(&[&["test", "--path", path][..], &limits].concat()).await;
            assert!(tested.contains(&format!("{case_count} passed, 0 failed\n")), "{name}: {tested}");
        }
    }
}
