//! Builds batches: from records of other batches, copied as they lie, or from parts.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{Codec, Compressor};
use super::error::BatchError;
use super::header::{BatchHeader, HEADER_BYTES, LENGTH_STARTS_AT};
use super::iterate::Batch;
use super::patch::ProducerFields;
use super::pool::{KEPT_BUFFER_BYTES_MAX, PayloadPool};
use super::records::RecordView;
use super::varint::{Scratch, VARINT_BYTES_MAX, VARLONG_BYTES_MAX, push_varint, varint_bytes};

/// The batch's length is 32 bits and counts 49 bytes of header. Holds for the records before and after
/// compression: a reader has to hold them in a buffer of a 32 bit size.
const PAYLOAD_BYTES_MAX: usize = i32::MAX as usize - (HEADER_BYTES - LENGTH_STARTS_AT);
/// What stands before a record's tail: length, attributes, timestamp delta, offset delta.
const RECORD_START_BYTES_MAX: usize = VARINT_BYTES_MAX + 1 + VARLONG_BYTES_MAX + VARINT_BYTES_MAX;

/// A batch that a producer may send, once [`produce_header`](super::produce_header) has put the producer in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltBatch {
    /// Base offset 0, no leader epoch, no producer, create time; its CRC fits these fields.
    pub header: BatchHeader,
    /// What follows the header. Its memory goes back to the builder with the last clone.
    pub payload: Bytes,
}

impl BuiltBatch {
    /// Header and payload in one piece, as a log holds them. Copies the payload.
    pub fn to_batch(&self) -> Batch {
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + self.payload.len());
        bytes.put_slice(&self.header.encode());
        bytes.put_slice(&self.payload);
        Batch { header: self.header, bytes: bytes.freeze() }
    }
}

/// Gathers records into a batch; begins anew with [`BatchBuilder::start`]. Keeps its buffers and the codecs'
/// state, so there should be one per worker.
#[derive(Debug)]
pub struct BatchBuilder {
    codec: Codec,
    records: Vec<u8>,
    record_count: usize,
    base_timestamp: i64,
    max_timestamp: i64,
    /// A record did not fit any more; `finish` says so.
    overflowed: bool,
    payload_bytes_max: usize,
    compressor: Compressor,
    /// Compressed bytes before their size is known, then copied to a payload of that size: a payload that is
    /// on its way should not hold the memory of the uncompressed records.
    compressed: Vec<u8>,
    /// The variable part of a record from parts.
    parts: Vec<u8>,
    pool: PayloadPool,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// Empty, for [`Codec::None`].
    pub fn new() -> Self {
        BatchBuilder {
            codec: Codec::None,
            records: Vec::new(),
            record_count: 0,
            base_timestamp: 0,
            max_timestamp: 0,
            overflowed: false,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            compressor: Compressor::default(),
            compressed: Vec::new(),
            parts: Vec::new(),
            pool: PayloadPool::default(),
        }
    }

    /// Begins a batch; what was pushed and not finished is forgotten.
    pub fn start(&mut self, codec: Codec) {
        self.codec = codec;
        self.records.clear();
        self.record_count = 0;
        self.overflowed = false;
    }

    /// Adds a record with the next offset and this time. Key, value and headers are copied as they lie.
    #[inline]
    pub fn push(&mut self, record: &RecordView<'_>, timestamp_ms: i64) {
        self.push_tail(record.attributes, record.tail, timestamp_ms);
    }

    /// Adds a record from its parts: see [`RecordView`] for them.
    pub fn push_parts(
        &mut self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
        timestamp_ms: i64,
    ) {
        let mut tail = std::mem::take(&mut self.parts);
        tail.clear();
        push_nullable(&mut tail, key);
        push_nullable(&mut tail, value);
        push_varint(&mut tail, headers.len() as i64);
        for (name, value) in headers {
            push_nullable(&mut tail, Some(name));
            push_nullable(&mut tail, *value);
        }
        self.push_tail(0, &tail, timestamp_ms);
        self.parts = kept(tail);
    }

    /// Adds a record from what a [`RecordView`] has of it when the view itself is gone: its attributes and its tail. Other
    /// bytes than a view's tail make a batch that nobody can read.
    #[inline]
    pub fn push_tail(&mut self, attributes: u8, tail: &[u8], timestamp_ms: i64) {
        if self.records.len() + tail.len() + RECORD_START_BYTES_MAX > self.payload_bytes_max {
            self.overflowed = true;
            return;
        }
        if self.record_count == 0 {
            self.base_timestamp = timestamp_ms;
            self.max_timestamp = timestamp_ms;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        let timestamp_delta = timestamp_ms.wrapping_sub(self.base_timestamp);
        let offset_delta = self.record_count as i64;
        let body_bytes = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + tail.len();
        let mut start = Scratch::<RECORD_START_BYTES_MAX>::new();
        start.write_varint(body_bytes as i64);
        start.write_byte(attributes);
        start.write_varint(timestamp_delta);
        start.write_varint(offset_delta);
        self.records.extend_from_slice(start.as_slice());
        self.records.extend_from_slice(tail);
        self.record_count += 1;
    }

    /// Records pushed since the start.
    pub fn record_count(&self) -> i32 {
        // A record takes at least 7 bytes of a payload whose size fits 31 bits.
        self.record_count as i32
    }

    /// Bytes of the records pushed since the start, before compression.
    pub fn uncompressed_bytes(&self) -> usize {
        self.records.len()
    }

    /// Compresses and gives the batch, then begins anew with the same codec. In an error the records are
    /// forgotten too.
    pub fn finish(&mut self) -> Result<BuiltBatch, BatchError> {
        let built = self.build();
        self.start(self.codec);
        self.records = kept(std::mem::take(&mut self.records));
        self.compressed = kept(std::mem::take(&mut self.compressed));
        built
    }

    fn build(&mut self) -> Result<BuiltBatch, BatchError> {
        if self.overflowed {
            return Err(BatchError::TooLargeToBuild { limit_bytes: self.payload_bytes_max });
        }
        if self.record_count == 0 {
            return Err(BatchError::NothingToBuild);
        }
        let payload = self.take_payload()?;
        let mut header = self.header(payload.len())?;
        header.crc = header.compute_crc(&payload);
        Ok(BuiltBatch { header, payload: self.pool.payload(payload) })
    }

    fn take_payload(&mut self) -> Result<Vec<u8>, BatchError> {
        let mut payload = self.pool.take();
        if self.codec == Codec::None {
            std::mem::swap(&mut payload, &mut self.records);
            return Ok(payload);
        }
        self.compressed.clear();
        self.compressor.compress(self.codec, &self.records, &mut self.compressed)?;
        payload.extend_from_slice(&self.compressed);
        Ok(payload)
    }

    fn header(&self, payload_bytes: usize) -> Result<BatchHeader, BatchError> {
        if payload_bytes > self.payload_bytes_max {
            return Err(BatchError::TooLargeToBuild { limit_bytes: self.payload_bytes_max });
        }
        let nobody = ProducerFields::NONE;
        Ok(BatchHeader {
            base_offset: 0,
            batch_length: (HEADER_BYTES - LENGTH_STARTS_AT + payload_bytes) as i32,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: i16::from(self.codec.id()),
            last_offset_delta: self.record_count() - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: nobody.producer_id,
            producer_epoch: nobody.producer_epoch,
            base_sequence: nobody.base_sequence,
            record_count: self.record_count(),
        })
    }
}

fn push_nullable(output: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => push_varint(output, -1),
        Some(bytes) => {
            push_varint(output, bytes.len() as i64);
            output.extend_from_slice(bytes);
        }
    }
}

/// The buffer, or a new one where its memory is too much to keep.
fn kept(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_BUFFER_BYTES_MAX { Vec::new() } else { buffer }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A builder whose batches take 1000 bytes instead of 2 GiB.
    fn small() -> BatchBuilder {
        BatchBuilder { payload_bytes_max: 1000, ..BatchBuilder::new() }
    }

    #[test]
    fn batch_limit_obeyed() {
        let mut builder = small();
        builder.push_parts(None, Some(&[0; 1000 - RECORD_START_BYTES_MAX - 4]), &[], 1);
        assert_eq!(builder.finish().unwrap().header.record_count, 1);
    }

    #[test]
    fn batch_limit_exceeded() {
        let mut builder = small();
        builder.push_parts(None, Some(b"fits"), &[], 1);
        builder.push_parts(None, Some(&[0; 1000]), &[], 1);
        assert_eq!(builder.record_count(), 1);
        let error = builder.finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not build a record batch of more than 1000 bytes; finish it earlier"
        );
        builder.push_parts(None, Some(b"fits"), &[], 1);
        assert!(builder.finish().is_ok(), "an error is over with the batch");
    }

    #[test]
    fn a_compressed_size_over_the_limit_is_refused() {
        // gzip's frame alone makes bytes that can't be compressed longer than they were.
        let mut noise = [0u8; 1000 - RECORD_START_BYTES_MAX - 4];
        let mut state = 1u32;
        noise.fill_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let mut builder = small();
        builder.start(Codec::Gzip);
        builder.push_parts(None, Some(&noise), &[], 1);
        let error = builder.finish().unwrap_err();
        assert_eq!(error, BatchError::TooLargeToBuild { limit_bytes: 1000 });
    }
}
