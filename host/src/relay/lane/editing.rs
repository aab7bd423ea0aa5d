//! A partition whose records go through the flow's chain: what of its queue is edited together, what becomes of the outcome.
//!
//! What was edited once is never edited again: it is built, and from then on it lies in `in_flight` (or in `judged`, while it
//! waits for its quarantined records), whatever chain comes. What waits in the queue is edited when it is sent, by the chain
//! of then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_wire::batch::{Batch, BuiltBatch, Codec};
use tidegate_wire::produce::OutBatch;
use tokio::task::AbortHandle;

use super::sending::{Prepared, SendRules};
use super::{RelayLane, Waiting};
use crate::names::{FlowName, SourceOffset};
use crate::plugin::Condemned;
use crate::relay::chain::RecordChain;
use crate::relay::progress::Span;
use crate::relay::quarantine::{QuarantineBatch, TooLarge};
use crate::relay::tier::{self, MERGE_BELOW_BYTES, MERGED_BYTES_MAX};
use crate::relay::transform::{
    EditCounts, EditError, MERGED_UNCOMPRESSED_BYTES_MAX, Origin, Outcome, Transform, Wish,
};
use crate::status::{Changeover, Paused, Tier, now_ms};

/// A partition that has edited so many bytes of records without anything to send lets others have their turn.
pub(super) const EDITED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a batch needs on its way out.
pub(in crate::relay) struct Workshop<'a> {
    pub(in crate::relay) transform: &'a mut Transform,
    pub(in crate::relay) chain: &'a mut dyn RecordChain,
    pub(in crate::relay) flow: &'a FlowName,
}

/// An edited batch of which some records must lie in quarantine before it goes on. Its span is open, so no position passes it.
#[derive(Debug)]
pub(super) struct Judged {
    span: Span,
    /// None when no record is left for the target.
    prepared: Option<Prepared>,
    source_bytes: usize,
    counts: EditCounts,
    generation: u64,
    /// None once it is being written.
    unwritten: Option<Vec<QuarantineBatch>>,
    writing: Option<AbortHandle>,
    is_failing: Arc<AtomicBool>,
}

impl Drop for Judged {
    fn drop(&mut self) {
        if let Some(writing) = &self.writing {
            writing.abort();
        }
    }
}

/// What the head of the queue came to.
pub(super) enum Edited {
    /// To be sent; its span is open.
    Out(Prepared, Span),
    /// Nothing of it is sent, for now or at all. Of so many bytes of records.
    Nothing { body_bytes: usize },
}

/// Batches that are edited and built together.
struct Group {
    batch_count: usize,
    source_bytes: usize,
    /// What the built batch will have, about: of compressed batches the share that was kept.
    expected_bytes: usize,
    counts: EditCounts,
    is_changed: bool,
    /// First and last offset of what is kept.
    kept: Option<(SourceOffset, SourceOffset)>,
    next: SourceOffset,
    body_bytes: usize,
    halt: Option<Condemned>,
    quarantine: Vec<QuarantineBatch>,
}

impl Group {
    fn new(next: SourceOffset) -> Self {
        Self {
            batch_count: 0,
            source_bytes: 0,
            expected_bytes: 0,
            counts: EditCounts::default(),
            is_changed: false,
            kept: None,
            next,
            body_bytes: 0,
            halt: None,
            quarantine: Vec::new(),
        }
    }

    fn add(&mut self, batch: &Batch, outcome: Outcome) {
        let bytes = batch.bytes.len();
        let count = usize::try_from(batch.header.record_count).unwrap_or(0).max(1);
        let kept = usize::try_from(outcome.counts.kept).unwrap_or(count).min(count);
        self.batch_count += 1;
        self.source_bytes += bytes;
        self.expected_bytes += bytes.saturating_mul(kept) / count;
        self.counts.add(outcome.counts);
        self.is_changed |= outcome.is_changed;
        self.kept = match (self.kept, outcome.kept) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (one, other) => one.or(other),
        };
        self.next = outcome.next;
        self.body_bytes += outcome.body_bytes;
        self.halt = outcome.halt;
        self.quarantine = outcome.quarantine;
    }

    /// Whether nothing may be added behind what is there: a record stopped it, or waits for quarantine.
    fn is_closed(&self) -> bool {
        self.halt.is_some() || !self.quarantine.is_empty()
    }

    /// Whether the plugins left so little that further batches should join whatever their size: a broker takes one batch a
    /// partition and request.
    fn is_sparse(&self, built_bytes: usize) -> bool {
        self.expected_bytes < MERGE_BELOW_BYTES
            && 2 * self.expected_bytes < self.source_bytes
            && built_bytes < MERGED_UNCOMPRESSED_BYTES_MAX
            && self.body_bytes < EDITED_BYTES_MAX
    }

    /// The offset of the first record, if the records have consecutive ones.
    fn first(&self) -> Option<SourceOffset> {
        let (first, last) = self.kept?;
        let count = last.0 - first.0 + 1;
        (u64::try_from(count) == Ok(self.counts.kept)).then_some(first)
    }
}

impl RelayLane {
    /// Takes the order to let `chain` edit from now on: what is edited already stays as it is, what was stopped is tried again.
    pub(in crate::relay) fn use_chain(&mut self, chain: &dyn RecordChain) -> Changeover {
        self.is_edited = chain.applies_to(&self.source.topic);
        self.unhalt();
        let first_offset = self.is_placed.then(|| self.progress.last_opened());
        let changeover = Changeover { generation: chain.generation(), first_offset };
        self.stats.set_changeover(changeover);
        changeover
    }

    /// The partition goes on at `offset`: a generation that has not edited anything yet begins there.
    pub(super) fn move_changeover(&self, offset: SourceOffset) {
        let Some(changeover) = self.stats.changeover() else { return };
        let is_unused = changeover.first_offset.is_none_or(|first| first >= self.progress.last_opened());
        if is_unused || self.is_made_anew {
            self.stats.set_changeover(Changeover { first_offset: Some(offset), ..changeover });
        }
    }

    fn lower_changeover(&self) {
        let next = self.progress.last_opened();
        if let Some(changeover) = self.stats.changeover()
            && changeover.first_offset.is_some_and(|first| first > next)
        {
            self.stats.set_changeover(Changeover { first_offset: Some(next), ..changeover });
        }
    }

    /// Edits what is at the head of the queue and takes it off. An error means that the head can't be read; nothing was taken
    /// then.
    pub(super) fn edit_next(
        &mut self,
        bytes_max: usize,
        rules: SendRules,
        workshop: &mut Workshop<'_>,
    ) -> Result<Edited, EditError> {
        let Some(Waiting::Batch(first)) = self.queue.front() else {
            return Ok(Edited::Nothing { body_bytes: 0 });
        };
        let first_header = first.header;
        let payload = first.payload();
        let Some(group) = self.edit_group(bytes_max, rules, workshop)? else {
            let taken = self.take(1);
            let prepared = Prepared {
                header: first_header,
                payload,
                tier: Tier::Pass,
                next: taken.next,
                first: (!first_header.has_gaps()).then_some(SourceOffset(first_header.base_offset)),
                source_bytes: taken.source_bytes,
            };
            let span = self.progress.open(taken.next);
            self.settle_nothings();
            return Ok(Edited::Out(prepared, span));
        };
        let built = workshop.transform.finish_edited()?;
        Ok(self.take_edited(group, built, workshop.chain.generation()))
    }

    /// Has the chain edit the first batch, and those that shall be one with it. None: the first batch goes on as it lies.
    fn edit_group(
        &self,
        bytes_max: usize,
        rules: SendRules,
        workshop: &mut Workshop<'_>,
    ) -> Result<Option<Group>, EditError> {
        let position = self.progress.last_opened();
        let origin = Origin { flow: workshop.flow, partition: &self.source };
        let waiting = self.mergeable(bytes_max, rules);
        let bound = bytes_max.min(MERGED_BYTES_MAX).min(rules.batch_bytes_max.unwrap_or(usize::MAX));
        let mut group = Group::new(position);
        let mut codec = Codec::None;
        for (index, batch) in self.batches().enumerate() {
            let mut may_pass = false;
            if index == 0 {
                codec = rules.compression.map_or_else(|| batch.header.codec(), Ok)?;
                workshop.transform.start_edited(codec);
                may_pass = waiting <= 1
                    && tier::rewrite_reason(&batch.header, position, rules.compression).is_none();
            } else {
                let built_bytes = workshop.transform.edited_bytes();
                let is_wanted = index < waiting && built_bytes < MERGED_UNCOMPRESSED_BYTES_MAX;
                let is_alike = rules.compression.is_some() || batch.header.codec().ok() == Some(codec);
                let joins = (is_wanted || group.is_sparse(built_bytes)) && is_alike;
                if group.is_closed() || !joins || group.expected_bytes + batch.bytes.len() > bound {
                    break;
                }
            }
            let wish = Wish { from: position, may_pass };
            match workshop.transform.edit(workshop.chain, origin, batch, wish) {
                Ok(outcome) if outcome.is_untouched => return Ok(None),
                Ok(outcome) => group.add(batch, outcome),
                // What was edited before it goes out; it is said when it is the first.
                Err(_) if index > 0 => break,
                Err(problem) => return Err(problem),
            }
        }
        Ok(Some(group))
    }

    /// Takes what was edited off the queue, stops at the record that halts, and holds back what waits for quarantine.
    fn take_edited(&mut self, group: Group, built: Option<BuiltBatch>, generation: u64) -> Edited {
        let taken = self.take(group.batch_count);
        let first = group.first();
        let is_merge = !group.is_changed && group.batch_count > 1;
        let prepared = built.map(|built| Prepared {
            header: built.header,
            payload: built.payload,
            tier: if is_merge { Tier::Merge } else { Tier::Rewrite },
            next: group.next,
            first,
            source_bytes: taken.source_bytes,
        });
        let span = self.progress.open(group.next);
        match &group.halt {
            Some(halt) => self.halt(paused_by(halt)),
            None => self.settle_nothings(),
        }
        let Group { counts, quarantine, body_bytes, .. } = group;
        if !quarantine.is_empty() {
            self.judged = Some(Judged {
                span,
                prepared,
                source_bytes: taken.source_bytes,
                counts,
                generation,
                unwritten: Some(quarantine),
                writing: None,
                is_failing: Arc::default(),
            });
            return Edited::Nothing { body_bytes };
        }
        self.count(counts);
        match prepared {
            Some(prepared) => Edited::Out(prepared, span),
            None => {
                self.settle_unsent(span, taken.source_bytes);
                Edited::Nothing { body_bytes }
            }
        }
    }

    /// Nothing of the span is sent: all of it was dropped, or lies in quarantine.
    fn settle_unsent(&mut self, span: Span, source_bytes: usize) {
        self.progress.settle(span);
        self.unsettled_bytes -= source_bytes;
        self.publish_position();
    }

    fn count(&self, counts: EditCounts) {
        self.stats.changed.fetch_add(counts.changed, Ordering::Relaxed);
        self.stats.dropped.fetch_add(counts.dropped, Ordering::Relaxed);
        self.stats.quarantined.fetch_add(counts.quarantined, Ordering::Relaxed);
    }

    /// Whether records are to be put into quarantine that nobody writes yet.
    pub(in crate::relay) fn has_quarantine_to_write(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| judged.unwritten.is_some())
    }

    /// Records that are to be put into quarantine now, and where to say that it does not succeed. Answered once; who takes them
    /// gives the task with [`RelayLane::quarantine_is_written_by`].
    pub(in crate::relay) fn quarantine_to_write(
        &mut self,
    ) -> Option<(Vec<QuarantineBatch>, Arc<AtomicBool>)> {
        let judged = self.judged.as_mut()?;
        Some((judged.unwritten.take()?, Arc::clone(&judged.is_failing)))
    }

    /// The task that writes them; it is stopped when the partition is let go.
    pub(in crate::relay) fn quarantine_is_written_by(&mut self, task: AbortHandle) {
        if let Some(judged) = &mut self.judged {
            judged.writing = Some(task);
        }
    }

    /// Stops writing: the partition is given up, another process may relay it already.
    pub(in crate::relay) fn stop_quarantine(&mut self) {
        if let Some(writing) = self.judged.as_mut().and_then(|judged| judged.writing.take()) {
            writing.abort();
        }
    }

    /// Whether nothing else is awaited than quarantined records of which the last write failed.
    pub(in crate::relay) fn is_stuck_on_quarantine(&self) -> bool {
        self.in_flight.is_empty() && self.is_quarantine_failing()
    }

    /// Whether an edited batch waits for quarantined records of which the last write failed.
    pub(super) fn is_quarantine_failing(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| judged.is_failing.load(Ordering::Relaxed))
    }

    /// The quarantined records lie where they belong: what they were taken from goes on.
    pub(in crate::relay) fn quarantined(&mut self, rules: SendRules, transform: &mut Transform) {
        let Some(mut judged) = self.judged.take() else { return };
        self.count(judged.counts);
        let Some(prepared) = judged.prepared.take() else {
            return self.settle_unsent(judged.span, judged.source_bytes);
        };
        // Nothing was sent since, so it is the next in order.
        let first = self.send_split(prepared, judged.span, self.learned(rules), transform);
        self.pieces.push_front(first);
    }

    /// A record can't be put into quarantine whatever is tried: nothing of what was edited with it has gone out, so all of it is
    /// read and edited again once somebody has seen to it.
    pub(in crate::relay) fn quarantine_refused(&mut self, refused: TooLarge) {
        let Some(judged) = self.judged.take() else { return };
        self.progress.retract(judged.span);
        // A chain that came meanwhile edits them, too.
        self.lower_changeover();
        self.unsettled_bytes -= judged.source_bytes;
        self.clear_queue();
        let TooLarge { offset, plugin, reason } = refused;
        self.halt(Paused { at_ms: now_ms(), offset, plugin, generation: judged.generation, reason });
    }

    /// Opens nothing, sends what was prepared: the first piece is answered, the others go next.
    pub(super) fn send_split(
        &mut self,
        prepared: Prepared,
        span: Span,
        rules: SendRules,
        transform: &mut Transform,
    ) -> OutBatch {
        let bytes_max = rules.split_above(prepared.tier);
        let whole = self.send(prepared, span);
        self.split_to_fit(whole, bytes_max, transform)
    }
}

fn paused_by(halt: &Condemned) -> Paused {
    Paused {
        at_ms: now_ms(),
        offset: halt.offset,
        plugin: halt.plugin.clone(),
        generation: halt.generation,
        reason: halt.reason.clone(),
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
