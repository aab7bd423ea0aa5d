//! What swaps and starts cost: `swap` changes a plugin of a running flow, `start` starts ten flows with ten plugins each.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tidegate_tests::{
    FlowFile, KafkaCluster, Load, LoadOptions, Numbered, ProducerOptions, Tidegate, topics,
};

const SWAP_COUNT: usize = 20;
const FLOW_COUNT: usize = 10;
const PLUGIN_COUNT: usize = 10;
const READY_DEADLINE: Duration = Duration::from_secs(60);
const COMMAND_DEADLINE: Duration = Duration::from_secs(60);
const MARK: &str = r#"{"rules":[{"action":"set","name":"mark","value":"0"}]}"#;
/// For builtin:redact, a compiled Rust plugin of about 100 KB.
const REDACT: &str = r#"{"fields":[{"paths":["email"],"action":"mask"}],"not_json":"pass"}"#;

/// Figures of swaps under load.
pub(crate) struct Swaps {
    /// A module that this machine has never compiled: from the command to everywhere in use.
    cold_ms: u64,
    /// Settings alone, the slowest of [`SWAP_COUNT`].
    settings_ms_max: u64,
    /// The longest time that a worker's batches waited for a swap.
    wait_us_max: f64,
}

/// Swaps on a running flow of 20 000 records a second.
pub(crate) async fn swaps(source: &KafkaCluster, target: &KafkaCluster) -> anyhow::Result<Swaps> {
    let records = Numbered { producer: 1, partition_count: 12, value_bytes: 1024 };
    topics::create_topic(source, "bench-swap", records.partition_count, &[]).await?;
    let options = LoadOptions {
        records,
        first_number: 0,
        records_per_second: 20_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(source, "bench-swap", options)?;
    let directory = tempfile::tempdir()?;
    let file = FlowFile::new("swap", source, target).topics("bench-swap").set("tidegate.plugins", "it");
    let file = file
        .set("tidegate.plugin.it.module", "builtin:header-rules")
        .set("tidegate.plugin.it.settings", MARK);
    let file = file.set("tidegate.cache.dir", "cache").write(directory.path())?;
    let process = Tidegate::start(&file, &[])?;
    ready(&process).await?;
    let token = directory.path().join("cache/http.token");
    let token = token.to_str().context("a path is no text")?;
    let http = process.http_address();
    let swap = async |arguments: &[&str]| -> anyhow::Result<u64> {
        let always = ["--yes", "--replay", "0", "-o", "json", "--http", &http, "--token-file", token];
        let arguments = [&["plugin", "swap", "swap->target", "it"], arguments, &always].concat();
        let started = Instant::now();
        let finished = Tidegate::command(&arguments, COMMAND_DEADLINE).await?;
        ensure!(finished.code == 0, "a swap ended with {}: {}", finished.code, finished.output);
        Ok(u64::try_from(started.elapsed().as_millis())?)
    };
    let cold_ms = swap(&["builtin:redact", "--settings", REDACT]).await?;
    let mut settings_ms_max = 0;
    for number in 0..SWAP_COUNT {
        let settings = REDACT.replace("email", &format!("email{number}"));
        settings_ms_max = settings_ms_max.max(swap(&["--settings", &settings]).await?);
    }
    let wait_us_max = process.metric("tidegate_flow_chain_wait_microseconds").await?;
    load.stop().await?;
    process.stop(Duration::from_secs(60)).await?;
    Ok(Swaps { cold_ms, settings_ms_max, wait_us_max })
}

/// Figures of a start.
pub(crate) struct Start {
    cold: Duration,
    warm: Duration,
    resident_bytes: u64,
}

/// Starts ten flows from one cluster under ten names, each with ten plugins, twice: without and with compiled modules.
pub(crate) async fn start(source: &KafkaCluster, target: &KafkaCluster) -> anyhow::Result<Start> {
    let directory = tempfile::tempdir()?;
    topics::create_topic(source, "bench-start", 1, &[]).await?;
    let aliases: Vec<String> = (0..FLOW_COUNT).map(|number| format!("s{number}")).collect();
    let mut file = FlowFile::new("s0", source, target).set("topics", "bench-start");
    file =
        file.set("clusters", &format!("{}, target", aliases.join(", "))).set("tidegate.cache.dir", "cache");
    for alias in &aliases {
        file = file
            .set(&format!("{alias}.bootstrap.servers"), &source.bootstrap_servers())
            .set(&format!("{alias}->target.enabled"), "true")
            .set(&format!("target->{alias}.emit.heartbeats.enabled"), "false");
    }
    let names: Vec<String> = (0..PLUGIN_COUNT).map(|number| format!("p{number}")).collect();
    file = file.set("tidegate.plugins", &names.join(", "));
    for (number, name) in names.iter().enumerate() {
        let (module, settings) = match number % 2 {
            0 => ("builtin:header-rules", MARK),
            _ => ("builtin:redact", REDACT),
        };
        file = file.set(&format!("tidegate.plugin.{name}.module"), module);
        file = file.set(&format!("tidegate.plugin.{name}.settings"), settings);
    }
    let file = file.write(directory.path())?;
    let mut times = Vec::new();
    let mut resident_bytes = 0;
    for _ in ["cold", "warm"] {
        let started = Instant::now();
        let process = Tidegate::start(&file, &[])?;
        ready(&process).await?;
        times.push(started.elapsed());
        resident_bytes = process.usage()?.resident_peak_bytes;
        process.stop(Duration::from_secs(60)).await?;
    }
    Ok(Start { cold: times[0], warm: times[1], resident_bytes })
}

/// Waits until every flow runs.
async fn ready(process: &Tidegate) -> anyhow::Result<()> {
    let started = Instant::now();
    while process.http_get("/health/ready").await.is_err() {
        ensure!(
            started.elapsed() < READY_DEADLINE,
            "not ready after {READY_DEADLINE:?}\n{}",
            process.log_tail()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

impl Swaps {
    pub(crate) fn text(&self) -> String {
        let mut text = "\nSwaps under load (12 partitions, 20 000 records a second)\n".to_owned();
        let _ = writeln!(
            text,
            "  new 100 KB module, command to everywhere in use: {} ms (wanted ≤ 1000)",
            self.cold_ms
        );
        let _ = writeln!(text, "  settings, the slowest of {SWAP_COUNT}: {} ms", self.settings_ms_max);
        let _ =
            writeln!(text, "  longest wait of a batch for a swap: {} µs (wanted ≤ 5000)", self.wait_us_max);
        text
    }

    pub(crate) fn json(&self) -> Value {
        json!({"cold_ms": self.cold_ms, "settings_ms_max": self.settings_ms_max, "wait_us_max": self.wait_us_max})
    }
}

impl Start {
    pub(crate) fn text(&self) -> String {
        let mut text =
            format!("\nStart of {FLOW_COUNT} flows with {PLUGIN_COUNT} plugins each, until all run\n");
        let _ = writeln!(text, "  nothing compiled yet: {:.2} s", self.cold.as_secs_f64());
        let _ = writeln!(text, "  modules compiled before: {:.2} s (wanted ≤ 2)", self.warm.as_secs_f64());
        let _ = writeln!(text, "  resident at most: {} MiB", self.resident_bytes / 1_048_576);
        text
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "cold_s": self.cold.as_secs_f64(),
            "warm_s": self.warm.as_secs_f64(),
            "resident_bytes": self.resident_bytes,
        })
    }
}
