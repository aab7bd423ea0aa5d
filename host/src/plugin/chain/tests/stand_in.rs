//! Plain Rust plugins in the place of instances, and plain records in the place of batches.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::config::{NameList, OnFault, TopicFilter};
use crate::names::SourceOffset;
use crate::plugin::chain::{Chain, ChainPlugin};
use crate::plugin::records::{
    Answer, BatchWords, CallFigures, HEADER_WORDS, NONE_LENGTH, Needed, RecordsCall, RecordsSource,
};
use crate::plugin::{Fault, LoadError};
use crate::record::{RecordNow, RecordParts, RecordSet};

pub(super) const MEMORY_BYTES: usize = 1 << 20;
pub(super) const FRESH_BYTES: usize = 1 << 16;

pub(super) type Headers = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// A record that owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlainRecord {
    pub(super) offset: i64,
    pub(super) timestamp_ms: i64,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Headers,
}

impl PlainRecord {
    pub(super) fn read(now: &RecordNow<'_>) -> Self {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        Self {
            offset: now.offset.0,
            timestamp_ms: now.timestamp_ms,
            key: owned(now.key()),
            value: owned(now.value()),
            headers: now.headers().map(|(name, value)| (name.to_vec(), owned(value))).collect(),
        }
    }
}

pub(super) fn numbered(number: usize, value: &[u8]) -> PlainRecord {
    let (offset, value) = (number as i64 + 100, Some(value.to_vec()));
    PlainRecord { offset, timestamp_ms: 1_000, key: None, value, headers: vec![] }
}

/// Records, and the body that their parts lie in.
pub(super) struct Plain {
    pub(super) records: Vec<PlainRecord>,
    pub(super) base: Vec<u8>,
}

impl Plain {
    pub(super) fn of(records: Vec<PlainRecord>) -> Self {
        let mut base = vec![0];
        for record in &records {
            base.extend(record.key.iter().chain(&record.value).flatten());
            for (name, value) in &record.headers {
                base.extend(name.iter().chain(value.iter().flatten()));
            }
        }
        Self { records, base }
    }

    pub(super) fn set(&self) -> RecordSet {
        let mut at = 1;
        let mut take = |bytes: &[u8]| {
            at += bytes.len();
            &self.base[at - bytes.len()..at]
        };
        let mut set = RecordSet::default();
        set.start();
        for record in &self.records {
            let key = record.key.as_deref().map(&mut take);
            let value = record.value.as_deref().map(&mut take);
            let headers: Vec<_> = record
                .headers
                .iter()
                .map(|(name, value)| (take(name), value.as_deref().map(&mut take)))
                .collect();
            let offset = SourceOffset(record.offset);
            let parts = RecordParts { offset, timestamp_ms: record.timestamp_ms, key, value, headers };
            set.push(&self.base, parts).unwrap();
        }
        set
    }
}

/// What a plugin sees of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) offset: i64,
    pub(super) timestamp_ms: Option<i64>,
    pub(super) has_key: bool,
    pub(super) has_value: bool,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Headers,
}

/// Reads the words as a plugin would.
pub(super) fn read_words(batch: &BatchWords<'_>) -> Vec<Shown> {
    let bytes = |offset: u32, length: u32| {
        (length != NONE_LENGTH).then(|| batch.data[offset as usize..][..length as usize].to_vec())
    };
    let headers: Vec<_> = batch
        .headers
        .chunks(HEADER_WORDS)
        .map(|words| (bytes(words[0], words[1]).unwrap(), bytes(words[2], words[3])))
        .collect();
    let records = batch.recs.chunks(batch.rec_words as usize).enumerate().map(|(number, words)| Shown {
        offset: batch.base_offset + i64::from(words[0]),
        timestamp_ms: batch.timestamps.get(number).copied(),
        has_key: words[1] & 1 != 0,
        has_value: words[1] & 2 != 0,
        key: bytes(words[2], words[3]),
        value: bytes(words[4], words[5]),
        headers: headers[words[6] as usize..][..words[7] as usize].to_vec(),
    });
    let records: Vec<_> = records.collect();
    assert_eq!(records.len(), batch.count as usize);
    records
}

/// An edit that a plugin wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Drop,
    Reject(String),
    SetHeader(String, Option<Vec<u8>>),
    AddHeader(String, Option<Vec<u8>>),
    RenameHeader(String, String),
    RemoveHeader(String),
    SetKey(Vec<u8>),
    SetValue(Vec<u8>),
    ClearValue,
    SpliceValue(Range<usize>, Vec<u8>),
}

/// Puts wishes into words.
pub(super) fn answer(wishes: &[Vec<Wish>]) -> Answer {
    let mut answer = Answer::default();
    for (record, wishes) in wishes.iter().enumerate() {
        for wish in wishes {
            push(&mut answer, record as u32, wish);
        }
    }
    answer
}

fn push(answer: &mut Answer, record: u32, wish: &Wish) {
    let mut put = |bytes: Option<&[u8]>| {
        let Some(bytes) = bytes else { return [0, NONE_LENGTH] };
        let offset = answer.data.len() as u32;
        answer.data.extend_from_slice(bytes);
        [offset, bytes.len() as u32]
    };
    let nothing = [0, 0];
    let (code, a, b) = match wish {
        Wish::Drop => (0, nothing, nothing),
        Wish::Reject(reason) => (1, put(Some(reason.as_bytes())), nothing),
        Wish::SetHeader(name, value) => (2, put(Some(name.as_bytes())), put(value.as_deref())),
        Wish::AddHeader(name, value) => (3, put(Some(name.as_bytes())), put(value.as_deref())),
        Wish::RenameHeader(old, new) => (4, put(Some(old.as_bytes())), put(Some(new.as_bytes()))),
        Wish::RemoveHeader(name) => (5, put(Some(name.as_bytes())), nothing),
        Wish::SetKey(key) => (6, put(Some(key)), nothing),
        Wish::SetValue(value) => (7, put(Some(value)), nothing),
        Wish::ClearValue => (8, nothing, nothing),
        Wish::SpliceValue(range, with) => (9, [range.start as u32, range.len() as u32], put(Some(with))),
    };
    answer.ops.extend([record, code, a[0], a[1], b[0], b[1]]);
}

pub(super) fn trap(batch: &BatchWords<'_>) -> Fault {
    Fault::Trap {
        plugin: "\"a\" 1.0.0".to_owned(),
        question: batch.to_string(),
        message: "unreachable".to_owned(),
    }
}

pub(super) fn topics(include: &[&str]) -> TopicFilter {
    let none: [&str; 0] = [];
    TopicFilter { include: NameList::parse(include).unwrap(), exclude: NameList::parse(&none).unwrap() }
}

type Answering = dyn Fn(&BatchWords<'_>) -> Result<Answer, Fault> + Send + Sync;

/// A plain Rust plugin. Clones are the same plugin.
#[derive(Clone)]
pub(super) struct StandIn(Arc<Inner>);

struct Inner {
    answering: Box<Answering>,
    grown_bytes: usize,
    start_count_max: usize,
    start_count: AtomicUsize,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Vec<Shown>>,
    totals: (u64, u64, u64, u64, u64, u64),
}

impl StandIn {
    pub(super) fn answering(
        answering: impl Fn(&BatchWords<'_>) -> Result<Answer, Fault> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            answering: Box::new(answering),
            grown_bytes: FRESH_BYTES,
            start_count_max: usize::MAX,
            start_count: AtomicUsize::new(0),
            seen: Mutex::default(),
        }))
    }

    pub(super) fn wishing(wish: impl Fn(&Shown) -> Vec<Wish> + Send + Sync + 'static) -> Self {
        Self::answering(move |batch| Ok(answer(&read_words(batch).iter().map(&wish).collect::<Vec<_>>())))
    }

    pub(super) fn growing_to(self, grown_bytes: usize) -> Self {
        self.with(|inner| inner.grown_bytes = grown_bytes)
    }

    /// No more than so many instances start.
    pub(super) fn starting_at_most(self, start_count_max: usize) -> Self {
        self.with(|inner| inner.start_count_max = start_count_max)
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::get_mut(&mut self.0).unwrap());
        self
    }

    pub(super) fn plugin(&self, name: &str, on_fault: OnFault, needed: Needed) -> ChainPlugin {
        ChainPlugin {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            digest: "d1".to_owned(),
            topics: topics(&[".*"]),
            on_fault,
            memory_bytes: MEMORY_BYTES,
            needed,
            source: Arc::new(self.clone()),
        }
    }

    pub(super) fn start_count(&self) -> usize {
        self.0.start_count.load(Ordering::Relaxed)
    }

    pub(super) fn calls(&self) -> Vec<Vec<Shown>> {
        self.0.seen.lock().unwrap().calls.clone()
    }

    pub(super) fn call_sizes(&self) -> Vec<usize> {
        self.calls().iter().map(Vec::len).collect()
    }

    /// Calls, records, dropped, changed, rejected, faults.
    pub(super) fn totals(&self) -> (u64, u64, u64, u64, u64, u64) {
        self.0.seen.lock().unwrap().totals
    }
}

impl RecordsSource for StandIn {
    fn start(&self) -> Result<Box<dyn RecordsCall>, LoadError> {
        if self.0.start_count.fetch_add(1, Ordering::Relaxed) >= self.0.start_count_max {
            let (plugin, message) = ("\"a\" 1.0.0".to_owned(), "out of breath".to_owned());
            return Err(LoadError::SelfTest { plugin, message });
        }
        Ok(Box::new(Call { inner: Arc::clone(&self.0), is_fresh: true }))
    }

    fn note(&self, call: &CallFigures<'_>) {
        let totals = &mut self.0.seen.lock().unwrap().totals;
        totals.0 += 1;
        totals.1 += call.records;
        totals.2 += call.dropped;
        totals.3 += call.changed;
        totals.4 += call.rejected;
        totals.5 += u64::from(call.fault.is_some());
    }
}

struct Call {
    inner: Arc<Inner>,
    is_fresh: bool,
}

impl RecordsCall for Call {
    fn process(&mut self, batch: &BatchWords<'_>) -> Result<Answer, Fault> {
        self.is_fresh = false;
        self.inner.seen.lock().unwrap().calls.push(read_words(batch));
        (self.inner.answering)(batch)
    }

    fn memory_bytes(&self) -> usize {
        if self.is_fresh { FRESH_BYTES } else { self.inner.grown_bytes }
    }
}

pub(super) fn plain_chain(plugins: Vec<ChainPlugin>) -> Chain {
    Chain::of(7, plugins).unwrap()
}

/// Values of the records that are kept, by offset.
pub(super) fn kept(records: &RecordSet, base: &[u8]) -> HashMap<i64, Option<Vec<u8>>> {
    let all = (0..records.len()).map(|index| records.record(base, index));
    all.filter(|record| !record.is_dropped)
        .map(|record| (record.offset.0, record.value().map(<[u8]>::to_vec)))
        .collect()
}
