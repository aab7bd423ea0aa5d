//! How a partition's waiting batches go out: passed, merged, rewritten or split, and what their acknowledgement settles.

use bytes::Bytes;
use tidegate_wire::batch::{Batch, BatchError, BatchHeader, Codec};
use tidegate_wire::produce::OutBatch;

use super::editing::{EDITED_BYTES_MAX, Edited, Workshop};
use super::{Condition, InFlight, RelayLane, Settled, Waiting};
use crate::names::SourceOffset;
use crate::relay::progress::Span;
use crate::relay::tier::{self, MERGED_BYTES_MAX};
use crate::relay::transform::{EditError, Transform};
use crate::status::Tier;

/// A batch that was re-encoded is split above this many bytes.
const REWRITTEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A target's refusals never make batches smaller than this, in bytes; smaller ones are split when they are refused.
const LEARNED_BYTES_MIN: usize = 64 * 1024;

/// How one batch is sent.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) header: BatchHeader,
    pub(super) payload: Bytes,
    pub(super) tier: Tier,
    pub(super) next: SourceOffset,
    /// The source offset of the first record, if the records have consecutive ones.
    pub(super) first: Option<SourceOffset>,
    pub(super) source_bytes: usize,
}

/// Bounds and wishes for what is sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct SendRules {
    /// Recompress to this codec.
    pub(in crate::relay) compression: Option<Codec>,
    /// Batches larger than this are split before they are sent.
    pub(in crate::relay) batch_bytes_max: Option<usize>,
}

impl SendRules {
    /// Batches larger than this are split. What was re-encoded may have grown past what a broker reads at all
    /// (`socket.request.max.bytes`), so that has a bound in any case; what passes was already taken by a broker.
    pub(super) fn split_above(self, tier: Tier) -> Option<usize> {
        let own = (tier != Tier::Pass).then_some(REWRITTEN_BYTES_MAX);
        [self.batch_bytes_max, own].into_iter().flatten().min()
    }
}

impl RelayLane {
    /// The next batch for the target: passed, merged or rewritten, by the chain's edits where it has any say. None when
    /// nothing waits, or nothing may go. An error means that the head of the queue can't be read; nothing was taken then.
    pub(in crate::relay) fn next_batch(
        &mut self,
        bytes_max: usize,
        rules: SendRules,
        workshop: &mut Workshop<'_>,
    ) -> Result<Option<OutBatch>, EditError> {
        let rules = self.learned(rules);
        if let Some(piece) = self.pieces.pop_front() {
            return Ok(Some(piece));
        }
        if matches!(self.condition, Condition::Draining | Condition::Paused { .. }) {
            return Ok(None);
        }
        let mut edited_bytes = 0;
        // What may go is looked at anew each time: an edit may stop the partition.
        while !self.is_halted && self.judged.is_none() {
            let Some(Waiting::Batch(_)) = self.queue.front() else { break };
            if edited_bytes >= EDITED_BYTES_MAX {
                self.has_more = true;
                break;
            }
            let next = if self.is_edited {
                self.edit_next(bytes_max, rules, workshop)?
            } else {
                self.take_next(bytes_max, rules, workshop.transform)?
            };
            match next {
                Edited::Out(prepared, span) => {
                    return Ok(Some(self.send_split(prepared, span, rules, workshop.transform)));
                }
                Edited::Nothing { body_bytes } => edited_bytes += body_bytes,
            }
        }
        Ok(None)
    }

    /// Takes what goes out next as it is.
    fn take_next(
        &mut self,
        bytes_max: usize,
        rules: SendRules,
        transform: &mut Transform,
    ) -> Result<Edited, BatchError> {
        let (taken, prepared) = self.prepare(bytes_max, rules, transform)?;
        let last = self.take(taken);
        let Some(prepared) = prepared else {
            // Nothing was left of it.
            self.unsettled_bytes -= last.source_bytes;
            self.progress.skip(last.next);
            self.settle_nothings();
            return Ok(Edited::Nothing { body_bytes: last.source_bytes });
        };
        let span = self.progress.open(prepared.next);
        self.settle_nothings();
        Ok(Edited::Out(prepared, span))
    }

    /// Splits a batch that is larger than `bytes_max` until its pieces fit or hold one record each; answers the first
    /// piece and keeps the others to be sent next.
    pub(super) fn split_to_fit(
        &mut self,
        whole: OutBatch,
        bytes_max: Option<usize>,
        transform: &mut Transform,
    ) -> OutBatch {
        let Some(bytes_max) = bytes_max else { return whole };
        let mut pending = vec![whole];
        let mut pieces = Vec::new();
        while let Some(batch) = pending.pop() {
            let fits = batch.header.total_bytes() <= bytes_max;
            match if fits { Err(SplitError::SingleRecord) } else { self.split(batch.tag, transform) } {
                Ok(halves) => pending.extend(halves.into_iter().rev()),
                Err(_cannot_be_smaller) => pieces.push(batch),
            }
        }
        let mut pieces = pieces.into_iter();
        let first = pieces.next().expect("a batch has at least one piece: itself");
        self.pieces.extend(pieces);
        first
    }

    /// How the head of the queue goes out, and how many entries of the queue that takes.
    fn prepare(
        &self,
        bytes_max: usize,
        rules: SendRules,
        transform: &mut Transform,
    ) -> Result<(usize, Option<Prepared>), BatchError> {
        let Some(Waiting::Batch(first)) = self.queue.front() else { return Ok((0, None)) };
        let merged = self.mergeable(bytes_max, rules);
        let source_bytes = |count: usize| self.batches().take(count).map(|batch| batch.bytes.len()).sum();
        if merged > 1 {
            let codec = rules.compression.map_or_else(|| first.header.codec(), Ok)?;
            let (built, merged) = transform.merge(self.batches().take(merged), codec)?;
            let last = self.batches().nth(merged - 1).unwrap_or(first);
            let prepared = Prepared {
                header: built.header,
                payload: built.payload,
                tier: Tier::Merge,
                next: SourceOffset(last.header.next_offset()),
                first: self.consecutive(merged),
                source_bytes: source_bytes(merged),
            };
            return Ok((merged, Some(prepared)));
        }
        let next = SourceOffset(first.header.next_offset());
        let source_bytes = first.bytes.len();
        let position = self.progress.last_opened();
        let offset = self.consecutive(1).map(|offset| offset.max(position));
        let Some(_reason) = tier::rewrite_reason(&first.header, position, rules.compression) else {
            let (header, payload) = (first.header, first.payload());
            let tier = Tier::Pass;
            return Ok((1, Some(Prepared { header, payload, tier, next, first: offset, source_bytes })));
        };
        let built = transform.rewrite(first, position, rules.compression)?;
        let prepared = built.map(|built| Prepared {
            header: built.header,
            payload: built.payload,
            tier: Tier::Rewrite,
            next,
            first: offset,
            source_bytes,
        });
        Ok((1, prepared))
    }

    /// How many batches at the head of the queue become one.
    pub(super) fn mergeable(&self, bytes_max: usize, rules: SendRules) -> usize {
        let position = self.progress.last_opened();
        let mut batches = self.batches();
        let Some(first) = batches.next() else { return 0 };
        let is_whole = |header: &BatchHeader, position: SourceOffset| header.base_offset >= position.0;
        if !tier::is_small(&first.header) || !is_whole(&first.header, position) {
            return 1;
        }
        let bytes_max = bytes_max.min(MERGED_BYTES_MAX).min(rules.batch_bytes_max.unwrap_or(usize::MAX));
        let mut bytes = first.bytes.len();
        let mut count = 1;
        for batch in batches {
            bytes += batch.bytes.len();
            if bytes > bytes_max || !tier::may_join(&first.header, &batch.header) {
                break;
            }
            count += 1;
        }
        count
    }

    /// The offset of the first record of the next `count` batches, if their records have consecutive offsets.
    fn consecutive(&self, count: usize) -> Option<SourceOffset> {
        let mut headers = self.batches().take(count).map(|batch| &batch.header);
        let first = headers.next().filter(|header| !header.has_gaps())?;
        let mut next = first.next_offset();
        for header in headers {
            if header.has_gaps() || header.base_offset != next {
                return None;
            }
            next = header.next_offset();
        }
        Some(SourceOffset(first.base_offset))
    }

    /// The batches at the head of the queue, up to the first entry that is none.
    pub(super) fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.queue.iter().map_while(|waiting| match waiting {
            Waiting::Batch(batch) => Some(batch),
            Waiting::Nothing { .. } => None,
        })
    }

    /// Takes `count` entries off the queue.
    pub(super) fn take(&mut self, count: usize) -> Taken {
        let mut taken = Taken { next: self.progress.last_opened(), source_bytes: 0 };
        for waiting in self.queue.drain(..count) {
            if let Waiting::Batch(batch) = waiting {
                taken.next = SourceOffset(batch.header.next_offset());
                taken.source_bytes += batch.bytes.len();
            }
        }
        taken
    }

    pub(super) fn settle_nothings(&mut self) {
        while let Some(Waiting::Nothing { next }) = self.queue.front() {
            self.progress.skip(*next);
            self.queue.pop_front();
        }
    }

    pub(super) fn send(&mut self, prepared: Prepared, span: Span) -> OutBatch {
        let tag = self.take_tag();
        let Prepared { header, payload, tier, first, source_bytes, .. } = prepared;
        let out = OutBatch { header, payload: payload.clone(), tag };
        self.in_flight.push_back(InFlight { tag, span, first, header, payload, tier, source_bytes });
        out
    }

    fn take_tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// The batch `tag` was delivered. None if it is not in flight.
    pub(in crate::relay) fn acknowledged(&mut self, tag: u64) -> Option<Settled> {
        let index = self.in_flight.iter().position(|batch| batch.tag == tag)?;
        let batch = self.in_flight.remove(index)?;
        let bytes = batch.header.total_bytes() as u64;
        self.stats.delivered(batch.tier, u64::try_from(batch.header.record_count).unwrap_or(0), bytes);
        self.settle(index, &batch);
        self.unsettled_bytes -= batch.source_bytes;
        self.is_refused = false;
        Some(Settled { source_bytes: batch.source_bytes })
    }

    /// Settles a batch that was at `index`; a piece of a split one with those before it. Pieces may be acknowledged out of
    /// order after an answer was lost.
    fn settle(&mut self, index: usize, batch: &InFlight) {
        let mut others = self.in_flight.iter().enumerate().filter(|(_, other)| other.span == batch.span);
        let Some((first_other, _)) = others.next() else { return self.progress.settle(batch.span) };
        if let Some(first) = batch.first.filter(|_| first_other >= index) {
            let end = SourceOffset(first.0 + i64::from(batch.header.record_count));
            self.progress.settle_part(batch.span, end);
        }
    }

    /// The source offset of a batch's first record, where that can be told.
    pub(in crate::relay) fn first_offset(&self, tag: u64) -> Option<SourceOffset> {
        self.in_flight.iter().find(|batch| batch.tag == tag)?.first
    }

    /// The batch `tag`, as it was sent.
    pub(in crate::relay) fn sent(&self, tag: u64) -> Option<(&BatchHeader, &Bytes)> {
        let batch = self.in_flight.iter().find(|batch| batch.tag == tag)?;
        Some((&batch.header, &batch.payload))
    }

    /// The target refused a batch for its size: what follows is made smaller at once.
    pub(in crate::relay) fn learn_bound(&mut self, refused_bytes: usize) {
        let half = (refused_bytes / 2).max(LEARNED_BYTES_MIN);
        self.batch_bytes_max = Some(self.batch_bytes_max.map_or(half, |bound| bound.min(half)));
    }

    pub(super) fn learned(&self, rules: SendRules) -> SendRules {
        let bounds = [rules.batch_bytes_max, self.batch_bytes_max];
        SendRules { batch_bytes_max: bounds.into_iter().flatten().min(), ..rules }
    }

    /// Replaces the batch `tag` by its two halves. Answers what is to be sent in its place.
    pub(in crate::relay) fn split(
        &mut self,
        tag: u64,
        transform: &mut Transform,
    ) -> Result<Vec<OutBatch>, SplitError> {
        let index = self.in_flight.iter().position(|batch| batch.tag == tag).ok_or(SplitError::Unknown)?;
        let whole = &self.in_flight[index];
        let halves = transform.split(&whole.header, &whole.payload)?.ok_or(SplitError::SingleRecord)?;
        let Some(whole) = self.in_flight.remove(index) else { return Err(SplitError::Unknown) };
        let mut parts = Vec::with_capacity(2);
        let mut first = whole.first;
        for (number, half) in halves.into_iter().enumerate() {
            let tag = self.take_tag();
            let is_last = number == 1;
            parts.push(OutBatch { header: half.header, payload: half.payload.clone(), tag });
            let piece = InFlight {
                tag,
                span: whole.span,
                first,
                header: half.header,
                payload: half.payload,
                tier: Tier::Rewrite,
                source_bytes: if is_last { whole.source_bytes } else { 0 },
            };
            first = first.map(|first| SourceOffset(first.0 + i64::from(piece.header.record_count)));
            self.in_flight.insert(index + number, piece);
        }
        Ok(parts)
    }
}

/// What was taken off the queue.
pub(super) struct Taken {
    pub(super) next: SourceOffset,
    pub(super) source_bytes: usize,
}

/// Why a batch could not be split.
#[derive(Debug, thiserror::Error)]
pub(in crate::relay) enum SplitError {
    #[error("the batch is not in flight any more")]
    Unknown,
    #[error("it is a single record")]
    SingleRecord,
    #[error(transparent)]
    Batch(#[from] BatchError),
}
