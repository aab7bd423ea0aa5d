//! The walk over a batch's uncompressed records, strict and without an allocation.

use std::iter::FusedIterator;

use super::error::{BatchError, Flaw, Part};
use super::header::{BatchHeader, HEADER_BYTES};
use super::varint::Cursor;

/// A header takes at least the varints of its two lengths.
const HEADER_BYTES_MIN: usize = 2;

/// One record, borrowed from its batch. Null and empty are different everywhere.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    /// Offset less the batch's base offset.
    pub offset_delta: i32,
    /// Time less the batch's base timestamp; see [`record_timestamp`](super::record_timestamp).
    pub timestamp_delta: i64,
    /// The key, as it was sent.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: HeadersView<'a>,
    /// Kafka gives these bits no meaning yet; they are kept.
    pub attributes: u8,
    /// From the key's length to the end: what does not change when the record moves to another batch. See
    /// [`BatchBuilder::push_tail`](super::BatchBuilder::push_tail).
    pub tail: &'a [u8],
}

/// A record's headers: names are raw bytes and may repeat.
#[derive(Debug, Clone, Copy)]
pub struct HeadersView<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> HeadersView<'a> {
    /// How many there are, repeated names counted each time.
    pub fn len(&self) -> usize {
        self.count
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Name and value of each, in the record's order.
    pub fn iter(&self) -> Headers<'a> {
        Headers { cursor: Cursor::new(self.bytes), remaining: self.count }
    }
}

impl<'a> IntoIterator for HeadersView<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);
    type IntoIter = Headers<'a>;

    fn into_iter(self) -> Headers<'a> {
        self.iter()
    }
}

/// Iterator over a record's headers.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    cursor: Cursor<'a>,
    remaining: usize,
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        // The walk has read these bytes once already, so this never fails.
        read_header(&mut self.cursor).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Headers<'_> {}
impl FusedIterator for Headers<'_> {}

#[inline]
fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], Option<&'a [u8]>), Flaw> {
    let length = cursor.read_varint()?;
    let available_bytes = cursor.remaining();
    let name = usize::try_from(length)
        .ok()
        .and_then(|bytes| cursor.read_slice(bytes))
        .ok_or(Flaw::Length { field: "header name", length, available_bytes })?;
    Ok((name, read_nullable(cursor, "header value")?))
}

#[inline]
fn read_nullable<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Option<&'a [u8]>, Flaw> {
    let length = cursor.read_varint()?;
    if length == -1 {
        return Ok(None);
    }
    let slice = usize::try_from(length).ok().and_then(|bytes| cursor.read_slice(bytes));
    match slice {
        Some(slice) => Ok(Some(slice)),
        None => Err(Flaw::Length { field, length, available_bytes: cursor.remaining() }),
    }
}

/// Walks the records of a batch. After an error nothing more comes. When it ends without one, there were
/// exactly as many records as the header counts, with ascending offsets, and no byte was left over.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    body: &'a [u8],
    cursor: Cursor<'a>,
    part: Part,
    expected: i32,
    found: i32,
    offset_delta_min: i32,
    offset_delta_max: i32,
    ended: bool,
}

impl<'a> Records<'a> {
    /// `bytes` are the records that `header` describes, uncompressed.
    pub(crate) fn new(header: &BatchHeader, bytes: &'a [u8], part: Part) -> Self {
        Records {
            body: bytes,
            cursor: Cursor::new(bytes),
            part,
            expected: header.record_count,
            found: 0,
            offset_delta_min: 0,
            offset_delta_max: header.last_offset_delta,
            ended: false,
        }
    }

    /// All records of the batch, uncompressed: what the views of it borrow from.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// How many are still to come, if the batch is well formed.
    pub fn remaining(&self) -> usize {
        if self.ended { 0 } else { (self.expected - self.found) as usize }
    }

    fn malformed(&mut self, position: usize, flaw: Flaw) -> BatchError {
        self.ended = true;
        let position = match self.part {
            Part::Batch => HEADER_BYTES + position,
            Part::DecompressedRecords => position,
        };
        BatchError::Malformed { position, part: self.part, flaw }
    }

    fn finish(&mut self) -> Option<Result<RecordView<'a>, BatchError>> {
        self.ended = true;
        match self.cursor.remaining() {
            0 => None,
            bytes => {
                let flaw = Flaw::BytesBehindRecords { expected: self.expected, bytes };
                Some(Err(self.malformed(self.cursor.position(), flaw)))
            }
        }
    }

    /// The next record's bytes behind its length.
    #[inline]
    fn next_body(&mut self) -> Result<&'a [u8], Flaw> {
        if self.cursor.remaining() == 0 {
            return Err(Flaw::RecordsMissing { expected: self.expected, found: self.found });
        }
        let length = self.cursor.read_varint()?;
        let body = usize::try_from(length).ok().and_then(|bytes| self.cursor.read_slice(bytes));
        match body {
            Some(body) => Ok(body),
            None => Err(Flaw::Length { field: "record", length, available_bytes: self.cursor.remaining() }),
        }
    }

    #[inline]
    fn read_record(&self, cursor: &mut Cursor<'a>) -> Result<RecordView<'a>, Flaw> {
        let attributes = cursor.read_byte()?;
        let timestamp_delta = cursor.read_varlong()?;
        let offset_delta = cursor.read_varint()?;
        let (lowest, highest) = (self.offset_delta_min, self.offset_delta_max);
        if offset_delta < lowest || offset_delta > highest {
            return Err(Flaw::OffsetDelta { delta: offset_delta, lowest, highest });
        }
        let tail = cursor.rest();
        let key = read_nullable(cursor, "key")?;
        let value = read_nullable(cursor, "value")?;
        let headers = read_headers(cursor)?;
        Ok(RecordView { offset_delta, timestamp_delta, key, value, headers, attributes, tail })
    }
}

/// Walks the headers, which must fill the record to its end.
#[inline]
fn read_headers<'a>(cursor: &mut Cursor<'a>) -> Result<HeadersView<'a>, Flaw> {
    let count = cursor.read_varint()?;
    let bytes = cursor.rest();
    let headers = match usize::try_from(count) {
        Ok(headers) if headers <= bytes.len() / HEADER_BYTES_MIN => headers,
        _ => return Err(Flaw::HeaderCount { count, available_bytes: bytes.len() }),
    };
    for _ in 0..headers {
        read_header(cursor)?;
    }
    match cursor.remaining() {
        0 => Ok(HeadersView { count: headers, bytes }),
        rest => Err(Flaw::BytesBehindHeaders(rest)),
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.found == self.expected {
            return self.finish();
        }
        let body = match self.next_body() {
            Ok(body) => body,
            Err(flaw) => return Some(Err(self.malformed(self.cursor.position(), flaw))),
        };
        let mut cursor = Cursor::new(body);
        match self.read_record(&mut cursor) {
            Ok(record) => {
                self.found += 1;
                // Cannot overflow: the highest delta that passes is i32::MAX, and then no further one does.
                self.offset_delta_min = record.offset_delta.saturating_add(1);
                Some(Ok(record))
            }
            Err(flaw) => {
                let body_starts_at = self.cursor.position() - body.len();
                Some(Err(self.malformed(body_starts_at + cursor.position(), flaw)))
            }
        }
    }
}

impl FusedIterator for Records<'_> {}
