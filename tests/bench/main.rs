//! `just bench`: Tidegate, the real MirrorMaker 2 4.3.1 and a bare copy of the same bytes through two sockets, one after
//! the other on the same two real one-node clusters. Prints a table with ratios and keeps the figures as JSON in
//! `bench-results/`.
//!
//! `bench` runs everything, `bench quick` a quarter of it, `bench PART…` parts (`none256`, `lz4`, `none16`, `small`,
//! `filter`, `filterlz4`, `filterzstd`, `header`, `latency`, `swap`, `start`); `alone` leaves MirrorMaker 2 out. The parts with a policy run
//! Tidegate a second time without it.

mod contender;
mod fill;
mod latency;
mod machine;
mod policies;
mod socket_copy;
mod table;
mod workload;

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tidegate_tests::{KafkaCluster, KafkaOptions, KafkaVersion};

use contender::Kind;
use table::{Latencies, Throughput};
use workload::{Policy, WORKLOADS, Workload};

#[derive(Default)]
struct Options {
    quick: bool,
    alone: bool,
    workloads: Vec<Workload>,
    latency: bool,
    swap: bool,
    start: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Options> {
        let mut options = Options::default();
        for argument in arguments {
            match argument.as_str() {
                "quick" => options.quick = true,
                "alone" => options.alone = true,
                "latency" => options.latency = true,
                "swap" => options.swap = true,
                "start" => options.start = true,
                name => match WORKLOADS.iter().find(|workload| workload.name == name) {
                    Some(workload) => options.workloads.push(*workload),
                    None => bail!(
                        "no part {name:?}; there are quick, alone, latency, swap, start, {}",
                        WORKLOADS.map(|workload| workload.name).join(", ")
                    ),
                },
            }
        }
        if options.workloads.is_empty() && !options.latency && !options.swap && !options.start {
            options.workloads = WORKLOADS.to_vec();
            (options.latency, options.swap, options.start) = (true, true, true);
        }
        if options.quick {
            for workload in &mut options.workloads {
                workload.record_count /= 4;
            }
        }
        Ok(options)
    }

    fn contenders(&self) -> &'static [Kind] {
        if self.alone { &[Kind::Tidegate] } else { &[Kind::MirrorMaker, Kind::Tidegate] }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = Options::parse(&arguments)?;
    let heap = KafkaOptions { heap_mib: 1024, ..KafkaOptions::default() };
    let source = KafkaCluster::start(KafkaVersion::V4_3_1, heap.clone()).await?;
    let target = KafkaCluster::start(KafkaVersion::V4_3_1, heap).await?;

    let mut throughputs = Vec::new();
    for workload in &options.workloads {
        throughputs.push(measure_throughput(workload, &options, &source, &target).await?);
    }
    let mut latencies = Latencies::default();
    if options.latency {
        let duration = Duration::from_secs(if options.quick { 10 } else { 60 });
        for kind in options.contenders() {
            let measured = latency::measure(*kind, duration, &source, &target).await?;
            latencies.push(*kind, measured);
        }
    }
    let swaps = if options.swap { Some(policies::swaps(&source, &target).await?) } else { None };
    let start = if options.start { Some(policies::start(&source, &target).await?) } else { None };
    print!("{}{}", table::throughput_text(&throughputs), table::latency_text(&latencies));
    print!("{}", swaps.as_ref().map(policies::Swaps::text).unwrap_or_default());
    print!("{}", start.as_ref().map(policies::Start::text).unwrap_or_default());
    let results = json!({
        "machine": machine::facts(),
        "quick": options.quick,
        "throughput": throughputs.iter().map(Throughput::json).collect::<Vec<Value>>(),
        "latency": latencies.json(),
        "swap": swaps.as_ref().map(policies::Swaps::json),
        "start": start.as_ref().map(policies::Start::json),
    });
    keep(&results)
}

async fn measure_throughput(
    workload: &Workload,
    options: &Options,
    source: &KafkaCluster,
    target: &KafkaCluster,
) -> anyhow::Result<Throughput> {
    eprintln!("{}: filling {} records", workload.title, workload.record_count);
    let filled = fill::fill(source, workload).await?;
    eprintln!("{}: {filled}", workload.title);
    let copy = socket_copy::measure(filled.stored_bytes)?;
    let mut throughput = Throughput::new(*workload, filled, copy);
    let plain: &[Kind] = if workload.policy == Policy::None { &[] } else { &[Kind::Plain] };
    for kind in options.contenders().iter().chain(plain) {
        let measured = contender::measure(*kind, workload, source, target).await?;
        eprintln!("{}: {kind}: {measured}", workload.title);
        throughput.push(*kind, measured);
    }
    tidegate_tests::topics::delete_topic(source, &workload.topic()).await?;
    Ok(throughput)
}

/// A file for each run and `latest.json`, in the checkout and outside what is committed.
fn keep(results: &Value) -> anyhow::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench-results");
    std::fs::create_dir_all(&directory)?;
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let text = serde_json::to_string_pretty(results)?;
    for name in [format!("bench-{seconds}.json"), "latest.json".to_owned()] {
        let path = directory.join(name);
        std::fs::write(&path, &text).with_context(|| format!("could not write {}", path.display()))?;
    }
    println!("kept in bench-results/bench-{seconds}.json");
    Ok(())
}
