//! `tidegate status`: what a running Tidegate does, as a table or JSON.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{Exit, Failure, Output, StatusArguments, visible};
use crate::serve::view::{FlowView, PartitionView, StatusView};

/// How long the running process may take to answer, in milliseconds.
const ANSWER_MS_MAX: u64 = 5_000;

pub(super) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    let view: StatusView = arguments.client.client_within(ANSWER_MS_MAX)?.status()?;
    match arguments.output {
        Output::Json => {
            let json = serde_json::to_string_pretty(&view).map_err(|error| Exit::Internal.because(error))?;
            super::print(&format!(
                "{json}
"
            ));
        }
        Output::Table => super::print(&text(&view)),
    }
    Ok(())
}

/// The table that people read.
fn text(view: &StatusView) -> String {
    let mut text = format!("tidegate {}, process {}, up {} s\n", view.version, view.pid, view.uptime_seconds);
    if view.flows.is_empty() {
        text.push_str("no flow\n");
    }
    for flow in &view.flows {
        text.push('\n');
        text.push_str(&flow_text(flow));
    }
    text
}

fn flow_text(flow: &FlowView) -> String {
    let mut text = format!(
        "{}  {}  {} slots  lag {}  {} rec/s  {}/s\n",
        flow.name,
        flow.state,
        flow.slots.len(),
        flow.lag_records,
        whole(flow.records_per_second),
        bytes_text(flow.bytes_per_second)
    );
    for refusal in &flow.refusals {
        text.push_str(&format!("  refused: {refusal}\n"));
    }
    if let Some(error) = &flow.last_error {
        text.push_str(&format!("  last error: {}\n", error.message));
    }
    if !flow.plugins.is_empty() {
        text.push_str(&plugin_table(flow).to_string());
        text.push('\n');
    }
    if flow.partitions.is_empty() {
        return text;
    }
    text.push_str(&partition_table(flow).to_string());
    text.push('\n');
    for partition in &flow.partitions {
        if let Some(line) = paused_line(flow, partition) {
            text.push_str(&line);
        }
        if let Some(error) = &partition.last_error {
            text.push_str(&format!("  {}-{}: {}\n", partition.topic, partition.partition, error.message));
        }
    }
    text
}

/// Why a partition stands still, and the way out.
fn paused_line(flow: &FlowView, partition: &PartitionView) -> Option<String> {
    let paused = partition.paused.as_ref()?;
    let (topic, number) = (&partition.topic, partition.partition);
    Some(format!(
        "  {topic}-{number} PAUSED at offset {} by plugin \"{}\" (generation {}): {}; go on with `tidegate flow resume \
         '{}' --partition '{topic}[{number}]'`, or swap the plugin\n",
        paused.offset,
        paused.plugin,
        paused.generation,
        visible(&paused.reason),
        flow.name
    ))
}

/// Hex digits of a digest that are shown.
const DIGEST_CHARS: usize = 12;

fn plugin_table(flow: &FlowView) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "PLUGIN",
        "VERSION",
        "DIGEST",
        "HOOKS",
        "ON FAULT",
        "GENERATION",
        "RECORDS",
        "DROPPED",
        "CHANGED",
        "REJECTED",
        "FAULTS",
    ]);
    for plugin in &flow.plugins {
        table.add_row([
            plugin.name.clone(),
            plugin.version.clone(),
            plugin.digest.chars().take(DIGEST_CHARS).collect(),
            plugin.hooks.join(","),
            plugin.on_fault.clone(),
            plugin.generation.to_string(),
            plugin.records.to_string(),
            plugin.dropped.to_string(),
            plugin.changed.to_string(),
            plugin.rejected.to_string(),
            plugin.faults.to_string(),
        ]);
    }
    align_numbers(&mut table, 5);
    table
}

/// Columns from this one on hold numbers.
fn align_numbers(table: &mut Table, first: usize) {
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn partition_table(flow: &FlowView) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "TOPIC",
        "PARTITION",
        "TARGET",
        "SLOT",
        "END",
        "POSITION",
        "LAG",
        "RECORDS",
        "REC/S",
        "BYTES/S",
        "PASS",
        "MERGE",
        "REWRITE",
    ]);
    let known = |value: Option<i64>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    for partition in &flow.partitions {
        table.add_row([
            partition.topic.clone(),
            partition.partition.to_string(),
            partition.target_topic.clone(),
            partition.slot.to_string(),
            known(partition.source_end),
            known(partition.position),
            partition.lag_records.map_or_else(|| "?".to_owned(), |lag| lag.to_string()),
            partition.records.to_string(),
            whole(partition.records_per_second),
            bytes_text(partition.bytes_per_second),
            partition.batches.pass.to_string(),
            partition.batches.merge.to_string(),
            partition.batches.rewrite.to_string(),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if !matches!(index, 0 | 2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Bytes with a binary unit.
pub(super) fn bytes_text(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::view::{ErrorView, PartitionView, PausedView, PluginView, TierView};

    #[test]
    fn the_table_shows_what_an_operator_looks_for() {
        let partition = PartitionView {
            topic: "orders".into(),
            partition: 0,
            target_topic: "east.orders".into(),
            slot: 7,
            source_end: Some(120),
            position: Some(100),
            lag_records: Some(20),
            records: 100,
            bytes: 4_096,
            records_per_second: 12.4,
            bytes_per_second: 1_536.0,
            batches: TierView { pass: 3, merge: 2, rewrite: 1 },
            dropped: 5,
            changed: 6,
            quarantined: 7,
            generation: Some(2),
            generation_first_offset: Some(90),
            paused: Some(PausedView {
                at_ms: 1,
                offset: 100,
                plugin: "mask".into(),
                generation: 2,
                reason: "is no JSON".into(),
            }),
            last_error: Some(ErrorView {
                at_ms: 1,
                message: "the target answered NotLeaderOrFollower".into(),
            }),
        };
        let flow = FlowView {
            name: "east->west".into(),
            state: "running".into(),
            slots: vec![7, 8],
            lag_records: 20,
            records_per_second: 12.4,
            bytes_per_second: 1_536.0,
            refusals: vec!["topic \"x\" would loop".into()],
            last_error: None,
            plugins: vec![PluginView {
                name: "mask".into(),
                version: "0.2.1".into(),
                digest: "0123456789abcdef".into(),
                generation: 2,
                hooks: vec!["records".into(), "selection".into()],
                on_fault: "pause".into(),
                calls: 1,
                records: 20,
                dropped: 5,
                changed: 6,
                rejected: 1,
                faults: 3,
                memory_bytes: 1,
            }],
            partitions: vec![partition],
        };
        let shown = flow_text(&flow);
        let lines: Vec<String> =
            shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "east->west running 2 slots lag 20 12 rec/s 1.5 KiB/s",
                "refused: topic \"x\" would loop",
                "PLUGIN VERSION DIGEST HOOKS ON FAULT GENERATION RECORDS DROPPED CHANGED REJECTED FAULTS",
                "mask 0.2.1 0123456789ab records,selection pause 2 20 5 6 1 3",
                "TOPIC PARTITION TARGET SLOT END POSITION LAG RECORDS REC/S BYTES/S PASS MERGE REWRITE",
                "orders 0 east.orders 7 120 100 20 100 12 1.5 KiB 3 2 1",
                "orders-0 PAUSED at offset 100 by plugin \"mask\" (generation 2): is no JSON; go on with `tidegate flow \
                 resume 'east->west' --partition 'orders[0]'`, or swap the plugin",
                "orders-0: the target answered NotLeaderOrFollower",
            ]
        );
    }
}
