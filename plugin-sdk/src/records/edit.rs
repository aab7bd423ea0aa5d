//! What a plugin does to one record, written into the answer as it is said.

use std::ops::Range;

use super::Record;
use super::answer::{Answer, Code, Span};

/// Changes one record, or keeps it from being replicated; without a word it passes unchanged. Edits are applied in
/// turn, each to what the one before left.
///
/// [`drop`](Self::drop) and [`reject`](Self::reject) win over all others: the first of them decides.
#[derive(Debug)]
pub struct Edit<'a> {
    answer: &'a mut Answer,
    record: u32,
    /// Where this record's edits begin in the answer.
    start: usize,
    /// `None` if the value was not asked for.
    value_length: Option<usize>,
    is_tombstone: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The value was set or cleared.
    ValueSet,
    /// The value was spliced up to here.
    Spliced {
        end: usize,
    },
    /// Dropped or rejected.
    Decided,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(answer: &'a mut Answer, record: &Record<'_>) -> Self {
        Self {
            record: record.index() as u32,
            start: answer.ops.len(),
            value_length: record.value().map(<[u8]>::len),
            is_tombstone: record.is_tombstone(),
            state: State::Open,
            answer,
        }
    }

    /// Does not replicate the record. Progress passes it as if it were delivered.
    #[expect(clippy::should_implement_trait, reason = "what it is called everywhere; nothing is freed")]
    pub fn drop(&mut self) {
        self.decide(Code::Drop, Span::default());
    }

    /// Says that the plugin can't judge the record. The operator's `on.fault` decides what then happens to it; by
    /// default its partition waits. The reason (lower case, no full stop) is shown and must not hold what may not
    /// leave.
    pub fn reject(&mut self, reason: &str) {
        if self.state != State::Decided {
            let reason = self.answer.put(reason.as_bytes());
            self.decide(Code::Reject, reason);
        }
    }

    /// Gives the header this value: the first of that name takes it in its place, others of that name go. If there is
    /// none, it is appended. `None` is a null value.
    pub fn set_header(&mut self, name: &str, value: Option<&[u8]>) {
        self.header(Code::SetHeader, name, value);
    }

    /// Appends a header, whatever is there.
    pub fn add_header(&mut self, name: &str, value: Option<&[u8]>) {
        self.header(Code::AddHeader, name, value);
    }

    /// Renames every header of the name `old`, each in its place.
    pub fn rename_header(&mut self, old: &str, new: &str) {
        self.push(Code::RenameHeader, old.as_bytes(), new.as_bytes());
    }

    /// Removes every header of that name.
    pub fn remove_header(&mut self, name: &str) {
        self.push(Code::RemoveHeader, name.as_bytes(), b"");
    }

    /// Gives the record this key. Which partition it goes to does not change.
    pub fn set_key(&mut self, key: &[u8]) {
        self.push(Code::SetKey, key, b"");
    }

    /// Gives the record this value; of several the last counts. Not beside [`splice_value`](Self::splice_value).
    pub fn set_value(&mut self, value: &[u8]) {
        if self.may_set_value() {
            self.push(Code::SetValue, value, b"");
        }
    }

    /// Takes the value away: the record becomes a tombstone. Not beside [`splice_value`](Self::splice_value).
    pub fn clear_value(&mut self) {
        if self.may_set_value() {
            self.push(Code::ClearValue, b"", b"");
        }
    }

    /// Replaces a range of the value by other bytes, which may be more or fewer. Ranges are those of the value as the
    /// plugin got it, whatever was spliced before; they come in rising order and do not overlap.
    ///
    /// A range that does not fit, and a splice of a value that was set or cleared, rejects the record, and so does
    /// setting or clearing a value that was spliced.
    pub fn splice_value(&mut self, range: Range<usize>, with: &[u8]) {
        let begin = match self.state {
            State::Decided => return,
            State::ValueSet => return self.reject(SET_AND_SPLICED),
            State::Open => 0,
            State::Spliced { end } => end,
        };
        if self.is_tombstone {
            return self.reject("the plugin spliced a value that is not there");
        }
        if range.start < begin {
            return self.reject("the plugin's splices of the value overlap or do not rise");
        }
        if range.end < range.start || self.value_length.is_some_and(|length| range.end > length) {
            return self.reject("the plugin spliced beyond the end of the value");
        }
        self.state = State::Spliced { end: range.end };
        let range = Span { offset: range.start as u32, length: (range.end - range.start) as u32 };
        let with = self.answer.put(with);
        self.answer.push(self.record, Code::SpliceValue, range, with);
    }

    fn header(&mut self, code: Code, name: &str, value: Option<&[u8]>) {
        if self.state != State::Decided {
            let name = self.answer.put(name.as_bytes());
            let value = value.map_or(Span::NULL, |value| self.answer.put(value));
            self.answer.push(self.record, code, name, value);
        }
    }

    fn push(&mut self, code: Code, a: &[u8], b: &[u8]) {
        if self.state != State::Decided {
            let a = self.answer.put(a);
            let b = self.answer.put(b);
            self.answer.push(self.record, code, a, b);
        }
    }

    /// What was said before about the record is taken back: it would not be applied.
    fn decide(&mut self, code: Code, a: Span) {
        if self.state != State::Decided {
            self.state = State::Decided;
            self.answer.ops.truncate(self.start);
            self.answer.push(self.record, code, a, Span::default());
        }
    }

    fn may_set_value(&mut self) -> bool {
        if matches!(self.state, State::Spliced { .. }) {
            self.reject(SET_AND_SPLICED);
        }
        if self.state == State::Open {
            self.state = State::ValueSet;
        }
        self.state == State::ValueSet
    }
}

const SET_AND_SPLICED: &str = "the plugin both set and spliced the value";
