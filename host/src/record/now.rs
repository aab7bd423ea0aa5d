//! A borrowed look at a record of a set.

use crate::names::SourceOffset;

use super::set::{Entry, RecordSet};
use super::span::{HeaderSpans, Parts};

/// A record as it stands at some time. Null and empty are different everywhere.
#[derive(Clone, Copy, Debug)]
pub struct RecordNow<'a> {
    /// Where it lies on the source.
    pub offset: SourceOffset,
    /// Milliseconds since 1970; -1 = it has none. No edit changes it.
    pub timestamp_ms: i64,
    /// An edit took it out.
    pub is_dropped: bool,
    /// Something about it was edited, so its bytes may differ from those in its batch.
    pub is_edited: bool,
    parts: Parts,
    headers: &'a [HeaderSpans],
    base: &'a [u8],
    arena: &'a [u8],
}

impl<'a> RecordNow<'a> {
    #[inline]
    pub(super) fn new(
        set: &'a RecordSet,
        base: &'a [u8],
        entry: &Entry,
        parts: Parts,
        is_edited: bool,
    ) -> Self {
        let Entry { offset, timestamp_ms, is_dropped, .. } = *entry;
        let (headers, arena) = (&set.headers, &set.arena);
        Self { offset, timestamp_ms, is_dropped, is_edited, parts, headers, base, arena }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.parts.key.bytes(self.base, self.arena)
    }

    /// The value; None is a tombstone.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.parts.value.bytes(self.base, self.arena)
    }

    /// How long the key is.
    #[inline]
    pub fn key_bytes(&self) -> Option<usize> {
        self.parts.key.length()
    }

    /// How long the value is.
    #[inline]
    pub fn value_bytes(&self) -> Option<usize> {
        self.parts.value.length()
    }

    /// The headers, in order.
    #[inline]
    pub fn headers(&self) -> HeadersNow<'a> {
        let start = self.parts.headers_start as usize;
        let spans = &self.headers[start..start + self.parts.header_count as usize];
        HeadersNow { spans: spans.iter(), base: self.base, arena: self.arena }
    }

    /// How many headers there are, repeated names counted each time.
    #[inline]
    pub fn header_count(&self) -> usize {
        self.parts.header_count as usize
    }
}

/// Names and values of a record's headers, in order.
#[derive(Clone, Debug)]
pub struct HeadersNow<'a> {
    spans: std::slice::Iter<'a, HeaderSpans>,
    base: &'a [u8],
    arena: &'a [u8],
}

impl<'a> Iterator for HeadersNow<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let header = self.spans.next()?;
        // Names are never null.
        let name = header.name.bytes(self.base, self.arena).unwrap_or_default();
        Some((name, header.value.bytes(self.base, self.arena)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl ExactSizeIterator for HeadersNow<'_> {}
