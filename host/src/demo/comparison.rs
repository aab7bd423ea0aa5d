//! Whether both sides hold the same records; if not, where the first difference of each partition is and of what kind.

use std::fmt;

use super::digest::{Fingerprint, PartitionDigest, SideDigest};
use super::{TARGET_TOPIC, TOPIC};

/// What the check at the end found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Records on the source.
    pub source_count: usize,
    /// Records on the target.
    pub target_count: usize,
    /// Over the source's records.
    pub source_checksum: String,
    /// Over the target's.
    pub target_checksum: String,
    /// Records that had left the clusters' memory and were not compared.
    pub forgotten_count: u64,
    /// The first of each partition.
    pub differences: Vec<Difference>,
}

/// The first difference of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which.
    pub partition: i32,
    /// Its records on the source.
    pub source_count: usize,
    /// Its records on the target.
    pub target_count: usize,
    /// Where it is: the offset on both sides, if all before it are alike.
    pub offset: i64,
    /// What is wrong there.
    pub kind: DifferenceKind,
}

/// What can be wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The source's record is not on the target.
    Missing,
    /// The target's record was there before.
    Doubled,
    /// The target's record is not on the source.
    Foreign,
    /// Both are there, but elsewhere.
    OutOfOrder,
    /// Key, value, headers or timestamp are not the source's.
    Changed,
}

impl Comparison {
    pub(super) fn of(source: &SideDigest, target: &SideDigest) -> Self {
        let pairs = (0..).zip(source.partitions.iter().zip(&target.partitions));
        Self {
            source_count: source.record_count(),
            target_count: target.record_count(),
            source_checksum: source.checksum.clone(),
            target_checksum: target.checksum.clone(),
            forgotten_count: source.partitions.iter().map(|it| it.first_offset.unsigned_abs()).sum(),
            differences: pairs.filter_map(|(partition, (a, b))| Difference::find(partition, a, b)).collect(),
        }
    }

    /// Both sides hold the same records in the same order.
    pub fn is_identical(&self) -> bool {
        self.differences.is_empty()
            && self.source_count == self.target_count
            && self.source_checksum == self.target_checksum
    }
}

impl Difference {
    fn find(partition: i32, source: &PartitionDigest, target: &PartitionDigest) -> Option<Self> {
        let (index, kind) = first_difference(&source.fingerprints, &target.fingerprints)?;
        Some(Self {
            partition,
            source_count: source.fingerprints.len(),
            target_count: target.fingerprints.len(),
            offset: source.first_offset + i64::try_from(index).unwrap_or(i64::MAX),
            kind,
        })
    }
}

fn first_difference(source: &[Fingerprint], target: &[Fingerprint]) -> Option<(usize, DifferenceKind)> {
    let alike = source.iter().zip(target).take_while(|(a, b)| a == b).count();
    let kind = match (source.get(alike), target.get(alike)) {
        (None, None) => return None,
        (Some(_), None) => DifferenceKind::Missing,
        (_, Some(there)) if target[..alike].contains(there) => DifferenceKind::Doubled,
        (None, Some(_)) => DifferenceKind::Foreign,
        (Some(here), Some(there)) => {
            match (target[alike..].contains(here), source[alike..].contains(there)) {
                (true, true) => DifferenceKind::OutOfOrder,
                (true, false) => DifferenceKind::Foreign,
                (false, true) => DifferenceKind::Missing,
                (false, false) => DifferenceKind::Changed,
            }
        }
    };
    Some((alike, kind))
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_identical() {
            let (count, checksum) = (self.source_count, &self.source_checksum);
            write!(formatter, "verified: {count} records, checksum {checksum}, identical on both sides")?;
        } else {
            write!(
                formatter,
                "the two sides differ: {} records, checksum {} in {TOPIC} of east; {} records, checksum {} in \
                 {TARGET_TOPIC} of west",
                self.source_count, self.source_checksum, self.target_count, self.target_checksum
            )?;
        }
        if self.forgotten_count > 0 {
            write!(formatter, " ({} older ones had left the clusters' memory)", self.forgotten_count)?;
        }
        self.differences.iter().try_for_each(|difference| write!(formatter, "\n  {difference}"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            DifferenceKind::Missing => "the source's record is missing on the target",
            DifferenceKind::Doubled => "the target holds a record that it had before",
            DifferenceKind::Foreign => "the target holds a record that the source has not",
            DifferenceKind::OutOfOrder => "the target's order is another",
            DifferenceKind::Changed => "key, value, headers or timestamp were changed",
        };
        let Self { partition, source_count, target_count, offset, .. } = self;
        write!(
            formatter,
            "partition {partition}, {source_count} records on the source, {target_count} on the target: at offset \
             {offset} {what}"
        )
    }
}

#[cfg(test)]
mod tests;
