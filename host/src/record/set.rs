//! The index itself: filled from a batch, looked at, and put back.

use crate::names::SourceOffset;

use super::now::RecordNow;
use super::span::{HeaderSpans, PLACE_BYTES_MAX, Parts, Span};

/// Buffers that grew beyond this many bytes are not kept for the next batch.
const KEPT_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A batch with more records is not taken: its index would take hundreds of MiB, whatever little the batch itself takes compressed.
pub(super) const RECORD_COUNT_MAX: usize = 4 * 1024 * 1024;
/// The same for the headers of all its records.
pub(super) const HEADER_COUNT_MAX: usize = 8 * 1024 * 1024;

const UNEDITED: u32 = u32::MAX;

/// A record as it is read from its batch.
#[derive(Clone, Copy, Debug)]
pub struct RecordParts<'a, H> {
    /// Where it lies on the source.
    pub offset: SourceOffset,
    /// Milliseconds since 1970; -1 = it has none.
    pub timestamp_ms: i64,
    /// None = null, which is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// None = null: a tombstone.
    pub value: Option<&'a [u8]>,
    /// Names and values, in order.
    pub headers: H,
}

/// A byte string that was pushed lies elsewhere than said, or the batch is too large for an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a record's bytes do not lie in its batch, or the batch has 2 GiB, more than {RECORD_COUNT_MAX} records or more than \
     {HEADER_COUNT_MAX} headers; topics with such batches can only go past record plugins (topics.exclude)"
)]
pub struct OutOfBase;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) offset: SourceOffset,
    pub(super) timestamp_ms: i64,
    pub(super) read: Parts,
    /// Index in `edited`.
    pub(super) edited: u32,
    pub(super) is_dropped: bool,
}

/// One batch's records. `base`, which most functions take, is the batch's uncompressed body, the same for all of them from
/// [`start`](Self::start) to `start`; another one gives other bytes or a panic.
#[derive(Debug, Default)]
pub struct RecordSet {
    pub(super) entries: Vec<Entry>,
    /// Of all records, as read and as edited.
    pub(super) headers: Vec<HeaderSpans>,
    /// Of the records that were edited, as they stand now.
    pub(super) edited: Vec<Parts>,
    pub(super) arena: Vec<u8>,
    pub(super) dropped_count: usize,
    /// Bytes of edits that lie in the arena once and in records several times.
    pub(super) repeated_bytes: usize,
}

impl RecordSet {
    /// Forgets everything, keeps the buffers.
    pub fn start(&mut self) {
        renew(&mut self.entries);
        renew(&mut self.headers);
        renew(&mut self.edited);
        renew(&mut self.arena);
        self.dropped_count = 0;
        self.repeated_bytes = 0;
    }

    /// Adds a record whose byte strings lie in `base`: their places are kept, not their bytes. After an error the set is as it
    /// was before.
    #[inline]
    pub fn push<'a, H>(&mut self, base: &[u8], record: RecordParts<'a, H>) -> Result<(), OutOfBase>
    where
        H: IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    {
        let headers_start = self.headers.len();
        match self.place(base, record, headers_start) {
            Some(entry) => {
                self.entries.push(entry);
                Ok(())
            }
            None => {
                self.headers.truncate(headers_start);
                Err(OutOfBase)
            }
        }
    }

    #[inline]
    fn place<'a, H>(&mut self, base: &[u8], record: RecordParts<'a, H>, headers_start: usize) -> Option<Entry>
    where
        H: IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    {
        let nullable = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => Span::in_base(base, bytes),
            None => Some(Span::NULL),
        };
        if self.entries.len() >= RECORD_COUNT_MAX {
            return None;
        }
        for (name, value) in record.headers {
            if self.headers.len() >= HEADER_COUNT_MAX {
                return None;
            }
            self.headers.push(HeaderSpans { name: Span::in_base(base, name)?, value: nullable(value)? });
        }
        let read = Parts {
            key: nullable(record.key)?,
            value: nullable(record.value)?,
            headers_start: u32::try_from(headers_start).ok()?,
            header_count: u32::try_from(self.headers.len() - headers_start).ok()?,
        };
        let RecordParts { offset, timestamp_ms, .. } = record;
        Some(Entry { offset, timestamp_ms, read, edited: UNEDITED, is_dropped: false })
    }

    /// Records that were pushed.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Records that are not dropped.
    pub fn kept_count(&self) -> usize {
        self.entries.len() - self.dropped_count
    }

    /// Whether any record was dropped or edited.
    pub fn is_changed(&self) -> bool {
        self.dropped_count > 0 || !self.edited.is_empty()
    }

    /// Memory that the bytes of edits take, here or once the batch is built.
    pub fn edit_bytes(&self) -> usize {
        self.arena.len() + self.repeated_bytes
    }

    /// Edits put so many bytes into records beyond those that the arena took: several of them point at the same place.
    pub fn note_repeated(&mut self, bytes: usize) {
        self.repeated_bytes += bytes;
    }

    /// The record as it stands now.
    #[inline]
    pub fn record<'a>(&'a self, base: &'a [u8], index: usize) -> RecordNow<'a> {
        let entry = &self.entries[index];
        let edited = self.edited.get(entry.edited as usize);
        RecordNow::new(self, base, entry, *edited.unwrap_or(&entry.read), edited.is_some())
    }

    /// The record as it was read, whatever was done to it since.
    #[inline]
    pub fn original<'a>(&'a self, base: &'a [u8], index: usize) -> RecordNow<'a> {
        let entry = &self.entries[index];
        RecordNow::new(self, base, entry, entry.read, false)
    }

    /// Takes the record out.
    pub fn drop_record(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        self.dropped_count += usize::from(!entry.is_dropped);
        entry.is_dropped = true;
    }

    /// Makes the records from this one on what they were when they were read.
    pub fn restore_from(&mut self, index: usize) {
        for entry in &mut self.entries[index..] {
            entry.edited = UNEDITED;
            entry.is_dropped = false;
        }
        let earlier = &self.entries[..index];
        self.dropped_count = earlier.iter().filter(|entry| entry.is_dropped).count();
        if earlier.iter().all(|entry| entry.edited == UNEDITED) {
            self.edited.clear();
        }
    }

    /// The parts that edits work on: those of an earlier edit, or a copy of what was read.
    pub(super) fn parts_to_edit(&mut self, index: usize) -> usize {
        let entry = &mut self.entries[index];
        if entry.edited == UNEDITED {
            // Fits: there are not more of them than entries, whose headers are counted by 32 bits too.
            entry.edited = self.edited.len() as u32;
            self.edited.push(entry.read);
        }
        entry.edited as usize
    }

    /// Whether so many further bytes can be taken.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes <= PLACE_BYTES_MAX - self.arena.len()
    }
}

/// Empties, and gives back what a single large batch needed.
fn renew<T>(buffer: &mut Vec<T>) {
    buffer.clear();
    if buffer.capacity() * size_of::<T>() > KEPT_BUFFER_BYTES_MAX {
        *buffer = Vec::new();
    }
}
