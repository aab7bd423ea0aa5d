//! From a fetch answer's record bytes to batches, without copying.

use std::iter::FusedIterator;

use bytes::Bytes;

use super::error::{BatchError, Flaw, Part};
use super::header::{BatchHeader, CRC_STARTS_AT, HEADER_BYTES, LENGTH_STARTS_AT};

/// One whole batch: its parsed header and its bytes, header included, as they came. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The first 61 bytes, parsed.
    pub header: BatchHeader,
    /// The whole batch; a slice of the answer that it came in, which it keeps alive.
    pub bytes: Bytes,
}

impl Batch {
    /// Takes exactly one batch. Neither CRC nor records are looked at.
    pub fn parse(bytes: Bytes) -> Result<Batch, BatchError> {
        let header = BatchHeader::parse(&bytes)?;
        let needed_bytes = header.total_bytes();
        let flaw = match bytes.len().checked_sub(needed_bytes) {
            Some(0) => return Ok(Batch { header, bytes }),
            Some(rest) => Flaw::BytesBehindBatch(rest),
            None => Flaw::Truncated { needed_bytes, available_bytes: bytes.len() },
        };
        Err(BatchError::Malformed { position: needed_bytes.min(bytes.len()), part: Part::Batch, flaw })
    }

    /// Compares the CRC32C with the bytes. It covers all but base offset, length, leader epoch and magic.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(&self.bytes[CRC_STARTS_AT..]);
        if computed == self.header.crc {
            return Ok(());
        }
        let (base_offset, stored) = (self.header.base_offset, self.header.crc);
        Err(BatchError::CrcMismatch { base_offset, stored, computed })
    }

    /// What follows the header, as it came: compressed by the header's codec.
    pub fn payload(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES..)
    }
}

/// The batches of a fetch answer's record bytes, in order.
///
/// A broker cuts the bytes off at the size that was asked for, so a part of a batch at the end is no error:
/// it is left for the next fetch. Where not even the first batch is whole, that fetch would bring the same
/// again, hence an error that names the size. After an error nothing more comes.
#[derive(Debug, Clone)]
pub struct Batches {
    rest: Bytes,
    position: usize,
}

impl Batches {
    /// Starts at the first of `records`. None at all are fine.
    pub fn new(records: Bytes) -> Self {
        Batches { rest: records, position: 0 }
    }

    /// How much the first batch needs when it is larger than what is there; to be asked before iterating.
    pub fn first_is_larger_than_answer(&self) -> Option<usize> {
        if self.position != 0 || self.rest.is_empty() {
            return None;
        }
        let needed_bytes = needed_bytes(&self.rest);
        (needed_bytes > self.rest.len()).then_some(needed_bytes)
    }

    fn take_next(&mut self) -> Result<Option<Batch>, BatchError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let header = match BatchHeader::parse_at(&self.rest, self.position) {
            Ok(header) if header.total_bytes() <= self.rest.len() => header,
            Ok(_) | Err(BatchError::Malformed { flaw: Flaw::Truncated { .. }, .. }) => return self.cut_off(),
            Err(error) => return Err(error),
        };
        let bytes = self.rest.split_to(header.total_bytes());
        self.position += bytes.len();
        Ok(Some(Batch { header, bytes }))
    }

    fn cut_off(&self) -> Result<Option<Batch>, BatchError> {
        match self.first_is_larger_than_answer() {
            Some(needed_bytes) => {
                Err(BatchError::FirstBatchLargerThanAnswer { needed_bytes, answer_bytes: self.rest.len() })
            }
            None => Ok(None),
        }
    }
}

/// Size of the batch that `bytes` begin with, as far as they tell.
fn needed_bytes(bytes: &[u8]) -> usize {
    match bytes.get(8..).and_then(|bytes| bytes.first_chunk()) {
        Some(length) => (LENGTH_STARTS_AT + i32::from_be_bytes(*length).max(0) as usize).max(HEADER_BYTES),
        None => HEADER_BYTES,
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.take_next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.rest.clear();
        }
        next
    }
}

impl FusedIterator for Batches {}
