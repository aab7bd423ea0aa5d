//! Open and aborted transactions of a partition's log: what the last stable offset and the list of aborted
//! transactions in a Fetch answer are made of.

use std::collections::HashMap;

use bytes::Buf;

use super::header::{HEADER_BYTES, Header};

const MARKER_ABORT: i16 = 0;

/// A transaction that ended with an abort marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// Offset of the marker.
    pub(crate) last_offset: i64,
}

/// The transactions of one log.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Producer id → offset of its open transaction's first record.
    open: HashMap<i64, i64>,
    aborted: Vec<Aborted>,
}

impl Transactions {
    /// Takes note of an appended batch, `bytes` being the whole of it.
    pub(crate) fn note(&mut self, header: &Header, bytes: &[u8]) {
        if !header.is_transactional() {
            return;
        }
        if !header.is_control() {
            self.open.entry(header.producer_id).or_insert(header.base_offset);
            return;
        }
        let Some(first_offset) = self.open.remove(&header.producer_id) else { return };
        if marker_type(bytes) == Some(MARKER_ABORT) {
            self.aborted.push(Aborted {
                producer_id: header.producer_id,
                first_offset,
                last_offset: header.last_offset(),
            });
        }
    }

    /// Offset of the first record that belongs to an open transaction.
    pub(crate) fn first_open(&self) -> Option<i64> {
        self.open.values().min().copied()
    }

    /// Aborted transactions that touch `from..until`, by first offset.
    pub(crate) fn aborted_within(&self, from: i64, until: i64) -> Vec<Aborted> {
        let touches = |aborted: &&Aborted| aborted.last_offset >= from && aborted.first_offset < until;
        let mut found: Vec<Aborted> = self.aborted.iter().filter(touches).copied().collect();
        found.sort_by_key(|aborted| aborted.first_offset);
        found
    }

    /// Forgets aborted transactions that lie wholly before the log's start.
    pub(crate) fn forget_before(&mut self, start_offset: i64) {
        self.aborted.retain(|aborted| aborted.last_offset >= start_offset);
    }
}

/// Type of the end-of-transaction marker in a control batch: the second 16-bit number of its only record's
/// key.
fn marker_type(bytes: &[u8]) -> Option<i16> {
    // Record: length, attributes, timestamp delta, offset delta, key length (varints), key. Markers are tiny:
    // each varint but the timestamp's is one byte; the timestamp delta is 0 in every marker that Kafka
    // writes.
    let record = bytes.get(HEADER_BYTES..)?;
    let mut key = record.get(5..9)?;
    let _version = key.get_i16();
    Some(key.get_i16())
}
