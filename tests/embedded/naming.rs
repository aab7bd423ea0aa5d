//! A naming plugin of one's own, from the file on disk to the names on the target; and plugins that can't be used.

use std::fs;
use std::time::Duration;

use anyhow::ensure;
use tidegate_tests::{FlowFile, Tidegate, eventually};

use super::guests::{importing, rename, unruly};
use super::{Pair, TOPIC};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

/// A command that only has to refuse something ends within this time, in seconds.
const REFUSAL_S_MAX: u64 = 60;

/// A flow whose naming plugin lies in `plugins/own.wasm` beside the file, and is named by that relative path.
fn scenario_with<'a>(
    pair: &'a Pair,
    module: &[u8],
    change: impl FnOnce(FlowFile) -> FlowFile,
) -> Scenario<'a> {
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.set("replication.factor", "-1").set("tidegate.naming.module", "plugins/own.wasm");
        // So long because the machine may be busy with other tests.
        change(file.set("tidegate.naming.deadline.ms", "10000"))
    });
    let folder = scenario.file.parent().unwrap().join("plugins");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("own.wasm"), module).unwrap();
    scenario
}

/// Runs the file to its end and gives the exit code and what was said.
async fn refusal(scenario: &Scenario<'_>) -> (i32, String) {
    let file = scenario.file.display().to_string();
    let deadline = Duration::from_secs(REFUSAL_S_MAX);
    let finished = Tidegate::command(&["run", &file], deadline).await.unwrap();
    let said = finished.output.lines().rev().find(|line| line.starts_with("tidegate: ")).unwrap_or_default();
    let folder = format!("{}/", scenario.file.parent().unwrap().display());
    (finished.code, said.replace(&folder, ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_copied_under_the_names_that_ones_own_plugin_gives() {
    let pair = Pair::start(1).await;
    let scenario = scenario_with(&pair, &rename(), |file| {
        file.topics(TOPIC).set("tidegate.naming.settings", r#"{"prefix":"dr-"}"#)
    });
    pair.produce(0..500).await;
    let mut process = scenario.run();
    scenario.arrives(&mut process, TOPIC, "dr-orders").await;
    pair.produce(500..800).await;
    let compared = scenario.arrives(&mut process, TOPIC, "dr-orders").await;
    assert_eq!(compared.record_count, 800);
    stops(process).await;
    for other in [TOPIC, "mem.orders"] {
        assert!(pair.target.partition(other, 0).is_none(), "{other} is on the target, too");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_refuses_its_topic_and_no_other() {
    const REFUSED: &str = "topic \\\"trap\\\" of cluster \\\"mem\\\" is not copied: naming plugin \\\"unruly\\\" failed: \
        plugin \\\"naming\\\" (unruly 0.1.0) broke down in to-target(\\\"trap\\\"): wasm trap: wasm `unreachable` instruction \
        executed; it is asked again soon";
    let pair = Pair::start(1).await;
    let scenario = scenario_with(&pair, &unruly(), |file| file.topics("orders, trap"));
    pair.produce(0..500).await;
    let mut process = scenario.run();
    scenario.arrives(&mut process, TOPIC, TOPIC).await;
    // The flow runs when the topic comes that the plugin breaks down on.
    pair.source.create_topic("trap", 1, &[]).unwrap();
    let told = eventually("the fault to be told", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let status = process.http_get("/api/v1/status").await?;
        ensure!(status.contains(REFUSED), "the status is {status}");
        Ok(())
    });
    told.await.unwrap();
    pair.produce(500..800).await;
    let compared = scenario.arrives(&mut process, TOPIC, TOPIC).await;
    assert_eq!(compared.record_count, 800);
    assert!(pair.target.partition("trap", 0).is_none(), "trap is on the target");
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_wants_more_than_the_host_is_refused_by_name() {
    let pair = Pair::start(1).await;
    let module = importing(&["tidegate:plugin/host@0.1.0", "acme:secrets/store@1.0.0"]);
    let scenario = scenario_with(&pair, &module, |file| file);
    assert_eq!(
        refusal(&scenario).await,
        (
            78,
            "tidegate: could not load the naming plugin of flow mem->target: plugin plugins/own.wasm imports \
             acme:secrets/store@1.0.0, but a plugin gets tidegate:plugin/host@0.1 and nothing else"
                .to_owned()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_the_plugin_objects_to_are_told() {
    let pair = Pair::start(1).await;
    let scenario =
        scenario_with(&pair, &rename(), |file| file.set("tidegate.naming.settings", r#"{"suffix":"-x"}"#));
    assert_eq!(
        refusal(&scenario).await,
        (
            78,
            "tidegate: could not load the naming plugin of flow mem->target: plugin \"naming\" (rename 0.1.0) can't work with its \
             settings: /prefix: must be set, and not empty; /suffix: unknown field; there is: prefix"
                .to_owned()
        )
    );
}
