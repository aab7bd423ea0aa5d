//! One source partition on its way through a worker: what was read, what waits, what is with the target. How it is sent is
//! in `sending`, how the flow's chain edits it in `editing`.

mod editing;
mod sending;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_wire::batch::{Batch, BatchHeader};
use tidegate_wire::produce::OutBatch;
use tokio::time::Instant;

use self::editing::Judged;
pub(super) use self::editing::Workshop;
pub(super) use self::sending::{SendRules, SplitError};
use super::progress::{Progress, Span};
use crate::names::{Slot, SourceOffset, SourcePartition};
use crate::status::{PartitionStats, Paused, Tier};

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
    /// When the source's end was last told.
    pub(super) end_seen: Option<Instant>,
    /// Not fetched before this instant.
    pub(super) quiet_until: Option<Instant>,
    /// Whether the first offset is known; without it there is no position to store.
    pub(super) is_placed: bool,
    /// Ask for the log's bounds when the pause is over.
    pub(super) needs_location: bool,
    /// Batches that the target refused for good, in order; sent again when the pause is over.
    pub(super) held: Vec<u64>,
    /// A plugin's fault or refusal stopped it; goes on by an order or with another chain, never by time.
    is_halted: bool,
    /// The chain edits its records.
    is_edited: bool,
    /// An edited batch that waits until its quarantined records are written; nothing behind it goes out before.
    judged: Option<Judged>,
    /// It gave others their turn before it was through with what waits.
    has_more: bool,
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
    /// Settled with the last piece of it that is acknowledged.
    span: Span,
    /// The source offset of its first record, if its records have consecutive ones.
    first: Option<SourceOffset>,
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
            end_seen: None,
            quiet_until: None,
            is_placed: first.is_some(),
            needs_location: false,
            held: Vec::new(),
            is_halted: false,
            is_edited: false,
            judged: None,
            has_more: false,
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
        debug_assert!(self.is_idle(), "a lane starts over only when nothing is in flight");
        self.unhalt();
        self.move_changeover(offset);
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

    /// Whether something waits to be sent that may go.
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
            && !self.is_halted
            && self.fetching.is_none()
            && self.quiet_until.is_none_or(|until| until <= now)
            && (self.unsettled_bytes == 0
                || (self.unsettled_bytes < share
                    && self.is_led
                    && !self.is_refused
                    && !self.is_quarantine_failing()))
    }

    /// Shows the position to who watches.
    pub(super) fn publish_position(&self) {
        if self.is_placed {
            self.stats.position.store(self.progress.safe_offset().0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Stops at a record that no plugin's answer settles: nothing new is sent or fetched until [`RelayLane::unhalt`]. What
    /// waits is given back, so that it takes nothing from the others; it is fetched again.
    fn halt(&mut self, paused: Paused) {
        self.is_halted = true;
        self.clear_queue();
        if matches!(self.condition, Condition::Locating | Condition::Jumping { .. }) && self.is_placed {
            // It was about to go on elsewhere once all before was sent. That is worked out again: the records from here on
            // are not to be passed over.
            self.condition = Condition::Moving;
        }
        self.stats.set_paused(Some(paused));
    }

    /// Whether a plugin's fault or refusal stopped it.
    pub(super) fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// Whether it gave others their turn with something left to do; asked once.
    pub(super) fn takes_another_turn(&mut self) -> bool {
        std::mem::take(&mut self.has_more)
    }

    /// Goes on after a halt; says whether there was one.
    pub(super) fn unhalt(&mut self) -> bool {
        if self.is_halted {
            self.stats.set_paused(None);
        }
        std::mem::take(&mut self.is_halted)
    }

    /// Whether everything that was handed to the producer has come back, and nothing waits for quarantine.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.judged.is_none()
    }
}

#[cfg(test)]
mod tests;
