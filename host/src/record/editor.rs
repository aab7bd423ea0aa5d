//! Edits of one record, applied in turn. What a plugin may ask for is checked before (by the caller); what it means is here.

use std::ops::Range;

use super::set::RecordSet;
use super::span::{HeaderSpans, Parts, Span};

/// Where the bytes of an answer lie in a set's arena.
#[derive(Clone, Copy, Debug)]
pub struct AnswerBytes {
    start: u32,
    length: u32,
}

impl AnswerBytes {
    /// Bytes of the answer. The caller has checked that they lie in it.
    fn span(self, range: Range<u32>) -> Span {
        debug_assert!(range.start <= range.end && range.end <= self.length);
        Span::in_arena(self.start + range.start, range.end - range.start)
    }
}

impl RecordSet {
    /// Takes over the bytes that the edits of an answer point at. None when the arena would have 2 GiB.
    pub fn take_answer(&mut self, data: &[u8]) -> Option<AnswerBytes> {
        if !self.has_room(data.len()) {
            return None;
        }
        // Both fit: there was room.
        let answer = AnswerBytes { start: self.arena.len() as u32, length: data.len() as u32 };
        self.arena.extend_from_slice(data);
        Some(answer)
    }

    /// Begins the edits of one record. Its headers come to the end of the list, where they can grow, when one of them is
    /// edited.
    pub fn edit<'a>(&'a mut self, base: &'a [u8], index: usize, answer: AnswerBytes) -> Editor<'a> {
        let edited = self.parts_to_edit(index);
        let old_value = self.edited[edited].value;
        Editor { set: self, base, answer, edited, old_value, splice: None, headers_moved: false }
    }
}

/// One record in the works. Ranges are of the answer's bytes.
#[derive(Debug)]
pub struct Editor<'a> {
    set: &'a mut RecordSet,
    base: &'a [u8],
    answer: AnswerBytes,
    edited: usize,
    old_value: Span,
    splice: Option<Splice>,
    headers_moved: bool,
}

/// A value that is being put together at the end of the arena.
#[derive(Debug)]
struct Splice {
    starts_at: usize,
    /// Up to here the old value is used.
    used_bytes: usize,
}

impl Editor<'_> {
    /// The first header of that name takes the value, the others of that name go; none: it is appended.
    pub fn set_header(&mut self, name: Range<u32>, value: Option<Range<u32>>) {
        let header = self.header(name, value);
        let mut place = None;
        self.retain_headers(header.name, |at| {
            let is_first = place.is_none();
            place = place.or(Some(at));
            is_first
        });
        match place {
            // As it was called: equal bytes.
            Some(place) => self.set.headers[place].value = header.value,
            None => self.append(header),
        }
    }

    /// Appends a header, whatever is there.
    pub fn add_header(&mut self, name: Range<u32>, value: Option<Range<u32>>) {
        let header = self.header(name, value);
        self.move_headers();
        self.append(header);
    }

    /// Every header of the old name gets the new one, in its place.
    pub fn rename_header(&mut self, old: Range<u32>, new: Range<u32>) {
        let (old, new) = (self.answer.span(old), self.answer.span(new));
        let start = self.move_headers();
        let RecordSet { headers, arena, .. } = &mut *self.set;
        for header in &mut headers[start..] {
            if header.name.bytes(self.base, arena) == old.bytes(self.base, arena) {
                header.name = new;
            }
        }
    }

    /// Every header of that name goes.
    pub fn remove_header(&mut self, name: Range<u32>) {
        let name = self.answer.span(name);
        self.retain_headers(name, |_| false);
    }

    /// Sets the key.
    pub fn set_key(&mut self, key: Range<u32>) {
        self.parts().key = self.answer.span(key);
    }

    /// Sets the value.
    pub fn set_value(&mut self, value: Range<u32>) {
        self.parts().value = self.answer.span(value);
    }

    /// Makes it a tombstone.
    pub fn clear_value(&mut self) {
        self.parts().value = Span::NULL;
    }

    /// Puts `with` in place of `range` of the value as it was before these edits. Ranges rise, don't overlap, and lie in that
    /// value (the caller has checked it).
    pub fn splice_value(&mut self, range: Range<u32>, with: Range<u32>) {
        let with = self.answer.span(with);
        let arena_bytes = self.set.arena.len();
        let splice = self.splice.take().unwrap_or(Splice { starts_at: arena_bytes, used_bytes: 0 });
        self.copy(self.old_value, splice.used_bytes..range.start as usize);
        self.copy(with, 0..with.length().unwrap_or_default());
        self.splice = Some(Splice { used_bytes: range.end as usize, ..splice });
    }

    /// Ends the edits of this record.
    pub fn finish(mut self) {
        let Some(splice) = self.splice.take() else { return };
        let old_bytes = self.old_value.length().unwrap_or_default();
        self.copy(self.old_value, splice.used_bytes..old_bytes);
        let length = self.set.arena.len() - splice.starts_at;
        // Fits: the caller bounds what a batch may grow by.
        self.parts().value = Span::in_arena(splice.starts_at as u32, length as u32);
    }

    fn parts(&mut self) -> &mut Parts {
        &mut self.set.edited[self.edited]
    }

    fn header(&self, name: Range<u32>, value: Option<Range<u32>>) -> HeaderSpans {
        let value = value.map_or(Span::NULL, |value| self.answer.span(value));
        HeaderSpans { name: self.answer.span(name), value }
    }

    /// Copies a part of `from` to the end of the arena.
    fn copy(&mut self, from: Span, range: Range<usize>) {
        let RecordSet { arena, .. } = &mut *self.set;
        match from.arena_start() {
            Some(start) => arena.extend_from_within(start + range.start..start + range.end),
            None => arena.extend_from_slice(&from.bytes(self.base, &[]).unwrap_or_default()[range]),
        }
    }

    /// Makes the record's headers the last ones of the list, once. Answers where they start.
    fn move_headers(&mut self) -> usize {
        let start = self.parts().headers_start as usize;
        if self.headers_moved {
            return start;
        }
        self.headers_moved = true;
        let count = self.parts().header_count as usize;
        let moved_to = self.set.headers.len();
        self.set.headers.extend_from_within(start..start + count);
        self.parts().headers_start = moved_to as u32;
        moved_to
    }

    fn append(&mut self, header: HeaderSpans) {
        self.set.headers.push(header);
        self.parts().header_count += 1;
    }

    /// Keeps the headers of other names, and those of this one that `keep` wants. It is told where each will lie.
    fn retain_headers(&mut self, name: Span, mut keep: impl FnMut(usize) -> bool) {
        let start = self.move_headers();
        let RecordSet { headers, arena, .. } = &mut *self.set;
        let mut end = start;
        for at in start..headers.len() {
            let header = headers[at];
            let is_other = header.name.bytes(self.base, arena) != name.bytes(self.base, arena);
            if is_other || keep(end) {
                headers[end] = header;
                end += 1;
            }
        }
        headers.truncate(end);
        self.parts().header_count = (end - start) as u32;
    }
}
