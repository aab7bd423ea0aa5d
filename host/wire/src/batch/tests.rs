//! Promises of the whole module; what concerns one file alone is tested there.

mod differential;
mod errors;
mod limits;
mod mutations;
mod round_trips;
mod timestamps;
mod vectors;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// A header with its name and value.
type OwnedHeader = (Vec<u8>, Option<Vec<u8>>);

/// A record that owns its parts, to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnedRecord {
    offset: i64,
    timestamp_ms: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<OwnedHeader>,
}

fn build(codec: Codec, records: &[OwnedRecord]) -> BuiltBatch {
    let mut builder = BatchBuilder::new();
    builder.start(codec);
    for record in records {
        push(&mut builder, record);
    }
    assert_eq!(builder.record_count() as usize, records.len());
    builder.finish().unwrap()
}

fn push(builder: &mut BatchBuilder, record: &OwnedRecord) {
    let headers: Vec<(&[u8], Option<&[u8]>)> =
        record.headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref())).collect();
    builder.push_parts(record.key.as_deref(), record.value.as_deref(), &headers, record.timestamp_ms);
}

fn read(batch: &Batch) -> Result<Vec<OwnedRecord>, BatchError> {
    read_with(&mut Decompressor::default(), batch)
}

fn read_with(decompressor: &mut Decompressor, batch: &Batch) -> Result<Vec<OwnedRecord>, BatchError> {
    let owned = |record: RecordView<'_>| OwnedRecord {
        offset: batch.header.base_offset + i64::from(record.offset_delta),
        timestamp_ms: record_timestamp(&batch.header, &record),
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record
            .headers
            .iter()
            .map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec)))
            .collect(),
    };
    decompressor.records(batch)?.map(|record| record.map(owned)).collect()
}

/// The batch with its CRC made right again, after a test changed its bytes.
fn with_right_crc(bytes: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    if bytes.len() > 21 {
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    Bytes::from(bytes)
}

fn any_codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(&Codec::ALL[..])
}

fn any_bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        Just(None),
        Just(Some(Vec::new())),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Some),
        (any::<u8>(), 0..3000usize).prop_map(|(byte, length)| Some(vec![byte; length])),
    ]
}

fn any_timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        1_700_000_000_000..1_700_000_100_000i64,
        proptest::sample::select(&[0, -1, 1, -5, 1 << 62, i64::MIN, i64::MAX][..]),
        any::<i64>(),
    ]
}

/// Names come from few, so that they repeat; one of them is no UTF-8.
fn any_headers() -> impl Strategy<Value = Vec<OwnedHeader>> {
    const NAMES: &[&[u8]] = &[b"", b"a", b"trace", b"\xff\xfe"];
    let name = proptest::sample::select(NAMES).prop_map(<[u8]>::to_vec);
    proptest::collection::vec((name, any_bytes()), 0..5)
}

/// Consecutive records from offset 0 on.
fn any_records() -> impl Strategy<Value = Vec<OwnedRecord>> {
    let parts = (any_timestamp(), any_bytes(), any_bytes(), any_headers());
    proptest::collection::vec(parts, 1..60).prop_map(|records| {
        (0..)
            .zip(records)
            .map(|(offset, (timestamp_ms, key, value, headers))| OwnedRecord {
                offset,
                timestamp_ms,
                key,
                value,
                headers,
            })
            .collect()
    })
}

fn plain(offset: i64, timestamp_ms: i64, key: &str, value: &str) -> OwnedRecord {
    OwnedRecord {
        offset,
        timestamp_ms,
        key: Some(key.as_bytes().to_vec()),
        value: Some(value.as_bytes().to_vec()),
        headers: Vec::new(),
    }
}

#[test]
fn workers_may_move_to_their_thread() {
    fn check<T: Send>() {}
    check::<(Decompressor, BatchBuilder, Batches, BuiltBatch, BatchError)>();
}
