//! The six words of an edit.

use std::fmt;
use std::ops::Range;

use crate::plugin::records::{EDIT_WORDS, NONE_LENGTH};

/// What an edit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plugin) enum Code {
    Drop,
    Reject,
    SetHeader,
    AddHeader,
    RenameHeader,
    RemoveHeader,
    SetKey,
    SetValue,
    ClearValue,
    SpliceValue,
}

/// What a code uses its words for.
#[derive(Clone, Copy, Default)]
pub(super) struct Uses {
    pub(super) a_in_answer: bool,
    /// a is a place in the old value.
    pub(super) a_in_value: bool,
    pub(super) a_is_text: bool,
    pub(super) b: bool,
    pub(super) b_nullable: bool,
    pub(super) b_is_text: bool,
}

const NOTHING: Uses = Uses {
    a_in_answer: false,
    a_in_value: false,
    a_is_text: false,
    b: false,
    b_nullable: false,
    b_is_text: false,
};
const TEXT: Uses = Uses { a_in_answer: true, a_is_text: true, ..NOTHING };

impl Code {
    #[inline]
    pub(super) fn read(word: u32) -> Option<Self> {
        Some(match word {
            0 => Self::Drop,
            1 => Self::Reject,
            2 => Self::SetHeader,
            3 => Self::AddHeader,
            4 => Self::RenameHeader,
            5 => Self::RemoveHeader,
            6 => Self::SetKey,
            7 => Self::SetValue,
            8 => Self::ClearValue,
            9 => Self::SpliceValue,
            _ => return None,
        })
    }

    #[inline]
    pub(super) fn uses(self) -> Uses {
        match self {
            Self::Drop | Self::ClearValue => NOTHING,
            Self::Reject | Self::RemoveHeader => TEXT,
            Self::SetHeader | Self::AddHeader => Uses { b: true, b_nullable: true, ..TEXT },
            Self::RenameHeader => Uses { b: true, b_is_text: true, ..TEXT },
            Self::SetKey | Self::SetValue => Uses { a_in_answer: true, ..NOTHING },
            Self::SpliceValue => Uses { a_in_value: true, b: true, ..NOTHING },
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::SetHeader => "set header",
            Self::AddHeader => "add header",
            Self::RenameHeader => "rename header",
            Self::RemoveHeader => "remove header",
            Self::SetKey => "set key",
            Self::SetValue => "set value",
            Self::ClearValue => "clear value",
            Self::SpliceValue => "splice value",
        })
    }
}

/// One edit, its code known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    pub(super) record: u32,
    pub(super) code: Code,
    pub(super) a_offset: u32,
    pub(super) a_length: u32,
    pub(super) b_offset: u32,
    pub(super) b_length: u32,
}

impl Edit {
    #[inline]
    pub(super) fn new(words: [u32; EDIT_WORDS], code: Code) -> Self {
        let [record, _, a_offset, a_length, b_offset, b_length] = words;
        Self { record, code, a_offset, a_length, b_offset, b_length }
    }

    pub(super) fn a(&self) -> Range<u32> {
        self.a_offset..self.a_offset + self.a_length
    }

    pub(super) fn b(&self) -> Range<u32> {
        self.b_offset..self.b_offset + self.b_length
    }

    pub(super) fn b_nullable(&self) -> Option<Range<u32>> {
        (self.b_length != NONE_LENGTH).then(|| self.b())
    }

    pub(super) fn a_bytes(&self) -> Range<usize> {
        self.a_offset as usize..(self.a_offset + self.a_length) as usize
    }
}

/// The words of an edit; there are as many as `number` says.
#[inline]
pub(super) fn of(ops: &[u32], number: u32) -> [u32; EDIT_WORDS] {
    let start = number as usize * EDIT_WORDS;
    let mut words = [0; EDIT_WORDS];
    words.copy_from_slice(&ops[start..start + EDIT_WORDS]);
    words
}

/// An edit that was checked before.
#[inline]
pub(super) fn read(ops: &[u32], number: u32) -> Edit {
    let words = of(ops, number);
    Edit::new(words, Code::read(words[1]).unwrap_or(Code::Drop))
}
