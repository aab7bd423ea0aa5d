//! Batches that other programs wrote: kafka-clients 4.3.1 (`MemoryRecordsBuilder`), librdkafka 2.16.0
//! (fetched from its mock cluster, which sets offsets), and the lz4 program.

use super::*;

fn bytes_of(hex: &str) -> Bytes {
    let digits = hex.trim().as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn tombstone(offset: i64, timestamp_ms: i64) -> OwnedRecord {
    OwnedRecord { offset, timestamp_ms, key: None, value: None, headers: Vec::new() }
}

fn header(name: &str, value: Option<&str>) -> OwnedHeader {
    (name.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()))
}

const TIME: i64 = 1_700_000_000_000;

fn written_by_java() -> Vec<OwnedRecord> {
    let headers =
        vec![header("a", None), header("a", Some("")), header("", Some("x")), header("ä", Some("y"))];
    vec![
        tombstone(100, TIME),
        OwnedRecord { headers, ..plain(101, TIME + 5, "", "") },
        plain(102, TIME - 1000, "key-2", &"value ".repeat(50)),
        plain(103, 0, "zero", "z"),
        plain(104, -1, "none", "n"),
        OwnedRecord { value: None, headers: vec![header("h", Some("1"))], ..plain(105, 1 << 62, "far", "") },
    ]
}

#[track_caller]
fn check(hex: &str, codec: Codec, expected: &[OwnedRecord]) {
    let batch = Batch::parse(bytes_of(hex)).unwrap();
    batch.check_crc().unwrap();
    assert_eq!(batch.header.codec(), Ok(codec));
    assert_eq!(read(&batch).unwrap(), expected);
    assert_eq!(batch.header.next_offset(), expected.last().unwrap().offset + 1);
    assert_eq!(BatchHeader::parse(&batch.header.encode()), Ok(batch.header));
    assert_eq!(batch.header.encode(), batch.bytes[..HEADER_BYTES]);
}

#[test]
fn what_java_writes_is_read_whole() {
    check(include_str!("vectors/java-none.hex"), Codec::None, &written_by_java());
    check(include_str!("vectors/java-gzip.hex"), Codec::Gzip, &written_by_java());
    check(include_str!("vectors/java-snappy.hex"), Codec::Snappy, &written_by_java());
    check(include_str!("vectors/java-lz4.hex"), Codec::Lz4, &written_by_java());
    check(include_str!("vectors/java-zstd.hex"), Codec::Zstd, &written_by_java());
}

#[test]
fn without_compression_we_write_the_bytes_that_java_writes() {
    let built = build(Codec::None, &written_by_java());
    let java = Batch::parse(bytes_of(include_str!("vectors/java-none.hex"))).unwrap();
    assert_eq!(built.payload, java.payload());
    let differs_in = BatchHeader { base_offset: 100, ..built.header };
    assert_eq!(differs_in, java.header);
}

#[track_caller]
fn check_librdkafka(hex: &str, codec: Codec, repeats: usize) {
    let headers = vec![header("a", None), header("a", Some("")), header("b", Some("x"))];
    let batch = Batch::parse(bytes_of(hex)).unwrap();
    let expected = [
        tombstone(0, TIME),
        OwnedRecord { headers, ..plain(1, TIME + 5, "", "") },
        plain(2, TIME - 1000, "key-2", &"value ".repeat(40)),
        plain(3, -1, "long", &"0123456789abcdef".repeat(repeats)),
    ];
    check(hex, codec, &expected);
    assert_eq!(batch.header.base_sequence, 0);
}

#[test]
fn what_librdkafka_writes_is_read_whole() {
    check_librdkafka(include_str!("vectors/librdkafka-none.hex"), Codec::None, 10);
    check_librdkafka(include_str!("vectors/librdkafka-gzip.hex"), Codec::Gzip, 10_000);
    // One raw block, without Java's framing.
    check_librdkafka(include_str!("vectors/librdkafka-snappy.hex"), Codec::Snappy, 10_000);
    check_librdkafka(include_str!("vectors/librdkafka-lz4.hex"), Codec::Lz4, 10_000);
    check_librdkafka(include_str!("vectors/librdkafka-zstd.hex"), Codec::Zstd, 10_000);
}

#[test]
fn linked_lz4_blocks_with_checksums_and_size_are_read() {
    let frame = bytes_of(include_str!("vectors/lz4-linked-blocks.hex"));
    let mut decompressor = Decompressor::default();
    let expected = "0123456789abcdef".repeat(12_000);
    assert_eq!(decompressor.decompress(Codec::Lz4, &frame).unwrap(), expected.as_bytes());
}

#[test]
fn gzip_members_and_all_their_header_fields_are_read() {
    use std::io::Write;
    let mut payload = Vec::new();
    for text in ["first ", "second"] {
        let mut writer = flate2::GzBuilder::new()
            .extra(b"extra".to_vec())
            .filename("name")
            .comment("comment")
            .write(&mut payload, flate2::Compression::best());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap();
    }
    assert_eq!(Decompressor::default().decompress(Codec::Gzip, &payload).unwrap(), b"first second");
}
