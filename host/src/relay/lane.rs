//! One source partition on its way through a worker: what was read, what waits, what is with the target.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_wire::batch::{Batch, BatchError, BatchHeader, Codec};
use tidegate_wire::produce::OutBatch;
use tokio::time::Instant;

use super::progress::{Progress, Span};
use super::tier::{self, MERGED_BYTES_MAX};
use super::transform::Transform;
use crate::names::{Slot, SourceOffset, SourcePartition};
use crate::status::{PartitionStats, Tier};

/// A batch that was re-encoded is split above this many bytes.
const REWRITTEN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A target's refusals never make batches smaller than this, in bytes; smaller ones are split when they are refused.
const LEARNED_BYTES_MIN: usize = 64 * 1024;

/// The relay's state of one source partition. Its worker is the only one that touches it.
#[derive(Debug)]
pub(super) struct RelayLane {
    /// No other partition of this worker has or had it.
    pub(super) number: u64,
    pub(super) source: SourcePartition,
    /// The source topic's name as the wire wants it.
    pub(super) topic: Arc<str>,
    /// The target topic's name as the wire wants it.
    pub(super) target: Arc<str>,
    pub(super) slot: Slot,
    pub(super) stats: Arc<PartitionStats>,
    pub(super) progress: Progress,
    /// Next offset to fetch.
    pub(super) fetch_offset: SourceOffset,
    /// The number of the running fetch that carries this partition. An answer with another number is stale.
    pub(super) fetching: Option<u64>,
    pub(super) condition: Condition,
    /// Not fetched before this instant.
    pub(super) quiet_until: Option<Instant>,
    /// Whether the first offset is known; without it there is no position to store.
    pub(super) is_placed: bool,
    /// Ask for the log's bounds when the pause is over.
    pub(super) needs_location: bool,
    /// Batches that the target refused for good, in order; sent again when the pause is over.
    pub(super) held: Vec<u64>,
    /// Whether the target partition has a leader.
    pub(super) is_led: bool,
    /// The target refused the last batch, or did not answer; it is sent again. Cleared by an acknowledgement.
    pub(super) is_refused: bool,
    /// Fetches that were refused one after another.
    pub(super) refused_fetches: u32,
    /// The source topic was made anew; its first record comes next.
    pub(super) is_made_anew: bool,
    /// The source topic's id, once it is known (brokers 2.8 and later).
    topic_id: Option<[u8; 16]>,
    /// The target refused larger batches than this.
    batch_bytes_max: Option<usize>,
    queue: VecDeque<Waiting>,
    /// Pieces of a batch that was split before it was sent; they are in `in_flight` already and go first.
    pieces: VecDeque<OutBatch>,
    in_flight: VecDeque<InFlight>,
    next_tag: u64,
    /// Bytes of the source's batches that are in `queue` or `in_flight`.
    pub(super) unsettled_bytes: usize,
}

/// Whether a partition moves.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// Its first offset is being asked for.
    Locating,
    /// Reads and writes.
    Moving,
    /// Something is wrong; tried again at the instant.
    Paused { until: Instant },
    /// Waits until nothing is in flight, then goes on at this offset.
    Jumping { to: SourceOffset },
    /// Being let go: reads nothing, sends nothing new.
    Draining,
}

#[derive(Debug)]
enum Waiting {
    Batch(Batch),
    /// Nothing to deliver up to this offset.
    Nothing {
        next: SourceOffset,
    },
}

#[derive(Debug)]
struct InFlight {
    tag: u64,
    /// Settled with the last piece that carries it; pieces of a split batch before the last have none.
    span: Option<Span>,
    header: BatchHeader,
    payload: Bytes,
    tier: Tier,
    /// The source's bytes that are settled with it.
    source_bytes: usize,
}

/// What an acknowledgement settled.
#[derive(Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) source_bytes: usize,
}

/// How one batch is sent.
struct Prepared {
    header: BatchHeader,
    payload: Bytes,
    tier: Tier,
    next: SourceOffset,
    source_bytes: usize,
}

/// Bounds and wishes for what is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRules {
    /// Recompress to this codec.
    pub(super) compression: Option<Codec>,
    /// Batches larger than this are split before they are sent.
    pub(super) batch_bytes_max: Option<usize>,
}

impl SendRules {
    /// Batches larger than this are split. What was re-encoded may have grown past what a broker reads at all
    /// (`socket.request.max.bytes`), so that has a bound in any case; what passes was already taken by a broker.
    fn split_above(self, tier: Tier) -> Option<usize> {
        let own = (tier != Tier::Pass).then_some(REWRITTEN_BYTES_MAX);
        [self.batch_bytes_max, own].into_iter().flatten().min()
    }
}

impl RelayLane {
    /// A partition whose first offset is known, or must be asked for.
    pub(super) fn new(
        number: u64,
        source: SourcePartition,
        slot: Slot,
        first: Option<SourceOffset>,
        stats: Arc<PartitionStats>,
    ) -> Self {
        let start = first.unwrap_or(SourceOffset(0));
        Self {
            topic: source.topic.as_str().into(),
            number,
            target: stats.target_topic.as_str().into(),
            source,
            slot,
            stats,
            progress: Progress::new(start),
            fetch_offset: start,
            fetching: None,
            condition: if first.is_some() { Condition::Moving } else { Condition::Locating },
            quiet_until: None,
            is_placed: first.is_some(),
            needs_location: false,
            held: Vec::new(),
            is_led: false,
            is_refused: false,
            refused_fetches: 0,
            is_made_anew: false,
            topic_id: None,
            batch_bytes_max: None,
            queue: VecDeque::new(),
            pieces: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_tag: 0,
            unsettled_bytes: 0,
        }
    }

    /// Starts over at `offset`. Only when nothing is in flight; what waits is thrown away and its bytes answered.
    pub(super) fn start_at(&mut self, offset: SourceOffset) -> usize {
        debug_assert!(self.in_flight.is_empty(), "a lane starts over only when nothing is in flight");
        let freed = self.clear_queue();
        self.progress = Progress::new(offset);
        self.fetch_offset = offset;
        self.fetching = None;
        self.condition = Condition::Moving;
        self.is_placed = true;
        self.is_made_anew = false;
        freed
    }

    /// Throws away what waits; it will be fetched again. The answer of a running fetch is not taken any more. Answers the
    /// bytes that this frees.
    pub(super) fn clear_queue(&mut self) -> usize {
        let mut freed = 0;
        for waiting in self.queue.drain(..) {
            if let Waiting::Batch(batch) = waiting {
                freed += batch.bytes.len();
            }
        }
        self.unsettled_bytes -= freed;
        self.fetch_offset = self.progress.last_opened();
        // A fetch that still runs asked for later offsets: taking its answer would leave a gap.
        self.fetching = None;
        freed
    }

    /// Takes a batch that was fetched.
    pub(super) fn push(&mut self, batch: Batch) {
        self.unsettled_bytes += batch.bytes.len();
        self.fetch_offset = SourceOffset(batch.header.next_offset());
        self.queue.push_back(Waiting::Batch(batch));
    }

    /// Notes that there is nothing to deliver before `next`.
    pub(super) fn push_nothing(&mut self, next: SourceOffset) {
        self.fetch_offset = next;
        if self.queue.is_empty() {
            self.progress.skip(next);
        } else {
            self.queue.push_back(Waiting::Nothing { next });
        }
    }

    /// Whether something waits to be sent.
    pub(super) fn has_waiting(&self) -> bool {
        !self.queue.is_empty() || !self.pieces.is_empty()
    }

    /// Whether `id` is that of another topic than before; remembers it.
    pub(super) fn is_another_topic(&mut self, id: Option<[u8; 16]>) -> bool {
        let before = self.topic_id;
        self.topic_id = id.or(before);
        before.is_some() && before != self.topic_id
    }

    /// Whether it may be fetched now, while a partition may hold `share` bytes. One whose target does not take what it has
    /// gets no more: it would fill the worker's budget.
    pub(super) fn may_fetch(&self, share: usize, now: Instant) -> bool {
        self.condition == Condition::Moving
            && self.fetching.is_none()
            && self.quiet_until.is_none_or(|until| until <= now)
            && (self.unsettled_bytes == 0
                || (self.unsettled_bytes < share && self.is_led && !self.is_refused))
    }

    /// Shows the position to who watches.
    pub(super) fn publish_position(&self) {
        if self.is_placed {
            self.stats.position.store(self.progress.safe_offset().0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Whether everything that was handed to the producer has come back.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The next batch for the target: passed, merged or rewritten. None when nothing waits. An error means that the
    /// head of the queue can't be read; nothing was taken then.
    pub(super) fn next_batch(
        &mut self,
        bytes_max: usize,
        rules: SendRules,
        transform: &mut Transform,
    ) -> Result<Option<OutBatch>, BatchError> {
        let rules = self.learned(rules);
        if let Some(piece) = self.pieces.pop_front() {
            return Ok(Some(piece));
        }
        if matches!(self.condition, Condition::Draining | Condition::Paused { .. }) {
            return Ok(None);
        }
        loop {
            let Some(Waiting::Batch(_)) = self.queue.front() else { return Ok(None) };
            let (taken, prepared) = self.prepare(bytes_max, rules, transform)?;
            let last = self.take(taken);
            let Some(prepared) = prepared else {
                // Nothing was left of it.
                self.unsettled_bytes -= last.source_bytes;
                self.progress.skip(last.next);
                self.settle_nothings();
                continue;
            };
            let span = self.progress.open(prepared.next);
            self.settle_nothings();
            let bytes_max = rules.split_above(prepared.tier);
            let whole = self.send(prepared, span);
            return Ok(Some(self.split_to_fit(whole, bytes_max, transform)));
        }
    }

    /// Splits a batch that is larger than `bytes_max` until its pieces fit or hold one record each; answers the first
    /// piece and keeps the others to be sent next.
    fn split_to_fit(
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
                source_bytes: source_bytes(merged),
            };
            return Ok((merged, Some(prepared)));
        }
        let next = SourceOffset(first.header.next_offset());
        let source_bytes = first.bytes.len();
        let position = self.progress.last_opened();
        let Some(_reason) = tier::rewrite_reason(&first.header, position, rules.compression) else {
            let (header, payload) = (first.header, first.payload());
            return Ok((1, Some(Prepared { header, payload, tier: Tier::Pass, next, source_bytes })));
        };
        let built = transform.rewrite(first, position, rules.compression)?;
        let prepared = built.map(|built| Prepared {
            header: built.header,
            payload: built.payload,
            tier: Tier::Rewrite,
            next,
            source_bytes,
        });
        Ok((1, prepared))
    }

    /// How many batches at the head of the queue become one.
    fn mergeable(&self, bytes_max: usize, rules: SendRules) -> usize {
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

    /// The batches at the head of the queue, up to the first entry that is none.
    fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.queue.iter().map_while(|waiting| match waiting {
            Waiting::Batch(batch) => Some(batch),
            Waiting::Nothing { .. } => None,
        })
    }

    /// Takes `count` entries off the queue.
    fn take(&mut self, count: usize) -> Taken {
        let mut taken = Taken { next: self.progress.last_opened(), source_bytes: 0 };
        for waiting in self.queue.drain(..count) {
            if let Waiting::Batch(batch) = waiting {
                taken.next = SourceOffset(batch.header.next_offset());
                taken.source_bytes += batch.bytes.len();
            }
        }
        taken
    }

    fn settle_nothings(&mut self) {
        while let Some(Waiting::Nothing { next }) = self.queue.front() {
            self.progress.skip(*next);
            self.queue.pop_front();
        }
    }

    fn send(&mut self, prepared: Prepared, span: Span) -> OutBatch {
        let tag = self.take_tag();
        let Prepared { header, payload, tier, source_bytes, .. } = prepared;
        let out = OutBatch { header, payload: payload.clone(), tag };
        self.in_flight.push_back(InFlight { tag, span: Some(span), header, payload, tier, source_bytes });
        out
    }

    fn take_tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// The batch `tag` was delivered. None if it is not in flight.
    pub(super) fn acknowledged(&mut self, tag: u64) -> Option<Settled> {
        let index = self.in_flight.iter().position(|batch| batch.tag == tag)?;
        let batch = self.in_flight.remove(index)?;
        let bytes = batch.header.total_bytes() as u64;
        self.stats.delivered(batch.tier, u64::try_from(batch.header.record_count).unwrap_or(0), bytes);
        if let Some(span) = batch.span {
            self.progress.settle(span);
        }
        self.unsettled_bytes -= batch.source_bytes;
        self.is_refused = false;
        Some(Settled { source_bytes: batch.source_bytes })
    }

    /// The batch `tag`, as it was sent.
    pub(super) fn sent(&self, tag: u64) -> Option<(&BatchHeader, &Bytes)> {
        let batch = self.in_flight.iter().find(|batch| batch.tag == tag)?;
        Some((&batch.header, &batch.payload))
    }

    /// The target refused a batch for its size: what follows is made smaller at once.
    pub(super) fn learn_bound(&mut self, refused_bytes: usize) {
        let half = (refused_bytes / 2).max(LEARNED_BYTES_MIN);
        self.batch_bytes_max = Some(self.batch_bytes_max.map_or(half, |bound| bound.min(half)));
    }

    fn learned(&self, rules: SendRules) -> SendRules {
        let bounds = [rules.batch_bytes_max, self.batch_bytes_max];
        SendRules { batch_bytes_max: bounds.into_iter().flatten().min(), ..rules }
    }

    /// Replaces the batch `tag` by its two halves. Answers what is to be sent in its place.
    pub(super) fn split(&mut self, tag: u64, transform: &mut Transform) -> Result<Vec<OutBatch>, SplitError> {
        let index = self.in_flight.iter().position(|batch| batch.tag == tag).ok_or(SplitError::Unknown)?;
        let whole = &self.in_flight[index];
        let halves = transform.split(&whole.header, &whole.payload)?.ok_or(SplitError::SingleRecord)?;
        let Some(whole) = self.in_flight.remove(index) else { return Err(SplitError::Unknown) };
        let mut parts = Vec::with_capacity(2);
        for (number, half) in halves.into_iter().enumerate() {
            let tag = self.take_tag();
            let is_last = number == 1;
            parts.push(OutBatch { header: half.header, payload: half.payload.clone(), tag });
            let piece = InFlight {
                tag,
                span: if is_last { whole.span } else { None },
                header: half.header,
                payload: half.payload,
                tier: Tier::Rewrite,
                source_bytes: if is_last { whole.source_bytes } else { 0 },
            };
            self.in_flight.insert(index + number, piece);
        }
        Ok(parts)
    }
}

/// What was taken off the queue.
struct Taken {
    next: SourceOffset,
    source_bytes: usize,
}

/// Why a batch could not be split.
#[derive(Debug, thiserror::Error)]
pub(super) enum SplitError {
    #[error("the batch is not in flight any more")]
    Unknown,
    #[error("it is a single record")]
    SingleRecord,
    #[error(transparent)]
    Batch(#[from] BatchError),
}

#[cfg(test)]
mod tests;
