//! A batch that is built by hand, and its words as the host would send them.

use super::OwnedRecord;
use crate::records::{self, HAS_KEY, HAS_VALUE, HeaderNeeds, NULL_LENGTH, Needs, RECORD_WORD_COUNT};

/// One word more than the plugin knows: it must walk by what the host says.
const SENT_WORD_COUNT: usize = RECORD_WORD_COUNT + 1;

/// Records of one topic and partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    topic: String,
    partition: i32,
    base_offset: i64,
    pub(super) records: Vec<OwnedRecord>,
}

impl Batch {
    /// Without records; the first one will have offset 0.
    pub fn new(topic: impl Into<String>, partition: i32) -> Self {
        Self { topic: topic.into(), partition, base_offset: 0, records: Vec::new() }
    }

    /// The first record's offset; said before the first record.
    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.base_offset = base_offset;
        self
    }

    /// One more record, behind the last: `build` is given one that has an offset and nothing else.
    pub fn record(mut self, build: impl FnOnce(OwnedRecord) -> OwnedRecord) -> Self {
        let offset = self.records.last().map_or(self.base_offset, |last| last.offset + 1);
        self.records.push(build(OwnedRecord::default().offset(offset)));
        self
    }

    /// What the host sends to a plugin with these needs.
    pub(super) fn words(&self, needs: &Needs) -> Words {
        let mut words = Words { base_offset: self.base_offset.min(self.first_offset()), ..Words::default() };
        for record in &self.records {
            words.push(record, needs);
        }
        words
    }

    fn first_offset(&self) -> i64 {
        self.records.first().map_or(self.base_offset, |record| record.offset)
    }
}

#[derive(Debug, Default)]
pub(super) struct Words {
    base_offset: i64,
    data: Vec<u8>,
    recs: Vec<u32>,
    headers: Vec<u32>,
    timestamps: Vec<i64>,
}

impl Words {
    pub(super) fn view<'a>(&'a self, batch: &'a Batch) -> records::Batch<'a> {
        records::Batch {
            topic: &batch.topic,
            partition: batch.partition,
            base_offset: self.base_offset,
            data: &self.data,
            rec_words: SENT_WORD_COUNT,
            recs: &self.recs,
            headers: &self.headers,
            timestamps: &self.timestamps,
        }
    }

    fn push(&mut self, record: &OwnedRecord, needs: &Needs) {
        let delta = word(record.offset - self.base_offset);
        let bits = if record.key.is_some() { HAS_KEY } else { 0 }
            | if record.value.is_some() { HAS_VALUE } else { 0 };
        let [key_offset, key_length] = self.put(record.key.as_deref().filter(|_| needs.key));
        let [value_offset, value_length] = self.put(record.value.as_deref().filter(|_| needs.value));
        let [first_header, header_count] = self.put_headers(record, &needs.headers);
        let known: [u32; RECORD_WORD_COUNT] =
            [delta, bits, key_offset, key_length, value_offset, value_length, first_header, header_count];
        self.recs.extend_from_slice(&known);
        self.recs.resize(self.recs.len() + SENT_WORD_COUNT - RECORD_WORD_COUNT, u32::MAX);
        if needs.timestamps {
            self.timestamps.push(record.timestamp_ms.unwrap_or(-1));
        }
    }

    fn put_headers(&mut self, record: &OwnedRecord, needs: &HeaderNeeds) -> [u32; 2] {
        let first = self.headers.len() / 4;
        for (name, value) in record.headers.iter().filter(|(name, _)| needs.has(name)) {
            let name = self.put(Some(name.as_bytes()));
            let value = self.put(value.as_deref());
            self.headers.extend_from_slice(&[name, value].concat());
        }
        [word(first), word(self.headers.len() / 4 - first)]
    }

    fn put(&mut self, bytes: Option<&[u8]>) -> [u32; 2] {
        let Some(bytes) = bytes else { return [0, NULL_LENGTH] };
        let offset = self.data.len();
        self.data.extend_from_slice(bytes);
        [word(offset), word(bytes.len())]
    }
}

fn word<T: TryInto<u32>>(number: T) -> u32 {
    number.try_into().unwrap_or_else(|_| panic!("a batch's offsets rise, and it has less than 4 GiB"))
}
