//! The 61 bytes before a batch's records.

use super::codec::Codec;
use super::error::{BatchError, Flaw, Part};
use super::records::RecordView;

/// Size of a batch's header. The records follow.
pub const HEADER_BYTES: usize = 61;

/// `batch_length` counts what follows it: base offset and itself are outside.
pub(crate) const LENGTH_STARTS_AT: usize = 12;
/// The magic byte has this place in all message formats.
const MAGIC_AT: usize = 16;
/// Where the CRC32C lies.
pub(crate) const CRC_AT: usize = 17;
/// The CRC covers everything from the attributes on; base offset and leader epoch change on the way without
/// it.
pub(crate) const CRC_STARTS_AT: usize = 21;

const CODEC_MASK: i16 = 0x07;
pub(crate) const LOG_APPEND_TIME: i16 = 0x08;
pub(crate) const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
pub(crate) const DELETE_HORIZON: i16 = 0x40;

/// The fields of a batch's header, in the order of its bytes. Any values are possible; [`BatchHeader::parse`]
/// only gives consistent ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record that the batch was written with; compaction may have removed it.
    pub base_offset: i64,
    /// Bytes behind this field: 49 of header and the payload.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch; −1 from producers.
    pub partition_leader_epoch: i32,
    /// Message format, 2.
    pub magic: i8,
    /// CRC32C of everything from `attributes` to the end of the batch.
    pub crc: u32,
    /// Codec in the lowest three bits, then log-append time, transactional, control, delete horizon.
    pub attributes: i16,
    /// Offset of the last record less `base_offset`. Stays when compaction removes records.
    pub last_offset_delta: i32,
    /// Milliseconds that the records' timestamp deltas count from; the delete horizon when the batch has one.
    pub base_timestamp: i64,
    /// Greatest timestamp of the records; the time of all of them under log-append time.
    pub max_timestamp: i64,
    /// −1 when the producer was not idempotent.
    pub producer_id: i64,
    /// −1 when the producer was not idempotent.
    pub producer_epoch: i16,
    /// −1 when the producer was not idempotent.
    pub base_sequence: i32,
    /// Records in the payload; 0 when compaction left only the header.
    pub record_count: i32,
}

fn read<const SIZE: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; SIZE] {
    let mut field = [0; SIZE];
    field.copy_from_slice(&bytes[at..at + SIZE]);
    field
}

fn malformed(position: usize, flaw: Flaw) -> BatchError {
    BatchError::Malformed { position, part: Part::Batch, flaw }
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; what follows it is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        Self::parse_at(bytes, 0)
    }

    /// As [`BatchHeader::parse`], for bytes that begin at `position` of something larger: errors count from
    /// there.
    pub(crate) fn parse_at(bytes: &[u8], position: usize) -> Result<Self, BatchError> {
        check_magic(bytes, position)?;
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            let flaw = Flaw::Truncated { needed_bytes: HEADER_BYTES, available_bytes: bytes.len() };
            return Err(malformed(position, flaw));
        };
        let header = BatchHeader {
            base_offset: i64::from_be_bytes(read(bytes, 0)),
            batch_length: i32::from_be_bytes(read(bytes, 8)),
            partition_leader_epoch: i32::from_be_bytes(read(bytes, 12)),
            magic: i8::from_be_bytes(read(bytes, MAGIC_AT)),
            crc: u32::from_be_bytes(read(bytes, CRC_AT)),
            attributes: i16::from_be_bytes(read(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(read(bytes, 23)),
            base_timestamp: i64::from_be_bytes(read(bytes, 27)),
            max_timestamp: i64::from_be_bytes(read(bytes, 35)),
            producer_id: i64::from_be_bytes(read(bytes, 43)),
            producer_epoch: i16::from_be_bytes(read(bytes, 51)),
            base_sequence: i32::from_be_bytes(read(bytes, 53)),
            record_count: i32::from_be_bytes(read(bytes, 57)),
        };
        header.check(position)?;
        Ok(header)
    }

    fn check(&self, position: usize) -> Result<(), BatchError> {
        if self.base_offset < 0 {
            return Err(malformed(position, Flaw::BaseOffset(self.base_offset)));
        }
        if self.batch_length < (HEADER_BYTES - LENGTH_STARTS_AT) as i32 {
            return Err(malformed(position + 8, Flaw::BatchLength(self.batch_length)));
        }
        if self.last_offset_delta < 0 {
            return Err(malformed(position + 23, Flaw::LastOffsetDelta(self.last_offset_delta)));
        }
        if self.record_count < 0 {
            return Err(malformed(position + 57, Flaw::RecordCount(self.record_count)));
        }
        Ok(())
    }

    /// The header's bytes, with `crc` as it stands.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        bytes[16..17].copy_from_slice(&self.magic.to_be_bytes());
        bytes[17..21].copy_from_slice(&self.crc.to_be_bytes());
        bytes[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        bytes[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        bytes[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        bytes[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        bytes[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        bytes[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        bytes[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        bytes[57..61].copy_from_slice(&self.record_count.to_be_bytes());
        bytes
    }

    /// The CRC32C that belongs to these fields and `payload`. Reads the whole payload.
    pub fn compute_crc(&self, payload: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.encode()[CRC_STARTS_AT..]), payload)
    }

    /// Size of the whole batch, header included.
    pub fn total_bytes(&self) -> usize {
        LENGTH_STARTS_AT + self.batch_length.max(0) as usize
    }

    /// Size of what follows the header.
    pub fn payload_bytes(&self) -> usize {
        self.total_bytes().saturating_sub(HEADER_BYTES)
    }

    /// Offset of the last record that the batch was written with.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset to go on from behind this batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// How the payload is compressed.
    pub fn codec(&self) -> Result<Codec, BatchError> {
        Codec::from_id((self.attributes & CODEC_MASK) as u8)
    }

    /// Written inside a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// A commit or abort marker, or another note of the brokers to themselves: never for a user.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// The records' time is `max_timestamp`, the moment when the broker appended them; their deltas mean
    /// nothing.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// `base_timestamp` is the time from when tombstones may be deleted (KIP-534). The deltas count from it
    /// all the same, so base plus delta stays the record's time.
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    /// Compaction took records out. A broker refuses such a batch from a producer.
    pub fn has_gaps(&self) -> bool {
        i64::from(self.record_count) != i64::from(self.last_offset_delta) + 1
    }
}

/// Refuses old formats before anything else: their other fields mean something different. Bytes that end
/// before the magic pass.
fn check_magic(bytes: &[u8], position: usize) -> Result<(), BatchError> {
    match bytes.get(MAGIC_AT).map(|&byte| byte as i8) {
        None | Some(2) => Ok(()),
        Some(magic @ (0 | 1)) => Err(BatchError::OldMagic { position, magic }),
        Some(magic) => Err(BatchError::UnknownMagic { position, magic }),
    }
}

/// A record's time in milliseconds, as a consumer sees it. Wraps around for absurd values, as Java does.
pub fn record_timestamp(header: &BatchHeader, record: &RecordView<'_>) -> i64 {
    if header.is_log_append_time() {
        header.max_timestamp
    } else {
        header.base_timestamp.wrapping_add(record.timestamp_delta)
    }
}
