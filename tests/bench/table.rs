//! The figures as text for people and as JSON for later.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::contender::{Kind, Measured};
use crate::fill::Filled;
use crate::latency;
use crate::socket_copy::SocketCopy;
use crate::workload::{Policy, Workload};

/// Wanted at least: records per second as a multiple of MirrorMaker 2's.
const RATE_RATIO_MIN: f64 = 3.0;
/// Wanted at least: records per second with a filter that keeps all, as a part of those without it.
const POLICY_RATE_RATIO_MIN: f64 = 0.9;
/// Wanted at most.
const FIRST_RECORD_S_MAX: f64 = 1.0;
const RESIDENT_MIB_MAX: f64 = 100.0;
const ADDED_P50_MS_MAX: f64 = 2.0;
const ADDED_P99_MS_MAX: f64 = 10.0;

/// One workload, all contenders.
pub(crate) struct Throughput {
    workload: Workload,
    filled: Filled,
    copy: SocketCopy,
    measured: Vec<(Kind, Measured)>,
}

impl Throughput {
    pub(crate) fn new(workload: Workload, filled: Filled, copy: SocketCopy) -> Throughput {
        Throughput { workload, filled, copy, measured: Vec::new() }
    }

    pub(crate) fn push(&mut self, kind: Kind, measured: Measured) {
        self.measured.push((kind, measured));
    }

    fn of(&self, kind: Kind) -> Option<&Measured> {
        self.measured.iter().find(|(found, _)| *found == kind).map(|(_, measured)| measured)
    }

    fn copy_cpu_s_per_million(&self) -> f64 {
        self.copy.cpu.as_secs_f64() * 1e6 / self.workload.record_count as f64
    }

    fn copy_records_per_second(&self) -> f64 {
        self.workload.record_count as f64 / self.copy.wall.as_secs_f64()
    }

    /// Tidegate's CPU time for each record as a part of MirrorMaker 2's.
    fn cpu_ratio(&self) -> Option<f64> {
        Some(self.of(Kind::Tidegate)?.cpu_s_per_million() / self.of(Kind::MirrorMaker)?.cpu_s_per_million())
    }

    fn rate_ratio(&self) -> Option<f64> {
        Some(self.of(Kind::Tidegate)?.records_per_second() / self.of(Kind::MirrorMaker)?.records_per_second())
    }

    /// Tidegate's CPU time for each record as a multiple of the bare copy's.
    fn copy_ratio(&self) -> Option<f64> {
        Some(self.of(Kind::Tidegate)?.cpu_s_per_million() / self.copy_cpu_s_per_million())
    }

    /// Records per second with the policy as a part of those without.
    fn policy_rate_ratio(&self) -> Option<f64> {
        Some(self.of(Kind::Tidegate)?.records_per_second() / self.of(Kind::Plain)?.records_per_second())
    }

    /// CPU time that the policy adds to a record, in nanoseconds.
    fn policy_ns(&self) -> Option<f64> {
        let with = self.of(Kind::Tidegate)?.cpu_s_per_million();
        Some((with - self.of(Kind::Plain)?.cpu_s_per_million()) * 1_000.0)
    }

    pub(crate) fn json(&self) -> Value {
        let contenders = self.measured.iter().map(|(kind, measured)| {
            let figures = json!({
                "cpu_s_per_million": measured.cpu_s_per_million(),
                "cpu_s_with_start": measured.cpu_with_start.as_secs_f64(),
                "records_per_second": measured.records_per_second(),
                "first_record_s": measured.first_record.as_secs_f64(),
                "resident_peak_bytes": measured.resident_peak_bytes,
                "records_measured": measured.record_count,
            });
            (kind.key().to_owned(), figures)
        });
        let mut value = json!({
            "workload": self.workload.name,
            "title": self.workload.title,
            "records": self.workload.record_count,
            "stored_bytes": self.filled.stored_bytes,
            "records_per_batch": self.filled.records_per_batch,
            "socket_copy": {
                "cpu_s_per_million": self.copy_cpu_s_per_million(),
                "records_per_second": self.copy_records_per_second(),
            },
            "cpu_ratio_to_mirror_maker": self.cpu_ratio(),
            "cpu_ratio_wanted_max": self.workload.cpu_ratio_max,
            "rate_ratio_to_mirror_maker": self.rate_ratio(),
            "rate_ratio_wanted_min": RATE_RATIO_MIN,
            "rate_ratio_to_plain": self.policy_rate_ratio(),
            "rate_ratio_to_plain_wanted_min": POLICY_RATE_RATIO_MIN,
            "policy_cpu_ns_per_record": self.policy_ns(),
            "cpu_ratio_to_socket_copy": self.copy_ratio(),
        });
        if let Some(object) = value.as_object_mut() {
            object.extend(contenders);
        }
        value
    }
}

/// All workloads as a table with what was wanted.
pub(crate) fn throughput_text(throughputs: &[Throughput]) -> String {
    let mut text = String::new();
    for throughput in throughputs {
        let (workload, filled) = (&throughput.workload, &throughput.filled);
        let _ = writeln!(text, "\n{}: {} records, {filled}", workload.title, workload.record_count);
        let _ = writeln!(
            text,
            "{:<22}{:>14}{:>12}{:>14}{:>12}",
            "", "CPU-s/million", "rec/s", "first record", "resident"
        );
        for (kind, measured) in &throughput.measured {
            let _ = writeln!(
                text,
                "{:<22}{:>14.3}{:>12.0}{:>12.2} s{:>8.0} MiB",
                kind.to_string(),
                measured.cpu_s_per_million(),
                measured.records_per_second(),
                measured.first_record.as_secs_f64(),
                mebibytes(measured.resident_peak_bytes)
            );
        }
        let (cpu, rate) = (throughput.copy_cpu_s_per_million(), throughput.copy_records_per_second());
        let _ = writeln!(text, "{:<22}{cpu:>14.3}{rate:>12.0}", "bare socket copy");
        wanted(&mut text, throughput);
    }
    text
}

fn wanted(text: &mut String, throughput: &Throughput) {
    let mut line = |what: &str, found: f64, good: bool, wanted: &str| {
        let word = if good { "reached" } else { "NOT REACHED" };
        let _ = writeln!(text, "  {what}: {found:.3} (wanted {wanted}): {word}");
    };
    if let Some(ratio) = throughput.cpu_ratio() {
        match throughput.workload.cpu_ratio_max {
            Some(max) => line("CPU per record ÷ MirrorMaker 2", ratio, ratio <= max, &format!("≤ {max}")),
            None => line("CPU per record ÷ MirrorMaker 2", ratio, true, "to be said"),
        }
    }
    if let Some(ratio) = throughput.rate_ratio() {
        line(
            "records per second ÷ MirrorMaker 2",
            ratio,
            ratio >= RATE_RATIO_MIN,
            &format!("≥ {RATE_RATIO_MIN}"),
        );
    }
    if let Some(ratio) = throughput.policy_rate_ratio() {
        let is_filter = throughput.workload.policy == Policy::KeepAll;
        let good = !is_filter || ratio >= POLICY_RATE_RATIO_MIN;
        let wanted = if is_filter { format!("≥ {POLICY_RATE_RATIO_MIN}") } else { "to be said".to_owned() };
        line("records per second ÷ without the policy", ratio, good, &wanted);
    }
    if let Some(ns) = throughput.policy_ns() {
        line("CPU ns that the policy adds to a record", ns, true, "to be said");
    }
    if let Some(tidegate) = throughput.of(Kind::Tidegate) {
        let (first, resident) =
            (tidegate.first_record.as_secs_f64(), mebibytes(tidegate.resident_peak_bytes));
        line("seconds to the first record", first, first <= FIRST_RECORD_S_MAX, "≤ 1");
        line("resident MiB at most", resident, resident <= RESIDENT_MIB_MAX, "≤ 100");
    }
    if let Some(ratio) = throughput.copy_ratio() {
        let _ = writeln!(text, "  CPU per record ÷ bare socket copy: {ratio:.2}");
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// Latencies of all contenders.
#[derive(Default)]
pub(crate) struct Latencies {
    measured: Vec<(Kind, latency::Measured)>,
}

impl Latencies {
    pub(crate) fn push(&mut self, kind: Kind, measured: latency::Measured) {
        self.measured.push((kind, measured));
    }

    pub(crate) fn json(&self) -> Value {
        let figures = self.measured.iter().map(|(kind, measured)| {
            let (added_p50, added_p99) = added(measured);
            let figures = json!({
                "records": measured.record_count,
                "source_p50_ms": measured.at_source.p50_ms,
                "source_p99_ms": measured.at_source.p99_ms,
                "target_p50_ms": measured.at_target.p50_ms,
                "target_p99_ms": measured.at_target.p99_ms,
                "added_p50_ms": added_p50,
                "added_p99_ms": added_p99,
            });
            (kind.key().to_owned(), figures)
        });
        Value::Object(figures.collect())
    }
}

fn added(measured: &latency::Measured) -> (f64, f64) {
    (
        measured.at_target.p50_ms - measured.at_source.p50_ms,
        measured.at_target.p99_ms - measured.at_source.p99_ms,
    )
}

/// The latencies as a table.
pub(crate) fn latency_text(latencies: &Latencies) -> String {
    let mut text = String::new();
    if latencies.measured.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\nlatency at 1000 rec/s of 1 KiB, milliseconds from the producer to a reader (p50 / p99)"
    );
    let _ = writeln!(text, "{:<22}{:>18}{:>18}{:>18}", "", "at the source", "at the target", "added");
    for (kind, measured) in &latencies.measured {
        let cell = |p50: f64, p99: f64| format!("{p50:.2} / {p99:.2}");
        let (added_p50, added_p99) = added(measured);
        let _ = writeln!(
            text,
            "{:<22}{:>18}{:>18}{:>18}",
            kind.to_string(),
            cell(measured.at_source.p50_ms, measured.at_source.p99_ms),
            cell(measured.at_target.p50_ms, measured.at_target.p99_ms),
            cell(added_p50, added_p99)
        );
        if *kind == Kind::Tidegate {
            let good = added_p50 <= ADDED_P50_MS_MAX && added_p99 <= ADDED_P99_MS_MAX;
            let word = if good { "reached" } else { "NOT REACHED" };
            let _ = writeln!(text, "  wanted ≤ {ADDED_P50_MS_MAX} / ≤ {ADDED_P99_MS_MAX}: {word}");
        }
    }
    text
}
