//! What happens to the batch at the head of a partition's queue: pass, merge or rewrite. Pure.
//!
//! Passing costs a header; merging costs a walk and, for compressed batches, a decompression and a compression. A
//! broker takes one batch per partition and request, so passing many small batches makes the number of requests the
//! bound: a backlog of small batches merges, a batch that waits alone passes (measured: `reference/batches.md`).

use tidegate_wire::batch::{BatchHeader, Codec};

use crate::names::SourceOffset;

/// Batches of at least this many bytes are never merged: they fill requests by themselves.
pub const MERGE_BELOW_BYTES: usize = 128 * 1024;

/// Compressed batches of at least this many records are never merged: taking them apart costs more than it saves.
pub const MERGE_COMPRESSED_BELOW_RECORDS: i32 = 512;

/// A merged batch is made of at most this many bytes, counted as they lie in the source. Kafka's default `max.message.bytes` is
/// 1 MiB + 12 bytes, so a merge of uncompressed batches fits a target with default settings.
pub const MERGED_BYTES_MAX: usize = 1000 * 1024;

/// Why a batch can't be passed as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// It begins before the position: records before it were delivered already.
    StartsBeforePosition,
    /// Compaction left gaps; a producer's batch must be gapless (`LogValidator`).
    Gaps,
    /// A producer must not send LogAppendTime; each record keeps the time that the source gave it.
    LogAppendTime,
    /// `compression.type` was set and is another codec.
    OtherCodec,
}

/// Why the batch must be re-encoded, if it must.
pub fn rewrite_reason(
    header: &BatchHeader,
    position: SourceOffset,
    compression: Option<Codec>,
) -> Option<Rewrite> {
    if header.base_offset < position.0 {
        return Some(Rewrite::StartsBeforePosition);
    }
    if header.has_gaps() {
        return Some(Rewrite::Gaps);
    }
    if header.is_log_append_time() {
        return Some(Rewrite::LogAppendTime);
    }
    match (compression, header.codec()) {
        (Some(wanted), Ok(codec)) if wanted != codec => Some(Rewrite::OtherCodec),
        _ => None,
    }
}

/// Whether the batch may become part of a merged one.
pub fn is_small(header: &BatchHeader) -> bool {
    let walk_is_cheap = match header.codec() {
        Ok(Codec::None) => true,
        Ok(_) => header.record_count < MERGE_COMPRESSED_BELOW_RECORDS,
        Err(_) => false,
    };
    walk_is_cheap && header.total_bytes() < MERGE_BELOW_BYTES
}

/// Whether `next` may join a merged batch that began with `first`.
pub fn may_join(first: &BatchHeader, next: &BatchHeader) -> bool {
    is_small(next) && first.codec().ok() == next.codec().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(bytes: i32, records: i32, attributes: i16) -> BatchHeader {
        BatchHeader {
            base_offset: 100,
            batch_length: bytes - 12,
            partition_leader_epoch: 0,
            magic: 2,
            crc: 0,
            attributes,
            last_offset_delta: records - 1,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: records,
        }
    }

    #[test]
    fn each_reason_to_rewrite_is_seen() {
        let check = |header: &BatchHeader, position, compression, expected| {
            assert_eq!(rewrite_reason(header, SourceOffset(position), compression), expected);
        };
        let plain = header(1000, 10, 0);
        check(&plain, 100, None, None);
        check(&plain, 101, None, Some(Rewrite::StartsBeforePosition));
        check(&BatchHeader { last_offset_delta: 20, ..plain }, 100, None, Some(Rewrite::Gaps));
        check(&header(1000, 10, 0x08), 100, None, Some(Rewrite::LogAppendTime));
        check(&plain, 100, Some(Codec::Zstd), Some(Rewrite::OtherCodec));
        check(&plain, 100, Some(Codec::None), None);
    }

    #[test]
    fn only_small_batches_of_one_codec_merge() {
        assert!(is_small(&header(16 * 1024, 16, 0)));
        assert!(!is_small(&header(MERGE_BELOW_BYTES as i32, 16, 0)));
        assert!(is_small(&header(16 * 1024, 16, 3)));
        assert!(!is_small(&header(16 * 1024, MERGE_COMPRESSED_BELOW_RECORDS, 3)));
        assert!(may_join(&header(1000, 1, 3), &header(1000, 1, 3)));
        assert!(!may_join(&header(1000, 1, 3), &header(1000, 1, 0)));
    }
}
