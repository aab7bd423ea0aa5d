//! A record's time under each of the header's flags, and at the edges of 64 bits.

use super::*;

/// A batch of two records, times 1000 and 1005, after a change of its header.
fn times_after(change: impl Fn(&mut BatchHeader)) -> Vec<i64> {
    let built = build(Codec::None, &[plain(0, 1000, "a", "1"), plain(1, 1005, "b", "2")]);
    let mut header = built.header;
    change(&mut header);
    let batch = BuiltBatch { header, payload: built.payload }.to_batch();
    read(&batch).unwrap().iter().map(|record| record.timestamp_ms).collect()
}

#[test]
fn create_time_is_base_plus_delta() {
    assert_eq!(times_after(|_| ()), [1000, 1005]);
}

#[test]
fn log_append_time_is_the_batchs_greatest_for_all() {
    let appended = |header: &mut BatchHeader| {
        header.attributes |= 0x08;
        header.max_timestamp = 9999;
    };
    assert_eq!(times_after(appended), [9999, 9999]);
}

#[test]
fn delete_horizon_keeps_base_plus_delta() {
    // The cleaner moves the base to the horizon and rewrites the deltas; here the deltas stay and the times
    // move.
    let with_horizon = |header: &mut BatchHeader| {
        header.attributes |= 0x40;
        header.base_timestamp = 5000;
    };
    assert_eq!(times_after(with_horizon), [5000, 5005]);
}

#[test]
fn times_wrap_around_as_in_java() {
    assert_eq!(times_after(|header| header.base_timestamp = i64::MAX), [i64::MAX, i64::MIN + 4]);
}

#[test]
fn flags_are_told_apart() {
    let mut header = build(Codec::None, &[plain(0, 1, "a", "1")]).header;
    let mut flags = |attributes| {
        header.attributes = attributes;
        [
            header.is_log_append_time(),
            header.is_transactional(),
            header.is_control(),
            header.has_delete_horizon(),
        ]
    };
    assert_eq!(flags(0x07), [false; 4]);
    assert_eq!(flags(0x08), [true, false, false, false]);
    assert_eq!(flags(0x10), [false, true, false, false]);
    assert_eq!(flags(0x20), [false, false, true, false]);
    assert_eq!(flags(0x40), [false, false, false, true]);
}
