//! A chain in plain Rust for tests: what becomes of a record is a function of its offset.

use std::cell::RefCell;
use std::rc::Rc;

use super::RecordChain;
use crate::names::{SourceOffset, TopicName};
use crate::plugin::{Condemned, Edited, Place};
use crate::record::RecordSet;

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Verdict {
    Keep,
    Drop,
    /// Its value becomes this.
    Set(Vec<u8>),
    Quarantine,
    Halt,
}

type Judge = Box<dyn Fn(i64) -> Verdict>;

/// A chain of one plugin, called `plain`.
pub(in crate::relay) struct PlainChain {
    generation: u64,
    applies: bool,
    judge: Judge,
    /// Offsets that it was shown, in order.
    pub(in crate::relay) shown: Rc<RefCell<Vec<i64>>>,
}

impl PlainChain {
    pub(in crate::relay) fn new(generation: u64, judge: impl Fn(i64) -> Verdict + 'static) -> Self {
        Self { generation, applies: true, judge: Box::new(judge), shown: Rc::default() }
    }

    /// One that has no say in any topic.
    pub(in crate::relay) fn empty() -> Self {
        Self { applies: false, ..Self::new(0, |offset| panic!("asked for offset {offset}")) }
    }

    fn condemned(&self, index: usize, offset: SourceOffset) -> Condemned {
        Condemned {
            index,
            offset,
            plugin: "plain".into(),
            version: "1.0.0".into(),
            digest: "d1".into(),
            generation: self.generation,
            is_reject: true,
            reason: format!("does not like {offset}"),
        }
    }
}

impl RecordChain for PlainChain {
    fn generation(&self) -> u64 {
        self.generation
    }

    fn applies_to(&self, _topic: &TopicName) -> bool {
        self.applies
    }

    fn edit(&mut self, _place: Place<'_>, base: &[u8], records: &mut RecordSet) -> Edited {
        let mut edited = Edited::default();
        for index in 0..records.len() {
            let offset = records.record(base, index).offset;
            self.shown.borrow_mut().push(offset.0);
            match (self.judge)(offset.0) {
                Verdict::Keep => {}
                Verdict::Drop => records.drop_record(index),
                Verdict::Set(value) => {
                    let answer = records.take_answer(&value).unwrap();
                    let mut editor = records.edit(base, index, answer);
                    editor.set_value(0..u32::try_from(value.len()).unwrap());
                    editor.finish();
                }
                Verdict::Quarantine => {
                    records.drop_record(index);
                    edited.quarantined.push(self.condemned(index, offset));
                }
                Verdict::Halt => {
                    edited.halt = Some(self.condemned(index, offset));
                    break;
                }
            }
        }
        edited
    }
}
