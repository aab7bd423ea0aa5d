//! What lies in a cluster's logs, as digests: of every record, of every partition, of all.
//!
//! A record's digest covers partition, key, value, headers and timestamp, null told from empty. Offsets are left out: it is
//! the order that counts. The batches are decoded here anew; nothing that the relay knows is used.

use anyhow::Context as _;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tidegate_wire::batch::{
    Batch, BatchHeader, DECOMPRESSED_BYTES_MAX_DEFAULT, Decompressor, RecordView, record_timestamp,
};

/// Digits of a checksum that are shown.
const CHECKSUM_DIGITS: usize = 16;

/// The beginning of a record's digest: enough to find a difference, small enough to keep for each.
pub(super) type Fingerprint = u64;

/// One partition.
#[derive(Debug)]
pub(super) struct PartitionDigest {
    /// Offset of the first record that counts.
    pub(super) first_offset: i64,
    /// Of each record, in the log's order.
    pub(super) fingerprints: Vec<Fingerprint>,
}

/// One side.
#[derive(Debug)]
pub(super) struct SideDigest {
    pub(super) partitions: Vec<PartitionDigest>,
    /// Over all records, by partition and in the log's order; hexadecimal.
    pub(super) checksum: String,
}

impl SideDigest {
    /// Reads the batches of every partition; records before the partition's first offset don't count.
    pub(super) fn read(
        logs: impl IntoIterator<Item = Vec<Bytes>>,
        first_offsets: &[i64],
    ) -> anyhow::Result<SideDigest> {
        let mut reader =
            Reader { decompressor: Decompressor::new(DECOMPRESSED_BYTES_MAX_DEFAULT), all: Sha256::new() };
        let mut partitions = Vec::new();
        for ((partition, log), first_offset) in (0..).zip(logs).zip(first_offsets) {
            partitions.push(reader.read(partition, log, *first_offset)?);
        }
        let digest: [u8; 32] = reader.all.finalize().into();
        Ok(SideDigest { partitions, checksum: hexadecimal(&digest) })
    }

    pub(super) fn record_count(&self) -> usize {
        self.partitions.iter().map(|partition| partition.fingerprints.len()).sum()
    }
}

struct Reader {
    decompressor: Decompressor,
    all: Sha256,
}

impl Reader {
    fn read(
        &mut self,
        partition: i32,
        log: Vec<Bytes>,
        first_offset: i64,
    ) -> anyhow::Result<PartitionDigest> {
        let mut fingerprints = Vec::new();
        for bytes in log {
            let batch = Batch::parse(bytes).with_context(|| format!("partition {partition}"))?;
            let header = batch.header;
            self.read_batch(partition, &batch, first_offset, &mut fingerprints)
                .with_context(|| format!("partition {partition}, batch at offset {}", header.base_offset))?;
        }
        Ok(PartitionDigest { first_offset, fingerprints })
    }

    fn read_batch(
        &mut self,
        partition: i32,
        batch: &Batch,
        first_offset: i64,
        fingerprints: &mut Vec<Fingerprint>,
    ) -> anyhow::Result<()> {
        if batch.header.is_control() || batch.header.next_offset() <= first_offset {
            return Ok(());
        }
        batch.check_crc()?;
        for record in self.decompressor.records(batch)? {
            let record = record?;
            if batch.header.base_offset + i64::from(record.offset_delta) < first_offset {
                continue;
            }
            let digest = record_digest(partition, &batch.header, &record);
            self.all.update(digest);
            fingerprints.push(digest.first_chunk().map_or(0, |start| Fingerprint::from_be_bytes(*start)));
        }
        Ok(())
    }
}

fn record_digest(partition: i32, header: &BatchHeader, record: &RecordView<'_>) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(partition.to_be_bytes());
    digest.update(record_timestamp(header, record).to_be_bytes());
    add_nullable(&mut digest, record.key);
    add_nullable(&mut digest, record.value);
    digest.update((record.headers.len() as u64).to_be_bytes());
    for (name, value) in record.headers {
        add_nullable(&mut digest, Some(name));
        add_nullable(&mut digest, value);
    }
    digest.finalize().into()
}

/// With the length before it, so that no two records write the same bytes.
fn add_nullable(digest: &mut Sha256, bytes: Option<&[u8]>) {
    let length = bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    digest.update(length.to_be_bytes());
    digest.update(bytes.unwrap_or_default());
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).take(CHECKSUM_DIGITS / 2).collect()
}
