//! The sentences that a person reads, whole.

use super::*;

#[track_caller]
fn check(result: Result<impl std::fmt::Debug, BatchError>, expected: &str) {
    assert_eq!(result.unwrap_err().to_string(), expected);
}

fn whole() -> Vec<u8> {
    build(Codec::None, &[plain(0, 1, "key", "value"), plain(1, 2, "k", "v")]).to_batch().bytes.to_vec()
}

/// A whole batch with `bytes` written over it at `at`; the CRC made to fit.
fn changed(at: usize, bytes: &[u8]) -> Bytes {
    let mut batch = whole();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    with_right_crc(&batch)
}

fn read_bytes(bytes: Bytes) -> Result<Vec<OwnedRecord>, BatchError> {
    read(&Batch::parse(bytes)?)
}

#[test]
fn old_message_formats_are_refused_with_the_remedy() {
    for magic in [0, 1] {
        let answer = [whole(), changed(16, &[magic]).to_vec()].concat();
        let expected = format!(
            "record batch at byte {} has the old message format {magic}, only format 2 is read; rewrite the \
             topic at the source: copy its records with a current client into a new topic whose \
             message.format.version is 0.11 or later (brokers 4.0 and newer write no old formats, but serve what \
             an older release left in their logs)",
            whole().len()
        );
        check(Batches::new(answer.into()).collect::<Result<Vec<_>, _>>(), &expected);
    }
}

#[test]
fn a_short_old_message_is_named_as_such() {
    // A message of format 0 is shorter than a header of format 2: 26 bytes with neither key nor value.
    let mut message = vec![0; 26];
    message[11] = 14;
    let error = Batches::new(message.into()).next().unwrap().unwrap_err();
    assert_eq!(error, BatchError::OldMagic { position: 0, magic: 0 });
}

#[test]
fn headers_are_checked() {
    check(
        Batch::parse(changed(16, &[3])),
        "record batch at byte 0 has the unknown message format 3, format 2 is wanted; the bytes are damaged, or \
         the broker is newer than this program",
    );
    check(
        Batch::parse(changed(0, &[0xff; 8])),
        "malformed record batch at byte 0 of the batch: base offset is -1",
    );
    check(
        Batch::parse(changed(8, &[0, 0, 0, 48])),
        "malformed record batch at byte 8 of the batch: batch length is 48, a header alone takes 49",
    );
    check(
        Batch::parse(changed(23, &[0xff; 4])),
        "malformed record batch at byte 23 of the batch: last offset delta is -1",
    );
    check(
        Batch::parse(changed(57, &[0xff; 4])),
        "malformed record batch at byte 57 of the batch: record count is -1",
    );
    check(
        BatchHeader::parse(&whole()[..60]),
        "malformed record batch at byte 0 of the batch: 61 bytes are needed, 60 are there",
    );
    let mut longer = whole();
    longer.extend([0, 0]);
    check(
        Batch::parse(longer.into()),
        "malformed record batch at byte 85 of the batch: 2 bytes follow the batch",
    );
    check(
        read_bytes(changed(22, &[7])),
        "record batch is compressed with the unknown codec 7, codecs 0 to 4 are known",
    );
}

#[test]
fn a_second_batchs_position_counts_from_the_answers_start() {
    let second = changed(57, &[0x80, 0, 0, 0]);
    let answer = [whole(), second.to_vec()].concat();
    check(
        Batches::new(answer.into()).collect::<Result<Vec<_>, _>>(),
        "malformed record batch at byte 142 of the batch: record count is -2147483648",
    );
}

#[test]
fn a_first_batch_that_is_too_large_names_its_size() {
    check(
        Batches::new(whole()[..70].to_vec().into()).next().unwrap(),
        "the first record batch of the answer takes 85 bytes, the answer has 70; raise max.partition.fetch.bytes \
         and fetch.max.bytes to at least 85",
    );
}

#[test]
fn damage_names_both_checksums() {
    let mut batch = build(Codec::None, &[plain(0, 1, "key", "value")]).to_batch();
    batch.header.base_offset = 812;
    batch.header.crc = 0x0102_0304;
    let computed = crc32c::crc32c(&batch.bytes[21..]);
    check(
        batch.check_crc(),
        &format!(
            "record batch at offset 812 is damaged: its CRC32C is 0x01020304, its bytes give {computed:#010x}; \
             fetch it again, and check the broker's disk if it stays so"
        ),
    );
}

#[test]
fn records_are_checked() {
    // From byte 61: length 14, attributes, time, offset, 3 "key", 5 "value", no headers; from byte 76 the
    // second record.
    check(
        read_bytes(changed(61, &[0x7e])),
        "malformed record batch at byte 62 of the batch: record length is 63, 23 bytes are left",
    );
    check(
        read_bytes(changed(61, &[0x01])),
        "malformed record batch at byte 62 of the batch: record length is -1, 23 bytes are left",
    );
    check(
        read_bytes(changed(64, &[4])),
        "malformed record batch at byte 65 of the batch: offset delta is 2, 0 to 1 are possible here",
    );
    check(
        read_bytes(changed(79, &[0])),
        "malformed record batch at byte 80 of the batch: offset delta is 0, 1 to 1 are possible here",
    );
    check(
        read_bytes(changed(65, &[3])),
        "malformed record batch at byte 66 of the batch: key length is -2, 10 bytes are left",
    );
    check(
        read_bytes(changed(69, &[0x20])),
        "malformed record batch at byte 70 of the batch: value length is 16, 6 bytes are left",
    );
    check(
        read_bytes(changed(75, &[1])),
        "malformed record batch at byte 76 of the batch: record has -1 headers, 0 bytes are left",
    );
    check(
        read_bytes(changed(69, &[8, b'v', b'a', b'l', b'u', 0])),
        "malformed record batch at byte 75 of the batch: 1 bytes of the record follow its last header",
    );
    check(
        read_bytes(changed(69, &[4, b'v', b'a', 2, 1, 1])),
        "malformed record batch at byte 74 of the batch: header name length is -1, 2 bytes are left",
    );
    check(
        read_bytes(changed(69, &[4, b'v', b'a', 2, 0, 4])),
        "malformed record batch at byte 75 of the batch: header value length is 2, 1 bytes are left",
    );
    check(
        read_bytes(changed(61, &[4, 0, 0xff])),
        "malformed record batch at byte 63 of the batch: 2 bytes are needed, 1 are there",
    );
    check(
        read_bytes(changed(63, &[0xff; 10])),
        "malformed record batch at byte 63 of the batch: number does not end within its 10 bytes or is too \
         large for them",
    );
    check(
        read_bytes(changed(57, &[0, 0, 0, 3])),
        "malformed record batch at byte 85 of the batch: record count is 3, only 2 records are there",
    );
    check(
        read_bytes(changed(57, &[0, 0, 0, 1])),
        "malformed record batch at byte 76 of the batch: 9 bytes follow the last of 1 records",
    );
}

#[test]
fn positions_in_compressed_records_say_so() {
    let mut built = build(Codec::Zstd, &[plain(0, 1, "key", "value")]);
    built.header.record_count = 2;
    check(
        read(&built.to_batch()),
        "malformed record batch at byte 15 of its decompressed records: record count is 2, only 1 records are there",
    );
}

#[test]
fn broken_frames_name_codec_and_place() {
    let check = |codec, payload: &[u8], expected| {
        check(Decompressor::new(1000).decompress(codec, payload).map(<[u8]>::to_vec), expected);
    };
    check(
        Codec::Gzip,
        b"\x1f\x8b\x08\x00",
        "could not decompress gzip at byte 61 of the batch: not a gzip header, or a truncated one",
    );
    check(
        Codec::Gzip,
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03",
        "could not decompress gzip at byte 72 of the batch: truncated deflate stream",
    );
    check(
        Codec::Gzip,
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x01\x00\x00\x00",
        "could not decompress gzip at byte 73 of the batch: gzip checksum or size does not match",
    );
    check(
        Codec::Snappy,
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x09\x01",
        "could not decompress snappy at byte 77 of the batch: length of a snappy block reaches past the end",
    );
    check(
        Codec::Lz4,
        b"\x04\x22\x4d\x18\x60\x40\x82",
        "could not decompress lz4 at byte 68 of the batch: truncated lz4 frame: no end mark",
    );
    check(
        Codec::Zstd,
        b"neither zstd nor anything else",
        "could not decompress zstd at byte 61 of the batch: Unknown frame descriptor",
    );
}

#[test]
fn a_builder_refuses_what_no_broker_takes() {
    check(BatchBuilder::new().finish(), "could not build a record batch: no record was pushed");
}
