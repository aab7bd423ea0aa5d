//! Records that a plugin could not judge: kept on the source as they were, never on the target before a chain let them pass.

use std::collections::BTreeSet;
use std::fs;

use anyhow::ensure;
use serde_json::{Value, json};
use tidegate_embedded::{ApiKey, Effect, Fault, ResponseError};
use tidegate_tests::producer::produce_contents;
use tidegate_tests::record::Content;
use tidegate_tests::{Isolation, ProducerOptions, Record, Tidegate, eventually, read_all};

use super::guests::rogue;
use super::operator::{FLOW, commanded, flow_status, partition_status};
use super::{Pair, TARGET_TOPIC, TOPIC, append_batch};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

const QUARANTINE: &str = "tidegate-quarantine.target.internal";

/// A flow whose plugin puts what it can't judge into quarantine.
fn judged<'a>(pair: &'a Pair, mode: &str) -> Scenario<'a> {
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.topics(TOPIC).set("replication.factor", "-1").set("tidegate.cache.dir", "cache");
        let file = file.set("tidegate.plugins", "judge").set("tidegate.plugin.judge.module", "rogue.wasm");
        let file = file.set("tidegate.plugin.judge.settings", &settings(mode));
        let file =
            file.set("mem.reconnect.backoff.max.ms", "200").set("target.reconnect.backoff.max.ms", "200");
        file.set("tidegate.plugin.judge.on.fault", "quarantine")
            .set("tidegate.plugin.judge.deadline.ms", "10000")
    });
    fs::write(scenario.file.parent().unwrap().join("rogue.wasm"), rogue()).unwrap();
    scenario
}

fn settings(mode: &str) -> String {
    json!({ "mode": mode }).to_string()
}

async fn read(cluster: &tidegate_embedded::Cluster, topic: &str) -> Vec<Record> {
    read_all(cluster, topic, Isolation::ReadUncommitted).await.unwrap()
}

fn values(records: &[Record]) -> Vec<String> {
    let value =
        |record: &Record| String::from_utf8(record.content.value.clone().unwrap_or_default()).unwrap();
    records.iter().map(value).collect()
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

/// Waits until a partition of the target's topic has an end offset.
async fn ends_at(pair: &Pair, process: &mut Tidegate, partition: i32, end: i64) {
    comes(process, &format!("{end} records in partition {partition}"), || {
        let found = pair.target.end_offset(TARGET_TOPIC, partition);
        ensure!(found == end, "there are {found}");
        Ok(())
    })
    .await;
}

async fn list(scenario: &Scenario<'_>, process: &Tidegate, more: &[&str]) -> Vec<Value> {
    let command = [&["quarantine", "list", FLOW, "-o", "json"], more].concat();
    let listed: Value = serde_json::from_str(&commanded(scenario, process, &command, 0).await).unwrap();
    listed.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_in_quarantine_is_kept_whole_shown_and_played_again() {
    let pair = Pair::start(1).await;
    let scenario = judged(&pair, "reject-poison");
    let mut process = scenario.run();
    let content = |value: &[u8]| Content {
        key: Some(b"k\xff".to_vec()),
        value: Some(value.to_vec()),
        headers: vec![
            ("a".to_owned(), Some(b"1".to_vec())),
            ("a".to_owned(), None),
            // Looks like Tidegate's own word for "played again".
            ("tidegate.quarantine.replayed".to_owned(), Some(b"0:0".to_vec())),
        ],
        timestamp_ms: 1_700_000_000_123,
    };
    let poison = content(b"poison \xfe");
    let records = vec![(2, content(b"before")), (2, poison.clone()), (2, content(b"after"))];
    produce_contents(&pair.source, TOPIC, records, &ProducerOptions::default()).await.unwrap();
    ends_at(&pair, &mut process, 2, 2).await;

    // On the source, with all that it had and where it came from.
    let kept = read(&pair.source, QUARANTINE).await;
    assert_eq!(kept.len(), 1);
    let found = &kept[0].content;
    assert_eq!((&found.key, &found.value), (&poison.key, &poison.value));
    let (own, notes) = found.headers.split_at(poison.headers.len());
    assert_eq!(own, poison.headers);
    let note = |name: &str| {
        let name = format!("tidegate.quarantine.{name}");
        let found = notes.iter().find(|(own, _)| *own == name).and_then(|(_, value)| value.clone());
        String::from_utf8(found.unwrap_or_default()).unwrap()
    };
    let said =
        ["flow", "topic", "partition", "offset", "timestamp", "plugin", "generation", "reason"].map(note);
    assert_eq!(
        said,
        [FLOW, TOPIC, "2", "1", "1700000000123", "judge", "1", "it is poisonous"].map(str::to_owned),
    );
    assert_eq!((note("digest").len(), note("version").as_str()), (64, "0.1.0"));
    assert!(pair.target.partition(QUARANTINE, 0).is_none(), "nothing of it is on the target");

    let listed = list(&scenario, &process, &[]).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    let id = listed[0]["id"].as_str().unwrap();
    let place = (&listed[0]["topic"], &listed[0]["partition"], &listed[0]["offset"]);
    assert_eq!(place, (&json!(TOPIC), &json!(2), &json!(1)));
    let shown = commanded(&scenario, &process, &["quarantine", "show", FLOW, id], 0).await;
    for line in
        ["  reason: it is poisonous\n", "  key: base64:a/8=\n", "  header a: 1\n", "  header a: null\n"]
    {
        assert!(shown.contains(line), "{shown}");
    }
    let strange = commanded(&scenario, &process, &["quarantine", "show", FLOW, "0:99"], 64).await;
    assert!(strange.contains("there is no record 0:99 in quarantine"), "{strange}");

    // The chain is as it was: it fails again, and stays.
    let again = commanded(&scenario, &process, &["quarantine", "replay", FLOW], 65).await;
    assert!(again.contains("0 written to the target, 0 dropped by the chain, 1 failed again\n"), "{again}");
    assert!(again.contains("it is poisonous"), "{again}");
    assert_eq!(list(&scenario, &process, &[]).await.len(), 1);
    assert_eq!(values(&read(&pair.target, TARGET_TOPIC).await), ["before", "after"]);

    let good = settings("none");
    let swap = ["plugin", "swap", FLOW, "judge", "--settings", &good, "--yes"];
    commanded(&scenario, &process, &swap, 0).await;
    let played = commanded(&scenario, &process, &["quarantine", "replay", FLOW, id], 0).await;
    assert_eq!(played, "1 written to the target, 0 dropped by the chain, 0 failed again\n");
    let records = read(&pair.target, TARGET_TOPIC).await;
    assert_eq!(records.iter().map(|record| record.partition).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(records[2].content, poison);
    assert_eq!(list(&scenario, &process, &[]).await, Vec::<Value>::new());
    let all = list(&scenario, &process, &["--all"]).await;
    assert_eq!((all.len(), &all[0]["is_replayed"]), (1, &json!(true)));
    let nothing = commanded(&scenario, &process, &["quarantine", "replay", FLOW], 0).await;
    assert_eq!(nothing, "0 written to the target, 0 dropped by the chain, 0 failed again\n");
    assert_eq!(pair.target.end_offset(TARGET_TOPIC, 2), 3);
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_the_chain_drops_now_is_done_with() {
    let pair = Pair::start(1).await;
    let scenario = judged(&pair, "trap-on-poison");
    let mut process = scenario.run();
    append_batch(&pair.source, TOPIC, 0, &["before", "poison", "after"]);
    ends_at(&pair, &mut process, 0, 2).await;
    let dropping = settings("drop-poison");
    let swap = ["plugin", "swap", FLOW, "judge", "--settings", &dropping, "--yes"];
    commanded(&scenario, &process, &swap, 0).await;
    let played = commanded(&scenario, &process, &["quarantine", "replay", FLOW], 0).await;
    assert_eq!(played, "0 written to the target, 1 dropped by the chain, 0 failed again\n");
    assert_eq!(list(&scenario, &process, &[]).await, Vec::<Value>::new());
    assert_eq!(values(&read(&pair.target, TARGET_TOPIC).await), ["before", "after"]);
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_that_can_not_be_written_holds_its_partition_back_and_loses_nothing() {
    let pair = Pair::start(1).await;
    let scenario = judged(&pair, "trap-on-poison");
    let mut process = scenario.run();
    comes(&mut process, "the quarantine topic", || {
        ensure!(pair.source.partition_count(QUARANTINE) > 0, "it is not there");
        Ok(())
    })
    .await;
    let refusal = Effect::Error(ResponseError::NotEnoughReplicas);
    let fault = pair.source.faults().add(Fault::new(refusal).api(ApiKey::Produce).topic(QUARANTINE));
    append_batch(&pair.source, TOPIC, 0, &["before", "poison", "after"]);
    append_batch(&pair.source, TOPIC, 1, &["beside"]);
    for attempt in 0..2 {
        let told = eventually("the failure to be told", ARRIVAL_DEADLINE, async || {
            process.still_runs()?;
            let flow = flow_status(&process, FLOW).await?;
            let partition = partition_status(&flow, TOPIC, 0)?;
            let error = partition["last_error"]["message"].as_str().unwrap_or_default();
            ensure!(
                error.contains("records can't be put into quarantine, the partition waits for it"),
                "{flow}"
            );
            ensure!(partition["position"] == 0, "{partition}");
            Ok(())
        });
        if let Err(problem) = told.await {
            panic!("{problem:#}\n{}", process.log_tail());
        }
        // The neighbour goes on, and nothing passes the record.
        comes(&mut process, "the record of the partition beside", || {
            ensure!(pair.target.end_offset(TARGET_TOPIC, 1) > 0, "it is not there");
            Ok(())
        })
        .await;
        assert_eq!(pair.target.end_offset(TARGET_TOPIC, 0), 0);
        if attempt == 0 {
            process.kill().await.unwrap();
            process = scenario.run();
        }
    }
    assert!(pair.source.faults().hits(fault) >= 2);
    // Then it is written, but its answer is lost: it is written twice, and is one.
    pair.source.faults().clear();
    let lost = Effect::ErrorAfterApply(ResponseError::RequestTimedOut);
    pair.source.faults().add(Fault::new(lost).api(ApiKey::Produce).topic(QUARANTINE).times(1));
    ends_at(&pair, &mut process, 0, 2).await;
    assert_eq!(pair.source.end_offset(QUARANTINE, 0), 2);
    assert_eq!(list(&scenario, &process, &[]).await.len(), 1);
    let good = settings("none");
    let swap = ["plugin", "swap", FLOW, "judge", "--settings", &good, "--yes"];
    commanded(&scenario, &process, &swap, 0).await;
    let played = commanded(&scenario, &process, &["quarantine", "replay", FLOW], 0).await;
    assert_eq!(played, "1 written to the target, 0 dropped by the chain, 0 failed again\n");
    assert_eq!(list(&scenario, &process, &[]).await, Vec::<Value>::new());
    let records = read(&pair.target, TARGET_TOPIC).await;
    let mut found = values(&records);
    found.sort();
    // A kill may bring again what was not settled; quarantine and replay bring nothing twice.
    found.retain(|value| value != "beside");
    assert_eq!(found, ["after", "before", "poison"]);
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_between_quarantine_and_position_lose_nothing() {
    let pair = Pair::start(1).await;
    let scenario = judged(&pair, "trap-on-poison");
    let mut process = scenario.run();
    let mut expected = BTreeSet::new();
    for round in 0..5 {
        let before = pair.source.end_offset(QUARANTINE, 0);
        let batch = [format!("a{round}"), format!("poison{round}"), format!("z{round}")];
        append_batch(&pair.source, TOPIC, round % 4, &batch.each_ref().map(String::as_str));
        expected.extend(batch);
        comes(&mut process, "the record to be in quarantine", || {
            ensure!(pair.source.end_offset(QUARANTINE, 0) > before, "it is not");
            Ok(())
        })
        .await;
        process.kill().await.unwrap();
        process = scenario.run();
    }
    let arrived = eventually("all but the poison", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let found: BTreeSet<String> = values(&read(&pair.target, TARGET_TOPIC).await).into_iter().collect();
        let wanted: BTreeSet<String> =
            expected.iter().filter(|value| !value.starts_with("poison")).cloned().collect();
        ensure!(found == wanted, "{found:?}");
        let flow = flow_status(&process, FLOW).await?;
        ensure!(flow["state"] == "running", "{flow}");
        Ok(())
    });
    if let Err(problem) = arrived.await {
        panic!("{problem:#}\n{}", process.log_tail());
    }
    assert_eq!(list(&scenario, &process, &[]).await.len(), 5);
    let good = settings("none");
    let swap = ["plugin", "swap", FLOW, "judge", "--settings", &good, "--yes"];
    commanded(&scenario, &process, &swap, 0).await;
    let played = commanded(&scenario, &process, &["quarantine", "replay", FLOW], 0).await;
    assert_eq!(played, "5 written to the target, 0 dropped by the chain, 0 failed again\n");
    let found = values(&read(&pair.target, TARGET_TOPIC).await);
    assert_eq!(found.iter().filter(|value| value.starts_with("poison")).count(), 5, "{found:?}");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    stops(process).await;
}
