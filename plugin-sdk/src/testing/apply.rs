//! What the host does with a plugin's answer, in the words of the contract: every word is checked, then the edits of
//! each record are applied.

use std::ops::Range;

use super::{Judged, OwnedRecord};
use crate::records::{Code, NULL_LENGTH, OP_WORD_COUNT};

/// The records as they are after the edits, or what is wrong with the answer.
pub(super) fn apply(records: &[OwnedRecord], data: &[u8], ops: &[u32]) -> Result<Vec<Judged>, String> {
    let mut judged: Vec<_> = records.iter().cloned().map(Judged::Kept).collect();
    let mut next = 0;
    let ops = read(data, ops)?;
    for edits in ops.chunk_by(|one, other| one.record == other.record) {
        let index = edits.first().map_or(0, |edit| edit.record);
        let place = judged.get_mut(index).filter(|_| index >= next);
        let (Some(place), Some(record)) = (place, records.get(index)) else {
            return Err(format!("record {index} is out of range or not behind the one before"));
        };
        *place = Editing::new(record).all(edits)?;
        next = index + 1;
    }
    Ok(judged)
}

struct Op<'a> {
    record: usize,
    code: Code,
    words: [u32; 4],
    data: &'a [u8],
}

fn read<'a>(data: &'a [u8], ops: &[u32]) -> Result<Vec<Op<'a>>, String> {
    let chunks = ops.chunks_exact(OP_WORD_COUNT);
    if !chunks.remainder().is_empty() {
        return Err("it has no whole number of edits".to_owned());
    }
    chunks
        .map(|words| {
            let code = code(words[1]).ok_or_else(|| format!("no edit has the code {}", words[1]))?;
            let words_of_op = [words[2], words[3], words[4], words[5]];
            Ok(Op { record: words[0] as usize, code, words: words_of_op, data })
        })
        .collect()
}

fn code(word: u32) -> Option<Code> {
    const CODES: [Code; 10] = [
        Code::Drop,
        Code::Reject,
        Code::SetHeader,
        Code::AddHeader,
        Code::RenameHeader,
        Code::RemoveHeader,
        Code::SetKey,
        Code::SetValue,
        Code::ClearValue,
        Code::SpliceValue,
    ];
    CODES.into_iter().find(|code| *code as u32 == word)
}

impl<'a> Op<'a> {
    fn span(&self, offset: u32, length: u32) -> Result<&'a [u8], String> {
        let start = offset as usize;
        self.data
            .get(start..start.saturating_add(length as usize))
            .ok_or_else(|| format!("{:?} points outside of the answer's bytes", self.code))
    }

    fn a(&self) -> Result<&'a [u8], String> {
        self.span(self.words[0], self.words[1])
    }

    fn b(&self) -> Result<&'a [u8], String> {
        self.span(self.words[2], self.words[3])
    }

    fn a_text(&self) -> Result<&'a str, String> {
        self.text(self.a()?)
    }

    fn text(&self, bytes: &'a [u8]) -> Result<&'a str, String> {
        str::from_utf8(bytes).map_err(|_| format!("a text of {:?} is no UTF-8", self.code))
    }

    /// A header's value.
    fn nullable_b(&self) -> Result<Option<Vec<u8>>, String> {
        match self.words {
            [_, _, 0, NULL_LENGTH] => Ok(None),
            _ => Ok(Some(self.b()?.to_vec())),
        }
    }

    /// How many of the four words the code does not use are 0, from behind.
    fn check_unused(&self) -> Result<(), String> {
        let used = match self.code {
            Code::Drop | Code::ClearValue => 0,
            Code::Reject | Code::RemoveHeader | Code::SetKey | Code::SetValue => 2,
            Code::SetHeader | Code::AddHeader | Code::RenameHeader | Code::SpliceValue => 4,
        };
        if self.words.iter().skip(used).any(|word| *word != 0) {
            return Err(format!("a word that {:?} does not use is not 0", self.code));
        }
        Ok(())
    }
}

/// One record while it is edited.
struct Editing<'a> {
    old: &'a OwnedRecord,
    now: OwnedRecord,
    decided: Option<Judged>,
    is_value_set: bool,
    splices: Vec<(Range<usize>, &'a [u8])>,
}

impl<'a> Editing<'a> {
    fn new(old: &'a OwnedRecord) -> Self {
        Self { old, now: old.clone(), decided: None, is_value_set: false, splices: Vec::new() }
    }

    fn all(mut self, edits: &[Op<'a>]) -> Result<Judged, String> {
        for edit in edits {
            edit.check_unused()?;
            self.one(edit)?;
        }
        if self.is_value_set && !self.splices.is_empty() {
            return Err(format!("the value at offset {} is both set and spliced", self.old.offset));
        }
        self.splice();
        Ok(self.decided.unwrap_or(Judged::Kept(self.now)))
    }

    fn one(&mut self, edit: &Op<'a>) -> Result<(), String> {
        match edit.code {
            Code::Drop => self.decide(Judged::Dropped),
            Code::Reject => self.decide(Judged::Rejected(edit.a_text()?.to_owned())),
            Code::SetHeader => self.set_header(edit.a_text()?, edit.nullable_b()?),
            Code::AddHeader => self.now.headers.push((edit.a_text()?.to_owned(), edit.nullable_b()?)),
            Code::RenameHeader => {
                let new = edit.text(edit.b()?)?;
                let old = edit.a_text()?;
                for (name, _) in self.now.headers.iter_mut().filter(|(name, _)| name == old) {
                    new.clone_into(name);
                }
            }
            Code::RemoveHeader => {
                let removed = edit.a_text()?;
                self.now.headers.retain(|(name, _)| name != removed);
            }
            Code::SetKey => self.now.key = Some(edit.a()?.to_vec()),
            Code::SetValue => self.set_value(Some(edit.a()?.to_vec())),
            Code::ClearValue => self.set_value(None),
            Code::SpliceValue => self.add_splice(edit)?,
        }
        Ok(())
    }

    fn decide(&mut self, judged: Judged) {
        self.decided.get_or_insert(judged);
    }

    fn set_header(&mut self, name: &str, value: Option<Vec<u8>>) {
        let headers = &mut self.now.headers;
        let Some(first) = headers.iter().position(|(found, _)| found == name) else {
            return headers.push((name.to_owned(), value));
        };
        let mut index = 0;
        headers.retain(|(found, _)| {
            index += 1;
            found != name || index - 1 == first
        });
        headers[first].1 = value;
    }

    fn set_value(&mut self, value: Option<Vec<u8>>) {
        self.is_value_set = true;
        self.now.value = value;
    }

    fn add_splice(&mut self, edit: &Op<'a>) -> Result<(), String> {
        let [offset, length, ..] = edit.words;
        let range = offset as usize..(offset as usize).saturating_add(length as usize);
        let value_length = self.old.value.as_ref().map(Vec::len);
        if value_length.is_none_or(|length| range.end > length) {
            return Err(format!("splice {range:?} is outside of the value of {value_length:?} bytes"));
        }
        if self.splices.last().is_some_and(|(before, _)| range.start < before.end) {
            return Err(format!("splice {range:?} begins before the end of the one before"));
        }
        self.splices.push((range, edit.b()?));
        Ok(())
    }

    fn splice(&mut self) {
        let (Some(old), false) = (&self.old.value, self.splices.is_empty()) else { return };
        let mut value = Vec::new();
        let mut done = 0;
        for (range, with) in &self.splices {
            value.extend_from_slice(&old[done..range.start]);
            value.extend_from_slice(with);
            done = range.end;
        }
        value.extend_from_slice(&old[done..]);
        self.now.value = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> OwnedRecord {
        OwnedRecord::default()
            .offset(7)
            .key("k")
            .value("value")
            .header("a", "1")
            .header("b", "2")
            .header("a", "3")
    }

    fn one(data: &str, ops: &[[u32; 6]]) -> Judged {
        apply(&[record()], data.as_bytes(), &ops.concat()).unwrap().remove(0)
    }

    fn headers(data: &str, ops: &[[u32; 6]]) -> Vec<(String, Option<Vec<u8>>)> {
        let Judged::Kept(record) = one(data, ops) else { panic!("kept") };
        record.headers
    }

    fn header(name: &str, value: &str) -> (String, Option<Vec<u8>>) {
        (name.to_owned(), Some(value.as_bytes().to_vec()))
    }

    const NULL: u32 = NULL_LENGTH;

    #[test]
    fn headers_are_edited_in_turn() {
        check(&[[0, 2, 0, 1, 1, 1]], &[header("a", "b"), header("b", "2")]);
        check(&[[0, 2, 1, 1, 0, 0]], &[header("a", "1"), header("b", ""), header("a", "3")]);
        check(
            &[[0, 2, 2, 1, 0, 1]],
            &[header("a", "1"), header("b", "2"), header("a", "3"), header("c", "a")],
        );
        check(
            &[[0, 3, 0, 1, 0, NULL]],
            &[header("a", "1"), header("b", "2"), header("a", "3"), ("a".to_owned(), None)],
        );
        check(&[[0, 4, 0, 1, 1, 1]], &[header("b", "1"), header("b", "2"), header("b", "3")]);
        check(&[[0, 5, 0, 1, 0, 0]], &[header("b", "2")]);
        check(&[[0, 5, 2, 1, 0, 0]], &record().headers);
        check(&[[0, 4, 0, 1, 1, 1], [0, 2, 1, 1, 2, 1]], &[header("b", "c")]);

        fn check(ops: &[[u32; 6]], expected: &[(String, Option<Vec<u8>>)]) {
            assert_eq!(headers("abc", ops), expected, "{ops:?}");
        }
    }

    #[test]
    fn key_and_value_are_set_spliced_and_cleared() {
        let check = |ops: &[[u32; 6]], key: &str, value: Option<&str>| {
            let Judged::Kept(record) = one("abc", ops) else { panic!("kept") };
            assert_eq!(record.key.as_deref(), Some(key.as_bytes()), "{ops:?}");
            assert_eq!(record.value.as_deref(), value.map(str::as_bytes), "{ops:?}");
        };
        check(&[[0, 6, 0, 2, 0, 0]], "ab", Some("value"));
        check(&[[0, 6, 0, 0, 0, 0]], "", Some("value"));
        check(&[[0, 7, 1, 2, 0, 0]], "k", Some("bc"));
        check(&[[0, 7, 1, 2, 0, 0], [0, 8, 0, 0, 0, 0]], "k", None);
        check(&[[0, 8, 0, 0, 0, 0], [0, 7, 1, 2, 0, 0]], "k", Some("bc"));
        check(&[[0, 9, 1, 2, 0, 3]], "k", Some("vabcue"));
        check(&[[0, 9, 0, 0, 0, 1], [0, 9, 0, 0, 1, 1], [0, 9, 4, 1, 0, 0]], "k", Some("abvalu"));
    }

    #[test]
    fn the_first_of_drop_and_reject_decides() {
        assert_eq!(one("abc", &[[0, 6, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0]]), Judged::Dropped);
        assert_eq!(one("abc", &[[0, 0, 0, 0, 0, 0], [0, 1, 0, 3, 0, 0]]), Judged::Dropped);
        assert_eq!(one("abc", &[[0, 1, 0, 3, 0, 0], [0, 0, 0, 0, 0, 0]]), Judged::Rejected("abc".to_owned()));
    }

    #[test]
    fn wrong_words_are_a_fault() {
        let check = |ops: &[u32], message: &str| {
            let mut tombstone = record();
            tombstone.value = None;
            let records = [record(), tombstone];
            assert_eq!(apply(&records, b"ab\xff", ops), Err(message.to_owned()), "{ops:?}");
        };
        check(&[0, 0, 0, 0, 0], "it has no whole number of edits");
        check(&[0, 10, 0, 0, 0, 0], "no edit has the code 10");
        check(&[2, 0, 0, 0, 0, 0], "record 2 is out of range or not behind the one before");
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "record 0 is out of range or not behind the one before");
        check(
            &[0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "record 0 is out of range or not behind the one before",
        );
        check(&[0, 0, 0, 0, 1, 0], "a word that Drop does not use is not 0");
        check(&[0, 6, 0, 1, 0, 1], "a word that SetKey does not use is not 0");
        check(&[0, 6, 0, 4, 0, 0], "SetKey points outside of the answer's bytes");
        check(&[0, 6, 0, NULL, 0, 0], "SetKey points outside of the answer's bytes");
        check(&[0, 3, 0, 1, 1, NULL], "AddHeader points outside of the answer's bytes");
        check(&[0, 5, 1, 2, 0, 0], "a text of RemoveHeader is no UTF-8");
        check(&[0, 9, 3, 3, 0, 0], "splice 3..6 is outside of the value of Some(5) bytes");
        check(&[1, 9, 0, 0, 0, 0], "splice 0..0 is outside of the value of None bytes");
        check(&[0, 9, 1, 2, 0, 0, 0, 9, 2, 1, 0, 0], "splice 2..3 begins before the end of the one before");
        check(&[0, 9, 1, 2, 0, 0, 0, 8, 0, 0, 0, 0], "the value at offset 7 is both set and spliced");
    }
}
