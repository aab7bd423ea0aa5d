//! A report as text for the terminal.

use std::fmt;

use similar::{ChangeTag, TextDiff};

use super::{Difference, ShownRecord, TrialReport, TrialSide};

impl fmt::Display for TrialReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record_count, partition_count, .. } = self;
        writeln!(formatter, "tried {record_count} records of {partition_count} partitions")?;
        if let Some(old) = &self.old {
            writeln!(formatter, "  old: {old}")?;
        }
        writeln!(formatter, "  new: {}", self.new)?;
        for side in self.old.iter().chain([&self.new]) {
            let name = if std::ptr::eq(side, &self.new) { "new" } else { "old" };
            for reason in &side.reasons {
                writeln!(formatter, "  {name}: {reason}")?;
            }
        }
        if self.differing_count == 0 {
            return writeln!(formatter, "no record fares differently");
        }
        writeln!(formatter, "{} records fare differently", self.differing_count)?;
        for difference in &self.differences {
            write!(formatter, "\n{difference}")?;
        }
        let untold = self.differing_count - self.differences.len() as u64;
        if untold > 0 {
            writeln!(formatter, "\nand {untold} more")?;
        }
        Ok(())
    }
}

impl fmt::Display for TrialSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kept_count, changed_count, dropped_count, rejected_count, faulted_count, .. } = self;
        write!(
            formatter,
            "{kept_count} kept, {changed_count} changed, {dropped_count} dropped, {rejected_count} rejected, \
             {faulted_count} failed"
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, offset, .. } = self;
        writeln!(
            formatter,
            "{topic}[{partition}] offset {offset}: {}, was {}",
            self.new.words(),
            self.old.words()
        )?;
        match self.copied() {
            (Some(old), Some(new)) => formatter.write_str(&line_diff(old, new)),
            (Some(record), None) => formatter.write_str(&all_lines(record, "-")),
            (None, Some(record)) => formatter.write_str(&all_lines(record, "+")),
            (None, None) => Ok(()),
        }
    }
}

fn all_lines(record: &ShownRecord, sign: &str) -> String {
    record.lines(false).iter().map(|line| format!("  {sign} {line}\n")).collect()
}

/// A line diff of two records, whole. JSON values are spread over lines, unless only their spelling differs: then they
/// are shown as they are written.
pub fn line_diff(old: &ShownRecord, new: &ShownRecord) -> String {
    let only_spelling_differs = old.value != new.value && old.value.as_json() == new.value.as_json();
    let spread = !only_spelling_differs || old.value.as_json().is_none();
    let text = |record: &ShownRecord| record.lines(spread).iter().map(|line| format!("{line}\n")).collect();
    let (old, new): (String, String) = (text(old), text(new));
    let diff = TextDiff::from_lines(&old, &new);
    let sign = |tag| match tag {
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
        ChangeTag::Equal => ' ',
    };
    diff.iter_all_changes().map(|change| format!("  {} {}", sign(change.tag()), change.value())).collect()
}
