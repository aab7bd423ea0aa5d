//! The index by itself; what edits mean is tested with chains.

use super::*;
use crate::names::SourceOffset;

type Headers<'a> = Vec<(&'a [u8], Option<&'a [u8]>)>;

fn parts<'a>(key: Option<&'a [u8]>, headers: Headers<'a>) -> RecordParts<'a, Headers<'a>> {
    RecordParts { offset: SourceOffset(5), timestamp_ms: -1, key, value: None, headers }
}

#[test]
fn parts_must_lie_in_the_batch() {
    let memory = b"..inside..".to_vec();
    let base = &memory[2..8];
    let mut set = RecordSet::default();
    let mut check = |slice: &[u8], expected: Result<(), OutOfBase>| {
        assert_eq!(set.push(base, parts(Some(slice), vec![])), expected);
        assert_eq!(set.push(base, parts(None, vec![(base, Some(base)), (slice, None)])), expected);
        assert_eq!(set.push(base, parts(None, vec![(base, Some(slice))])), expected);
    };
    check(base, Ok(()));
    check(&base[6..], Ok(()));
    check(b"", Ok(()));
    check(&memory[1..8], Err(OutOfBase));
    check(&memory[2..9], Err(OutOfBase));
    check(&memory[9..], Err(OutOfBase));
    check(&memory[..1], Err(OutOfBase));
    assert_eq!(set.len(), 9);
    assert_eq!(set.record(base, 7).headers().collect::<Vec<_>>(), [(base, Some(base)), (&b""[..], None)]);
}

#[test]
fn null_and_empty_stay_apart() {
    let base = b"body".as_slice();
    let mut set = RecordSet::default();
    set.push(base, parts(Some(&base[1..1]), vec![(&base[..1], Some(&base[2..2])), (&base[..1], None)]))
        .unwrap();
    let record = set.record(base, 0);
    assert_eq!((record.key(), record.value()), (Some(&b""[..]), None));
    assert_eq!((record.key_bytes(), record.value_bytes()), (Some(0), None));
    let headers: Vec<_> = record.headers().collect();
    assert_eq!(headers, [(&b"b"[..], Some(&b""[..])), (&b"b"[..], None)]);
}

#[test]
fn records_from_a_place_on_are_put_back() {
    let base = b"body".as_slice();
    let mut set = RecordSet::default();
    for _ in 0..4 {
        set.push(base, parts(Some(base), vec![])).unwrap();
    }
    let answer = set.take_answer(b"new").unwrap();
    for index in [1, 3] {
        let mut editor = set.edit(base, index, answer);
        editor.set_key(0..3);
        editor.finish();
    }
    set.drop_record(0);
    set.drop_record(2);
    set.drop_record(2);
    assert_eq!(set.kept_count(), 2);
    let keys = |set: &RecordSet| -> Vec<_> {
        (0..4)
            .map(|index| set.record(base, index))
            .map(|now| (now.key() == Some(base), now.is_dropped))
            .collect()
    };
    assert_eq!(keys(&set), [(true, true), (false, false), (true, true), (false, false)]);
    set.restore_from(2);
    assert_eq!(keys(&set), [(true, true), (false, false), (true, false), (true, false)]);
    assert_eq!((set.kept_count(), set.is_changed()), (3, true));
    set.restore_from(0);
    assert_eq!((set.kept_count(), set.is_changed()), (4, false));
    set.start();
    assert_eq!((set.len(), set.edit_bytes()), (0, 0));
}

#[test]
fn an_index_has_a_bound_of_records_and_headers() {
    let base = b"".as_slice();
    let with = |count: usize| RecordParts {
        offset: SourceOffset(5),
        timestamp_ms: -1,
        key: None,
        value: None,
        headers: std::iter::repeat_n((base, None), count),
    };
    let mut set = RecordSet::default();
    assert_eq!(set.push(base, with(set::HEADER_COUNT_MAX)), Ok(()));
    assert_eq!(set.push(base, with(1)), Err(OutOfBase));
    set.start();
    for _ in 0..set::RECORD_COUNT_MAX {
        set.push(base, with(0)).unwrap();
    }
    assert_eq!(set.push(base, with(0)), Err(OutOfBase));
    assert_eq!(set.len(), set::RECORD_COUNT_MAX);
}
