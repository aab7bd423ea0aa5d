//! The 61 bytes in front of a record batch: reading them, and the few fields that a broker writes itself.
//!
//! This is deliberately not tidegate-wire's code: the broker judges what tidegate-wire sends, and a judge
//! that shares the defendant's arithmetic finds nothing.

use bytes::{Buf, Bytes, BytesMut};

/// Length of a v2 batch header.
pub(crate) const HEADER_BYTES: usize = 61;
/// Base offset and length: what the length field does not count.
pub(crate) const LENGTH_PREFIX_BYTES: usize = 12;
/// The CRC covers everything from the attributes on.
const CRC_START: usize = 21;
const CRC_AT: usize = 17;
const LEADER_EPOCH_AT: usize = 12;
const MAX_TIMESTAMP_AT: usize = 35;

const LOG_APPEND_BIT: i16 = 0x08;
const TRANSACTIONAL_BIT: i16 = 0x10;
const CONTROL_BIT: i16 = 0x20;
const CODEC_MASK: i16 = 0x07;

/// Codec number of zstd, which old request versions may not carry.
pub(crate) const CODEC_ZSTD: i16 = 4;

/// A parsed batch header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) base_offset: i64,
    pub(crate) batch_length: i32,
    pub(crate) magic: i8,
    pub(crate) crc: u32,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) record_count: i32,
}

impl Header {
    /// Reads a header; `None` if there are not enough bytes for one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Header> {
        let mut rest = bytes.get(..HEADER_BYTES)?;
        let base_offset = rest.get_i64();
        let batch_length = rest.get_i32();
        let _leader_epoch = rest.get_i32();
        Some(Header {
            base_offset,
            batch_length,
            magic: rest.get_i8(),
            crc: rest.get_u32(),
            attributes: rest.get_i16(),
            last_offset_delta: rest.get_i32(),
            base_timestamp: rest.get_i64(),
            max_timestamp: rest.get_i64(),
            producer_id: rest.get_i64(),
            producer_epoch: rest.get_i16(),
            base_sequence: rest.get_i32(),
            record_count: rest.get_i32(),
        })
    }

    /// Length of the whole batch; `None` if the length field makes no sense.
    pub(crate) fn total_bytes(&self) -> Option<usize> {
        let length = usize::try_from(self.batch_length).ok()?;
        (length + LENGTH_PREFIX_BYTES >= HEADER_BYTES).then_some(length + LENGTH_PREFIX_BYTES)
    }

    pub(crate) fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    pub(crate) fn codec(&self) -> i16 {
        self.attributes & CODEC_MASK
    }

    pub(crate) fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_BIT != 0
    }

    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Sequence number of the batch's last record, which wraps from 2³¹−1 to 0.
    pub(crate) fn last_sequence(&self) -> i32 {
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        i32::try_from(last % (i64::from(i32::MAX) + 1)).unwrap_or(i32::MAX)
    }
}

/// What a broker writes into a batch before it keeps it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) base_offset: i64,
    pub(crate) leader_epoch: i32,
    /// Set for a topic with `message.timestamp.type=LogAppendTime`.
    pub(crate) append_time_ms: Option<i64>,
}

/// A copy of the batch with the stamp in it. Base offset and leader epoch lie outside the CRC; an append time
/// does not, so the CRC is computed anew then.
pub(crate) fn stamped(batch: &[u8], stamp: Stamp) -> Bytes {
    let mut bytes = BytesMut::from(batch);
    bytes[..8].copy_from_slice(&stamp.base_offset.to_be_bytes());
    bytes[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4].copy_from_slice(&stamp.leader_epoch.to_be_bytes());
    if let Some(now_ms) = stamp.append_time_ms {
        bytes[CRC_START + 1] |= LOG_APPEND_BIT as u8;
        bytes[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&now_ms.to_be_bytes());
        let crc = crc_of(&bytes);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    }
    bytes.freeze()
}

/// The CRC32C that a whole batch should carry.
pub(crate) fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[CRC_START..])
}
