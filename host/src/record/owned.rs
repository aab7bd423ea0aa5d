//! Records that own their bytes: for the few that are shown to a person, never on the data path.

use std::ops::Range;

use super::{RecordParts, RecordSet};
use crate::names::{SourceOffset, TopicName};

/// A record by itself. Null and empty are different everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Its offset on the source.
    pub offset: i64,
    /// Its time in milliseconds; Kafka's −1 for none.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Its headers, in order; names may repeat.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Records of one source partition, in rising order of their offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBatch {
    /// Where they were read.
    pub topic: TopicName,
    /// Where they were read.
    pub partition: i32,
    /// The records; no two with one offset.
    pub records: Vec<OwnedRecord>,
}

impl OwnedRecord {
    /// What its parts come to, names of headers included.
    pub fn size_bytes(&self) -> usize {
        let length = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + length(value)).sum();
        length(&self.key) + length(&self.value) + headers
    }
}

/// Owned records laid out in one piece, as a batch's records lie, ready for a chain.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    base: Vec<u8>,
    records: Vec<LaidRecord>,
}

/// A record's parts in the piece.
#[derive(Clone, Debug)]
struct LaidRecord {
    offset: SourceOffset,
    timestamp_ms: i64,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Vec<(Range<usize>, Option<Range<usize>>)>,
}

impl Laid {
    /// Copies the records' bytes.
    pub fn of(records: &[OwnedRecord]) -> Self {
        let mut laid = Self::default();
        for record in records {
            let key = laid.lay(record.key.as_deref());
            let value = laid.lay(record.value.as_deref());
            let headers = record
                .headers
                .iter()
                .map(|(name, value)| (laid.lay_bytes(name), laid.lay(value.as_deref())))
                .collect();
            let (offset, timestamp_ms) = (SourceOffset(record.offset), record.timestamp_ms);
            laid.records.push(LaidRecord { offset, timestamp_ms, key, value, headers });
        }
        laid
    }

    /// The bytes that the set's positions are in.
    pub fn base(&self) -> &[u8] {
        &self.base
    }

    /// Starts `set` anew with these records.
    pub fn fill(&self, set: &mut RecordSet) {
        let part = |span: &Range<usize>| &self.base[span.clone()];
        set.start();
        for record in &self.records {
            let parts = RecordParts {
                offset: record.offset,
                timestamp_ms: record.timestamp_ms,
                key: record.key.as_ref().map(part),
                value: record.value.as_ref().map(part),
                headers: record.headers.iter().map(|(name, value)| (part(name), value.as_ref().map(part))),
            };
            set.push(&self.base, parts).expect("the parts were laid into the base");
        }
    }

    fn lay(&mut self, bytes: Option<&[u8]>) -> Option<Range<usize>> {
        bytes.map(|bytes| self.lay_bytes(bytes))
    }

    fn lay_bytes(&mut self, bytes: &[u8]) -> Range<usize> {
        let begin = self.base.len();
        self.base.extend_from_slice(bytes);
        begin..self.base.len()
    }
}
