//! Swaps as an operator gives them: by command, from a file, by a file that changes; on nodes that have the module, that get
//! it through the plugins topic, and that refuse it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde_json::{Value, json};
use tidegate_embedded::{ApiKey, Effect, Fault, ResponseError};
use tidegate_tests::{FlowFile, Isolation, Tidegate, eventually, read_all};

use super::guests::{rename, rogue};
use super::operator::{FLOW, commanded, flow_status, order, paused};
use super::{Pair, TARGET_TOPIC, TOPIC, append_batch};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

const PLUGINS: &str = "tidegate-plugins.mem.internal";

/// A flow with the plugin `judge`, whose module `own.wasm` lies beside the file.
fn scenario_with<'a>(pair: &'a Pair, change: impl FnOnce(FlowFile) -> FlowFile) -> Scenario<'a> {
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.topics(TOPIC).set("replication.factor", "-1").set("tidegate.cache.dir", "cache");
        let file = file.set("tidegate.plugins", "judge").set("tidegate.plugin.judge.module", "own.wasm");
        change(file.set("tidegate.plugin.judge.deadline.ms", "10000"))
    });
    fs::write(folder(&scenario).join("own.wasm"), rogue()).unwrap();
    scenario
}

fn folder<'a>(scenario: &'a Scenario<'_>) -> &'a Path {
    scenario.file.parent().unwrap()
}

fn settings(mode: &str) -> String {
    json!({ "mode": mode }).to_string()
}

/// The same module with a section behind it that nobody reads: another digest, another size.
fn padded(mut module: Vec<u8>, bytes: usize) -> Vec<u8> {
    let name = b"padding";
    let mut length = 1 + name.len() + bytes;
    module.push(0);
    while length >= 0x80 {
        module.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    module.push(length as u8);
    module.push(name.len() as u8);
    module.extend(name);
    // Something that does not compress.
    let mut state = 1_u32;
    module.extend((0..bytes).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    }));
    module
}

async fn comes(process: &mut Tidegate, what: &str, mut is_so: impl FnMut() -> anyhow::Result<()>) {
    let comes = eventually(what, ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        is_so()
    });
    if let Err(problem) = comes.await {
        panic!("{problem:#}\n{}", process.log_tail());
    }
}

async fn ends_at(pair: &Pair, process: &mut Tidegate, topic: &str, end: i64) {
    comes(process, &format!("{end} records in {topic}"), || {
        let found = pair.target.end_offset(topic, 0);
        ensure!(found == end, "there are {found}");
        Ok(())
    })
    .await;
}

async fn values(pair: &Pair, topic: &str) -> Vec<String> {
    let records = read_all(&pair.target, topic, Isolation::ReadUncommitted).await.unwrap();
    records.into_iter().map(|record| String::from_utf8(record.content.value.unwrap()).unwrap()).collect()
}

async fn list(scenario: &Scenario<'_>, process: &Tidegate) -> Value {
    let text = commanded(scenario, process, &["plugin", "list", FLOW, "-o", "json"], 0).await;
    serde_json::from_str(&text).unwrap()
}

async fn history(scenario: &Scenario<'_>, process: &Tidegate) -> Vec<Value> {
    let text = commanded(scenario, process, &["plugin", "history", FLOW, "-o", "json"], 0).await;
    serde_json::from_str(&text).unwrap()
}

/// Waits until a process owns some of the slots, and another the others.
async fn shared(first: &Tidegate, second: &Tidegate) {
    let shared = eventually("both processes to own slots", ARRIVAL_DEADLINE, async || {
        let mut counts = Vec::new();
        for process in [first, second] {
            let flow = flow_status(process, FLOW).await?;
            counts.push(flow["slots"].as_array().map_or(0, Vec::len));
        }
        ensure!(!counts.contains(&0) && counts.iter().sum::<usize>() == 25, "they have {counts:?} slots");
        Ok(())
    });
    shared.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_goes_from_a_file_to_every_node_and_outlives_the_file() {
    let pair = Pair::start(1).await;
    let scenario = scenario_with(&pair, |file| file);
    let mut process = scenario.run();
    append_batch(&pair.source, TOPIC, 0, &["one", "poison"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 2).await;

    let module: PathBuf = folder(&scenario).join("new.wasm");
    // More than two pieces.
    fs::write(&module, padded(rogue(), 2_000_000)).unwrap();
    let dropping = settings("drop-poison");
    let swap = ["plugin", "swap", FLOW, "judge", module.to_str().unwrap(), "--settings", &dropping];
    let asked = commanded(&scenario, &process, &swap, 64).await;
    assert!(asked.contains("standard input is no terminal") && asked.contains("give --yes"), "{asked}");
    assert_eq!(list(&scenario, &process).await["generation"], 1);
    let swapped = commanded(&scenario, &process, &[&swap[..], &["--yes"]].concat(), 0).await;
    assert!(swapped.contains("new: 1 kept, 0 changed, 1 dropped, 0 rejected, 0 failed\n"), "{swapped}");
    assert!(swapped.contains("orders[0] offset 1: dropped, was kept\n"), "{swapped}");
    assert!(swapped.contains("generation 2 is in use everywhere"), "{swapped}");
    append_batch(&pair.source, TOPIC, 0, &["two", "poison", "three"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 4).await;
    fs::remove_file(&module).unwrap();
    let listed = list(&scenario, &process).await;
    assert_eq!((&listed["generation"], &listed["kind"]), (&json!(2), &json!("swap")));
    let digest = listed["plugins"][0]["digest"].clone();

    // A node that comes later has it from the topic.
    let second = scenario.run();
    shared(&process, &second).await;
    assert_eq!(list(&scenario, &second).await["plugins"][0]["digest"], digest);
    // Back, and there again: now both must read it.
    commanded(&scenario, &second, &["plugin", "rollback", FLOW], 0).await;
    commanded(&scenario, &process, &["plugin", "rollback", FLOW, "--to", "2"], 0).await;
    for node in [&process, &second] {
        let listed = list(&scenario, node).await;
        assert_eq!((&listed["generation"], &listed["plugins"][0]["digest"]), (&json!(4), &digest));
    }
    append_batch(&pair.source, TOPIC, 0, &["four", "poison"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 5).await;
    stops(second).await;
    stops(process).await;

    // All nodes were away, and the file is gone.
    let mut process = scenario.run();
    append_batch(&pair.source, TOPIC, 0, &["five", "poison", "six"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 7).await;
    assert_eq!(values(&pair, TARGET_TOPIC).await, ["one", "poison", "two", "three", "four", "five", "six"]);
    let history = history(&scenario, &process).await;
    let lines: Vec<_> = history.iter().map(|line| (&line["generation"], &line["kind"])).collect();
    let expected = [(4, "rollback"), (3, "rollback"), (2, "swap"), (1, "file")]
        .map(|(generation, kind)| (json!(generation), json!(kind)));
    assert_eq!(lines, expected.iter().map(|(generation, kind)| (generation, kind)).collect::<Vec<_>>());
    // The first generation held for a moment only: it may be over before a node has told of it.
    let swapped = history.iter().filter(|line| line["generation"] != json!(1));
    assert!(swapped.into_iter().all(|line| !line["nodes"].as_array().unwrap().is_empty()), "{history:?}");
    let table = commanded(&scenario, &process, &["plugin", "history", FLOW], 0).await;
    assert!(table.contains("4 *") && table.contains("back to generation 2"), "{table}");
    let table = commanded(&scenario, &process, &["plugin", "list", FLOW], 0).await;
    assert!(table.contains("mem->target  generation 4 (rollback)") && table.contains("rogue"), "{table}");
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_is_tried_first_by_whatever_way_it_is_given() {
    let pair = Pair::start(1).await;
    let scenario = scenario_with(&pair, |file| file);
    let mut process = scenario.run();
    append_batch(&pair.source, TOPIC, 0, &["one", "poison"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 2).await;
    let trapping = settings("trap-on-poison");
    let swap = ["plugin", "swap", FLOW, "judge", "--settings", &trapping, "--yes"];
    let refused = commanded(&scenario, &process, &swap, 65).await;
    assert!(refused.contains("the new plugin failed on 1 of the records that it was tried on"), "{refused}");
    assert!(refused.contains("orders[0] offset 1: failed"), "{refused}");
    let wish = json!({ "settings": trapping, "replay": 100 });
    let (code, answer) = order(&scenario, &process, "plugins/judge/swap", &wish).await;
    assert_eq!(
        (code, &answer["error"]),
        (422, &json!("the new plugin failed on 1 of the records that it was tried on"))
    );
    assert_eq!(list(&scenario, &process).await["generation"], 1);
    let wrong = folder(&scenario).join("wrong.token");
    fs::write(&wrong, "0123456789abcdef0123456789abcdef").unwrap();
    let address = process.http_address();
    let strange = [&swap[..], &["--http", &address, "--token-file", wrong.to_str().unwrap()]].concat();
    let refused = Tidegate::command(&strange, ARRIVAL_DEADLINE).await.unwrap();
    assert_eq!(refused.code, 77, "{}", refused.output);
    // A trial without faults is followed by the swap.
    let wish = json!({ "settings": settings("drop-poison"), "replay": 100 });
    let (code, answer) = order(&scenario, &process, "plugins/judge/swap", &wish).await;
    assert_eq!((code, &answer["generation"]), (200, &json!(2)), "{answer}");
    // Whoever wants it all the same gets it.
    commanded(&scenario, &process, &[&swap[..], &["--force"]].concat(), 0).await;
    append_batch(&pair.source, TOPIC, 0, &["two", "poison"]);
    let why = paused(&mut process, TOPIC, 0, |_| true).await;
    assert_eq!(why["offset"], 3, "{why}");
    commanded(&scenario, &process, &["plugin", "rollback", FLOW], 0).await;
    append_batch(&pair.source, TOPIC, 0, &["three"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 4).await;
    assert_eq!(values(&pair, TARGET_TOPIC).await, ["one", "poison", "two", "three"]);
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_file_that_changes_is_swapped_in() {
    let pair = Pair::start(1).await;
    let scenario = scenario_with(&pair, |file| {
        let file = file.set("tidegate.plugins.watch", "true");
        file.set("tidegate.plugin.judge.settings", &settings("drop-poison"))
    });
    let mut process = scenario.run();
    append_batch(&pair.source, TOPIC, 0, &["one", "poison"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 1).await;
    let file = folder(&scenario).join("own.wasm");
    fs::write(&file, b"no module").unwrap();
    let told = eventually("the bad file to be told", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let flow = flow_status(&process, FLOW).await?;
        let error = flow["last_error"]["message"].as_str().unwrap_or_default();
        ensure!(error.contains("own.wasm"), "{flow}");
        Ok(())
    });
    told.await.unwrap();
    append_batch(&pair.source, TOPIC, 0, &["two", "poison"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 2).await;
    fs::write(&file, padded(rogue(), 100)).unwrap();
    let swapped = eventually("the good file to be used", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let view: Value =
            serde_json::from_str(&process.http_get("/api/v1/flows/mem-%3Etarget/plugins").await?)?;
        ensure!(view["generation"] == 2 && view["kind"] == "file", "{view}");
        Ok(())
    });
    swapped.await.unwrap();
    append_batch(&pair.source, TOPIC, 0, &["three", "poison"]);
    ends_at(&pair, &mut process, TARGET_TOPIC, 3).await;
    let history = history(&scenario, &process).await;
    assert_eq!(history[0]["what"], "the file of \"judge\" has changed");
    stops(process).await;
    // What the file says at a restart is what runs: no further generation.
    let process = scenario.run();
    let listed = eventually("the list", ARRIVAL_DEADLINE, async || {
        let view: Value =
            serde_json::from_str(&process.http_get("/api/v1/flows/mem-%3Etarget/plugins").await?)?;
        Ok(view)
    });
    assert_eq!(listed.await.unwrap()["generation"], 2);
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_topics_are_renamed_by_force_only() {
    let pair = Pair::start(1).await;
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.topics(TOPIC).set("replication.factor", "-1").set("tidegate.cache.dir", "cache");
        let file = file.set("tidegate.naming.module", "own.wasm").set("tidegate.naming.deadline.ms", "10000");
        file.set("tidegate.naming.settings", r#"{"prefix":"dr-"}"#)
    });
    fs::write(folder(&scenario).join("own.wasm"), rename()).unwrap();
    let mut process = scenario.run();
    append_batch(&pair.source, TOPIC, 0, &["one"]);
    ends_at(&pair, &mut process, "dr-orders", 1).await;
    let swap = ["plugin", "swap", FLOW, "naming", "--settings", r#"{"prefix":"xx-"}"#, "--yes"];
    let refused = commanded(&scenario, &process, &swap, 69).await;
    let rename = "topic \"orders\" is copied to \"dr-orders\" and would go on in \"xx-orders\" from its stored positions: its \
                  records so far stay in \"dr-orders\" and are not copied again";
    assert!(refused.contains(&format!("would rename: {rename}\n")), "{refused}");
    assert!(refused.contains(&format!("copied topics would be called otherwise: {rename}")), "{refused}");
    append_batch(&pair.source, TOPIC, 0, &["two"]);
    ends_at(&pair, &mut process, "dr-orders", 2).await;
    commanded(&scenario, &process, &[&swap[..], &["--force"]].concat(), 0).await;
    append_batch(&pair.source, TOPIC, 0, &["three"]);
    ends_at(&pair, &mut process, "xx-orders", 1).await;
    assert_eq!(values(&pair, "dr-orders").await, ["one", "two"]);
    assert_eq!(values(&pair, "xx-orders").await, ["three"]);
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_can_not_take_a_swap_says_so_and_there_is_a_way_back() {
    let pair = Pair::start(1).await;
    let scenario = scenario_with(&pair, |file| file);
    let mut process = scenario.run();
    for partition in 0..4 {
        append_batch(&pair.source, TOPIC, partition, &["one"]);
    }
    ends_at(&pair, &mut process, TARGET_TOPIC, 1).await;
    let digest = list(&scenario, &process).await["plugins"][0]["digest"].as_str().unwrap().to_owned();
    // The other node's file pins the module.
    let pinned = scenario_with(&pair, |file| file.set("tidegate.plugin.judge.sha256", &digest));
    let second = pinned.run();
    shared(&process, &second).await;
    let module = folder(&scenario).join("new.wasm");
    fs::write(&module, padded(rogue(), 100)).unwrap();
    let swap = ["plugin", "swap", FLOW, "judge", module.to_str().unwrap(), "--yes"];
    let refused = commanded(&scenario, &process, &swap, 69).await;
    for said in [
        "generation 2 is NOT in use everywhere",
        "stays on the old generation with slot(s) ",
        &format!("the file pins plugin \"judge\" to {digest}, and generation 2 has "),
        "tidegate plugin rollback 'mem->target' takes every node back to the generation before",
    ] {
        assert!(refused.contains(said), "{said:?} is not in {refused}");
    }
    assert_eq!(list(&scenario, &second).await["generation"], 1);
    let flow = flow_status(&second, FLOW).await.unwrap();
    let error = flow["last_error"]["message"].as_str().unwrap();
    assert!(error.contains("generation 2 of the plugins can't run here"), "{error}");
    // Both go on, each with what it has.
    for partition in 0..4 {
        append_batch(&pair.source, TOPIC, partition, &["two"]);
    }
    let all_have = async |process: &mut Tidegate, count: i64| {
        comes(process, "all partitions to go on", || {
            let ends = [0, 1, 2, 3].map(|partition| pair.target.end_offset(TARGET_TOPIC, partition));
            ensure!(ends == [count; 4], "{ends:?}");
            Ok(())
        })
        .await;
    };
    all_have(&mut process, 2).await;
    let back = commanded(&scenario, &process, &["plugin", "rollback", FLOW], 0).await;
    assert!(back.contains("generation 3 is in use everywhere"), "{back}");
    for partition in 0..4 {
        append_batch(&pair.source, TOPIC, partition, &["three"]);
    }
    all_have(&mut process, 3).await;
    stops(second).await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_decision_is_written_at_last_and_on_a_cluster_with_few_brokers() {
    let pair = Pair::start(1).await;
    // The positions topic is there already, from a cluster with more brokers.
    pair.target.create_topic("mm2-offsets.mem.internal", 25, &[("cleanup.policy", "compact")]).unwrap();
    let refusal = Effect::Error(ResponseError::TopicAuthorizationFailed);
    let fault = Fault::new(refusal).api(ApiKey::Produce).topic(PLUGINS).times(2);
    let fault = pair.target.faults().add(fault);
    let scenario = scenario_with(&pair, |file| file.set("offset.storage.replication.factor", "3"));
    let mut process = scenario.run();
    comes(&mut process, "the decision to be in the topic", || {
        let end = pair.target.end_offset(PLUGINS, 0);
        ensure!(end > 0, "{end} records are there");
        Ok(())
    })
    .await;
    assert!(pair.target.faults().hits(fault) > 0);
    let told = eventually("the node to have reported", ARRIVAL_DEADLINE, async || {
        let text = process.http_get("/api/v1/flows/mem-%3Etarget/plugins/history").await?;
        let history: Value = serde_json::from_str(&text)?;
        let slots = history[0]["nodes"][0]["slots"].as_array().map_or(0, Vec::len);
        ensure!(slots == 25, "{history}");
        Ok(())
    });
    if let Err(problem) = told.await {
        panic!("{problem:#}\n{}", process.log_tail());
    }
    stops(process).await;
}
