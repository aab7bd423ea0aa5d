//! Random faults on both sides. A failure tells its seed; `FAULT_SEED=… just test-fast seeded` has it again.

use std::time::SystemTime;

use anyhow::ensure;
use tidegate_embedded::{ApiKey, FaultPlan, FaultSpace};
use tidegate_tests::{Duplicates, Isolation, compare, end_offsets, eventually, read_all};

use super::{Pair, RECORDS, TARGET_TOPIC, TOPIC};
use crate::scenario::{ARRIVAL_DEADLINE, report, stops};

const ROUNDS: u64 = 5;

fn first_seed() -> u64 {
    match std::env::var("FAULT_SEED") {
        Ok(seed) => seed.parse().expect("FAULT_SEED is a number"),
        Err(_) => {
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
                % 1_000_000_000
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_faults_leave_no_trace_in_the_copy() {
    let seed = first_seed();
    report(&format!("FAULT_SEED={seed}"));
    for seed in seed..seed + ROUNDS {
        survive(seed).await;
    }
}

async fn survive(seed: u64) {
    let pair = Pair::start(3).await;
    let space = |topic: &str, apis: &[ApiKey]| FaultSpace {
        topics: vec![(topic.to_owned(), RECORDS.partition_count)],
        apis: apis.to_vec(),
        ..FaultSpace::default()
    };
    // What librdkafka does here, to write to the source and to read the target, is let alone: it is the witness.
    let source_plan =
        FaultPlan::random(seed, &space(TOPIC, &[ApiKey::Fetch, ApiKey::ListOffsets, ApiKey::Metadata]));
    let target_apis = [ApiKey::Produce, ApiKey::InitProducerId, ApiKey::Metadata, ApiKey::FindCoordinator];
    let target_plan = FaultPlan::random(seed ^ 0xdead_beef, &space(TARGET_TOPIC, &target_apis));
    pair.produce(0..1_000).await;
    pair.source.faults().add_plan(&source_plan);
    pair.target.faults().add_plan(&target_plan);
    let scenario = pair.scenario();
    let mut process = scenario.run();
    for portion in 1..4 {
        pair.produce(portion * 1_000..(portion + 1) * 1_000).await;
    }
    let whole = eventually("a whole copy", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let count: i64 = end_offsets(&pair.target, TARGET_TOPIC).await?.values().sum();
        ensure!(count >= 4_000, "{count} of 4000 records are there");
        let source = read_all(&pair.source, TOPIC, Isolation::ReadUncommitted).await?;
        let target = read_all(&pair.target, TARGET_TOPIC, Isolation::ReadUncommitted).await?;
        // A lost group session makes the process begin again at its stored positions, which is no fault.
        compare(&source, &target, Duplicates::Counted)
    });
    let compared = match whole.await {
        Ok(compared) => compared,
        Err(error) => panic!(
            "seed {seed}: {error:#}\non the source: {source_plan}\non the target: {target_plan}\n{}",
            process.log_tail()
        ),
    };
    report(&format!("seed {seed}: {compared:?}"));
    stops(process).await;
}
