//! Counters and facts of one source partition.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Tier;
use crate::names::{Slot, SourceOffset, TopicName};

/// Counters of one source partition. The worker that relays it is the only writer; all values are plain totals.
#[derive(Debug)]
pub struct PartitionStats {
    /// Its name on the target.
    pub target_topic: TopicName,
    /// The slot that its position key hashes to.
    pub slot: Slot,
    /// First offset that is not settled; −1 until known.
    pub position: AtomicI64,
    /// The source's end offset as of the last fetch; −1 until known.
    pub source_end: AtomicI64,
    /// Records acknowledged by the target.
    pub records: AtomicU64,
    /// Bytes of the batches that were acknowledged, as sent.
    pub bytes: AtomicU64,
    /// Batches by tier, in the order of [`Tier`].
    pub batches: [AtomicU64; 3],
    /// Records that record plugins dropped.
    pub dropped: AtomicU64,
    /// Records that record plugins changed and that were sent so.
    pub changed: AtomicU64,
    /// Records that were written to the quarantine topic instead of the target.
    pub quarantined: AtomicU64,
    changeover: Mutex<Option<Changeover>>,
    paused: Mutex<Option<Paused>>,
    last_error: Mutex<Option<LastError>>,
}

/// The last thing that went wrong, and when.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LastError {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// One sentence.
    pub message: String,
}

impl PartitionStats {
    /// All zero, offsets unknown.
    pub fn new(target_topic: TopicName, slot: Slot) -> Self {
        Self {
            target_topic,
            slot,
            position: AtomicI64::new(-1),
            source_end: AtomicI64::new(-1),
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            batches: Default::default(),
            dropped: AtomicU64::new(0),
            changed: AtomicU64::new(0),
            quarantined: AtomicU64::new(0),
            changeover: Mutex::new(None),
            paused: Mutex::new(None),
            last_error: Mutex::new(None),
        }
    }

    /// Counts one acknowledged batch.
    pub fn delivered(&self, tier: Tier, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.batches[tier as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Records between the position and the source's end; none until both are known. It counts offsets, so gaps
    /// (compaction, transaction markers) count too.
    pub fn lag_records(&self) -> Option<u64> {
        let position = self.position.load(Ordering::Relaxed);
        let end = self.source_end.load(Ordering::Relaxed);
        (position >= 0 && end >= 0).then(|| u64::try_from(end - position).unwrap_or(0))
    }

    /// Notes the generation that edits from now on, and from where.
    pub fn set_changeover(&self, changeover: Changeover) {
        *lock(&self.changeover) = Some(changeover);
    }

    /// The generation that edits this partition now; none before its worker had one.
    pub fn changeover(&self) -> Option<Changeover> {
        *lock(&self.changeover)
    }

    /// Says that a plugin's fault or refusal stopped the partition, or (none) that it goes on.
    pub fn set_paused(&self, paused: Option<Paused>) {
        *lock(&self.paused) = paused;
    }

    /// Why the partition stands still, if a plugin's fault or refusal stopped it.
    pub fn paused(&self) -> Option<Paused> {
        lock(&self.paused).clone()
    }

    /// Remembers what went wrong.
    pub fn set_error(&self, at_ms: i64, message: String) {
        *lock(&self.last_error) = Some(LastError { at_ms, message });
    }

    /// What went wrong last.
    pub fn last_error(&self) -> Option<LastError> {
        lock(&self.last_error).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Since when a generation edits a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Changeover {
    /// The generation.
    pub generation: u64,
    /// The first source offset that it edits: all before it was edited by earlier ones. None until the partition's first
    /// offset is known.
    pub first_offset: Option<SourceOffset>,
}

/// Why a partition stands still until an operator resumes it or a swap brings another chain.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Paused {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// The record that stopped it; all before it is on its way or delivered.
    pub offset: SourceOffset,
    /// The plugin's name in the configuration; empty when it was not a plugin that stopped it.
    pub plugin: String,
    /// The generation that was asked.
    pub generation: u64,
    /// One sentence.
    pub reason: String,
}
