//! The walk over a text: checks all of it and notes what the paths find.

use std::ops::Range;

use crate::path::Paths;
use crate::text::unescape;

/// Lists and objects may lie this deep in each other; the walk's stack is bounded by it.
pub const DEPTH_MAX: usize = 128;

/// Why a text gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Not JSON; the byte where that shows.
    NotJson {
        /// Counted from 0.
        at: usize,
    },
    /// Nested deeper than [`DEPTH_MAX`]; may be JSON.
    TooDeep,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With quotes around it.
    String,
    /// As it is written.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
    /// In brackets.
    List,
    /// In braces.
    Object,
}

/// A value that a path leads to. They come in the order of the text and never lie in each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The path's number.
    pub path: usize,
    /// What the value is.
    pub kind: Kind,
    /// Where the value lies, a string's quotes included.
    pub value: Range<usize>,
    /// What must go so that the value is gone and the rest stays JSON: name, value and one comma. Only a removal's
    /// path makes it larger than the value. All cuts of a text can be made together; they don't overlap.
    pub cut: Range<usize>,
    /// The outermost value: nothing is left if it goes.
    pub is_outermost: bool,
}

impl Found {
    /// What the value says: a string's text without quotes and escapes, anything else as it is written. `scratch` is
    /// used if there are escapes.
    pub fn text<'a>(&self, json: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let written = json.get(self.value.clone()).unwrap_or_default();
        if self.kind != Kind::String {
            return written;
        }
        let inside = written.get(1..written.len().saturating_sub(1)).unwrap_or_default();
        if !inside.contains(&b'\\') {
            return inside;
        }
        scratch.clear();
        unescape(inside, scratch);
        scratch
    }
}

/// Walks texts; keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub struct Scanner {
    found: Vec<Found>,
    /// Sets of path nodes, one for each value that is open, one behind the other.
    active: Vec<u16>,
    name: Vec<u8>,
}

impl Scanner {
    /// Checks `json` from end to end and gives what `paths` find in it.
    pub fn scan<'a>(&'a mut self, paths: &Paths, json: &[u8]) -> Result<&'a [Found], Unreadable> {
        self.found.clear();
        self.active.clear();
        if let Err(error) = std::str::from_utf8(json) {
            return Err(Unreadable::NotJson { at: error.valid_up_to() });
        }
        if !paths.is_empty() {
            self.active.push(0);
        }
        let mut walk = Walk {
            json,
            at: 0,
            paths,
            found: &mut self.found,
            active: &mut self.active,
            name: &mut self.name,
        };
        walk.skip_blanks();
        let outermost = walk.value(0, 0)?;
        if let Some(matched) = outermost {
            let value = matched.value.clone();
            walk.note(matched, value, true);
        }
        walk.skip_blanks();
        if walk.at < json.len() {
            return Err(walk.not_json());
        }
        Ok(&self.found)
    }
}

/// A value that a path leads to, before it is known what goes with it.
struct Matched {
    path: u16,
    kind: Kind,
    value: Range<usize>,
}

struct Walk<'a> {
    json: &'a [u8],
    at: usize,
    paths: &'a Paths,
    found: &'a mut Vec<Found>,
    active: &'a mut Vec<u16>,
    name: &'a mut Vec<u8>,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn not_json(&self) -> Unreadable {
        Unreadable::NotJson { at: self.at }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unreadable> {
        if self.peek() != Some(byte) {
            return Err(self.not_json());
        }
        self.at += 1;
        Ok(())
    }

    fn note(&mut self, matched: Matched, cut: Range<usize>, is_outermost: bool) {
        let Matched { path, kind, value } = matched;
        self.found.push(Found { path: usize::from(path), kind, value, cut, is_outermost });
    }

    /// One value, with the nodes of `active[set..]` standing before it, which are taken off again.
    fn value(&mut self, set: usize, depth: usize) -> Result<Option<Matched>, Unreadable> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'"') => Kind::String,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => return Err(self.not_json()),
        };
        self.close_over(set, kind);
        let end = self.first_end(set);
        if end.is_some() {
            self.active.truncate(set);
        }
        match kind {
            Kind::String => {
                self.string()?;
            }
            Kind::Number => self.number()?,
            Kind::Boolean if self.peek() == Some(b't') => self.word(b"true")?,
            Kind::Boolean => self.word(b"false")?,
            Kind::Null => self.word(b"null")?,
            Kind::List | Kind::Object if depth == DEPTH_MAX => return Err(Unreadable::TooDeep),
            Kind::List => self.list(set, depth + 1)?,
            Kind::Object => self.object(set, depth + 1)?,
        }
        self.active.truncate(set);
        Ok(end.map(|path| Matched { path, kind, value: start..self.at }))
    }

    /// Adds the nodes that are reached without a step: `**` stands for no level too, and `[*]` on what is no list
    /// for the thing itself.
    fn close_over(&mut self, set: usize, kind: Kind) {
        let mut index = set;
        while let Some(node) =
            self.active.get(index).and_then(|node| self.paths.nodes.get(usize::from(*node)))
        {
            if let Some(deep) = node.deep {
                self.activate(set, deep);
            }
            if kind != Kind::List
                && let Some(each) = node.each
            {
                self.activate(set, each);
            }
            index += 1;
        }
    }

    /// Puts a node into the set, once.
    fn activate(&mut self, set: usize, node: u16) {
        if !self.active.get(set..).unwrap_or_default().contains(&node) {
            self.active.push(node);
        }
    }

    fn first_end(&self, set: usize) -> Option<u16> {
        let nodes = self.active.get(set..).unwrap_or_default();
        nodes.iter().filter_map(|node| self.paths.nodes.get(usize::from(*node))?.end).min()
    }

    fn object(&mut self, set: usize, depth: usize) -> Result<(), Unreadable> {
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let mut members = Members::default();
        loop {
            self.skip_blanks();
            let start = self.at;
            let inner = self.active.len();
            if self.peek() != Some(b'"') {
                return Err(self.not_json());
            }
            let has_escapes = self.string()?;
            if inner > set {
                self.enter_field(set..inner, start + 1..self.at - 1, has_escapes);
            }
            self.skip_blanks();
            self.expect(b':')?;
            self.skip_blanks();
            let matched = self.value(inner, depth)?;
            if self.end_member(&mut members, start, matched, b'}')? {
                return Ok(());
            }
        }
    }

    fn list(&mut self, set: usize, depth: usize) -> Result<(), Unreadable> {
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        let mut members = Members::default();
        loop {
            self.skip_blanks();
            let start = self.at;
            let inner = self.active.len();
            self.enter_element(set..inner);
            let matched = self.value(inner, depth)?;
            if self.end_member(&mut members, start, matched, b']')? {
                return Ok(());
            }
        }
    }

    /// Steps over the comma or the closing bracket behind a member; true at the bracket.
    fn end_member(
        &mut self,
        members: &mut Members,
        start: usize,
        matched: Option<Matched>,
        close: u8,
    ) -> Result<bool, Unreadable> {
        let end = self.at;
        self.skip_blanks();
        let is_last = self.peek() == Some(close);
        if !is_last && self.peek() != Some(b',') {
            return Err(self.not_json());
        }
        let mark = self.at;
        self.at += 1;
        match matched {
            Some(matched) if self.paths.is_removal(matched.path) => {
                let cut = match (members.is_any_kept, is_last) {
                    (true, _) => members.comma..end,
                    (false, false) => start..mark + 1,
                    (false, true) => start..end,
                };
                self.note(matched, cut, false);
            }
            Some(matched) => {
                members.is_any_kept = true;
                let cut = matched.value.clone();
                self.note(matched, cut, false);
            }
            None => members.is_any_kept = true,
        }
        members.comma = mark;
        Ok(is_last)
    }

    /// Puts the nodes behind the field onto the set's top. The name lies in `name`, without its quotes.
    fn enter_field(&mut self, set: Range<usize>, name: Range<usize>, has_escapes: bool) {
        let mut scratch = std::mem::take(self.name);
        let mut written = self.json.get(name).unwrap_or_default();
        if has_escapes {
            scratch.clear();
            unescape(written, &mut scratch);
            written = &scratch;
        }
        let inner = set.end;
        for index in set {
            let Some(number) = self.active.get(index).copied() else { break };
            let Some(node) = self.paths.nodes.get(usize::from(number)) else { break };
            if let Some((_, next)) = node.fields.iter().find(|(field, _)| **field == *written) {
                self.activate(inner, *next);
            }
            if let Some(next) = node.any {
                self.activate(inner, next);
            }
            if node.is_deep {
                self.activate(inner, number);
            }
        }
        *self.name = scratch;
    }

    /// Lists are looked through: what waits for a field waits in each element.
    fn enter_element(&mut self, set: Range<usize>) {
        let inner = set.end;
        for index in set {
            let Some(number) = self.active.get(index).copied() else { break };
            let Some(node) = self.paths.nodes.get(usize::from(number)) else { break };
            if let Some(next) = node.each {
                self.activate(inner, next);
            }
            if node.is_deep || node.any.is_some() || !node.fields.is_empty() {
                self.activate(inner, number);
            }
        }
    }

    /// A string, quotes included; whether it has escapes.
    fn string(&mut self) -> Result<bool, Unreadable> {
        self.at += 1;
        let mut has_escapes = false;
        loop {
            self.at += plain_length(self.json.get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                _ => return Err(self.not_json()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Unreadable> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|digit| digit.is_ascii_hexdigit()) {
                        return Err(self.not_json());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.not_json()),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Unreadable> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Unreadable> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.not_json()) } else { Ok(()) }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Unreadable> {
        if !self.json.get(self.at..).unwrap_or_default().starts_with(word) {
            return Err(self.not_json());
        }
        self.at += word.len();
        Ok(())
    }
}

/// What is known of the members before the present one.
#[derive(Default)]
struct Members {
    is_any_kept: bool,
    /// The comma behind the one before.
    comma: usize,
}

/// How many bytes from the front are neither `"` nor `\` nor a control character; eight at a time.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES * 0x80;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        // In each, the lowest high bit that is set marks the first byte that is 0, or below a blank; ones above it may
        // be the borrow's.
        let special = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let special = special & HIGHS;
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_are_counted_by_eights_as_one_by_one() {
        for length in 0..40 {
            for special in [b'"', b'\\', 0, 0x1f, b' ', b'!', b'#', 0x7f, 0x80, 0xa2, 0xff] {
                for place in 0..=length {
                    let mut bytes = vec![b'a'; length];
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte = special;
                    }
                    let slow = bytes
                        .iter()
                        .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
                        .unwrap_or(length);
                    assert_eq!(plain_length(&bytes), slow, "{bytes:?}");
                }
            }
        }
    }
}
