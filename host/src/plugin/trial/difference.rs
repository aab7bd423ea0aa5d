//! One record that fares differently under two chains, as it was and as it becomes.

use serde::Serialize;

use super::{ShownRecord, TrialBatch, TrialRecord, Verdict};

/// How a record fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Copied as it is.
    Kept,
    /// Copied like this.
    Changed(ShownRecord),
    /// Not copied.
    Dropped,
    /// Rejected, with plugin and reason.
    Rejected(String),
    /// A plugin failed on it, with plugin and reason.
    Faulted(String),
}

/// A record that fares differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where it lies.
    pub topic: String,
    /// Where it lies.
    pub partition: i32,
    /// Where it lies.
    pub offset: i64,
    /// As it was read.
    pub record: ShownRecord,
    /// Under the old chain.
    pub old: Fate,
    /// Under the new chain.
    pub new: Fate,
}

impl Difference {
    pub(super) fn of(batch: &TrialBatch, record: &TrialRecord, old: &Verdict, new: &Verdict) -> Self {
        Self {
            topic: batch.topic.to_string(),
            partition: batch.partition,
            offset: record.offset,
            record: ShownRecord::of(record),
            old: Fate::of(old),
            new: Fate::of(new),
        }
    }

    /// What is copied under each, `None` where nothing is.
    pub(super) fn copied(&self) -> (Option<&ShownRecord>, Option<&ShownRecord>) {
        let copied = |fate| match fate {
            &Fate::Kept => Some(&self.record),
            Fate::Changed(record) => Some(record),
            Fate::Dropped | Fate::Rejected(_) | Fate::Faulted(_) => None,
        };
        (copied(&self.old), copied(&self.new))
    }
}

impl Fate {
    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Kept => Self::Kept,
            Verdict::Changed(record) => Self::Changed(ShownRecord::of(record)),
            Verdict::Dropped => Self::Dropped,
            Verdict::Rejected { plugin, reason } => Self::Rejected(format!("{plugin}: {reason}")),
            Verdict::Faulted { plugin, reason } => Self::Faulted(format!("{plugin}: {reason}")),
        }
    }

    /// One word, with the reason where there is one.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Kept => "kept".to_owned(),
            Self::Changed(_) => "changed".to_owned(),
            Self::Dropped => "dropped".to_owned(),
            Self::Rejected(reason) => format!("rejected by {reason}"),
            Self::Faulted(reason) => format!("failed in {reason}"),
        }
    }
}
