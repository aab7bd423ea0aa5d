//! Bytes flipped, cut, inserted: an error or the same records, never a panic, never more memory than allowed.

use super::*;

/// Greater than what any of the batches here holds, far less than what a wrong length could ask for.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Clone)]
enum Mutation {
    Flip { at: usize, mask: u8 },
    Overwrite { at: usize, bytes: Vec<u8> },
    Cut { from: usize, length: usize },
    Insert { at: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |at: &usize| at % bytes.len().max(1);
        match self {
            _ if bytes.is_empty() => {}
            Mutation::Flip { at, mask } => {
                let at = place(at);
                bytes[at] ^= mask;
            }
            Mutation::Overwrite { at, bytes: new } => {
                let at = place(at);
                let end = (at + new.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&new[..end - at]);
            }
            Mutation::Cut { from, length } => {
                let from = place(from);
                let end = (from + length).min(bytes.len());
                bytes.drain(from..end);
            }
            Mutation::Insert { at, bytes: new } => {
                let at = place(at);
                bytes.splice(at..at, new.iter().copied());
            }
            Mutation::Truncate { length } => bytes.truncate(*length % bytes.len()),
        }
    }
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let few = || {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..6),
            proptest::sample::select(&[0x00u8, 0x7f, 0x80, 0xff][..]).prop_map(|byte| vec![byte; 4]),
        ]
    };
    // Half of them hit the header and the start of the payload, where lengths are.
    let place = || prop_oneof![0..100usize, any::<usize>()];
    prop_oneof![
        (place(), 1..=255u8).prop_map(|(at, mask)| Mutation::Flip { at, mask }),
        (place(), few()).prop_map(|(at, bytes)| Mutation::Overwrite { at, bytes }),
        (place(), 1..20usize).prop_map(|(from, length)| Mutation::Cut { from, length }),
        (place(), few()).prop_map(|(at, bytes)| Mutation::Insert { at, bytes }),
        any::<usize>().prop_map(|length| Mutation::Truncate { length }),
    ]
}

/// The batch's length made to fit again, so that the damage reaches the payload.
fn with_right_length(bytes: &mut [u8]) {
    if bytes.len() >= HEADER_BYTES {
        let length = (bytes.len() - 12) as i32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
    }
}

/// Reads as the relay would, and gives the records or nothing.
fn read_all(bytes: Bytes, check_crc: bool) -> Result<Vec<OwnedRecord>, BatchError> {
    let mut records = Vec::new();
    let mut decompressor = Decompressor::new(OUTPUT_BYTES_MAX);
    for batch in Batches::new(bytes) {
        let batch = batch?;
        if check_crc {
            batch.check_crc()?;
        }
        let read = read_with(&mut decompressor, &batch);
        assert!(decompressor.buffer_bytes() <= OUTPUT_BYTES_MAX);
        records.extend(read?);
        produce_header(&batch.header, ProducerFields::NONE);
    }
    Ok(records)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damage_is_found_by_the_checksum(
        codec in any_codec(), records in any_records(), mutation in any_mutation(),
    ) {
        let whole = build(codec, &records).to_batch().bytes;
        let mut damaged = whole.to_vec();
        mutation.apply(&mut damaged);
        // Base offset and leader epoch lie outside of the checksum: brokers change them. So compare without
        // the offsets.
        if let Ok(read) = read_all(Bytes::from(damaged.clone()), true) {
            let without_offsets = |records: &[OwnedRecord]| -> Vec<OwnedRecord> {
                records.iter().map(|record| OwnedRecord { offset: 0, ..record.clone() }).collect()
            };
            if !read.is_empty() {
                prop_assert_eq!(without_offsets(&read), without_offsets(&records));
            } else {
                prop_assert!(damaged.is_empty());
            }
        }
    }

    #[test]
    fn damage_under_a_right_checksum_is_bounded(
        codec in any_codec(), records in any_records(),
        mutations in proptest::collection::vec(any_mutation(), 1..4),
    ) {
        let mut damaged = build(codec, &records).to_batch().bytes.to_vec();
        mutations.iter().for_each(|mutation| mutation.apply(&mut damaged));
        with_right_length(&mut damaged);
        if let Ok(read) = read_all(with_right_crc(&damaged), true) {
            prop_assert!(read.len() <= OUTPUT_BYTES_MAX);
        }
    }

    #[test]
    fn any_bytes_at_all_are_bounded(
        codec in any_codec(), count in 0..100i32, payload in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut header = build(codec, &[plain(0, 1, "k", "v")]).header;
        header.record_count = count;
        header.last_offset_delta = count.max(1) - 1;
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&payload);
        with_right_length(&mut bytes);
        let _ = read_all(with_right_crc(&bytes), true);
        let _ = read_all(Bytes::from(payload), false);
    }

    #[test]
    fn damaged_frames_of_other_writers_are_bounded(
        which in 0..5usize, mutations in proptest::collection::vec(any_mutation(), 1..3),
    ) {
        let (codec, hex) = [
            (Codec::Gzip, include_str!("vectors/librdkafka-gzip.hex")),
            (Codec::Snappy, include_str!("vectors/java-snappy.hex")),
            (Codec::Lz4, include_str!("vectors/lz4-linked-blocks.hex")),
            (Codec::Lz4, include_str!("vectors/librdkafka-lz4.hex")),
            (Codec::Zstd, include_str!("vectors/java-zstd.hex")),
        ][which];
        let header_bytes = if hex.starts_with("04224d18") { 0 } else { 2 * HEADER_BYTES };
        let digits = hex.trim().as_bytes()[header_bytes..].chunks(2);
        let mut payload: Vec<u8> =
            digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
        mutations.iter().for_each(|mutation| mutation.apply(&mut payload));
        let mut decompressor = Decompressor::new(OUTPUT_BYTES_MAX);
        if let Ok(output) = decompressor.decompress(codec, &payload) {
            prop_assert!(output.len() <= OUTPUT_BYTES_MAX);
        }
        prop_assert!(decompressor.buffer_bytes() <= OUTPUT_BYTES_MAX);
    }
}

#[test]
fn every_cut_of_an_answer_gives_only_whole_batches() {
    let first = build(Codec::Lz4, &[plain(0, 1, "a", "1")]).to_batch().bytes;
    let second = build(Codec::None, &[plain(0, 2, "b", "2")]).to_batch().bytes;
    let answer: Bytes = [first.as_ref(), second.as_ref()].concat().into();
    for length in 0..=answer.len() {
        let batches = Batches::new(answer.slice(..length));
        let too_large = batches.first_is_larger_than_answer();
        let count = batches.clone().filter(Result::is_ok).count();
        let failed = batches.clone().any(|batch| batch.is_err());
        let expected = if length < first.len() { 0 } else { 1 + usize::from(length == answer.len()) };
        assert_eq!(count, expected, "{length} bytes");
        let first_is_cut = (1..first.len()).contains(&length);
        assert_eq!(failed, first_is_cut, "{length} bytes");
        assert_eq!(too_large.is_some(), first_is_cut, "{length} bytes");
        if length >= 12 && first_is_cut {
            assert_eq!(too_large, Some(first.len()));
        }
    }
}
