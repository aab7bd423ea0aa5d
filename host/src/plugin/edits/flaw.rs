//! What can be wrong with an answer, each in a sentence for the plugin's author.

use super::words::Code;
use super::{ANSWER_BYTES_MAX, BATCH_EDIT_BYTES_MAX, EDIT_COUNT_MAX, HEADER_COUNT_MAX, PUT_BYTES_MAX};

/// A wrong word of an answer. Edits are counted from 0, as records are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::plugin) enum AnswerFlaw {
    #[error("{bytes} bytes, more than {ANSWER_BYTES_MAX}")]
    TooManyBytes { bytes: usize },
    #[error("{words} words of edits, not a multiple of 6")]
    PartOfAnEdit { words: usize },
    #[error("{edits} edits, more than {EDIT_COUNT_MAX}")]
    TooManyEdits { edits: usize },
    #[error("edit {edit} has code {code}, which does not exist")]
    UnknownCode { edit: u32, code: u32 },
    #[error("edit {edit} is for record {record}, but {records} were shown")]
    NoSuchRecord { edit: u32, record: u32, records: usize },
    #[error("edit {edit} is for record {record}, behind an edit for record {earlier}; records must rise")]
    NotRising { edit: u32, record: u32, earlier: u32 },
    #[error("edit {edit} ({code}) points at bytes {start}..{end} of an answer of {available}")]
    OutsideAnswer { edit: u32, code: Code, start: usize, end: usize, available: usize },
    #[error("edit {edit} ({code}) has a null where none may be")]
    Null { edit: u32, code: Code },
    #[error("edit {edit} ({code}) has a word that it does not use and that is not 0")]
    UnusedWord { edit: u32, code: Code },
    #[error("edit {edit} ({code}) has a text that is not UTF-8")]
    NotText { edit: u32, code: Code },
    #[error("edit {edit} gives record {record} more than {HEADER_COUNT_MAX} headers")]
    TooManyHeaders { edit: u32, record: u32 },
    #[error(
        "edit {edit} for record {record} is one too many for so many headers: finding them all takes too long"
    )]
    TooMuchSearch { edit: u32, record: u32 },
    #[error("edit {edit} (splice value) is for a record without value")]
    SpliceOfNull { edit: u32 },
    #[error("edit {edit} (splice value) replaces bytes {start}..{end} of a value of {value_bytes}")]
    SpliceOutside { edit: u32, start: usize, end: usize, value_bytes: usize },
    #[error(
        "edit {edit} (splice value) begins at {start}, before the end {earlier_end} of the splice before it"
    )]
    SpliceNotRising { edit: u32, start: usize, earlier_end: usize },
    #[error(
        "edit {edit} splices the value of a record whose whole value is set or cleared too, or the reverse"
    )]
    SpliceBesideWhole { edit: u32 },
    #[error("its edits put {bytes} bytes into records, more than {PUT_BYTES_MAX} in one call")]
    PutsTooMuch { bytes: usize },
    #[error("with it the edits of this batch take {bytes} bytes, more than {BATCH_EDIT_BYTES_MAX}")]
    BatchTooLarge { bytes: usize },
}
