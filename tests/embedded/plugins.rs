//! Plugins of a running flow: edited from the first record on, swapped, rolled back, kept over a restart.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};
use tidegate_tests::{Isolation, Record, Tidegate, eventually, read_all};
use tidegate_wire::batch::{BatchBuilder, Codec};

use super::operator::{order, order_with};
use super::{Pair, TARGET_TOPIC, TOPIC};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

/// What `header-rules` is told: each record gets a header that says which settings it was edited with.
fn stamp(word: &str) -> String {
    format!(r#"{{"rules":[{{"action":"set","name":"stamp","value":"{word}"}}]}}"#)
}

fn stamped<'a>(pair: &'a Pair, word: &str) -> Scenario<'a> {
    Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.topics(TOPIC).set("replication.factor", "-1").set("tidegate.cache.dir", "cache");
        let file =
            file.set("tidegate.plugins", "stamp").set("tidegate.plugin.stamp.module", "builtin:header-rules");
        file.set("tidegate.plugin.stamp.settings", &stamp(word))
            .set("tidegate.plugin.stamp.deadline.ms", "10000")
    })
}

fn stamp_of(record: &Record) -> String {
    let found = record.content.headers.iter().find(|(name, _)| name == "stamp");
    let value = found.and_then(|(_, value)| value.clone()).unwrap_or_default();
    String::from_utf8(value).unwrap()
}

/// Waits for so many records on the target, and gives them by partition.
async fn arrived(
    scenario: &Scenario<'_>,
    process: &mut Tidegate,
    count: usize,
) -> BTreeMap<i32, Vec<Record>> {
    scenario.holds(process, TARGET_TOPIC, count as i64).await;
    let records = read_all(scenario.target, TARGET_TOPIC, Isolation::ReadUncommitted).await.unwrap();
    assert_eq!(records.len(), count);
    let mut by_partition: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
    for record in records {
        by_partition.entry(record.partition).or_default().push(record);
    }
    by_partition
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_swapped_rolled_back_and_kept_over_a_restart() {
    let pair = Pair::start(1).await;
    let scenario = stamped(&pair, "one");
    pair.produce(0..400).await;
    let mut process = scenario.run();
    let first = arrived(&scenario, &mut process, 400).await;
    assert!(
        first.values().flatten().all(|record| stamp_of(record) == "one"),
        "nothing passes without the plugin"
    );

    let wish = json!({ "settings": stamp("two"), "who": { "user": "ann", "host": "desk" } });
    let (code, answer) = order(&scenario, &process, "plugins/stamp/swap", &wish).await;
    assert_eq!(code, 200, "{answer}\n{}", process.log_tail());
    assert_eq!((&answer["generation"], &answer["is_complete"]), (&json!(2), &json!(true)), "{answer}");
    report(&format!("a swap of settings took {} ms", answer["took_ms"]));
    let firsts: BTreeMap<i32, i64> = answer["partitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|partition| {
            (partition["partition"].as_i64().unwrap() as i32, partition["first_offset"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(firsts, (0..4).map(|partition| (partition, 100)).collect());
    pair.produce(400..800).await;
    let second = arrived(&scenario, &mut process, 800).await;
    for (partition, records) in &second {
        for (offset, record) in records.iter().enumerate() {
            let expected = if (offset as i64) < firsts[partition] { "one" } else { "two" };
            assert_eq!(stamp_of(record), expected, "{partition} at {offset}");
        }
    }
    stops(process).await;

    // The file says what it said: the swap holds.
    let mut process = scenario.run();
    pair.produce(800..1_000).await;
    let third = arrived(&scenario, &mut process, 1_000).await;
    for records in third.values() {
        assert!(records[200..].iter().all(|record| stamp_of(record) == "two"));
    }
    let (code, answer) = order(&scenario, &process, "plugins/rollback", &json!({})).await;
    assert_eq!((code, &answer["generation"]), (200, &json!(3)), "{answer}\n{}", process.log_tail());
    pair.produce(1_000..1_200).await;
    let fourth = arrived(&scenario, &mut process, 1_200).await;
    for records in fourth.values() {
        assert!(records[250..].iter().all(|record| stamp_of(record) == "one"));
    }
    let history: Value =
        serde_json::from_str(&process.http_get("/api/v1/flows/mem-%3Etarget/plugins/history").await.unwrap())
            .unwrap();
    let kinds: Vec<&str> =
        history.as_array().unwrap().iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["rollback", "settings", "file"]);
    assert_eq!(history[1]["who"], json!({ "user": "ann", "host": "desk" }));
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_need_the_token_and_refusals_say_why() {
    let pair = Pair::start(1).await;
    let scenario = stamped(&pair, "one");
    pair.produce(0..100).await;
    let mut process = scenario.run();
    arrived(&scenario, &mut process, 100).await;

    let wish = json!({ "settings": stamp("two") });
    let (code, _) = order_with(&process, "plugins/stamp/swap", &wish, "0123456789abcdef").await.unwrap();
    assert_eq!(code, 401);
    let refused = async |name: &str, wish: Value| {
        let (code, answer) = order(&scenario, &process, &format!("plugins/{name}/swap"), &wish).await;
        (code, format!("{}; {}", answer["error"].as_str().unwrap(), answer["remedy"].as_str().unwrap()))
    };
    assert_eq!(
        refused("mask", wish).await,
        (
            404,
            "flow mem->target has no plugin \"mask\"; name one of stamp, naming, or give the module of a new one"
                .to_owned()
        )
    );
    let (code, text) = refused("stamp", json!({ "settings": r#"{"rules":7}"# })).await;
    assert_eq!(code, 422, "{text}");
    let (code, text) = refused("stamp", json!({ "settings": stamp("one") })).await;
    assert_eq!(
        (code, text.as_str()),
        (
            409,
            "the plugins are just so already, so nothing would change; give another module or other settings"
        )
    );
    let what = json!({ "module": { "bytes": { "path": "/x.wasm", "bytes": "bm90IHdhc20=" } } });
    let (code, text) = refused("stamp", what).await;
    assert!(code == 422 && text.contains("no WebAssembly component"), "{code} {text}");
    // What ran before still runs.
    pair.produce(100..200).await;
    let records = arrived(&scenario, &mut process, 200).await;
    assert!(records.values().flatten().all(|record| stamp_of(record) == "one"));
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_take_a_swap_together() {
    let pair = Pair::start(1).await;
    let scenario = stamped(&pair, "one");
    pair.produce(0..400).await;
    let mut first = scenario.run();
    arrived(&scenario, &mut first, 400).await;
    let second = scenario.run();
    let shared = eventually("both processes to own slots", ARRIVAL_DEADLINE, async || {
        let mut counts = Vec::new();
        for process in [&first, &second] {
            let status: Value = serde_json::from_str(&process.http_get("/api/v1/status").await?)?;
            counts.push(status["flows"][0]["slots"].as_array().map_or(0, Vec::len));
        }
        ensure!(!counts.contains(&0) && counts.iter().sum::<usize>() == 25, "they have {counts:?} slots");
        Ok(())
    });
    shared.await.unwrap();
    let wish = json!({ "settings": stamp("two") });
    let (code, answer) = order(&scenario, &second, "plugins/stamp/swap", &wish).await;
    assert_eq!((code, &answer["is_complete"]), (200, &json!(true)), "{answer}\n{}", second.log_tail());
    report(&format!("a swap on two nodes took {} ms", answer["took_ms"]));
    pair.produce(400..800).await;
    let records = arrived(&scenario, &mut first, 800).await;
    for records in records.values() {
        assert!(records[100..].iter().all(|record| stamp_of(record) == "two"));
    }
    stops(first).await;
    stops(second).await;
}

/// What a later version of Tidegate might have decided.
fn decide_in_a_later_form(pair: &Pair, generation: u64) {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::None);
    let key = format!("decision/mem->target/{generation:010}");
    builder.push_parts(Some(key.as_bytes()), Some(br#"{"form":2}"#), &[], 1);
    let batch = builder.finish().unwrap().to_batch();
    pair.target.append_at_end("tidegate-plugins.mem.internal", 0, &batch.bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_in_the_place_of_a_decision_that_cant_be_read() {
    let pair = Pair::start(1).await;
    let scenario = stamped(&pair, "one");
    pair.produce(0..400).await;
    let mut process = scenario.run();
    arrived(&scenario, &mut process, 400).await;
    let two = json!({ "settings": stamp("two") });
    assert_eq!(order(&scenario, &process, "plugins/stamp/swap", &two).await.0, 200);

    decide_in_a_later_form(&pair, 3);
    process.says("generation 3 of the plugins", ARRIVAL_DEADLINE).await.unwrap();
    let three = json!({ "settings": stamp("three") });
    let (code, answer) = order(&scenario, &process, "plugins/stamp/swap", &three).await;
    assert_eq!(
        (code, answer["error"].as_str().unwrap()),
        (
            409,
            "generation 3 of the plugins, which was decided last, can't be read on this node: it is no decision of this version \
             of Tidegate"
        )
    );
    // The way back leads to the generation before that one, and every number is used once.
    let (code, answer) = order(&scenario, &process, "plugins/rollback", &json!({})).await;
    assert_eq!(
        (code, &answer["generation"], &answer["is_complete"]),
        (200, &json!(4), &json!(true)),
        "{answer}"
    );
    pair.produce(400..800).await;
    let records = arrived(&scenario, &mut process, 800).await;
    for records in records.values() {
        assert!(records[100..].iter().all(|record| stamp_of(record) == "two"));
    }
    assert_eq!(order(&scenario, &process, "plugins/stamp/swap", &three).await.0, 200, "it is in step again");

    decide_in_a_later_form(&pair, 6);
    stops(process).await;
    pair.produce(800..1_000).await;
    let mut process = scenario.run();
    assert_ne!(process.ended(ARRIVAL_DEADLINE).await.unwrap(), 0);
    assert!(
        process.log_text().contains("run the version of Tidegate that wrote it"),
        "{}",
        process.log_tail()
    );
    assert_eq!(scenario.count(TARGET_TOPIC).await, 800, "nothing was copied");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_shows_what_a_run_would_take_over() {
    let pair = Pair::start(1).await;
    let scenario = stamped(&pair, "one");
    pair.produce(0..400).await;
    let mut process = scenario.run();
    arrived(&scenario, &mut process, 400).await;
    let file = scenario.file.display().to_string();
    let plan = async || {
        let finished = Tidegate::command(&["plan", &file], ARRIVAL_DEADLINE).await.unwrap();
        assert_eq!(finished.code, 0, "{}", finished.output);
        finished.output
    };
    assert!(plan().await.contains(TARGET_TOPIC));
    let wish = json!({ "module": { "builtin": "identity-policy" }, "force": true });
    let (code, answer) = order(&scenario, &process, "plugins/naming/swap", &wish).await;
    assert_eq!(code, 200, "{answer}");
    let shown = plan().await;
    assert!(shown.contains(TOPIC) && !shown.contains(TARGET_TOPIC), "{shown}");
    stops(process).await;
}
