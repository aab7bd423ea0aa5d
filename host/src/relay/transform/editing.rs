//! A batch through the chain: taken apart once, shown to the plugins, put together anew where that is needed.

use tidegate_wire::batch::{Batch, BatchError, BuiltBatch, Codec, record_timestamp};

use super::Transform;
use crate::names::{FlowName, SourceOffset, SourcePartition};
use crate::plugin::{Condemned, Edited, Place};
use crate::record::{OutOfBase, RecordParts, RecordSet};
use crate::relay::chain::RecordChain;
use crate::relay::quarantine::{Condemnation, QuarantineBatch};

/// The list of tails is not kept for the next batch when it grew beyond this many bytes: a batch may hold millions of records.
const KEPT_TAILS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A batch that can't be edited.
#[derive(Debug, thiserror::Error)]
pub(in crate::relay) enum EditError {
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Index(#[from] OutOfBase),
}

/// Which partition's records are edited, and for which flow.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct Origin<'a> {
    pub(in crate::relay) flow: &'a FlowName,
    pub(in crate::relay) partition: &'a SourcePartition,
}

/// What is wanted of a batch.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct Wish {
    /// Records before this offset were delivered already: no plugin sees them.
    pub(in crate::relay) from: SourceOffset,
    /// The batch may go on as it lies if no plugin wants anything of it.
    pub(in crate::relay) may_pass: bool,
}

/// How a batch came out of the chain. What goes to the target was added to the batch that is being built, unless the batch is
/// untouched.
#[derive(Debug)]
pub(in crate::relay) struct Outcome {
    /// Nothing was changed and nothing was built: the batch goes on as it lies.
    pub(in crate::relay) is_untouched: bool,
    /// Some record was dropped, edited or left out.
    pub(in crate::relay) is_changed: bool,
    /// What became of the records.
    pub(in crate::relay) counts: EditCounts,
    /// First and last offset of the records that go to the target.
    pub(in crate::relay) kept: Option<(SourceOffset, SourceOffset)>,
    /// The offset behind what this settles: the batch's end, or the record at which it halts.
    pub(in crate::relay) next: SourceOffset,
    /// The record that nothing settles. It and those behind it were not built.
    pub(in crate::relay) halt: Option<Condemned>,
    /// Records that must be in quarantine before anything of this may go on.
    pub(in crate::relay) quarantine: Vec<QuarantineBatch>,
    /// Bytes of the batch's records, uncompressed.
    pub(in crate::relay) body_bytes: usize,
}

/// Records by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::relay) struct EditCounts {
    pub(in crate::relay) kept: u64,
    /// Of those that are kept.
    pub(in crate::relay) changed: u64,
    pub(in crate::relay) dropped: u64,
    pub(in crate::relay) quarantined: u64,
}

impl EditCounts {
    pub(in crate::relay) fn add(&mut self, other: Self) {
        self.kept += other.kept;
        self.changed += other.changed;
        self.dropped += other.dropped;
        self.quarantined += other.quarantined;
    }
}

/// What of a record does not change when no plugin changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    attributes: u8,
    start: usize,
    bytes: usize,
}

impl Transform {
    /// Begins to build a batch of what the chain leaves.
    pub(in crate::relay) fn start_edited(&mut self, codec: Codec) {
        self.builder.start(codec);
    }

    /// Bytes of the records that were built since, before compression.
    pub(in crate::relay) fn edited_bytes(&self) -> usize {
        self.builder.uncompressed_bytes()
    }

    /// The batch that was built; none when no record is left.
    pub(in crate::relay) fn finish_edited(&mut self) -> Result<Option<BuiltBatch>, BatchError> {
        match self.builder.finish() {
            // Not asked by the count of records: a first one that is too large is none of them.
            Err(BatchError::NothingToBuild) => Ok(None),
            built => built.map(Some),
        }
    }

    /// Shows a batch to the chain and builds what it leaves. After an error nothing of the batch was built.
    pub(in crate::relay) fn edit(
        &mut self,
        chain: &mut dyn RecordChain,
        origin: Origin<'_>,
        batch: &Batch,
        wish: Wish,
    ) -> Result<Outcome, EditError> {
        let Self { decompressor, builder, records, tails, quarantine } = self;
        let codec = batch.header.codec()?;
        let walk = decompressor.records(batch)?;
        let base = walk.body();
        records.start();
        tails.clear();
        if tails.capacity() * size_of::<Tail>() > KEPT_TAILS_BYTES_MAX {
            *tails = Vec::new();
        }
        for record in walk {
            let record = record?;
            let offset = SourceOffset(batch.header.base_offset + i64::from(record.offset_delta));
            if offset < wish.from {
                continue;
            }
            let timestamp_ms = record_timestamp(&batch.header, &record);
            let (key, value, headers) = (record.key, record.value, record.headers);
            records.push(base, RecordParts { offset, timestamp_ms, key, value, headers })?;
            let start = record.tail.as_ptr().addr().wrapping_sub(base.as_ptr().addr());
            tails.push(Tail { attributes: record.attributes, start, bytes: record.tail.len() });
        }
        let place = Place { topic: &origin.partition.topic, partition: origin.partition.partition };
        let edited = if records.is_empty() { Edited::default() } else { chain.edit(place, base, records) };
        let Edited { quarantined, halt } = edited;
        let is_changed = records.is_changed() || halt.is_some() || !quarantined.is_empty();
        let mut outcome = Outcome {
            is_untouched: wish.may_pass && !is_changed && !records.is_empty(),
            is_changed,
            counts: EditCounts::default(),
            kept: None,
            next: SourceOffset(batch.header.next_offset()),
            halt: None,
            quarantine: Vec::new(),
            body_bytes: base.len(),
        };
        if outcome.is_untouched {
            return Ok(outcome);
        }
        let end = halt.as_ref().map_or(records.len(), |halt| halt.index.min(records.len()));
        if let Some(halt) = halt {
            outcome.next = halt.offset;
            outcome.halt = Some(halt);
        }
        quarantine.start(codec);
        for condemned in quarantined.iter().filter(|condemned| condemned.index < end) {
            let original = records.original(base, condemned.index);
            quarantine.push(Condemnation { origin, original, condemned })?;
            outcome.counts.quarantined += 1;
        }
        outcome.quarantine = quarantine.finish()?;
        // Last: nothing fails from here on, so what was built before is never mixed with half a batch.
        build(records, tails, base, end, builder, &mut outcome);
        let left = outcome.counts.kept + outcome.counts.quarantined;
        outcome.counts.dropped = (end as u64).saturating_sub(left);
        Ok(outcome)
    }
}

/// Adds the first `end` records to the batch that is being built, as they stand now.
fn build(
    records: &RecordSet,
    tails: &[Tail],
    base: &[u8],
    end: usize,
    builder: &mut tidegate_wire::batch::BatchBuilder,
    outcome: &mut Outcome,
) {
    let mut headers = Vec::new();
    for (index, tail) in tails.iter().enumerate().take(end) {
        let record = records.record(base, index);
        if record.is_dropped {
            continue;
        }
        if record.is_edited {
            headers.clear();
            headers.extend(record.headers());
            builder.push_parts(record.key(), record.value(), &headers, record.timestamp_ms);
            outcome.counts.changed += 1;
        } else {
            let bytes = &base[tail.start..tail.start + tail.bytes];
            builder.push_tail(tail.attributes, bytes, record.timestamp_ms);
        }
        outcome.counts.kept += 1;
        let first = outcome.kept.map_or(record.offset, |(first, _)| first);
        outcome.kept = Some((first, record.offset));
    }
}
