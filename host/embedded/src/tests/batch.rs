//! Record batches by hand: every header field can be wrong on purpose.

use bytes::{BufMut, Bytes, BytesMut};

/// Offset delta, key and value.
pub(crate) type PlannedRecord = (i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// What goes into a batch. The default is one sound record "v" without a producer.
#[derive(Debug, Clone)]
pub(crate) struct BatchPlan {
    pub(crate) base_offset: i64,
    pub(crate) magic: i8,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: Option<i32>,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: Option<i64>,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) record_count: Option<i32>,
    pub(crate) crc_xor: u32,
    pub(crate) records: Vec<PlannedRecord>,
}

impl Default for BatchPlan {
    fn default() -> BatchPlan {
        BatchPlan {
            base_offset: 0,
            magic: 2,
            attributes: 0,
            last_offset_delta: None,
            base_timestamp: 1_000,
            max_timestamp: None,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: None,
            crc_xor: 0,
            records: vec![(0, None, Some(b"v".to_vec()))],
        }
    }
}

impl BatchPlan {
    /// So many records with consecutive offsets.
    pub(crate) fn records(count: i64) -> BatchPlan {
        let records = (0..count).map(|delta| (delta, None, Some(format!("value {delta}").into_bytes())));
        BatchPlan { records: records.collect(), ..BatchPlan::default() }
    }

    pub(crate) fn producer(mut self, id: i64, epoch: i16, sequence: i32) -> BatchPlan {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, sequence);
        self
    }

    pub(crate) fn attributes(mut self, attributes: i16) -> BatchPlan {
        self.attributes = attributes;
        self
    }

    pub(crate) fn base_offset(mut self, base_offset: i64) -> BatchPlan {
        self.base_offset = base_offset;
        self
    }

    /// An end-of-transaction marker.
    pub(crate) fn marker(producer_id: i64, commit: bool) -> BatchPlan {
        let key = vec![0, 0, 0, u8::from(commit)];
        let records = vec![(0, Some(key), Some(vec![0; 6]))];
        BatchPlan { records, attributes: 0x30, ..BatchPlan::default() }.producer(producer_id, 0, -1)
    }

    pub(crate) fn build(&self) -> Bytes {
        let mut covered = BytesMut::new();
        let last_delta = self.records.last().map_or(-1, |record| i32::try_from(record.0).unwrap());
        covered.put_i16(self.attributes);
        covered.put_i32(self.last_offset_delta.unwrap_or(last_delta));
        covered.put_i64(self.base_timestamp);
        covered.put_i64(self.max_timestamp.unwrap_or(self.base_timestamp));
        covered.put_i64(self.producer_id);
        covered.put_i16(self.producer_epoch);
        covered.put_i32(self.base_sequence);
        covered.put_i32(self.record_count.unwrap_or(i32::try_from(self.records.len()).unwrap()));
        for (delta, key, value) in &self.records {
            let mut record = vec![0, 0];
            zigzag(&mut record, *delta);
            put_optional(&mut record, key.as_deref());
            put_optional(&mut record, value.as_deref());
            zigzag(&mut record, 0);
            let mut length = Vec::new();
            zigzag(&mut length, i64::try_from(record.len()).unwrap());
            covered.extend_from_slice(&length);
            covered.extend_from_slice(&record);
        }
        let mut batch = BytesMut::new();
        batch.put_i64(self.base_offset);
        batch.put_i32(i32::try_from(covered.len()).unwrap() + 9);
        batch.put_i32(-1);
        batch.put_i8(self.magic);
        batch.put_u32(crc32c::crc32c(&covered) ^ self.crc_xor);
        batch.extend_from_slice(&covered);
        batch.freeze()
    }
}

fn put_optional(record: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => zigzag(record, -1),
        Some(bytes) => {
            zigzag(record, i64::try_from(bytes.len()).unwrap());
            record.extend_from_slice(bytes);
        }
    }
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.push((raw & 0x7f) as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}
