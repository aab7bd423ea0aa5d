//! What a broker asks of the records of one partition in a Produce request before it looks at its log:
//! Kafka's `ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords` and
//! `LogValidator.validateBatch`. Pure; does not open compressed records. The codes were compared with a 4.3.1
//! broker's.
//!
//! In three points it is stricter than Kafka, which would repair or swallow what only a faulty client sends:
//! the bit for LogAppendTime is refused in every topic, the header's largest timestamp is taken at its word,
//! and inner offsets of uncompressed batches must count up as those of compressed ones.

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::header::{self, CODEC_ZSTD, HEADER_BYTES, Header};
use crate::refusal::Refusal;

/// First Produce version that may carry zstd (KIP-110).
const ZSTD_PRODUCE_VERSION: i16 = 7;

/// A batch that passed every check that needs no log.
#[derive(Debug, Clone)]
pub(crate) struct CheckedBatch {
    pub(crate) header: Header,
    pub(crate) bytes: Bytes,
}

/// Exactly one sound client batch, or the refusal that a real broker gives.
pub(crate) fn check_records(records: Option<Bytes>, produce_version: i16) -> Result<CheckedBatch, Refusal> {
    let bytes = records.unwrap_or_default();
    if bytes.is_empty() {
        return Err(one_batch_only(produce_version));
    }
    let Some(header) = Header::parse(&bytes) else { return Err(one_batch_only(produce_version)) };
    if header.magic > 2 {
        return Err(corrupt(&format!("invalid magic found in record: {}", header.magic)));
    }
    if header.magic < 2 {
        return Err(Refusal::new(
            ResponseError::InvalidRecord,
            format!(
                "Produce requests with version {produce_version} are only allowed to contain record batches with magic version 2"
            ),
        ));
    }
    let total = header.total_bytes().ok_or_else(|| corrupt("the batch's length field is too small"))?;
    // Shorter: there is something behind it. Longer: Kafka finds no whole batch at all.
    if total != bytes.len() {
        return Err(one_batch_only(produce_version));
    }
    if header.is_transactional() {
        return Err(Refusal::new(
            ResponseError::TransactionalIdAuthorizationFailed,
            "this broker has no transaction coordinator, so there is no transaction that the batch could belong to",
        ));
    }
    if header.crc != header::crc_of(&bytes) {
        return Err(corrupt("the batch's CRC does not match its bytes"));
    }
    check_codec(&header, produce_version)?;
    check_header(&header)?;
    check_plain_records(&header, &bytes)?;
    Ok(CheckedBatch { header, bytes })
}

fn one_batch_only(version: i16) -> Refusal {
    Refusal::new(
        ResponseError::InvalidRecord,
        format!("Produce requests with version {version} must have exactly one record batch per partition"),
    )
}

fn corrupt(message: &str) -> Refusal {
    Refusal::new(ResponseError::CorruptMessage, message)
}

fn invalid(message: String) -> Refusal {
    Refusal::new(ResponseError::InvalidRecord, message)
}

fn check_codec(header: &Header, produce_version: i16) -> Result<(), Refusal> {
    let codec = header.codec();
    if codec > CODEC_ZSTD {
        return Err(Refusal::new(
            ResponseError::UnknownServerError,
            format!("unknown compression type id: {codec}"),
        ));
    }
    if codec == CODEC_ZSTD && produce_version < ZSTD_PRODUCE_VERSION {
        return Err(Refusal::new(
            ResponseError::UnsupportedCompressionType,
            format!(
                "Produce requests with version {produce_version} are not allowed to use ZStandard compression"
            ),
        ));
    }
    Ok(())
}

fn check_header(header: &Header) -> Result<(), Refusal> {
    if header.base_offset != 0 {
        return Err(invalid(format!(
            "the base offset of a produced batch should be 0, but it is {}",
            header.base_offset
        )));
    }
    if header.last_offset_delta < 0 || header.record_count <= 0 {
        return Err(invalid(format!(
            "batch with {} records and last offset delta {}: a client may not produce an empty batch",
            header.record_count, header.last_offset_delta
        )));
    }
    if i64::from(header.record_count) != i64::from(header.last_offset_delta) + 1 {
        return Err(invalid(format!(
            "batch with {} records has last offset delta {}: a produced batch may not have gaps",
            header.record_count, header.last_offset_delta
        )));
    }
    if header.is_control() {
        return Err(invalid("clients are not allowed to write control records".to_owned()));
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return Err(invalid(format!(
            "invalid sequence number {} in a batch of producer id {}",
            header.base_sequence, header.producer_id
        )));
    }
    if header.is_log_append_time() {
        return Err(Refusal::new(
            ResponseError::InvalidTimestamp,
            "a producer should not set the timestamp type to LogAppendTime",
        ));
    }
    Ok(())
}

/// Walks uncompressed records as far as lengths and offset deltas go. Compressed ones are taken on trust.
fn check_plain_records(header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
    if header.codec() != 0 {
        return Ok(());
    }
    let mut rest = &bytes[HEADER_BYTES..];
    for expected in 0..header.record_count {
        let length = zigzag(&mut rest).and_then(|length| usize::try_from(length).ok());
        let mut record = match length {
            Some(length) if length <= rest.len() => &rest[..length],
            _ => return Err(invalid(format!("record {expected} of the batch is longer than the batch"))),
        };
        rest = &rest[record.len()..];
        let delta = take_record_start(&mut record);
        if delta != Some(i64::from(expected)) {
            return Err(invalid(format!(
                "record {expected} of the batch has no offset delta {expected}: inner offsets must count up from 0"
            )));
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(invalid(format!("{} bytes are left over behind the batch's last record", rest.len())))
}

/// Attributes and timestamp delta are skipped; the offset delta is what we want.
fn take_record_start(record: &mut &[u8]) -> Option<i64> {
    let (_attributes, after) = record.split_first()?;
    *record = after;
    zigzag(record)?;
    zigzag(record)
}

/// Kafka's signed variable-length integer, at most 10 bytes.
fn zigzag(rest: &mut &[u8]) -> Option<i64> {
    let mut raw = 0_u64;
    for index in 0..10 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        raw |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((raw >> 1) as i64 ^ -((raw & 1) as i64));
        }
    }
    None
}
