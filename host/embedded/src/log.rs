//! The log of one partition, in memory: batches as they were stored, and what a broker knows about them.

pub(crate) mod check;
pub(crate) mod header;
pub(crate) mod producers;
pub(crate) mod transactions;

use std::collections::VecDeque;

use bytes::Bytes;

use self::header::{Header, Stamp};
use self::producers::Producers;
use self::transactions::{Aborted, Transactions};

/// Leader epochs whose start is remembered; the oldest is forgotten first.
const EPOCHS_REMEMBERED_MAX: usize = 1000;

/// A batch in the log; its header's base offset is the final one.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) header: Header,
    pub(crate) bytes: Bytes,
}

/// How much of a log a reader wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimits {
    /// Nothing at or behind this offset.
    pub(crate) until_offset: i64,
    pub(crate) bytes_max: usize,
    /// Give the first batch whole even if it is larger than `bytes_max`.
    pub(crate) first_batch_whole: bool,
}

/// One partition's batches.
#[derive(Debug)]
pub(crate) struct Log {
    batches: VecDeque<Stored>,
    start_offset: i64,
    end_offset: i64,
    bytes: usize,
    /// Leader epoch → its first offset, in order.
    epochs: Vec<(i32, i64)>,
    pub(crate) producers: Producers,
    pub(crate) transactions: Transactions,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log {
            batches: VecDeque::new(),
            start_offset: 0,
            end_offset: 0,
            bytes: 0,
            epochs: Vec::new(),
            producers: Producers::default(),
            transactions: Transactions::default(),
        }
    }

    pub(crate) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// Offset of the next record; also the high watermark, for nothing is replicated.
    pub(crate) fn end_offset(&self) -> i64 {
        self.end_offset
    }

    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.transactions.first_open().unwrap_or(self.end_offset)
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &Stored> {
        self.batches.iter()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a copy of `batch` with the stamp in it and remembers its producer; gives the header as stored.
    pub(crate) fn append(&mut self, batch: &[u8], stamp: Stamp) -> Header {
        let bytes = header::stamped(batch, stamp);
        let header = Header::parse(&bytes).expect("the batch was parsed before it came here");
        self.note_epoch(stamp.leader_epoch, header.base_offset);
        self.producers.note(&header);
        self.transactions.note(&header, &bytes);
        self.end_offset = header.last_offset() + 1;
        self.bytes += bytes.len();
        self.batches.push_back(Stored { header, bytes });
        header
    }

    /// Batches from the one that holds `offset` on. The last may be cut in the middle, as Kafka does; a cut
    /// first batch is not given at all.
    pub(crate) fn read(&self, offset: i64, limits: ReadLimits) -> Vec<Bytes> {
        let first = self.batches.partition_point(|batch| batch.header.last_offset() < offset);
        let mut parts = Vec::new();
        let mut room = limits.bytes_max;
        for batch in self.batches.iter().skip(first) {
            if batch.header.base_offset >= limits.until_offset {
                break;
            }
            let size = batch.bytes.len();
            if size <= room || (parts.is_empty() && limits.first_batch_whole) {
                parts.push(batch.bytes.clone());
                room = room.saturating_sub(size);
                continue;
            }
            if !parts.is_empty() && room > 0 {
                parts.push(batch.bytes.slice(..room));
            }
            break;
        }
        parts
    }

    /// First batch whose largest timestamp is at or behind `timestamp_ms`: its base offset and that
    /// timestamp.
    pub(crate) fn find_timestamp(&self, timestamp_ms: i64) -> Option<&Stored> {
        let visible = |batch: &&Stored| !batch.header.is_control();
        self.batches.iter().filter(visible).find(|batch| batch.header.max_timestamp >= timestamp_ms)
    }

    /// The batch with the largest timestamp, the first of them if there are several.
    pub(crate) fn max_timestamp(&self) -> Option<&Stored> {
        self.batches.iter().rev().max_by_key(|batch| batch.header.max_timestamp)
    }

    /// Moves the start of the log; whole batches before it are dropped. Never moves it back.
    pub(crate) fn delete_before(&mut self, offset: i64) {
        self.start_offset = self.start_offset.max(offset.min(self.end_offset));
        while let Some(first) = self.batches.front() {
            if first.header.last_offset() >= self.start_offset {
                break;
            }
            self.bytes -= first.bytes.len();
            self.batches.pop_front();
        }
        self.transactions.forget_before(self.start_offset);
    }

    /// Drops the oldest batches until at most `bytes_max` are left; the newest batch always stays.
    pub(crate) fn shrink_to(&mut self, bytes_max: usize) {
        let mut start = self.start_offset;
        let mut left = self.bytes;
        for batch in self.batches.iter().take(self.batches.len().saturating_sub(1)) {
            if left <= bytes_max {
                break;
            }
            left -= batch.bytes.len();
            start = batch.header.last_offset() + 1;
        }
        if start > self.start_offset {
            self.delete_before(start);
        }
    }

    /// Largest known epoch that is not above `epoch`, and where it ended; (-1, -1) if there is none.
    pub(crate) fn end_of_epoch(&self, epoch: i32, current_epoch: i32) -> (i32, i64) {
        if epoch == current_epoch {
            return (epoch, self.end_offset);
        }
        let next = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let Some((found, _)) = next.checked_sub(1).and_then(|index| self.epochs.get(index)) else {
            return (-1, -1);
        };
        (*found, self.epochs.get(next).map_or(self.end_offset, |(_, start)| *start))
    }

    /// Epoch under which the record at `offset` was appended.
    pub(crate) fn epoch_at(&self, offset: i64) -> i32 {
        let next = self.epochs.partition_point(|(_, start)| *start <= offset);
        next.checked_sub(1).and_then(|index| self.epochs.get(index)).map_or(-1, |(epoch, _)| *epoch)
    }

    pub(crate) fn aborted_within(&self, from: i64, until: i64) -> Vec<Aborted> {
        self.transactions.aborted_within(from, until)
    }

    fn note_epoch(&mut self, epoch: i32, offset: i64) {
        if self.epochs.last().is_none_or(|(last, _)| *last < epoch) {
            if self.epochs.len() == EPOCHS_REMEMBERED_MAX {
                self.epochs.remove(0);
            }
            self.epochs.push((epoch, offset));
        }
    }
}
