//! A source batch's header made fit for a produce request, without a look at its payload.

use super::header::{
    BatchHeader, CRC_AT, CRC_STARTS_AT, DELETE_HORIZON, HEADER_BYTES, LOG_APPEND_TIME, TRANSACTIONAL,
};

/// Who writes a batch: Kafka's idempotence (KIP-98).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerFields {
    /// From InitProducerId; −1 without idempotence.
    pub producer_id: i64,
    /// From InitProducerId; −1 without idempotence.
    pub producer_epoch: i16,
    /// Sequence number of the batch's first record; −1 without idempotence.
    pub base_sequence: i32,
}

impl ProducerFields {
    /// A producer without idempotence.
    pub const NONE: ProducerFields =
        ProducerFields { producer_id: -1, producer_epoch: -1, base_sequence: -1 };
}

/// The header under which a batch is produced to a target: offset 0, no leader epoch, the given producer, and
/// none of the marks that only a broker may set or that belong to the source's transactions. What it does not
/// do: close gaps, or keep the times of a log-append-time batch; such batches are to be rebuilt.
///
/// The CRC is patched, not computed: a CRC is linear, so the difference of the old and the new header, moved
/// over the payload's length, is the difference of the checksums. The payload is not read, and damage to it
/// stays detectable.
pub fn produce_header(header: &BatchHeader, fields: ProducerFields) -> [u8; HEADER_BYTES] {
    let produced = BatchHeader {
        base_offset: 0,
        partition_leader_epoch: -1,
        attributes: header.attributes & !(TRANSACTIONAL | DELETE_HORIZON | LOG_APPEND_TIME),
        producer_id: fields.producer_id,
        producer_epoch: fields.producer_epoch,
        base_sequence: fields.base_sequence,
        ..*header
    };
    let mut bytes = produced.encode();
    let difference =
        crc32c::crc32c(&header.encode()[CRC_STARTS_AT..]) ^ crc32c::crc32c(&bytes[CRC_STARTS_AT..]);
    let crc = header.crc ^ shift(difference, header.payload_bytes());
    bytes[CRC_AT..CRC_STARTS_AT].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// CRC32C's polynomial with its bits reversed, as is usual: the highest power lies in the lowest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The polynomial 1 in that order.
const ONE: u32 = 1 << 31;

/// Product of two polynomials modulo CRC32C's.
const fn multiply(left: u32, right: u32) -> u32 {
    let mut left = left;
    let mut right = right;
    let mut product = 0;
    while left != 0 {
        if left & ONE != 0 {
            product ^= right;
        }
        left <<= 1;
        right = if right & 1 != 0 { (right >> 1) ^ POLYNOMIAL } else { right >> 1 };
    }
    product
}

/// `POWERS[place][digit]` is x^(8 · digit · 256^place): what a checksum is multiplied by when so many bytes
/// follow. A length of 32 bits is four digits, so four products do.
static POWERS: [[u32; 256]; 4] = powers();

const fn powers() -> [[u32; 256]; 4] {
    let mut table = [[ONE; 256]; 4];
    let mut step = ONE >> 8;
    let mut place = 0;
    while place < 4 {
        let mut digit = 1;
        while digit < 256 {
            table[place][digit] = multiply(table[place][digit - 1], step);
            digit += 1;
        }
        step = multiply(table[place][255], step);
        place += 1;
    }
    table
}

/// A checksum's difference after `length_bytes` equal bytes were appended on both sides.
fn shift(difference: u32, length_bytes: usize) -> u32 {
    let digits = (length_bytes as u32).to_le_bytes();
    digits.iter().zip(&POWERS).fold(difference, |moved, (&digit, powers)| match digit {
        0 => moved,
        digit => multiply(moved, powers[usize::from(digit)]),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_header(payload: &[u8]) -> BatchHeader {
        let mut header = BatchHeader {
            base_offset: 123_456,
            batch_length: 49 + payload.len() as i32,
            partition_leader_epoch: 7,
            magic: 2,
            crc: 0,
            attributes: 0x7b,
            last_offset_delta: 9,
            base_timestamp: 1_700_000_000_000,
            max_timestamp: 1_700_000_000_009,
            producer_id: 4_000,
            producer_epoch: 3,
            base_sequence: 55,
            record_count: 10,
        };
        header.crc = header.compute_crc(payload);
        header
    }

    #[test]
    fn only_what_belongs_to_the_producer_changes() {
        let header = some_header(b"payload");
        let fields = ProducerFields { producer_id: 9, producer_epoch: 1, base_sequence: 77 };
        let produced = BatchHeader::parse(&produce_header(&header, fields)).unwrap();
        let expected = BatchHeader {
            base_offset: 0,
            partition_leader_epoch: -1,
            attributes: 0x23,
            producer_id: 9,
            producer_epoch: 1,
            base_sequence: 77,
            crc: produced.crc,
            ..header
        };
        assert_eq!(produced, expected);
        assert_eq!(produced.crc, produced.compute_crc(b"payload"));
    }

    #[test]
    fn lengths_of_every_digit_are_shifted_right() {
        // The crate's own combination is slow but independent: crc(a ‖ b) from crc(a), crc(b) and the length
        // of b.
        for length in [0, 1, 255, 256, 257, 65_535, 65_536, 1 << 20, (1 << 24) + 3, i32::MAX as usize] {
            let expected = crc32c::crc32c_combine(0x1234_5678, 0, length);
            assert_eq!(shift(0x1234_5678, length), expected, "{length} bytes");
        }
    }

    #[test]
    fn damage_of_the_payload_stays_detectable() {
        let header = some_header(b"payload");
        let produced = BatchHeader::parse(&produce_header(&header, ProducerFields::NONE)).unwrap();
        assert_ne!(produced.crc, produced.compute_crc(b"paYload"));
    }

    proptest! {
        #[test]
        fn patched_crc_is_the_computed_one(
            payload in proptest::collection::vec(any::<u8>(), 0..2_000),
            producer_id: i64, producer_epoch: i16, base_sequence: i32, attributes: i16,
        ) {
            let mut header = BatchHeader { attributes, ..some_header(&payload) };
            header.crc = header.compute_crc(&payload);
            let bytes = produce_header(&header, ProducerFields { producer_id, producer_epoch, base_sequence });
            let produced = BatchHeader::parse(&bytes).unwrap();
            prop_assert_eq!(produced.crc, produced.compute_crc(&payload));
        }
    }
}
