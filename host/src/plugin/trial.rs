//! What a chain would do to records that are at hand: for an author's fixtures, and for "old against new" before a
//! swap. Nothing is sent anywhere. Records are owned here, each by itself: trials are small and want to be shown.

mod difference;
mod judge;
mod shown;
mod text;

use serde::Serialize;

use super::Chain;

pub use crate::record::{OwnedBatch as TrialBatch, OwnedRecord as TrialRecord};
pub use difference::{Difference, Fate};
pub use judge::judge;
pub use shown::{Shown, ShownRecord};
pub use text::line_diff;

/// As many differing records are kept in a report; the rest is counted.
pub const DIFFERENCE_COUNT_MAX: usize = 10;
/// As many different reasons of rejects and faults are kept for each side.
pub const REASON_COUNT_MAX: usize = 10;

/// What a chain does to one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Copied as it is.
    Kept,
    /// Copied like this.
    Changed(TrialRecord),
    /// Not copied.
    Dropped,
    /// A plugin said that something is wrong with it: `on.fault` decides.
    Rejected {
        /// The plugin's name in the chain.
        plugin: String,
        /// Its words.
        reason: String,
    },
    /// A plugin failed on it, twice: `on.fault` decides.
    Faulted {
        /// The plugin's name in the chain.
        plugin: String,
        /// What happened.
        reason: String,
    },
}

/// How many records fared how under one chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrialSide {
    /// Copied as they are.
    pub kept_count: u64,
    /// Copied, changed.
    pub changed_count: u64,
    /// Not copied.
    pub dropped_count: u64,
    /// Rejected.
    pub rejected_count: u64,
    /// On which a plugin failed.
    pub faulted_count: u64,
    /// The first few different reasons of rejects and faults, with the plugin's name.
    pub reasons: Vec<String>,
}

/// Old against new; without an old chain, the records as they were read against new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrialReport {
    /// Records that were tried.
    pub record_count: u64,
    /// From so many partitions.
    pub partition_count: u64,
    /// How the records fare now, if there is a chain now.
    pub old: Option<TrialSide>,
    /// How they would fare.
    pub new: TrialSide,
    /// Records that would fare differently.
    pub differing_count: u64,
    /// The first of them.
    pub differences: Vec<Difference>,
}

/// Runs both chains over `batches` and tells what would be different.
///
/// A chain says why it rejects or fails only where `on.fault` is `pause` or `quarantine`: make the chains of a trial
/// with one of these, best with `quarantine`, which goes on behind a bad record. Nothing of the chains changes but that
/// instances are replaced after faults.
pub fn compare(mut old: Option<&mut Chain>, new: &mut Chain, batches: &[TrialBatch]) -> TrialReport {
    let mut report = TrialReport { old: old.is_some().then(TrialSide::default), ..TrialReport::default() };
    for batch in batches {
        let before = old.as_deref_mut().map(|chain| judge(chain, batch));
        let after = judge(new, batch);
        report.add(batch, before.as_deref(), &after);
    }
    report.count_partitions(batches);
    report
}

impl TrialReport {
    /// Whether the new chain does to every record what the old one does (or nothing, without an old one).
    pub fn is_same(&self) -> bool {
        self.differing_count == 0
    }

    /// Whether the new chain fails or rejects where the old one did not, or more often.
    pub fn is_worse(&self) -> bool {
        let bad = |side: &TrialSide| side.rejected_count + side.faulted_count;
        bad(&self.new) > self.old.as_ref().map_or(0, bad)
    }

    fn add(&mut self, batch: &TrialBatch, old: Option<&[Verdict]>, new: &[Verdict]) {
        for (index, record) in batch.records.iter().enumerate() {
            let before = old.map_or(&Verdict::Kept, |verdicts| &verdicts[index]);
            let after = &new[index];
            self.record_count += 1;
            self.new.count(after);
            if let Some(side) = &mut self.old {
                side.count(before);
            }
            if before == after {
                continue;
            }
            self.differing_count += 1;
            if self.differences.len() < DIFFERENCE_COUNT_MAX {
                self.differences.push(Difference::of(batch, record, before, after));
            }
        }
    }

    fn count_partitions(&mut self, batches: &[TrialBatch]) {
        let mut places: Vec<_> = batches.iter().map(|batch| (&batch.topic, batch.partition)).collect();
        places.sort_unstable();
        places.dedup();
        self.partition_count = places.len() as u64;
    }
}

impl TrialSide {
    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Kept => self.kept_count += 1,
            Verdict::Changed(_) => self.changed_count += 1,
            Verdict::Dropped => self.dropped_count += 1,
            Verdict::Rejected { plugin, reason } => {
                self.rejected_count += 1;
                self.note(format!("{plugin} rejects: {reason}"));
            }
            Verdict::Faulted { plugin, reason } => {
                self.faulted_count += 1;
                self.note(format!("{plugin} fails: {reason}"));
            }
        }
    }

    fn note(&mut self, reason: String) {
        if self.reasons.len() < REASON_COUNT_MAX && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

#[cfg(test)]
mod tests;
