//! Plugins that trap, loop, eat memory and answer nonsense: each hurts the record that it fails at, or the partition that
//! waits for an operator, and nothing else. One process runs them all.

use std::collections::BTreeMap;
use std::fs;

use anyhow::ensure;
use serde_json::{Value, json};
use tidegate_embedded::{Cluster, ClusterOptions};
use tidegate_tests::{FlowFile, Isolation, Tidegate, eventually, read_all};

use super::guests::{foreign, of_a_later_contract, rogue};
use super::operator::{FLOW, commanded, flow_status, order, partition_status, paused};
use super::{Pair, append_batch};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

/// One topic for each `on.fault`, with a plugin of its own; both have its name.
const FATES: [&str; 4] = ["pause", "pass", "drop", "quarantine"];

/// A topic to which no plugin applies.
const CALM: &str = "calm";

const QUARANTINE: &str = "tidegate-quarantine.target.internal";

/// What the plugin does at the poisonous record, and what is said of it.
const AT_POISON: [(&str, &str); 13] = [
    ("trap-on-poison", "broke down in"),
    ("loop-on-poison", "took longer than 200 ms"),
    ("eat-on-poison", "needs more than 16777216 bytes of memory"),
    ("record-out-of-range", "gave no usable answer"),
    ("unknown-code", "gave no usable answer"),
    ("half-an-edit", "gave no usable answer"),
    ("span-outside", "gave no usable answer"),
    ("splice-outside", "gave no usable answer"),
    ("falling-order", "gave no usable answer"),
    ("name-of-no-text", "gave no usable answer"),
    ("too-many-edits", "rogue"),
    ("too-large-a-value", "rogue"),
    ("reject-poison", "it is poisonous"),
];

/// What it does at every record.
const ALWAYS: [(&str, &str); 4] = [
    ("trap-always", "broke down in"),
    ("loop-always", "took longer than 200 ms"),
    ("eat-always", "needs more than 16777216 bytes of memory"),
    ("error-always", "refused"),
];

/// Three clusters: the source, another one that is copied by a flow without plugins, and the target.
struct Bench {
    pair: Pair,
    other: Cluster,
}

impl Bench {
    async fn start() -> Bench {
        let pair = Pair::start(1).await;
        let options = ClusterOptions { cluster_id: "other".to_owned(), ..ClusterOptions::default() };
        let other = Cluster::start(options).await.unwrap();
        for fate in FATES {
            pair.source.create_topic(fate, 2, &[]).unwrap();
        }
        pair.source.create_topic(CALM, 1, &[]).unwrap();
        other.create_topic(CALM, 1, &[]).unwrap();
        Bench { pair, other }
    }

    fn scenario(&self, change: impl FnOnce(FlowFile) -> FlowFile) -> Scenario<'_> {
        let scenario = Scenario::new("mem", &self.pair.source, &self.pair.target, |file| {
            let file = file.set("replication.factor", "-1").set("tidegate.cache.dir", "cache");
            let topics = [&FATES[..], &[CALM]].concat().join(", ");
            let mut file = file.topics(&topics).set_for_flow("tidegate.plugins", &FATES.join(", "));
            for fate in FATES {
                let mut set = |key: &str, value: &str| {
                    file = file.clone().set_for_flow(&format!("tidegate.plugin.{fate}.{key}"), value);
                };
                set("module", "rogue.wasm");
                set("settings", &settings("none"));
                set("topics", fate);
                set("on.fault", fate);
                set("deadline.ms", "200");
                set("memory.mb", "16");
            }
            let file = file.set("clusters", "mem, other, target");
            let file = file.set("other.bootstrap.servers", &self.other.bootstrap_servers());
            change(file.set("other->target.enabled", "true").set("other->target.topics", CALM))
        });
        fs::write(scenario.file.parent().unwrap().join("rogue.wasm"), rogue()).unwrap();
        scenario
    }

    fn produce(&self, topic: &str, partition: i32, values: &[&str]) {
        append_batch(&self.pair.source, topic, partition, values);
    }

    /// How many records there are of a topic on the target.
    fn count(&self, topic: &str, partition: i32) -> i64 {
        self.pair.target.end_offset(&format!("mem.{topic}"), partition)
    }

    fn quarantined_count(&self) -> i64 {
        (0..self.pair.source.partition_count(QUARANTINE))
            .map(|partition| self.pair.source.end_offset(QUARANTINE, partition))
            .sum()
    }

    /// What goes on beside the bad plugins: a topic without one, and another flow.
    async fn others_go_on(&self, process: &mut Tidegate, round: i64) {
        self.produce(CALM, 0, &["calm"]);
        append_batch(&self.other, CALM, 0, &["calm"]);
        self.comes(process, "topics without a plugin and flows without one go on", || {
            let counts = (self.count(CALM, 0), self.pair.target.end_offset("other.calm", 0));
            ensure!(counts == (round, round), "{counts:?} records came, of {round} each");
            Ok(())
        })
        .await;
    }

    async fn comes(&self, process: &mut Tidegate, what: &str, mut is_so: impl FnMut() -> anyhow::Result<()>) {
        let comes = eventually(what, ARRIVAL_DEADLINE, async || {
            process.still_runs()?;
            is_so()
        });
        if let Err(problem) = comes.await {
            let status = process.http_get("/api/v1/status").await;
            panic!("{problem:#}\n{status:?}\n{}", process.log_tail());
        }
    }

    async fn values(&self, topic: &str) -> BTreeMap<i32, Vec<String>> {
        let records = read_all(&self.pair.target, &format!("mem.{topic}"), Isolation::ReadUncommitted).await;
        let mut values: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for record in records.unwrap() {
            let value = String::from_utf8(record.content.value.unwrap()).unwrap();
            values.entry(record.partition).or_default().push(value);
        }
        values
    }
}

fn settings(mode: &str) -> String {
    json!({ "mode": mode }).to_string()
}

/// Gives one plugin another mode; gives its generation.
async fn turn(scenario: &Scenario<'_>, process: &Tidegate, plugin: &str, mode: &str) -> u64 {
    let wish = json!({ "settings": settings(mode) });
    let (code, answer) = order(scenario, process, &format!("plugins/{plugin}/swap"), &wish).await;
    assert_eq!(
        (code, &answer["is_complete"]),
        (200, &json!(true)),
        "{mode}: {answer}\n{}",
        process.log_tail()
    );
    answer["generation"].as_u64().unwrap()
}

async fn turn_all(scenario: &Scenario<'_>, process: &Tidegate, mode: &str) -> u64 {
    let mut generation = 0;
    for plugin in FATES {
        generation = turn(scenario, process, plugin, mode).await;
    }
    generation
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_plugin_hurts_its_record_and_nothing_else() {
    let bench = Bench::start().await;
    let scenario = bench.scenario(|file| file);
    let mut process = scenario.run();
    let mut round = 1;
    bench.others_go_on(&mut process, round).await;
    // What pauses a partition stays there over all modes.
    bench.produce("pause", 0, &["before", "poison", "after"]);
    bench
        .comes(&mut process, "all to pass a plugin that does nothing", || {
            ensure!(bench.count("pause", 0) == 3, "{} of 3 came", bench.count("pause", 0));
            Ok(())
        })
        .await;
    bench
        .comes(&mut process, "the quarantine topic", || {
            ensure!(bench.pair.source.partition_count(QUARANTINE) > 0, "it is not there");
            Ok(())
        })
        .await;

    for (index, (mode, said)) in (0_i64..).zip(AT_POISON) {
        let generation = turn_all(&scenario, &process, mode).await;
        if index == 0 {
            bench.produce("pause", 0, &["before", "poison", "after"]);
        }
        for fate in ["pass", "drop", "quarantine"] {
            bench.produce(fate, 0, &["before", "poison", "after"]);
        }
        for fate in FATES {
            bench.produce(fate, 1, &["beside"]);
        }
        round += 1;
        bench.others_go_on(&mut process, round).await;
        let rounds = index + 1;
        bench
            .comes(&mut process, &format!("{mode} to hurt its record only"), || {
                let counts = ["pass", "drop", "quarantine"].map(|fate| bench.count(fate, 0));
                ensure!(counts == [3 * rounds, 2 * rounds, 2 * rounds], "{counts:?} in round {rounds}");
                let beside = FATES.map(|fate| bench.count(fate, 1));
                ensure!(beside == [rounds; 4], "{beside:?} beside, in round {rounds}");
                ensure!(bench.quarantined_count() == rounds, "{} in quarantine", bench.quarantined_count());
                Ok(())
            })
            .await;
        let is_new = |paused: &Value| paused["generation"].as_u64() >= Some(generation - 3);
        let why = paused(&mut process, "pause", 0, is_new).await;
        assert_eq!((&why["offset"], &why["plugin"]), (&json!(4), &json!("pause")), "{mode}: {why}");
        let reason = why["reason"].as_str().unwrap();
        assert!(reason.contains(said), "{mode}: {reason}");
        assert_eq!(
            bench.count("pause", 0),
            4,
            "{mode}: what is before the record is there, and nothing else"
        );
    }
    assert_eq!(process.metric("tidegate_partition_paused").await.unwrap(), 1.0);
    let log = process.log_text();
    assert!(log.contains("partition paused by a plugin; resume it, or swap the plugin"), "{log}");
    // One more try finds the same; nothing is lost by it.
    let said = commanded(&scenario, &process, &["flow", "resume", FLOW, "--partition", "pause[0]"], 0).await;
    assert_eq!(said, "pause[0] goes on\n");
    paused(&mut process, "pause", 0, |_| true).await;
    let three = ["before", "poison", "after"];
    assert_eq!(bench.values("pause").await[&0], [&three[..], &["before"]].concat());
    assert_eq!(bench.values("pass").await[&0], three.repeat(AT_POISON.len()));
    for fate in ["drop", "quarantine"] {
        assert_eq!(bench.values(fate).await[&0], ["before", "after"].repeat(AT_POISON.len()), "{fate}");
    }
    // Nor by an end without warning, though what was not settled may come twice then.
    process.kill().await.unwrap();
    let mut process = scenario.run();
    let why = paused(&mut process, "pause", 0, |_| true).await;
    assert!(why["reason"].as_str().unwrap().contains("it is poisonous"), "{why}");
    let poisons = async || {
        let values = bench.values("pause").await.remove(&0).unwrap();
        (values.iter().filter(|value| *value == "poison").count(), values.last().cloned())
    };
    assert_eq!(poisons().await, (1, Some("before".to_owned())));
    // A plugin that can do it lets it go on.
    turn(&scenario, &process, "pause", "none").await;
    let gone_on = eventually("the rest to come after the swap", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let (count, last) = poisons().await;
        ensure!(count >= 2 && last.as_deref() == Some("after"), "{count}, {last:?}");
        let flow = flow_status(&process, FLOW).await?;
        ensure!(partition_status(&flow, "pause", 0)?["paused"].is_null(), "{flow}");
        Ok(())
    });
    gone_on.await.unwrap();
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_always_fails_stops_no_other_topic_or_flow() {
    let bench = Bench::start().await;
    let scenario = bench.scenario(|file| file);
    let mut process = scenario.run();
    bench.others_go_on(&mut process, 1).await;
    bench
        .comes(&mut process, "the quarantine topic", || {
            ensure!(bench.pair.source.partition_count(QUARANTINE) > 0, "it is not there");
            Ok(())
        })
        .await;
    let three = ["one", "two", "three"];
    for (index, (mode, said)) in (0_i64..).zip(ALWAYS) {
        turn_all(&scenario, &process, mode).await;
        for fate in FATES {
            bench.produce(fate, 0, &three);
        }
        bench.others_go_on(&mut process, index + 2).await;
        let why = paused(&mut process, "pause", 0, |_| true).await;
        assert_eq!(why["offset"], json!(3 * index), "{mode}: {why}");
        assert!(why["reason"].as_str().unwrap().contains(said), "{mode}: {why}");
        bench
            .comes(&mut process, &format!("{mode} to be over"), || {
                let counts = FATES.map(|fate| bench.count(fate, 0));
                let passed = 3 * (index + 1);
                ensure!(counts == [3 * index, passed, 0, 0], "{counts:?}");
                ensure!(bench.quarantined_count() == passed, "{} in quarantine", bench.quarantined_count());
                let dropped = || -> anyhow::Result<()> { Ok(()) };
                dropped()
            })
            .await;
        // The pause ends by a swap; for the next mode all is as at the beginning.
        turn(&scenario, &process, "pause", "none").await;
        bench
            .comes(&mut process, "the paused records to come", || {
                ensure!(bench.count("pause", 0) == 3 * (index + 1), "{} came", bench.count("pause", 0));
                Ok(())
            })
            .await;
    }
    // What was dropped is behind: the position moved on, and is kept.
    let dropped = eventually("the position to pass dropped records", ARRIVAL_DEADLINE, async || {
        let flow = flow_status(&process, FLOW).await?;
        let partition = partition_status(&flow, "drop", 0)?;
        ensure!(partition["position"] == 12 && partition["dropped"] == 12, "{partition}");
        Ok(())
    });
    dropped.await.unwrap();
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_ends_by_resume_when_the_record_is_gone() {
    let bench = Bench::start().await;
    let scenario = bench.scenario(|file| file);
    let mut process = scenario.run();
    bench.others_go_on(&mut process, 1).await;
    turn(&scenario, &process, "pause", "trap-on-poison").await;
    bench.produce("pause", 0, &["poison", "after"]);
    bench.produce("pause", 1, &["poison", "after"]);
    for partition in [0, 1] {
        paused(&mut process, "pause", partition, |_| true).await;
        bench.pair.source.delete_records("pause", partition, 1).unwrap();
    }
    let resume = ["flow", "resume", FLOW];
    let one = commanded(&scenario, &process, &[&resume[..], &["--partition", "pause[1]"]].concat(), 0).await;
    assert_eq!(one, "pause[1] goes on\n");
    bench
        .comes(&mut process, "the next record of partition 1", || {
            ensure!(bench.count("pause", 1) == 1, "{} came", bench.count("pause", 1));
            Ok(())
        })
        .await;
    assert_eq!(bench.count("pause", 0), 0, "nobody resumed it");
    assert_eq!(commanded(&scenario, &process, &resume, 0).await, "pause[0] goes on\n");
    bench
        .comes(&mut process, "the next record of partition 0", || {
            ensure!(bench.count("pause", 0) == 1, "{} came", bench.count("pause", 0));
            Ok(())
        })
        .await;
    let nothing = commanded(&scenario, &process, &resume, 65).await;
    assert!(
        nothing.contains("no partition is stopped by a plugin in the process that was asked"),
        "{nothing}"
    );
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_that_can_not_run_are_refused_and_what_runs_stays() {
    let bench = Bench::start().await;
    let scenario = bench.scenario(|file| file);
    let mut process = scenario.run();
    bench.others_go_on(&mut process, 1).await;
    let folder = scenario.file.parent().unwrap();
    fs::write(folder.join("foreign.wasm"), foreign()).unwrap();
    fs::write(folder.join("later.wasm"), of_a_later_contract()).unwrap();
    let (foreign, later) = (folder.join("foreign.wasm"), folder.join("later.wasm"));
    let modes = ["fail-init", "trap-in-init", "fail-self-test"].map(settings);
    let wishes = [
        (vec![foreign.to_str().unwrap()], "a plugin gets tidegate:plugin/host@0.1 and nothing else"),
        (vec![later.to_str().unwrap()], "0.2.0"),
        (vec!["--settings", &modes[0]], "/mode: asked to fail"),
        (vec!["--settings", &modes[1]], "broke down in init"),
        (vec!["--settings", &modes[2]], "asked to fail"),
    ];
    for (index, (wish, said)) in (0_i64..).zip(wishes) {
        let command = [&["plugin", "swap", FLOW, "pause"], &wish[..], &["--yes"]].concat();
        let refused = commanded(&scenario, &process, &command, 65).await;
        assert!(refused.contains(said), "{refused}");
        bench.produce("pause", 0, &["poison"]);
        bench.others_go_on(&mut process, index + 2).await;
        bench
            .comes(&mut process, "what ran to run on", || {
                ensure!(bench.count("pause", 0) == index + 1, "{} came", bench.count("pause", 0));
                Ok(())
            })
            .await;
    }
    let history = commanded(&scenario, &process, &["plugin", "history", FLOW], 0).await;
    assert!(history.contains("1 *"), "{history}");
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_whose_plugin_can_not_start_copies_nothing_and_stops_no_other() {
    let bench = Bench::start().await;
    let mode = settings("fail-self-test");
    let scenario = bench.scenario(|file| file.set_for_flow("tidegate.plugin.drop.settings", &mode));
    bench.produce(CALM, 0, &["calm"]);
    append_batch(&bench.other, CALM, 0, &["calm"]);
    let mut process = scenario.run();
    bench
        .comes(&mut process, "the other flow to copy", || {
            ensure!(bench.pair.target.end_offset("other.calm", 0) == 1, "it has not");
            Ok(())
        })
        .await;
    let failed = eventually("the flow to fail", ARRIVAL_DEADLINE, async || {
        let flow = flow_status(&process, FLOW).await?;
        ensure!(flow["state"] == "failed", "{flow}");
        Ok(flow["last_error"]["message"].as_str().unwrap_or_default().to_owned())
    });
    let why = failed.await.unwrap();
    assert!(
        why.contains("could not load plugin \"drop\" of flow mem->target") && why.contains("asked to fail"),
        "{why}"
    );
    assert_eq!(bench.count(CALM, 0), 0, "without its plugins a flow copies nothing");
    report(&why);
    stops(process).await;
}
