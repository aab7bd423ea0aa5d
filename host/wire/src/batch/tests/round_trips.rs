//! What goes in comes out, whatever the codec and however often the buffers were used before.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_come_back_whole(codec in any_codec(), records in any_records()) {
        let built = build(codec, &records);
        let batch = Batch::parse(built.to_batch().bytes).unwrap();
        prop_assert_eq!(batch.check_crc(), Ok(()));
        prop_assert_eq!(batch.header, built.header);
        prop_assert_eq!(batch.payload(), built.payload);
        prop_assert_eq!(batch.header.record_count as usize, records.len());
        prop_assert_eq!(batch.header.last_offset(), records.len() as i64 - 1);
        prop_assert!(!batch.header.has_gaps());
        let latest = records.iter().map(|record| record.timestamp_ms).max().unwrap();
        prop_assert_eq!(batch.header.max_timestamp, latest);
        prop_assert_eq!(batch.header.base_timestamp, records[0].timestamp_ms);
        prop_assert_eq!(read(&batch).unwrap(), records);
    }

    #[test]
    fn copied_records_are_the_same_with_new_offsets(
        source_codec in any_codec(), target_codec in any_codec(),
        first in any_records(), second in any_records(), keep_every in 1..4usize,
    ) {
        let mut decompressor = Decompressor::default();
        let mut builder = BatchBuilder::new();
        builder.start(target_codec);
        let mut expected = Vec::new();
        for records in [first, second] {
            let batch = build(source_codec, &records).to_batch();
            let kept = decompressor.records(&batch).unwrap().step_by(keep_every);
            for record in kept {
                let record = record.unwrap();
                builder.push(&record, record_timestamp(&batch.header, &record));
            }
            expected.extend(records.into_iter().step_by(keep_every));
        }
        for (offset, record) in (0..).zip(&mut expected) {
            record.offset = offset;
        }
        let copied = builder.finish().unwrap().to_batch();
        prop_assert_eq!(copied.check_crc(), Ok(()));
        prop_assert_eq!(&read(&copied).unwrap(), &expected);
        // Copied or built from parts: the same bytes.
        prop_assert_eq!(copied.bytes, build(target_codec, &expected).to_batch().bytes);
    }
}

#[test]
fn used_buffers_leave_no_trace() {
    let mut decompressor = Decompressor::default();
    let mut builder = BatchBuilder::new();
    for (index, codec) in [Codec::ALL, Codec::ALL].concat().into_iter().enumerate() {
        for count in [3000, 1] {
            let record = |offset| plain(offset, 7 + offset, "key", &format!("value {offset} of {index}"));
            let records: Vec<OwnedRecord> = (0..count).map(record).collect();
            builder.start(Codec::Gzip);
            builder.push_parts(None, Some(b"forgotten by the next start"), &[], 0);
            builder.start(codec);
            records.iter().for_each(|record| push(&mut builder, record));
            let batch = builder.finish().unwrap().to_batch();
            assert_eq!(read_with(&mut decompressor, &batch).unwrap(), records, "{codec}, {count} records");
        }
    }
}

#[test]
fn payloads_on_their_way_are_not_overwritten() {
    let mut builder = BatchBuilder::new();
    for codec in Codec::ALL {
        builder.start(codec);
        builder.push_parts(None, Some(b"one"), &[], 1);
        let one = builder.finish().unwrap();
        builder.push_parts(None, Some(b"two"), &[], 2);
        let two = builder.finish().unwrap();
        assert_eq!(read(&one.to_batch()).unwrap()[0].value.as_deref(), Some(&b"one"[..]));
        assert_eq!(read(&two.to_batch()).unwrap()[0].value.as_deref(), Some(&b"two"[..]));
        assert_eq!(two.header.codec(), Ok(codec), "finish keeps the codec for the next batch");
    }
}

#[test]
fn steady_building_reuses_its_payloads() {
    let mut builder = BatchBuilder::new();
    let mut places = std::collections::BTreeSet::new();
    for _ in 0..100 {
        builder.start(Codec::Lz4);
        (0..100).for_each(|time| builder.push_parts(None, Some(b"some value"), &[], time));
        places.insert(builder.finish().unwrap().payload.as_ptr());
    }
    assert_eq!(places.len(), 1);
}

#[test]
fn large_incompressible_and_equal_payloads_come_back() {
    let mut state = 1u32;
    let mut noise = vec![0u8; 700_000];
    noise.fill_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    for codec in Codec::ALL {
        for value in [noise.clone(), vec![b'x'; 3_000_000]] {
            let records = [OwnedRecord { value: Some(value), ..plain(0, 1, "key", "") }];
            assert!(read(&build(codec, &records).to_batch()).unwrap() == records, "{codec}");
        }
    }
}

#[test]
fn an_uncompressed_batch_is_read_where_it_lies() {
    let batch = build(Codec::None, &[plain(0, 1, "key", "value")]).to_batch();
    let mut decompressor = Decompressor::default();
    let record = decompressor.records(&batch).unwrap().next().unwrap().unwrap();
    assert!(batch.bytes.as_ptr_range().contains(&record.value.unwrap().as_ptr()));
    assert_eq!(decompressor.buffer_bytes(), 0);
}

#[test]
fn a_batch_that_compaction_emptied_has_no_records() {
    let mut header = build(Codec::Zstd, &[plain(0, 1, "key", "value")]).header;
    header.record_count = 0;
    header.last_offset_delta = 41;
    header.batch_length = 49;
    header.crc = header.compute_crc(&[]);
    let batch = Batch::parse(Bytes::copy_from_slice(&header.encode())).unwrap();
    assert_eq!(batch.check_crc(), Ok(()));
    assert_eq!(read(&batch), Ok(Vec::new()));
    assert!(batch.header.has_gaps());
    assert_eq!(batch.header.next_offset(), 42);
}
