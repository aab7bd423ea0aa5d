//! Records to words: one pass, into buffers that are kept.

use std::ops::Range;

use crate::names::SourceOffset;
use crate::plugin::records::{BatchWords, NONE_LENGTH, Needed, RECORD_WORDS};
use crate::record::{RecordNow, RecordSet};

use super::Place;

/// A call shows at most this many records; what a call costs by itself is spread over them.
pub(super) const CALL_RECORD_COUNT_MAX: usize = 500;
/// A call shows about this many bytes: more fall out of the processor's cache (measured). A larger record goes alone.
pub(super) const CALL_DATA_BYTES_MAX: usize = 256 * 1024;
/// Buffers that grew beyond this are not kept.
const KEPT_DATA_BYTES_MAX: usize = 4 * CALL_DATA_BYTES_MAX;

/// What a plugin wants to be shown, made ready for the walk.
#[derive(Debug)]
pub(super) struct Wanted {
    key: bool,
    value: bool,
    timestamps: bool,
    headers: WantedHeaders,
}

#[derive(Debug)]
enum WantedHeaders {
    None,
    All,
    /// The names lie at the start of each call's data: offset and length of each.
    Named {
        names: Vec<u8>,
        spans: Vec<(u32, u32)>,
    },
}

impl Wanted {
    pub(super) fn new(needed: &Needed) -> Self {
        let headers = match (needed.headers, needed.header_names.is_empty()) {
            (false, _) => WantedHeaders::None,
            (true, true) => WantedHeaders::All,
            (true, false) => named(&needed.header_names),
        };
        Self { key: needed.key, value: needed.value, timestamps: needed.timestamps, headers }
    }

    /// Bytes of key and value that a record would take.
    #[inline]
    fn bytes(&self, record: &RecordNow<'_>) -> usize {
        let key = if self.key { record.key_bytes().unwrap_or_default() } else { 0 };
        let value = if self.value { record.value_bytes().unwrap_or_default() } else { 0 };
        key + value
    }
}

fn named(wanted: &[String]) -> WantedHeaders {
    let (mut names, mut spans) = (Vec::new(), Vec::new());
    for (number, name) in wanted.iter().enumerate() {
        if !wanted[..number].contains(name) {
            spans.push((length(names.len()), length(name.len())));
            names.extend_from_slice(name.as_bytes());
        }
    }
    WantedHeaders::Named { names, spans }
}

/// The words of one call.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// The index in the set of each record that is shown.
    pub(super) shown: Vec<u32>,
    base_offset: i64,
    data: Vec<u8>,
    recs: Vec<u32>,
    headers: Vec<u32>,
    timestamps: Vec<i64>,
}

impl Question {
    /// Writes the records of `range` that are not dropped, as many as one call takes. Answers where the next call begins.
    pub(super) fn fill(
        &mut self,
        wanted: &Wanted,
        records: &RecordSet,
        base: &[u8],
        range: Range<usize>,
    ) -> usize {
        self.clear();
        if let WantedHeaders::Named { names, .. } = &wanted.headers {
            self.data.extend_from_slice(names);
        }
        for index in range.clone() {
            let record = records.record(base, index);
            if record.is_dropped {
                continue;
            }
            if self.is_full(wanted.bytes(&record)) {
                return index;
            }
            self.push(wanted, &record, index);
        }
        range.end
    }

    fn clear(&mut self) {
        self.shown.clear();
        self.data.clear();
        self.recs.clear();
        self.headers.clear();
        self.timestamps.clear();
        if self.data.capacity() > KEPT_DATA_BYTES_MAX {
            self.data = Vec::new();
        }
        if self.headers.capacity() * size_of::<u32>() > KEPT_DATA_BYTES_MAX {
            self.headers = Vec::new();
        }
    }

    #[inline]
    fn is_full(&self, further_bytes: usize) -> bool {
        let count = self.shown.len();
        count == CALL_RECORD_COUNT_MAX || count > 0 && self.data.len() + further_bytes > CALL_DATA_BYTES_MAX
    }

    #[inline]
    fn push(&mut self, wanted: &Wanted, record: &RecordNow<'_>, index: usize) {
        if self.shown.is_empty() {
            self.base_offset = record.offset.0;
        }
        let delta = record.offset.0.wrapping_sub(self.base_offset);
        let bits = u32::from(record.key_bytes().is_some()) | u32::from(record.value_bytes().is_some()) << 1;
        let key = self.put(if wanted.key { record.key() } else { None });
        let value = self.put(if wanted.value { record.value() } else { None });
        let first_header = self.headers.len() / crate::plugin::records::HEADER_WORDS;
        self.push_headers(&wanted.headers, record);
        let header_count = self.headers.len() / crate::plugin::records::HEADER_WORDS - first_header;
        self.shown.push(length(index));
        self.recs.extend_from_slice(&[
            // A batch spans less than 31 bits of offsets.
            delta as u32,
            bits,
            key.0,
            key.1,
            value.0,
            value.1,
            length(first_header),
            length(header_count),
        ]);
        if wanted.timestamps {
            self.timestamps.push(record.timestamp_ms);
        }
    }

    #[inline]
    fn push_headers(&mut self, wanted: &WantedHeaders, record: &RecordNow<'_>) {
        match wanted {
            WantedHeaders::None => {}
            WantedHeaders::All => {
                for (name, value) in record.headers() {
                    // Others can't be said in the plugin's language.
                    if str::from_utf8(name).is_ok() {
                        let name = self.put(Some(name));
                        self.push_header(name, value);
                    }
                }
            }
            WantedHeaders::Named { names, spans } => {
                for (name, value) in record.headers() {
                    let is_name = |span: &&(u32, u32)| names[span.0 as usize..][..span.1 as usize] == *name;
                    if let Some(span) = spans.iter().find(is_name) {
                        self.push_header(*span, value);
                    }
                }
            }
        }
    }

    #[inline]
    fn push_header(&mut self, name: (u32, u32), value: Option<&[u8]>) {
        let value = self.put(value);
        self.headers.extend_from_slice(&[name.0, name.1, value.0, value.1]);
    }

    /// Offset and length in `data`.
    #[inline]
    fn put(&mut self, bytes: Option<&[u8]>) -> (u32, u32) {
        let Some(bytes) = bytes else { return (0, NONE_LENGTH) };
        let offset = length(self.data.len());
        self.data.extend_from_slice(bytes);
        (offset, length(bytes.len()))
    }

    pub(super) fn words<'a>(&'a self, place: Place<'a>) -> BatchWords<'a> {
        BatchWords {
            topic: place.topic.as_str(),
            partition: place.partition,
            base_offset: self.base_offset,
            count: length(self.shown.len()),
            data: &self.data,
            rec_words: RECORD_WORDS,
            recs: &self.recs,
            headers: &self.headers,
            timestamps: &self.timestamps,
        }
    }

    /// The index in the set of the record in the middle, if there are two or more.
    pub(super) fn middle(&self) -> Option<usize> {
        let is_divisible = self.shown.len() >= 2;
        is_divisible.then(|| self.shown[self.shown.len() / 2] as usize)
    }

    /// The first record that is shown.
    pub(super) fn first(&self) -> Option<usize> {
        self.shown.first().map(|index| *index as usize)
    }
}

/// A set's bytes, and so those of a call, are below 4 GiB: its body has 31 bits, its edits are bounded.
#[inline]
fn length(bytes: usize) -> u32 {
    bytes as u32
}

/// For the sentences about a record.
pub(super) fn offset(records: &RecordSet, index: usize) -> SourceOffset {
    records.original(&[], index).offset
}
