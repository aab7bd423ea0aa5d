//! Plugins on real brokers: what they keep, how they are swapped, what never leaves.

mod filter;
mod nodes;
mod residency;
mod swaps;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use serde_json::Value;
use tidegate_tests::{FlowFile, Record, Tidegate};

/// A command that asks a running process ends within this time, in seconds.
const COMMAND_S_MAX: u64 = 60;

/// The header that the swaps' plugin sets.
const MARK: &str = "mark";

/// Half an hour ago: older records would be deleted by the brokers' retention one day.
static RECENT_MS: LazyLock<i64> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is past 1970");
    now.as_millis() as i64 - 1_800_000
});

/// The time of a numbered record.
fn recent_ms(number: usize) -> i64 {
    *RECENT_MS + number as i64 % 1_000_000
}

/// Adds the lines of a plugin that the binary carries.
fn with_plugin(file: FlowFile, name: &str, builtin: &str, settings: &str) -> FlowFile {
    file.set(&format!("tidegate.plugin.{name}.module"), &format!("builtin:{builtin}"))
        .set(&format!("tidegate.plugin.{name}.settings"), settings)
        // So long because the machine may be busy with other tests.
        .set(&format!("tidegate.plugin.{name}.deadline.ms"), "10000")
}

/// Settings of header-rules that set [`MARK`].
fn mark_settings(value: &str) -> String {
    format!(r#"{{"rules":[{{"action":"set","name":"{MARK}","value":"{value}"}}]}}"#)
}

/// What `tidegate plugin swap` answered.
struct Swapped {
    generation: u64,
    is_complete: bool,
    took_ms: u64,
    /// First source offset under the new generation, by partition of the topic.
    first_offsets: BTreeMap<i32, i64>,
}

/// Gives the flow's `mark` plugin other settings, as an operator would.
async fn swap_mark(process: &Tidegate, flow: &str, value: &str, topic: &str) -> anyhow::Result<Swapped> {
    let (settings, http) = (mark_settings(value), process.http_address());
    let arguments =
        ["plugin", "swap", flow, "mark", "--settings", &settings, "--yes", "-o", "json", "--http", &http];
    let finished = Tidegate::command(&arguments, Duration::from_secs(COMMAND_S_MAX)).await?;
    ensure!(finished.code == 0, "the swap to {value} ended with {}: {}", finished.code, finished.output);
    let start = finished.output.find('{').context("the swap answered no JSON")?;
    let answer: Value = serde_json::Deserializer::from_str(&finished.output[start..])
        .into_iter()
        .next()
        .context("the swap answered no JSON")??;
    let partitions = answer["swap"]["partitions"].as_array().context("the answer lists no partitions")?;
    let mut first_offsets = BTreeMap::new();
    for partition in partitions.iter().filter(|partition| partition["topic"] == topic) {
        let number = i32::try_from(partition["partition"].as_i64().context("a partition has no number")?)?;
        first_offsets
            .insert(number, partition["first_offset"].as_i64().context("a partition has no offset")?);
    }
    Ok(Swapped {
        generation: answer["swap"]["generation"].as_u64().context("the answer has no generation")?,
        is_complete: answer["swap"]["is_complete"]
            .as_bool()
            .context("the answer does not say whether it is complete")?,
        took_ms: answer["swap"]["took_ms"].as_u64().context("the answer does not say how long it took")?,
        first_offsets,
    })
}

/// Takes the mark off a record of the target and gives it.
fn take_mark(record: &mut Record) -> Option<String> {
    let headers = &mut record.content.headers;
    let place = headers.iter().position(|(name, _)| name == MARK)?;
    let (_, value) = headers.remove(place);
    Some(String::from_utf8_lossy(&value?).into_owned())
}

/// Checks that each source offset has the mark of the generation that was told for it: `changes` holds, in order, the
/// mark and where it began in each partition. `marks` are the target's, by source offset (the copy is whole and in order).
fn marks_change_where_told(
    marks: &BTreeMap<i32, Vec<String>>,
    changes: &[(String, BTreeMap<i32, i64>)],
) -> anyhow::Result<()> {
    for (partition, marks) in marks {
        for (offset, mark) in marks.iter().enumerate() {
            let began = |change: &&(String, BTreeMap<i32, i64>)| {
                change.1.get(partition).is_some_and(|first| *first <= offset as i64)
            };
            let expected = &changes.iter().rev().find(began).context("no generation began here")?.0;
            ensure!(
                mark == expected,
                "[{partition}] offset {offset} carries {mark}, but {expected} was told for it"
            );
        }
    }
    Ok(())
}

/// The marks of a whole copy, by source partition in order; the records lose them.
fn take_marks(records: &mut [Record]) -> anyhow::Result<BTreeMap<i32, Vec<String>>> {
    let mut marks: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for record in records {
        let mark = take_mark(record).with_context(|| format!("{record:?} went past the plugin"))?;
        marks.entry(record.partition).or_default().push(mark);
    }
    Ok(marks)
}
