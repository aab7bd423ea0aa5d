//! What a plugin answered, checked word by word before any of it is done. Nothing of an answer with a wrong word is applied.

use crate::record::{Editor, RecordNow, RecordSet};

use super::records::{Answer, EDIT_WORDS, NONE_LENGTH};

mod flaw;
mod words;

pub(super) use flaw::AnswerFlaw;
use words::{Code, Edit};

/// Longer answers are no answers: a call shows about 256 KiB.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// More edits are no answer: a call shows at most 500 records.
pub(super) const EDIT_COUNT_MAX: usize = 262_144;
/// Headers that a record may have after edits that add some. Kafka sets no bound; a broker's limit of bytes is far below
/// what more would take.
pub(super) const HEADER_COUNT_MAX: usize = 1_024;
/// What the edits of one call may put into records, counted each time that several edits point at the same bytes.
pub(super) const PUT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What looking for the headers of the edits of one call may take: the headers of the record times the bytes of the name that is
/// looked for, and [`HEADER_STEP_BYTES`]. No deadline holds for it, and 500 records with 20 headers come to a thousandth of it.
pub(super) const HEADER_WORK_BYTES_MAX: usize = 1 << 30;
/// What a header costs that has another name.
const HEADER_STEP_BYTES: usize = 16;
/// What all plugins together may put into the records of one batch.
pub(super) const BATCH_EDIT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What is done to one record of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordPlan {
    /// Its index in the call.
    shown: u32,
    first_edit: u32,
    end_edit: u32,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Edit,
    Drop,
    /// By this edit.
    Reject(u32),
}

/// The checked edits of one call. Kept from call to call for its memory.
#[derive(Debug, Default)]
pub(super) struct EditPlan {
    records: Vec<RecordPlan>,
    /// Bytes that edits put into records beyond those of the answer.
    repeated_bytes: usize,
}

/// The records of a call: `shown` are their indices in `records`.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) records: &'a RecordSet,
    pub(super) base: &'a [u8],
    pub(super) indices: &'a [u32],
}

impl Shown<'_> {
    fn record(&self, shown: u32) -> RecordNow<'_> {
        self.records.record(self.base, self.indices[shown as usize] as usize)
    }
}

/// How many records an answer drops, changes and rejects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EditCounts {
    pub(super) dropped: u64,
    pub(super) changed: u64,
    pub(super) rejected: u64,
}

impl EditPlan {
    /// Looks at every word. After an error the plan is of no use.
    pub(super) fn check(&mut self, answer: &Answer, shown: Shown<'_>) -> Result<(), AnswerFlaw> {
        self.records.clear();
        self.repeated_bytes = 0;
        if answer.data.len() > ANSWER_BYTES_MAX {
            return Err(AnswerFlaw::TooManyBytes { bytes: answer.data.len() });
        }
        if !answer.ops.len().is_multiple_of(EDIT_WORDS) {
            return Err(AnswerFlaw::PartOfAnEdit { words: answer.ops.len() });
        }
        if answer.ops.len() / EDIT_WORDS > EDIT_COUNT_MAX {
            return Err(AnswerFlaw::TooManyEdits { edits: answer.ops.len() / EDIT_WORDS });
        }
        let mut check = Check::new(answer, shown);
        for number in 0..check.edit_count() {
            let edit = check.edit(number)?;
            self.note(number, &edit);
        }
        self.repeated_bytes = check.put_bytes.saturating_sub(answer.data.len());
        check.room(answer.data.len())
    }

    /// Adds an edit to the record that it is for.
    #[inline]
    fn note(&mut self, number: u32, edit: &Edit) {
        let fate = match edit.code {
            Code::Drop => Fate::Drop,
            Code::Reject => Fate::Reject(number),
            _ => Fate::Edit,
        };
        match self.records.last_mut() {
            Some(plan) if plan.shown == edit.record => {
                plan.end_edit = number + 1;
                if plan.fate == Fate::Edit {
                    plan.fate = fate;
                }
            }
            _ => {
                let plan = RecordPlan { shown: edit.record, first_edit: number, end_edit: number + 1, fate };
                self.records.push(plan);
            }
        }
    }

    pub(super) fn counts(&self) -> EditCounts {
        let mut counts = EditCounts::default();
        for record in &self.records {
            match record.fate {
                Fate::Edit => counts.changed += 1,
                Fate::Drop => counts.dropped += 1,
                Fate::Reject(_) => counts.rejected += 1,
            }
        }
        counts
    }

    /// The rejected records: index in the call, and the plugin's reason.
    pub(super) fn rejected<'a>(&'a self, answer: &'a Answer) -> impl Iterator<Item = (usize, &'a str)> {
        self.records.iter().filter_map(|record| match record.fate {
            Fate::Reject(number) => {
                let reason = &answer.data[words::read(&answer.ops, number).a_bytes()];
                Some((record.shown as usize, str::from_utf8(reason).unwrap_or_default()))
            }
            Fate::Edit | Fate::Drop => None,
        })
    }

    /// Does what was checked; rejected records are left as they are. `indices` as for [`check`](Self::check).
    pub(super) fn apply(&self, answer: &Answer, records: &mut RecordSet, base: &[u8], indices: &[u32]) {
        if self.records.is_empty() {
            return;
        }
        let Some(bytes) = records.take_answer(&answer.data) else {
            unreachable!("the check bounds what a batch may grow by far below the arena's limit")
        };
        records.note_repeated(self.repeated_bytes);
        for plan in &self.records {
            let index = indices[plan.shown as usize] as usize;
            match plan.fate {
                Fate::Edit => edit_record(plan, answer, records.edit(base, index, bytes)),
                Fate::Drop => records.drop_record(index),
                Fate::Reject(_) => {}
            }
        }
    }
}

fn edit_record(plan: &RecordPlan, answer: &Answer, mut editor: Editor<'_>) {
    for number in plan.first_edit..plan.end_edit {
        let edit = words::read(&answer.ops, number);
        match edit.code {
            Code::SetHeader => editor.set_header(edit.a(), edit.b_nullable()),
            Code::AddHeader => editor.add_header(edit.a(), edit.b_nullable()),
            Code::RenameHeader => editor.rename_header(edit.a(), edit.b()),
            Code::RemoveHeader => editor.remove_header(edit.a()),
            Code::SetKey => editor.set_key(edit.a()),
            Code::SetValue => editor.set_value(edit.a()),
            Code::ClearValue => editor.clear_value(),
            Code::SpliceValue => editor.splice_value(edit.a(), edit.b()),
            Code::Drop | Code::Reject => {}
        }
    }
    editor.finish();
}

/// Where the check of an answer stands.
struct Check<'a> {
    answer: &'a Answer,
    shown: Shown<'a>,
    /// The last name that was found to be UTF-8; plugins use the same name again and again.
    known_name: (u32, u32),
    record: Option<RecordCheck>,
    put_bytes: usize,
    spliced_bytes: usize,
    header_work_bytes: usize,
}

/// What was seen of the record whose edits are being read.
#[derive(Clone, Copy)]
struct RecordCheck {
    record: u32,
    header_count: usize,
    value_bytes: Option<usize>,
    /// End of the last splice.
    spliced_to: Option<usize>,
    replaces_value: bool,
}

impl<'a> Check<'a> {
    fn new(answer: &'a Answer, shown: Shown<'a>) -> Self {
        let known_name = (0, 0);
        Self { answer, shown, known_name, record: None, put_bytes: 0, spliced_bytes: 0, header_work_bytes: 0 }
    }

    fn edit_count(&self) -> u32 {
        // Fits: bounded before.
        (self.answer.ops.len() / EDIT_WORDS) as u32
    }

    fn edit(&mut self, number: u32) -> Result<Edit, AnswerFlaw> {
        let words = words::of(&self.answer.ops, number);
        let code = Code::read(words[1]).ok_or(AnswerFlaw::UnknownCode { edit: number, code: words[1] })?;
        let edit = Edit::new(words, code);
        let mut record = self.record_of(number, &edit)?;
        self.spans(number, &edit)?;
        match code {
            Code::SetHeader | Code::AddHeader => record.add_header(number)?,
            Code::SpliceValue => {
                if record.spliced_to.is_none() {
                    self.spliced_bytes += record.value_bytes.unwrap_or_default();
                }
                self.spliced_bytes += edit.b_length as usize;
                record.splice(number, &edit)?;
            }
            Code::SetValue | Code::ClearValue => record.replace_value(number)?,
            _ => {}
        }
        if matches!(code, Code::SetHeader | Code::RenameHeader | Code::RemoveHeader) {
            let step_bytes = edit.a_length as usize + HEADER_STEP_BYTES;
            self.header_work_bytes += record.header_count.saturating_mul(step_bytes);
            if self.header_work_bytes > HEADER_WORK_BYTES_MAX {
                return Err(AnswerFlaw::TooMuchSearch { edit: number, record: edit.record });
            }
        }
        self.record = Some(record);
        Ok(edit)
    }

    /// The record that an edit is for: the one of the edit before, or a later one.
    #[inline]
    fn record_of(&self, number: u32, edit: &Edit) -> Result<RecordCheck, AnswerFlaw> {
        let record = edit.record;
        match self.record {
            Some(current) if current.record == record => return Ok(current),
            Some(current) if current.record > record => {
                return Err(AnswerFlaw::NotRising { edit: number, record, earlier: current.record });
            }
            _ => {}
        }
        let records = self.shown.indices.len();
        if record as usize >= records {
            return Err(AnswerFlaw::NoSuchRecord { edit: number, record, records });
        }
        let now = self.shown.record(record);
        Ok(RecordCheck {
            record,
            header_count: now.header_count(),
            value_bytes: now.value_bytes(),
            spliced_to: None,
            replaces_value: false,
        })
    }

    /// Whether the places that an edit points at lie in the answer, and names and reasons are UTF-8.
    #[inline]
    fn spans(&mut self, number: u32, edit: &Edit) -> Result<(), AnswerFlaw> {
        let code = edit.code;
        let uses = code.uses();
        if uses.a_in_answer {
            self.span(number, code, edit.a_offset, edit.a_length)?;
        } else if !uses.a_in_value && (edit.a_offset, edit.a_length) != (0, 0) {
            return Err(AnswerFlaw::UnusedWord { edit: number, code });
        }
        let is_null_value = uses.b_nullable && edit.b_length == NONE_LENGTH && edit.b_offset == 0;
        if uses.b && !is_null_value {
            self.span(number, code, edit.b_offset, edit.b_length)?;
        } else if !uses.b && (edit.b_offset, edit.b_length) != (0, 0) {
            return Err(AnswerFlaw::UnusedWord { edit: number, code });
        }
        if uses.a_is_text {
            self.text(number, code, edit.a_offset, edit.a_length)?;
        }
        if uses.b_is_text {
            self.text(number, code, edit.b_offset, edit.b_length)?;
        }
        Ok(())
    }

    #[inline]
    fn span(&mut self, number: u32, code: Code, offset: u32, length: u32) -> Result<(), AnswerFlaw> {
        if length == NONE_LENGTH {
            return Err(AnswerFlaw::Null { edit: number, code });
        }
        let available = self.answer.data.len();
        let end = offset as usize + length as usize;
        if end > available {
            return Err(AnswerFlaw::OutsideAnswer {
                edit: number,
                code,
                start: offset as usize,
                end,
                available,
            });
        }
        self.put_bytes += length as usize;
        Ok(())
    }

    #[inline]
    fn text(&mut self, number: u32, code: Code, offset: u32, length: u32) -> Result<(), AnswerFlaw> {
        if self.known_name == (offset, length) {
            return Ok(());
        }
        let bytes = &self.answer.data[offset as usize..offset as usize + length as usize];
        if str::from_utf8(bytes).is_err() {
            return Err(AnswerFlaw::NotText { edit: number, code });
        }
        self.known_name = (offset, length);
        Ok(())
    }

    /// Whether the batch has room for all of it.
    fn room(&self, answer_bytes: usize) -> Result<(), AnswerFlaw> {
        if self.put_bytes > PUT_BYTES_MAX {
            return Err(AnswerFlaw::PutsTooMuch { bytes: self.put_bytes });
        }
        let bytes = self.shown.records.edit_bytes() + answer_bytes.max(self.put_bytes) + self.spliced_bytes;
        if bytes > BATCH_EDIT_BYTES_MAX {
            return Err(AnswerFlaw::BatchTooLarge { bytes });
        }
        Ok(())
    }
}

impl RecordCheck {
    fn add_header(&mut self, number: u32) -> Result<(), AnswerFlaw> {
        self.header_count += 1;
        if self.header_count > HEADER_COUNT_MAX {
            return Err(AnswerFlaw::TooManyHeaders { edit: number, record: self.record });
        }
        Ok(())
    }

    fn splice(&mut self, number: u32, edit: &Edit) -> Result<(), AnswerFlaw> {
        if self.replaces_value {
            return Err(AnswerFlaw::SpliceBesideWhole { edit: number });
        }
        let Some(value_bytes) = self.value_bytes else {
            return Err(AnswerFlaw::SpliceOfNull { edit: number });
        };
        let (start, end) = (edit.a_offset as usize, edit.a_offset as usize + edit.a_length as usize);
        if end > value_bytes {
            return Err(AnswerFlaw::SpliceOutside { edit: number, start, end, value_bytes });
        }
        if let Some(earlier_end) = self.spliced_to.filter(|earlier_end| start < *earlier_end) {
            return Err(AnswerFlaw::SpliceNotRising { edit: number, start, earlier_end });
        }
        self.spliced_to = Some(end);
        Ok(())
    }

    fn replace_value(&mut self, number: u32) -> Result<(), AnswerFlaw> {
        if self.spliced_to.is_some() {
            return Err(AnswerFlaw::SpliceBesideWhole { edit: number });
        }
        self.replaces_value = true;
        Ok(())
    }
}
