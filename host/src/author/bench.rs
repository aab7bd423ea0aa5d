//! What a plugin costs: a record through the host's chain, a name, memory, size, start.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use super::chain::alone;
use super::cpu_time::{Elapsed, Stopwatch};
use super::suite::{Subject, link};
use crate::config::PluginModule;
use crate::names::TopicName;
use crate::plugin::{Chain, Engine, Limits, LoadedPlugin, Place};
use crate::record::{Laid, OwnedRecord, RecordSet};

/// Records in a batch: a producer's usual batch, and no more than what goes into one call.
const BATCH_RECORD_COUNT: usize = 500;
/// Batches that differ, used in turn.
const BATCH_COUNT: usize = 20;
/// Before it counts, so that code and data are warm.
const WARM_UP_BATCH_COUNT: usize = 40;
/// Names that are asked for.
const NAME_COUNT: usize = 10_000;

/// What is measured.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The plugin's settings.
    pub settings_json: String,
    /// Its limits.
    pub limits: Limits,
    /// Records that go through it.
    pub record_count: usize,
}

/// What a plugin costs.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Its name and version.
    pub plugin: String,
    /// SHA-256 of the module.
    pub digest: String,
    /// Of the module.
    pub size_bytes: usize,
    /// From the module's bytes to a plugin that passed its self-test, compiled anew.
    pub compile_ms: f64,
    /// The same from the cache of compiled modules.
    pub cached_load_ms: f64,
    /// An instance for a worker, its `init` included.
    pub instance_ms: f64,
    /// If it edits records.
    pub records: Option<RecordCost>,
    /// If it names topics.
    pub names: Option<NameCost>,
}

/// What a record costs.
#[derive(Clone, Debug, Serialize)]
pub struct RecordCost {
    /// Records that went through it.
    pub record_count: u64,
    /// A record through the chain, the host's part included.
    pub ns_per_record: f64,
    /// Of it, what the host needs to lay out the records for a chain.
    pub host_ns_per_record: f64,
    /// On one core.
    pub records_per_second: f64,
    /// Whether the times are the processor's; else the wall's.
    pub is_processor_time: bool,
    /// Memory of the instance at the end.
    pub memory_bytes: u64,
    /// Copied unchanged or changed.
    pub kept_count: u64,
    /// Copied, changed.
    pub changed_count: u64,
    /// Not copied.
    pub dropped_count: u64,
    /// Rejected, or the plugin failed: then the figures say nothing.
    pub condemned_count: u64,
    /// Why, for the first of them.
    pub first_reason: Option<String>,
}

/// What a name costs.
#[derive(Clone, Debug, Serialize)]
pub struct NameCost {
    /// Names that were asked for.
    pub name_count: usize,
    /// A name of the source to that on the target.
    pub us_per_name: f64,
}

/// Measures. `scratch` is an empty folder for a cache of compiled modules.
pub fn bench(module: &PluginModule, options: &BenchOptions, scratch: &Path) -> anyhow::Result<BenchReport> {
    let (subject, plugin, compile) = start(module, options, scratch)?;
    drop((subject, plugin));
    // Another engine: nothing but the cache is left of the first.
    let (_subject, plugin, cached_load) = start(module, options, scratch)?;
    let plugin = Arc::new(plugin);
    let begin = Instant::now();
    let chain = alone(&plugin)?;
    let instance = begin.elapsed();
    let about = &plugin.about;
    Ok(BenchReport {
        plugin: format!("{} {}", about.name, about.version),
        digest: about.digest.clone(),
        size_bytes: about.size_bytes,
        compile_ms: milliseconds(compile),
        cached_load_ms: milliseconds(cached_load),
        instance_ms: milliseconds(instance),
        records: plugin.hooks.records.then(|| records(&plugin, chain, options.record_count)),
        names: plugin.hooks.topic_naming.then(|| names(&plugin)).transpose()?,
    })
}

fn start(
    module: &PluginModule,
    options: &BenchOptions,
    scratch: &Path,
) -> anyhow::Result<(Subject, LoadedPlugin, Duration)> {
    let engine = Engine::new(Some(scratch.to_owned()))?;
    let subject = Subject::read(&engine, module, options.limits)?;
    let begin = Instant::now();
    let plugin = subject.start(&link("east", "west"), &options.settings_json)?;
    Ok((subject, plugin, begin.elapsed()))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn records(plugin: &LoadedPlugin, mut chain: Chain, record_count: usize) -> RecordCost {
    let batches: Vec<Laid> = (0..BATCH_COUNT).map(|number| Laid::of(&orders(number))).collect();
    let topic = TopicName::parse("orders").expect("a legal name");
    let batch_count = record_count.div_ceil(BATCH_RECORD_COUNT).max(1);
    let mut set = RecordSet::default();
    let mut cost = RecordCost {
        record_count: (batch_count * BATCH_RECORD_COUNT) as u64,
        ns_per_record: 0.0,
        host_ns_per_record: 0.0,
        records_per_second: 0.0,
        is_processor_time: true,
        memory_bytes: 0,
        kept_count: 0,
        changed_count: 0,
        dropped_count: 0,
        condemned_count: 0,
        first_reason: None,
    };
    let mut run = |count: usize, cost: &mut RecordCost| -> Elapsed {
        let watch = Stopwatch::start();
        for batch in batches.iter().cycle().take(count) {
            batch.fill(&mut set);
            let place = Place { topic: &topic, partition: 0 };
            let edited = chain.edit(place, batch.base(), &mut set);
            cost.kept_count += set.kept_count() as u64;
            cost.condemned_count += edited.quarantined.len() as u64;
            if cost.first_reason.is_none() {
                cost.first_reason = edited.quarantined.into_iter().next().map(|condemned| condemned.reason);
            }
        }
        watch.elapsed()
    };
    run(WARM_UP_BATCH_COUNT, &mut cost.clone());
    let before = plugin.stats.snapshot();
    let all = run(batch_count, &mut cost);
    let after = plugin.stats.snapshot();
    let watch = Stopwatch::start();
    for batch in batches.iter().cycle().take(batch_count) {
        batch.fill(&mut set);
        std::hint::black_box(set.len());
    }
    let host = watch.elapsed();
    let per_record = |elapsed: Elapsed| elapsed.cost().as_nanos() as f64 / cost.record_count as f64;
    cost.ns_per_record = per_record(all);
    cost.host_ns_per_record = per_record(host);
    cost.records_per_second = 1e9 / cost.ns_per_record.max(f64::MIN_POSITIVE);
    cost.is_processor_time = all.cpu.is_some();
    cost.changed_count = after.changed - before.changed;
    cost.dropped_count = after.dropped - before.dropped;
    cost.memory_bytes = after.memory_bytes;
    cost
}

/// Orders in JSON with two headers, as a shop would write them: some 300 bytes each.
fn orders(number: usize) -> Vec<OwnedRecord> {
    const REGIONS: [&str; 4] = ["eu", "us", "ap", "eu"];
    let record = |index: usize| {
        let order = number * BATCH_RECORD_COUNT + index;
        let region = REGIONS[order % REGIONS.len()];
        let value = format!(
            "{{\"id\":{order},\"customer\":{{\"name\":\"Customer {}\",\"email\":\"customer{}@example.org\",\
             \"city\":\"Springfield\"}},\"region\":\"{region}\",\"amount\":{}.50,\"items\":[{{\"sku\":\"A-{}\",\
             \"count\":{}}},{{\"sku\":\"B-{}\",\"count\":1}}],\"note\":\"please leave it at the door\"}}",
            order % 997,
            order % 997,
            order % 89,
            order % 13,
            order % 5 + 1,
            order % 17,
        );
        OwnedRecord {
            offset: index as i64,
            timestamp_ms: 1_700_000_000_000 + order as i64,
            key: Some(format!("customer-{:06}", order % 997).into_bytes()),
            value: Some(value.into_bytes()),
            headers: vec![
                (b"region".to_vec(), Some(region.as_bytes().to_vec())),
                (b"trace-id".to_vec(), Some(format!("{order:032x}").into_bytes())),
            ],
        }
    };
    (0..BATCH_RECORD_COUNT).map(record).collect()
}

fn names(plugin: &LoadedPlugin) -> anyhow::Result<NameCost> {
    let mut naming = plugin.naming();
    // The first question makes the instance.
    naming.to_target("orders").context("the plugin failed on the topic \"orders\"")?.ok();
    let names: Vec<String> =
        (0..NAME_COUNT).map(|index| format!("team-{}.orders-{index}", index % 37)).collect();
    let watch = Stopwatch::start();
    for name in &names {
        naming.to_target(name).with_context(|| format!("the plugin failed on the topic \"{name}\""))?.ok();
    }
    let us_per_name = watch.elapsed().cost().as_secs_f64() * 1e6 / NAME_COUNT as f64;
    Ok(NameCost { name_count: NAME_COUNT, us_per_name })
}
