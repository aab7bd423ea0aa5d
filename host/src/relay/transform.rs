//! Re-encoding of batches (with the chain's edits: `editing`): cut, close gaps, keep append times, recompress, merge, split. The only place in the relay
//! where a batch is taken apart; buffers and codec contexts are reused, so a batch costs no allocation of its own but
//! the result's.

mod editing;

use bytes::{Bytes, BytesMut};
use tidegate_wire::batch::{
    Batch, BatchBuilder, BatchError, BatchHeader, BuiltBatch, Codec, DECOMPRESSED_BYTES_MAX_DEFAULT,
    Decompressor, HEADER_BYTES, record_timestamp,
};

use self::editing::Tail;
pub(super) use self::editing::{EditCounts, EditError, Origin, Outcome, Wish};
use super::quarantine::QuarantineBuilder;
use crate::names::SourceOffset;
use crate::record::RecordSet;

/// A merged batch takes no further batch once it holds this many bytes before compression: small compressed batches may be
/// large ones inside.
pub const MERGED_UNCOMPRESSED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reused buffers of one worker.
#[derive(Debug)]
pub struct Transform {
    decompressor: Decompressor,
    builder: BatchBuilder,
    /// The records of the batch that is with the chain.
    records: RecordSet,
    /// What each of them looks like if nothing is changed, in the same order.
    tails: Vec<Tail>,
    quarantine: QuarantineBuilder,
}

impl Default for Transform {
    fn default() -> Self {
        Self {
            decompressor: Decompressor::new(DECOMPRESSED_BYTES_MAX_DEFAULT),
            builder: BatchBuilder::new(),
            records: RecordSet::default(),
            tails: Vec::new(),
            quarantine: QuarantineBuilder::default(),
        }
    }
}

impl Transform {
    /// Encodes the records of `batch` from offset `from` on anew: gapless, with create times, compressed by `codec` or
    /// as the source did. None when no record is left.
    pub fn rewrite(
        &mut self,
        batch: &Batch,
        from: SourceOffset,
        codec: Option<Codec>,
    ) -> Result<Option<BuiltBatch>, BatchError> {
        self.builder.start(codec.map_or_else(|| batch.header.codec(), Ok)?);
        let first_delta = from.0.saturating_sub(batch.header.base_offset);
        for record in self.decompressor.records(batch)? {
            let record = record?;
            if i64::from(record.offset_delta) >= first_delta {
                self.builder.push(&record, record_timestamp(&batch.header, &record));
            }
        }
        match self.builder.finish() {
            Err(BatchError::NothingToBuild) => Ok(None),
            built => built.map(Some),
        }
    }

    /// Joins batches of one codec into one, in order, and answers how many of them: it stops when it holds
    /// [`MERGED_UNCOMPRESSED_BYTES_MAX`]. Batches that need a rewrite for other reasons (gaps, append time) get it on the
    /// way, since every record is encoded anew.
    pub fn merge<'a>(
        &mut self,
        batches: impl Iterator<Item = &'a Batch>,
        codec: Codec,
    ) -> Result<(BuiltBatch, usize), BatchError> {
        self.builder.start(codec);
        let mut count = 0;
        for batch in batches {
            if count > 0 && self.builder.uncompressed_bytes() >= MERGED_UNCOMPRESSED_BYTES_MAX {
                break;
            }
            count += 1;
            for record in self.decompressor.records(batch)? {
                let record = record?;
                self.builder.push(&record, record_timestamp(&batch.header, &record));
            }
        }
        Ok((self.builder.finish()?, count))
    }

    /// Cuts a batch that the target finds too large into two halves by number of records. None when it holds a single
    /// record, which can't become smaller.
    pub fn split(
        &mut self,
        header: &BatchHeader,
        payload: &Bytes,
    ) -> Result<Option<[BuiltBatch; 2]>, BatchError> {
        if header.record_count < 2 {
            return Ok(None);
        }
        let batch = assemble(header, payload)?;
        let half = usize::try_from(header.record_count / 2).unwrap_or(1);
        let first = self.part(&batch, 0, half)?;
        let second = self.part(&batch, half, usize::MAX)?;
        Ok(Some([first, second]))
    }

    fn part(&mut self, batch: &Batch, skip: usize, take: usize) -> Result<BuiltBatch, BatchError> {
        self.builder.start(batch.header.codec()?);
        for record in self.decompressor.records(batch)?.skip(skip).take(take) {
            let record = record?;
            self.builder.push(&record, record_timestamp(&batch.header, &record));
        }
        self.builder.finish()
    }
}

/// A batch whose header and payload lie apart, in one piece again. Copies; only for batches that were refused.
fn assemble(header: &BatchHeader, payload: &Bytes) -> Result<Batch, BatchError> {
    let mut whole = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    whole.extend_from_slice(&header.encode());
    whole.extend_from_slice(payload);
    Batch::parse(whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: [(&[u8], Option<&[u8]>); 3] = [(b"a", Some(b"1")), (b"a", None), (b"b", Some(b""))];

    /// A batch of `count` records with values `value-N`, as it would lie in a log at `base_offset`.
    fn batch(base_offset: i64, count: usize, codec: Codec) -> Batch {
        let mut builder = BatchBuilder::new();
        builder.start(codec);
        for number in 0..count {
            let value = format!("value-{}", base_offset + number as i64);
            let key = (number % 2 == 0).then_some(&b"key"[..]);
            builder.push_parts(key, Some(value.as_bytes()), &HEADERS, 1_000 - number as i64);
        }
        let built = builder.finish().unwrap();
        let header = BatchHeader { base_offset, ..built.header };
        assemble(&header, &built.payload).unwrap()
    }

    type Record = (i32, i64, Option<Vec<u8>>, Option<Vec<u8>>, usize);

    fn records(header: &BatchHeader, payload: &Bytes) -> Vec<Record> {
        let batch = assemble(header, payload).unwrap();
        batch.check_crc().unwrap();
        let mut decompressor = Decompressor::new(DECOMPRESSED_BYTES_MAX_DEFAULT);
        let read = decompressor.records(&batch).unwrap().map(|record| {
            let record = record.unwrap();
            (
                record.offset_delta,
                record_timestamp(&batch.header, &record),
                record.key.map(<[u8]>::to_vec),
                record.value.map(<[u8]>::to_vec),
                record.headers.len(),
            )
        });
        read.collect()
    }

    const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    #[test]
    fn a_batch_that_starts_before_the_position_loses_only_what_was_delivered() {
        for codec in CODECS {
            let source = batch(100, 10, codec);
            let built = Transform::default().rewrite(&source, SourceOffset(107), None).unwrap().unwrap();
            assert_eq!(built.header.codec().unwrap(), codec);
            assert_eq!((built.header.record_count, built.header.last_offset_delta), (3, 2));
            let expected: Vec<Record> = records(&source.header, &source.payload())[7..]
                .iter()
                .enumerate()
                .map(|(delta, record)| (delta as i32, record.1, record.2.clone(), record.3.clone(), 3))
                .collect();
            assert_eq!(records(&built.header, &built.payload), expected);
        }
        let source = batch(100, 10, Codec::None);
        assert!(Transform::default().rewrite(&source, SourceOffset(110), None).unwrap().is_none());
    }

    #[test]
    fn append_time_becomes_each_records_create_time() {
        let plain = batch(0, 3, Codec::Lz4);
        let header =
            BatchHeader { attributes: plain.header.attributes | 0x08, max_timestamp: 77, ..plain.header };
        let source = assemble(&header, &plain.payload()).unwrap();
        let built = Transform::default().rewrite(&source, SourceOffset(0), None).unwrap().unwrap();
        assert!(!built.header.is_log_append_time());
        let times: Vec<i64> = records(&built.header, &built.payload).iter().map(|record| record.1).collect();
        assert_eq!(times, [77, 77, 77]);
    }

    #[test]
    fn merged_batches_keep_every_record_in_order() {
        for codec in CODECS {
            let parts = [batch(0, 3, codec), batch(3, 1, codec), batch(4, 5, codec)];
            let (built, count) = Transform::default().merge(parts.iter(), codec).unwrap();
            assert_eq!(count, 3);
            let expected: Vec<Record> = parts
                .iter()
                .flat_map(|part| records(&part.header, &part.payload()))
                .enumerate()
                .map(|(delta, record)| (delta as i32, record.1, record.2, record.3, record.4))
                .collect();
            assert_eq!(records(&built.header, &built.payload), expected);
            assert_eq!(built.header.max_timestamp, 1_000);
        }
    }

    #[test]
    fn a_split_keeps_every_record_and_a_single_record_does_not_split() {
        let source = batch(50, 5, Codec::Zstd);
        let [first, second] = Transform::default().split(&source.header, &source.payload()).unwrap().unwrap();
        let mut values: Vec<_> =
            records(&first.header, &first.payload).into_iter().map(|record| record.3).collect();
        values.extend(records(&second.header, &second.payload).into_iter().map(|record| record.3));
        let expected: Vec<_> =
            records(&source.header, &source.payload()).into_iter().map(|record| record.3).collect();
        assert_eq!(values, expected);
        let single = batch(0, 1, Codec::None);
        assert!(Transform::default().split(&single.header, &single.payload()).unwrap().is_none());
    }
}
