//! The seam between a chain and what answers it: one call of `records.process` in plain words and bytes. Instances of
//! modules implement it, and so do plain Rust plugins in tests. What the words mean is fixed in plugin-sdk/wit.

use std::fmt;
use std::time::Duration;

use super::fault::Fault;
use super::load::LoadError;

/// A null byte string, or one that was not asked for, wherever a length stands in words.
pub const NONE_LENGTH: u32 = u32::MAX;

/// Words of a record in [`BatchWords::recs`].
pub const RECORD_WORDS: u32 = 8;

/// Words of a header in [`BatchWords::headers`].
pub const HEADER_WORDS: usize = 4;

/// Words of an edit in [`Answer::ops`].
pub const EDIT_WORDS: usize = 6;

/// The question: some records of one source batch, as the plugin before left them.
#[derive(Clone, Copy, Debug)]
pub struct BatchWords<'a> {
    /// The topic's name on the source.
    pub topic: &'a str,
    /// The partition, the same on both sides.
    pub partition: i32,
    /// No record's offset is lower.
    pub base_offset: i64,
    /// How many records.
    pub count: u32,
    /// All byte strings that were asked for.
    pub data: &'a [u8],
    /// Words a record in `recs`: [`RECORD_WORDS`].
    pub rec_words: u32,
    /// See plugin-sdk/wit.
    pub recs: &'a [u32],
    /// [`HEADER_WORDS`] a header.
    pub headers: &'a [u32],
    /// One a record, in milliseconds, or empty when not asked for.
    pub timestamps: &'a [i64],
}

/// What a plugin wants done. Not checked yet: the words may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The bytes that `ops` points at.
    pub data: Vec<u8>,
    /// [`EDIT_WORDS`] an edit.
    pub ops: Vec<u32>,
}

/// The parts of a record that a plugin wants to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Keys.
    pub key: bool,
    /// Values.
    pub value: bool,
    /// Headers: all, or those of `header_names`.
    pub headers: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// With `headers`: only those of these names; empty = all.
    pub header_names: Vec<String>,
}

/// An instance that edits records. After a fault it is dropped and never called again.
pub trait RecordsCall: Send {
    /// Asks about some records. An error that the plugin itself answers is a fault too.
    fn process(&mut self, batch: &BatchWords<'_>) -> Result<Answer, Fault>;

    /// Memory that the instance holds; it never shrinks.
    fn memory_bytes(&self) -> usize;
}

/// What instances are made from, with the plugin's settings in them.
pub trait RecordsSource: Send + Sync {
    /// A fresh instance, ready to be asked.
    fn start(&self) -> Result<Box<dyn RecordsCall>, LoadError>;

    /// What one call came to, for the plugin's figures. Called once a call, from many threads.
    fn note(&self, call: &CallFigures<'_>);
}

/// What one call came to.
#[derive(Clone, Copy, Debug)]
pub struct CallFigures<'a> {
    /// Records that were shown.
    pub records: u64,
    /// Of them, how many it dropped.
    pub dropped: u64,
    /// Of them, how many it changed.
    pub changed: u64,
    /// Of them, how many it rejected.
    pub rejected: u64,
    /// Time on the wall, the checks of the answer included.
    pub elapsed: Duration,
    /// Memory of the instance after the call.
    pub memory_bytes: usize,
    /// Why there was no usable answer. The counts are 0 then, but for `records`.
    pub fault: Option<&'a Fault>,
}

impl fmt::Display for BatchWords<'_> {
    /// `process(orders[3] offsets 812..=911)`; for the sentences of faults.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = |delta: Option<&u32>| self.base_offset.saturating_add(i64::from(*delta.unwrap_or(&0)));
        let last = self.recs.len().saturating_sub(RECORD_WORDS as usize);
        let (first, last) = (offset(self.recs.first()), offset(self.recs.get(last)));
        write!(formatter, "process({}[{}] offsets {first}..={last})", self.topic, self.partition)
    }
}
