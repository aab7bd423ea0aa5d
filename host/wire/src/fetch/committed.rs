//! Skips what `read_committed` must not see, by batch header alone (Kafka's `CompletedFetch`): control batches always, and the
//! batches of a producer between the first offset of its aborted transaction and its abort marker. Pure.

use std::collections::{HashSet, VecDeque};

use crate::batch::Batch;

use super::AbortedTransaction;

/// `ControlRecordType.ABORT`; 1 is COMMIT.
const ABORT_MARKER: i16 = 0;

/// For the batches of one partition of one answer, in their order.
#[derive(Debug, Default)]
pub struct CommittedFilter {
    /// Sorted by first offset; those whose offset is reached move to `active`.
    ahead: VecDeque<AbortedTransaction>,
    /// Producers within an aborted transaction.
    active: HashSet<i64>,
}

impl CommittedFilter {
    /// For an answer with this list of aborted transactions. An empty list (as `read_uncommitted` always has) skips control batches
    /// only.
    pub fn new(mut aborted: Vec<AbortedTransaction>) -> Self {
        aborted.sort_by_key(|transaction| transaction.first_offset);
        CommittedFilter { ahead: aborted.into(), active: HashSet::new() }
    }

    /// Whether this batch holds records that may be seen. To be asked for every batch of the answer, in order.
    pub fn keep(&mut self, batch: &Batch) -> bool {
        let header = &batch.header;
        if header.producer_id >= 0 {
            self.activate_up_to(header.last_offset());
            if header.is_control() && marker(&batch.payload()) == Some(ABORT_MARKER) {
                self.active.remove(&header.producer_id);
            }
        }
        let aborted = header.is_transactional() && self.active.contains(&header.producer_id);
        !header.is_control() && !aborted
    }

    fn activate_up_to(&mut self, offset: i64) {
        while let Some(transaction) = self.ahead.pop_front_if(|next| next.first_offset <= offset) {
            self.active.insert(transaction.producer_id);
        }
    }
}

/// The type of a control batch's one record: its key is version and type, two bytes each, and is never compressed. None when it is
/// not readable, which hides nothing: the batch is skipped anyway.
fn marker(payload: &[u8]) -> Option<i16> {
    let (&_attributes, rest) = skip_varint(payload)?.split_first()?;
    let rest = skip_varint(skip_varint(rest)?)?;
    let key = skip_varint(rest)?;
    Some(i16::from_be_bytes([*key.get(2)?, *key.get(3)?]))
}

/// Record length, timestamp delta, offset delta, key length: none of them matters here.
fn skip_varint(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    bytes.get(end + 1..)
}
