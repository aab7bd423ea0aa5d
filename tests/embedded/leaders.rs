//! Leaders that move and nodes that go away, under load.

use tidegate_embedded::{ApiKey, Cluster, Effect, Fault};
use tidegate_tests::{Load, LoadOptions, ProducerOptions};

use super::{FaultOn, Pair, RECORDS, TARGET_TOPIC, TOPIC};
use crate::scenario::stops;

const NODES: i32 = 3;

fn load(pair: &Pair) -> Load {
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 2_000,
        producer: ProducerOptions { batch_bytes: 4_096, ..ProducerOptions::default() },
    };
    Load::start(&pair.source, TOPIC, options).unwrap()
}

/// Moves every partition of a topic to another node.
fn move_leaders(cluster: &Cluster, topic: &str, round: i32) {
    for partition in 0..RECORDS.partition_count {
        let node = 1 + (partition + round) % NODES;
        cluster.move_leader(topic, partition, node).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaders_move_on_both_sides() {
    let pair = Pair::start(3).await;
    let load = load(&pair);
    let scenario = pair.scenario();
    let mut process = scenario.run();
    scenario.holds(&mut process, TARGET_TOPIC, 500).await;
    for round in 0..10 {
        let cluster = if round % 2 == 0 { &pair.source } else { &pair.target };
        let topic = if round % 2 == 0 { TOPIC } else { TARGET_TOPIC };
        move_leaders(cluster, topic, round);
        let before = scenario.count(TARGET_TOPIC).await;
        scenario.holds(&mut process, TARGET_TOPIC, before + 300).await;
    }
    load.stop().await.unwrap();
    scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaders_move_in_the_middle_of_requests() {
    let pair = Pair::start(3).await;
    let moved = |api, topic: &str| {
        Fault::new(Effect::MoveLeader { to: None }).api(api).topic(topic).after(1).times(5)
    };
    pair.copies_whole_in_spite_of(&[
        FaultOn::Source(moved(ApiKey::Fetch, TOPIC)),
        FaultOn::Target(moved(ApiKey::Produce, TARGET_TOPIC)),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_go_away_and_come_back() {
    let pair = Pair::start(3).await;
    let load = load(&pair);
    let scenario = pair.scenario();
    let mut process = scenario.run();
    scenario.holds(&mut process, TARGET_TOPIC, 500).await;
    for node in 1..=NODES {
        for cluster in [&pair.source, &pair.target] {
            cluster.stop_node(node).await.unwrap();
            let before = scenario.count(TARGET_TOPIC).await;
            scenario.holds(&mut process, TARGET_TOPIC, before + 300).await;
            cluster.start_node(node).await.unwrap();
        }
    }
    load.stop().await.unwrap();
    scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
    stops(process).await;
}
