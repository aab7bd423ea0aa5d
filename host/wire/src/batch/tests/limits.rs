//! Limits in pairs: obeyed and exceeded.

use super::*;

const LIMIT_BYTES: usize = 100_000;

fn compressed(codec: Codec, bytes: usize) -> Bytes {
    let records = [OwnedRecord { value: Some(vec![0; bytes]), ..plain(0, 1, "", "") }];
    build(codec, &records).payload
}

/// Size of the records around a value of `LIMIT_BYTES`.
fn overhead_bytes(codec: Codec) -> usize {
    let payload = compressed(codec, LIMIT_BYTES);
    Decompressor::default().decompress(codec, &payload).unwrap().len() - LIMIT_BYTES
}

#[test]
fn output_limit_obeyed() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let payload = compressed(codec, LIMIT_BYTES - overhead_bytes(codec));
        let mut decompressor = Decompressor::new(LIMIT_BYTES);
        assert_eq!(decompressor.decompress(codec, &payload).map(<[u8]>::len), Ok(LIMIT_BYTES), "{codec}");
        assert!(decompressor.buffer_bytes() <= LIMIT_BYTES, "{codec}");
    }
}

#[test]
fn output_limit_exceeded() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        for more_bytes in [1, 10_000_000] {
            let payload = compressed(codec, LIMIT_BYTES - overhead_bytes(codec) + more_bytes);
            let mut decompressor = Decompressor::new(LIMIT_BYTES);
            let expected = BatchError::OutputTooLarge { codec, limit_bytes: LIMIT_BYTES };
            assert_eq!(decompressor.decompress(codec, &payload), Err(expected), "{codec}");
            assert!(decompressor.buffer_bytes() <= LIMIT_BYTES, "{codec}");
        }
    }
}

#[test]
fn lengths_from_the_wire_are_not_believed() {
    // Snappy, raw: 4 GiB less one byte. An lz4 block of 2 GiB. A zstd frame of 2^62 bytes with a window of
    // 3.75 TiB.
    let snappy = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x41];
    let lz4 = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73, 0xff, 0xff, 0xff, 0x7f];
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0x40, 1, 0, 0];
    for (codec, payload) in [(Codec::Snappy, &snappy[..]), (Codec::Lz4, &lz4), (Codec::Zstd, &zstd)] {
        let mut decompressor = Decompressor::new(usize::MAX);
        decompressor.decompress(codec, payload).unwrap_err();
        assert!(decompressor.buffer_bytes() <= 64 << 10, "{codec}");
    }
}

#[test]
fn a_huge_batchs_memory_is_given_back() {
    let huge = compressed(Codec::Lz4, 20_000_000);
    let small = compressed(Codec::Lz4, 1000);
    let mut decompressor = Decompressor::default();
    decompressor.decompress(Codec::Lz4, &huge).unwrap();
    assert!(decompressor.buffer_bytes() >= 20_000_000);
    decompressor.decompress(Codec::Lz4, &small).unwrap();
    decompressor.decompress(Codec::Lz4, &small).unwrap();
    assert!(decompressor.buffer_bytes() <= 64 << 10);
}

#[test]
fn header_count_is_bounded_by_the_record() {
    // Length 14: attributes, deltas, null key, null value, and 2^31 − 1 headers in 4 bytes.
    let payload = [28, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0];
    let mut header = build(Codec::None, &[plain(0, 1, "", "")]).header;
    header.batch_length = 49 + payload.len() as i32;
    let batch = Batch { header, bytes: [&header.encode()[..], &payload].concat().into() };
    let flaw = Flaw::HeaderCount { count: i32::MAX, available_bytes: 4 };
    assert_eq!(read(&batch), Err(BatchError::Malformed { position: 72, part: Part::Batch, flaw }));
}
