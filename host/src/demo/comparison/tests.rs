//! Real batches in, differences out.

use bytes::Bytes;
use tidegate_wire::batch::{BatchBuilder, BatchHeader, Codec, HEADER_BYTES};

use super::super::digest::SideDigest;
use super::*;

type Header = (&'static [u8], Option<&'static [u8]>);

#[derive(Clone)]
struct Record {
    key: Option<&'static [u8]>,
    value: Option<Vec<u8>>,
    headers: Vec<Header>,
    timestamp_ms: i64,
}

fn record(number: i64) -> Record {
    Record {
        key: Some(b"key"),
        value: Some(format!("value {number}").into_bytes()),
        headers: vec![(b"one", Some(b"1")), (b"none", None)],
        timestamp_ms: 1_700_000_000_000 + number,
    }
}

fn records(count: i64) -> Vec<Record> {
    (0..count).map(record).collect()
}

/// A log with so many records in a batch.
fn log(records: &[Record], batch_records: usize, codec: Codec) -> Vec<Bytes> {
    let mut builder = BatchBuilder::new();
    let mut base_offset = 0;
    let mut log = Vec::new();
    for chunk in records.chunks(batch_records) {
        builder.start(codec);
        for record in chunk {
            builder.push_parts(record.key, record.value.as_deref(), &record.headers, record.timestamp_ms);
        }
        let built = builder.finish().unwrap();
        let header = BatchHeader { base_offset, ..built.header };
        base_offset = header.next_offset();
        log.push(Bytes::from([&header.encode()[..], &built.payload].concat()));
    }
    log
}

fn compare(source: &[Record], target: &[Record]) -> Comparison {
    let side = |log: Vec<Bytes>| SideDigest::read([log], &[0]).unwrap();
    Comparison::of(&side(log(source, 3, Codec::None)), &side(log(target, 3, Codec::None)))
}

/// Ten records on the source; the target's are `changed`.
#[track_caller]
fn check(change: impl FnOnce(&mut Vec<Record>), expected: (i64, DifferenceKind)) {
    let source = records(10);
    let mut target = source.clone();
    change(&mut target);
    let comparison = compare(&source, &target);
    let found: Vec<_> = comparison.differences.iter().map(|it| (it.offset, it.kind)).collect();
    assert_eq!(found, [expected]);
    assert!(!comparison.is_identical());
    assert_ne!(comparison.source_checksum, comparison.target_checksum);
}

#[test]
fn a_missing_record_is_found() {
    check(|target| drop(target.remove(4)), (4, DifferenceKind::Missing));
    check(|target| drop(target.pop()), (9, DifferenceKind::Missing));
    check(Vec::clear, (0, DifferenceKind::Missing));
}

#[test]
fn a_doubled_record_is_found() {
    check(|target| target.insert(5, record(4)), (5, DifferenceKind::Doubled));
    check(|target| target.extend(records(3)), (10, DifferenceKind::Doubled));
}

#[test]
fn a_record_of_somebody_else_is_found() {
    check(|target| target.insert(5, record(99)), (5, DifferenceKind::Foreign));
    check(|target| target.push(record(99)), (10, DifferenceKind::Foreign));
}

#[test]
fn another_order_is_found() {
    check(|target| target.swap(2, 7), (2, DifferenceKind::OutOfOrder));
}

#[test]
fn a_changed_record_is_found() {
    let changed = |change: fn(&mut Record)| {
        check(|target| change(&mut target[6]), (6, DifferenceKind::Changed));
    };
    changed(|record| record.key = Some(b"Key"));
    changed(|record| record.key = None);
    changed(|record| record.value = None);
    changed(|record| record.value = Some(Vec::new()));
    changed(|record| record.timestamp_ms += 1);
    changed(|record| record.headers.reverse());
    changed(|record| record.headers.push((b"one", Some(b"1"))));
    changed(|record| record.headers[1].1 = Some(b""));
    changed(|record| record.headers.clear());
}

#[test]
fn bytes_that_move_between_key_and_value_are_found() {
    let with = |key, value: &[u8]| Record { key: Some(key), value: Some(value.to_vec()), ..record(0) };
    assert!(!compare(&[with(b"ab", b"c")], &[with(b"a", b"bc")]).is_identical());
    let empty_key = Record { key: Some(b""), ..record(0) };
    let null_key = Record { key: None, ..record(0) };
    assert!(!compare(&[empty_key], &[null_key]).is_identical());
}

#[test]
fn a_record_in_another_partition_is_found() {
    let read = |logs: [Vec<Bytes>; 2]| SideDigest::read(logs, &[0, 0]).unwrap();
    let full = || log(&records(3), 3, Codec::None);
    let comparison = Comparison::of(&read([full(), Vec::new()]), &read([Vec::new(), full()]));
    let kinds: Vec<_> = comparison.differences.iter().map(|it| (it.partition, it.kind)).collect();
    assert_eq!(kinds, [(0, DifferenceKind::Missing), (1, DifferenceKind::Foreign)]);
    assert_ne!(comparison.source_checksum, comparison.target_checksum);
}

#[test]
fn other_batches_and_another_codec_are_no_difference() {
    let side = |log: Vec<Bytes>| SideDigest::read([log], &[0]).unwrap();
    let source = side(log(&records(10), 2, Codec::None));
    let target = side(log(&records(10), 7, Codec::Lz4));
    let comparison = Comparison::of(&source, &target);
    assert!(comparison.is_identical());
    let checksum = &source.checksum;
    assert_eq!(checksum.len(), 16);
    assert_eq!(
        comparison.to_string(),
        format!("verified: 10 records, checksum {checksum}, identical on both sides")
    );
}

#[test]
fn records_before_the_first_offset_do_not_count() {
    let read = |log: Vec<Bytes>| SideDigest::read([log], &[5]).unwrap();
    let source = read(log(&records(10), 3, Codec::None));
    // The target has already forgotten the first batch.
    let target = read(log(&records(10), 4, Codec::None).split_off(1));
    let comparison = Comparison::of(&source, &target);
    assert!(comparison.is_identical(), "{comparison}");
    assert_eq!((comparison.source_count, comparison.forgotten_count), (5, 5));
    assert!(comparison.to_string().ends_with("(5 older ones had left the clusters' memory)"), "{comparison}");
}

#[test]
fn a_difference_is_told_in_words() {
    let mut target = records(10);
    target.remove(4);
    let comparison = compare(&records(10), &target);
    let (source, target) = (&comparison.source_checksum, &comparison.target_checksum);
    assert_eq!(
        comparison.to_string(),
        format!(
            "the two sides differ: 10 records, checksum {source} in orders of east; 9 records, checksum {target} in \
             east.orders of west\n  partition 0, 10 records on the source, 9 on the target: at offset 4 the source's \
             record is missing on the target"
        )
    );
}

#[test]
fn a_damaged_batch_is_an_error_with_its_place() {
    let mut batches = log(&records(10), 3, Codec::None);
    let mut bytes = batches[1].to_vec();
    bytes[HEADER_BYTES + 4] ^= 1;
    batches[1] = Bytes::from(bytes);
    let error = format!("{:#}", SideDigest::read([batches], &[0]).unwrap_err());
    assert!(error.starts_with("partition 0, batch at offset 3: "), "{error}");
}
