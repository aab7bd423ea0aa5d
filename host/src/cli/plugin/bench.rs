//! `tidegate plugin bench [MODULE]`.

use clap::Args;

use super::subject::{LimitArguments, ModuleArguments, settings_text};
use crate::author::bench::{BenchOptions, BenchReport, RecordCost, bench};
use crate::author::scratch::ScratchFolder;
use crate::cli::status::bytes_text;
use crate::cli::{Exit, Failure, Output};

/// More would take longer than anybody waits.
const RECORD_COUNT_MAX: u64 = 100_000_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchArguments {
    #[command(flatten)]
    module: ModuleArguments,
    /// The plugin's settings: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON|@FILE")]
    settings: Option<String>,
    /// Records that go through it.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=RECORD_COUNT_MAX))]
    records: u64,
    #[command(flatten)]
    limits: LimitArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    let options = BenchOptions {
        settings_json: settings_text(arguments.settings.as_deref())?,
        limits: arguments.limits.limits(),
        record_count: usize::try_from(arguments.records).unwrap_or(usize::MAX),
    };
    let scratch = ScratchFolder::create().map_err(|error| Exit::Internal.because(error))?;
    let report = bench(&arguments.module.module()?, &options, scratch.path())
        .map_err(|error| Exit::Data.because(error))?;
    let text = match arguments.output {
        Output::Table => text(&report),
        Output::Json => {
            serde_json::to_string_pretty(&report).map_err(|error| Exit::Internal.because(error))? + "\n"
        }
    };
    crate::cli::print(&text);
    match report.records.as_ref().and_then(|records| records.first_reason.as_ref()) {
        None => Ok(()),
        Some(reason) => Err(Exit::Data.because(anyhow::anyhow!(
            "the plugin rejects or fails on records, so the figures say little: {reason}"
        ))),
    }
}

fn text(report: &BenchReport) -> String {
    let mut text = format!(
        "plugin    {}\nsha256    {}\nsize      {}\nstart     {:.1} ms compiled anew, {:.1} ms from the cache, {:.2} ms an instance\n",
        report.plugin,
        report.digest,
        bytes_text(report.size_bytes as f64),
        report.compile_ms,
        report.cached_load_ms,
        report.instance_ms,
    );
    if let Some(records) = &report.records {
        text += &records_text(records);
    }
    if let Some(names) = &report.names {
        text += &format!("name      {:.2} µs, of {} names\n", names.us_per_name, names.name_count);
    }
    text
}

fn records_text(records: &RecordCost) -> String {
    let clock = if records.is_processor_time { "processor" } else { "wall" };
    format!(
        "record    {:.0} ns of {clock} time, of it {:.0} ns the host's; {:.2} million a second and core\n\
         memory    {} an instance\n\
         records   {}: {} copied ({} changed), {} dropped, {} rejected or failed\n",
        records.ns_per_record,
        records.host_ns_per_record,
        records.records_per_second / 1e6,
        bytes_text(records.memory_bytes as f64),
        records.record_count,
        records.kept_count,
        records.changed_count,
        records.dropped_count,
        records.condemned_count,
    )
}
