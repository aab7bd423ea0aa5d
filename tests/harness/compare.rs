//! Two readings of a topic compared; the first difference is told in words.

use std::collections::{BTreeMap, HashMap};

use anyhow::{bail, ensure};

use crate::record::{Content, Record};

/// Whether records may come more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// The target must hold the source's records and nothing else.
    Forbidden,
    /// After a kill, the records since the last stored position come again: counted, not forbidden.
    Counted,
}

/// What a comparison that found no difference has to tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Records of the source, all of which are on the target.
    pub record_count: usize,
    /// Records that the target holds once more.
    pub duplicate_count: usize,
}

/// Checks that every record of `source` is in `target`, unchanged, in the same partition and in the same order, and that
/// nothing else is there. A timestamp that the source's broker had set on appending must be there as the record's own.
///
/// With [`Duplicates::Counted`] a record may come again later; what comes for the first time must come in order.
///
/// # Errors
/// The first difference, by partition.
pub fn compare(source: &[Record], target: &[Record], duplicates: Duplicates) -> anyhow::Result<Compared> {
    let (source, target) = (by_partition(source), by_partition(target));
    let mut compared = Compared::default();
    for partition in target.keys() {
        ensure!(
            source.contains_key(partition),
            "the target has partition {partition}, the source has no record in it"
        );
    }
    for (partition, expected) in &source {
        let found = target.get(partition).map_or(&[][..], Vec::as_slice);
        compared.record_count += expected.len();
        compared.duplicate_count += compare_partition(expected, found, duplicates)?;
    }
    Ok(compared)
}

fn by_partition(records: &[Record]) -> BTreeMap<i32, Vec<&Record>> {
    let mut partitions: BTreeMap<i32, Vec<&Record>> = BTreeMap::new();
    for record in records {
        partitions.entry(record.partition).or_default().push(record);
    }
    partitions
}

fn compare_partition(
    source: &[&Record],
    target: &[&Record],
    duplicates: Duplicates,
) -> anyhow::Result<usize> {
    let places: HashMap<&Content, usize> =
        source.iter().enumerate().map(|(place, record)| (&record.content, place)).collect();
    ensure!(
        places.len() == source.len(),
        "the source holds equal records: they can't be told apart on the target"
    );
    let mut next = 0;
    let mut duplicate_count = 0;
    for record in target {
        ensure!(!record.log_append_time, "the target's broker has set the time of {record:?}");
        match places.get(&record.content) {
            Some(&place) if place == next => next += 1,
            Some(&place) if place < next && duplicates == Duplicates::Counted => duplicate_count += 1,
            Some(&place) if place < next => {
                bail!("the target holds a record twice: {record:?} is {:?}", source[place])
            }
            Some(&place) => bail!(
                "on the target, {record:?}, which is {:?}, comes before {:?}: {} records are missing or late",
                source[place],
                source[next],
                place - next
            ),
            None => {
                bail!("on the target, {record:?} is no record of the source; expected {:?}", source.get(next))
            }
        }
    }
    ensure!(
        next == source.len(),
        "on the target, {} of {} records are missing at the end, the first is {:?}",
        source.len() - next,
        source.len(),
        source[next.min(source.len() - 1)]
    );
    Ok(duplicate_count)
}

/// Checks that a reading holds exactly these contents, in any order within a partition: what several producers wrote.
///
/// # Errors
/// The first content that is missing or too much.
pub fn same_records(written: &[BTreeMap<i32, Vec<Content>>], read: &[Record]) -> anyhow::Result<()> {
    let mut expected: Vec<(i32, &Content)> = Vec::new();
    for partitions in written {
        for (partition, contents) in partitions {
            expected.extend(contents.iter().map(|content| (*partition, content)));
        }
    }
    let mut found: Vec<(i32, &Content)> =
        read.iter().map(|record| (record.partition, &record.content)).collect();
    expected.sort_unstable();
    found.sort_unstable();
    for (expected, found) in expected.iter().zip(&found) {
        ensure!(expected == found, "written and read differ: expected {expected:?}, found {found:?}");
    }
    ensure!(expected.len() == found.len(), "{} records were written, {} read", expected.len(), found.len());
    Ok(())
}
