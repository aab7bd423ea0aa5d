//! What a record costs on its way through a chain: processor time of this thread, for 500-record batches of 1 KiB values and
//! three headers.
//!
//! `cargo run --release --example chain_cost -- MODULE [SETTINGS]`

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tidegate::config::{NameList, OnFault, PluginConfig, PluginModule, TopicFilter};
use tidegate::names::{SourceOffset, TopicName};
use tidegate::plugin::{Chain, Engine, Generation, Link, LoadedPlugin, Place};
use tidegate::record::{RecordParts, RecordSet};
use tidegate_wire::batch::{Batch, BatchBuilder, Codec, Decompressor, record_timestamp};

const RECORD_COUNT: usize = 500;
const ROUND: Duration = Duration::from_secs(1);
const ROUND_COUNT: usize = 5;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let module = arguments.next().context("say which module: chain_cost MODULE [SETTINGS]")?;
    let settings = arguments.next().unwrap_or_else(|| "{}".to_owned());
    let mut chain = chain(&module, settings)?;
    let topic = TopicName::parse("orders")?;
    let place = Place { topic: &topic, partition: 0 };
    let batch = batch()?;
    let mut decompressor = Decompressor::new(1 << 27);
    let mut records = RecordSet::default();
    fill(&batch, &mut decompressor, &mut records)?;
    let edited = chain.edit(place, &batch.bytes, &mut records);
    println!(
        "{} of {RECORD_COUNT} kept, changed: {}, halted: {}, edits take {} bytes",
        records.kept_count(),
        records.is_changed(),
        edited.halt.map_or_else(|| "no".to_owned(), |halt| halt.reason),
        records.edit_bytes()
    );
    for _ in 0..ROUND_COUNT {
        let fill_ns = cost_ns(|| fill(&batch, &mut decompressor, &mut records))?;
        let all_ns = cost_ns(|| {
            fill(&batch, &mut decompressor, &mut records)?;
            chain.edit(place, &batch.bytes, &mut records);
            Ok(())
        })?;
        println!("{all_ns:6.1} ns a record, of which {fill_ns:5.1} to walk the batch and fill the index");
    }
    Ok(())
}

fn chain(module: &str, settings_json: String) -> Result<Chain> {
    let engine = Engine::new(None)?;
    let none: [&str; 0] = [];
    let list = |expressions: &[&str]| NameList::parse(expressions).map_err(anyhow::Error::msg);
    let config = PluginConfig {
        name: "measured".to_owned(),
        module: match module.strip_prefix("builtin:") {
            Some(name) => PluginModule::Builtin(name.to_owned()),
            None => PluginModule::File(module.into()),
        },
        sha256: None,
        settings_json,
        topics: TopicFilter { include: list(&[".*"])?, exclude: list(&none)? },
        on_fault: OnFault::Pause,
        deadline: Duration::from_secs(5),
        memory_bytes: 64 << 20,
    };
    let link =
        Link { name: "a->b".to_owned(), source_cluster: "a".to_owned(), target_cluster: "b".to_owned() };
    let plugin = Arc::new(LoadedPlugin::load(&engine, &config, &link)?);
    Ok(Chain::start(&Arc::new(Generation { number: 1, plugins: vec![plugin] }))?)
}

/// As they lie in a log: a header `region` with the value `eu`, two others, and a JSON value of 1 KiB.
fn batch() -> Result<Batch> {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::None);
    let headers: [(&[u8], Option<&[u8]>); 3] = [
        (b"trace", Some(b"00-4bf92f3577b34da6a3ce929d0e0e47")),
        (b"region", Some(b"eu")),
        (b"content-type", Some(b"application/json")),
    ];
    for number in 0..RECORD_COUNT {
        let start = format!(
            "{{\"order\":{number},\"region\":\"eu\",\"email\":\"someone{number}@example.org\",\"note\":\""
        );
        let value = format!("{start}{}\"}}", "x".repeat(1022 - start.len()));
        let key = format!("customer-{number:031}");
        builder.push_parts(Some(key.as_bytes()), Some(value.as_bytes()), &headers, 1_700_000_000_000);
    }
    Ok(builder.finish()?.to_batch())
}

fn fill(batch: &Batch, decompressor: &mut Decompressor, records: &mut RecordSet) -> Result<()> {
    records.start();
    for record in decompressor.records(batch)? {
        let record = record?;
        let parts = RecordParts {
            offset: SourceOffset(batch.header.base_offset + i64::from(record.offset_delta)),
            timestamp_ms: record_timestamp(&batch.header, &record),
            key: record.key,
            value: record.value,
            headers: record.headers,
        };
        records.push(&batch.bytes, parts)?;
    }
    Ok(())
}

fn cost_ns(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let (started_at, before) = (Instant::now(), thread_time()?);
    let mut records = 0_u64;
    while started_at.elapsed() < ROUND {
        for _ in 0..20 {
            work()?;
            records += RECORD_COUNT as u64;
        }
    }
    Ok((thread_time()? - before).as_nanos() as f64 / records as f64)
}

/// Processor time of this thread, as exact as the kernel tells: nanoseconds, or ticks of 10 ms.
fn thread_time() -> Result<Duration> {
    let scheduled = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match scheduled.split_whitespace().next().and_then(|word| word.parse().ok()) {
        Some(nanoseconds) if nanoseconds > 0 => return Ok(Duration::from_nanos(nanoseconds)),
        _ => {}
    }
    let text = fs::read_to_string("/proc/thread-self/stat").context("no times of this thread")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
}
