//! Every wrong word of an answer, and the sentence about it. The answer is a fault: nothing of it is done.

use super::stand_in::{Plain, PlainRecord, StandIn, plain_chain};
use super::topic;
use crate::config::OnFault;
use crate::plugin::chain::Place;
use crate::plugin::records::{Answer, NONE_LENGTH, Needed};

/// Two records: one with the value `0123456789`, a tombstone. The plugin asks for nothing.
fn plain() -> Plain {
    let record = |offset: i64, value: Option<&[u8]>| PlainRecord {
        offset,
        timestamp_ms: 0,
        key: Some(b"k".to_vec()),
        value: value.map(<[u8]>::to_vec),
        headers: vec![],
    };
    Plain::of(vec![record(7, Some(b"0123456789")), record(9, None)])
}

fn check(data: &[u8], ops: &[u32], expected: &str) {
    check_answer(Answer { data: data.to_vec(), ops: ops.to_vec() }, expected);
}

/// A lone record is guilty of any answer about it, so both of a batch are passed as they were.
fn check_answer(bad: Answer, expected: &str) {
    let plain = plain();
    let stand_in = StandIn::answering(move |batch| {
        if batch.count == 2 { Ok(bad.clone()) } else { Err(super::stand_in::trap(batch)) }
    });
    let plugin = stand_in.plugin("a", OnFault::Pause, Needed::default());
    let mut chain = plain_chain(vec![plugin]);
    let mut records = plain.set();
    let mut buffers = super::super::stage::Buffers::default();
    let place = Place { topic: &topic(), partition: 3 };
    let stage = &mut chain.stages[0];
    stage.fill(&mut buffers, &records, &plain.base, 0..2);
    let trouble = stage.ask(&mut buffers, &records, &plain.base, place).unwrap_err();
    let super::super::stage::Trouble::Fault(fault) = trouble else { panic!("{trouble:?}") };
    let sentence =
        format!("plugin \"a\" 1.0.0 gave no usable answer to process(orders[3] offsets 7..=9): {expected}");
    assert_eq!(fault.to_string(), sentence);

    let edited = chain.edit(place, &plain.base, &mut records);
    assert_eq!(edited.halt.map(|halt| halt.index), Some(0));
    assert!(!records.is_changed());
}

#[test]
fn every_bad_answer_is_a_fault_with_one_sentence() {
    check(b"", &[0; 7], "7 words of edits, not a multiple of 6");
    check(b"", &[0, 10, 0, 0, 0, 0], "edit 0 has code 10, which does not exist");
    check(b"", &[2, 0, 0, 0, 0, 0], "edit 0 is for record 2, but 2 were shown");
    check(
        b"",
        &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        "edit 1 is for record 0, behind an edit for record 1; records must rise",
    );
    check(b"abc", &[0, 6, 1, 3, 0, 0], "edit 0 (set key) points at bytes 1..4 of an answer of 3");
    check(
        b"abc",
        &[0, 7, u32::MAX, 5, 0, 0],
        "edit 0 (set value) points at bytes 4294967295..4294967300 of an answer of 3",
    );
    check(b"abc", &[0, 2, 0, 1, 2, 2], "edit 0 (set header) points at bytes 2..4 of an answer of 3");
    check(b"abc", &[0, 6, 0, NONE_LENGTH, 0, 0], "edit 0 (set key) has a null where none may be");
    check(b"abc", &[0, 9, 0, 0, 0, NONE_LENGTH], "edit 0 (splice value) has a null where none may be");
    check(b"abc", &[0, 2, 0, 1, 1, NONE_LENGTH], "edit 0 (set header) has a null where none may be");
    check(b"abc", &[0, 4, 0, 1, 0, NONE_LENGTH], "edit 0 (rename header) has a null where none may be");
    check(b"abc", &[0, 0, 0, 1, 0, 0], "edit 0 (drop) has a word that it does not use and that is not 0");
    check(
        b"abc",
        &[0, 8, 0, 0, 1, 0],
        "edit 0 (clear value) has a word that it does not use and that is not 0",
    );
    check(
        b"abc",
        &[0, 5, 0, 1, 0, 1],
        "edit 0 (remove header) has a word that it does not use and that is not 0",
    );
    check(&[0xff], &[0, 3, 0, 1, 0, 0], "edit 0 (add header) has a text that is not UTF-8");
    check(&[b'a', 0xff], &[0, 4, 0, 1, 1, 1], "edit 0 (rename header) has a text that is not UTF-8");
    check(&[0xff], &[0, 1, 0, 1, 0, 0], "edit 0 (reject) has a text that is not UTF-8");
    check(b"", &[1, 9, 0, 0, 0, 0], "edit 0 (splice value) is for a record without value");
    check(b"", &[0, 9, 8, 3, 0, 0], "edit 0 (splice value) replaces bytes 8..11 of a value of 10");
    check(
        b"",
        &[0, 9, 4, 2, 0, 0, 0, 9, 5, 1, 0, 0],
        "edit 1 (splice value) begins at 5, before the end 6 of the splice before it",
    );
    let beside =
        "edit 1 splices the value of a record whose whole value is set or cleared too, or the reverse";
    check(b"", &[0, 9, 4, 2, 0, 0, 0, 8, 0, 0, 0, 0], beside);
    check(b"", &[0, 7, 0, 0, 0, 0, 0, 9, 4, 2, 0, 0], beside);
}

#[test]
fn an_answer_that_is_too_large_is_a_fault_with_one_sentence() {
    let check = check_answer;
    check(Answer { data: vec![0; (16 << 20) + 1], ops: vec![] }, "16777217 bytes, more than 16777216");
    check(Answer { data: vec![], ops: vec![0; 262_145 * 6] }, "262145 edits, more than 262144");
    let headers = [0, 3, 0, 1, 0, 0].repeat(1_025);
    check(Answer { data: b"n".to_vec(), ops: headers }, "edit 1024 gives record 0 more than 1024 headers");
    let keys = [0, 6, 0, 16 << 20, 0, 0].repeat(5);
    check(
        Answer { data: vec![0; 16 << 20], ops: keys },
        "its edits put 83886080 bytes into records, more than 67108864 in one call",
    );
    let mut searches = [0, 3, 0, 1, 0, 0].repeat(1_000);
    searches.extend([0, 5, 0, 1 << 20, 0, 0].repeat(2));
    check(
        Answer { data: vec![b'n'; 1 << 20], ops: searches },
        "edit 1001 for record 0 is one too many for so many headers: finding them all takes too long",
    );
}

#[test]
fn bytes_that_many_records_point_at_count_for_each_of_them() {
    const VALUE_BYTES: u32 = 120 * 1024;
    let plain = Plain::of((0..2_500).map(|number| super::stand_in::numbered(number, b"v")).collect());
    let stand_in = StandIn::answering(|batch| {
        let ops = (0..batch.count).flat_map(|record| [record, 7, 0, VALUE_BYTES, 0, 0]).collect();
        Ok(Answer { data: vec![b'x'; VALUE_BYTES as usize], ops })
    });
    let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Pause, Needed::default())]);
    let mut records = plain.set();
    let edited = chain.edit(Place { topic: &topic(), partition: 3 }, &plain.base, &mut records);

    let halt = edited.halt.unwrap();
    assert!(halt.reason.contains("with it the edits of this batch take"), "{}", halt.reason);
    let built_bytes: usize =
        (0..halt.index).filter_map(|index| records.record(&plain.base, index).value_bytes()).sum();
    assert!(halt.index > 2_000 && built_bytes <= 256 << 20, "{} records, {built_bytes} bytes", halt.index);
}
