//! A look into a broker's own segment files: how its batches really lie there.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::kafka::KafkaCluster;

const HEADER_BYTES: usize = 61;

/// What the header of a batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBatch {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Size in the log, header included.
    pub bytes: usize,
    /// Codec, timestamp type, transactional, control: the attribute bits.
    pub attributes: i16,
    /// Last offset less the base offset.
    pub last_offset_delta: i32,
    /// Records that are there; fewer than the offsets if the cleaner took some.
    pub record_count: i32,
}

impl StoredBatch {
    /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    pub fn codec(&self) -> i16 {
        self.attributes & 7
    }

    /// Whether records are missing between the first and the last.
    pub fn has_gaps(&self) -> bool {
        self.record_count != self.last_offset_delta + 1
    }
}

/// All batches of a partition, oldest first.
///
/// # Errors
/// When the files can't be read or hold no batches of format 2.
pub fn stored_batches(
    cluster: &KafkaCluster,
    topic: &str,
    partition: i32,
) -> anyhow::Result<Vec<StoredBatch>> {
    let directory = cluster.log_directory().join(format!("{topic}-{partition}"));
    let mut segments: Vec<_> = fs::read_dir(&directory)
        .with_context(|| format!("no folder {}", directory.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    segments.sort();
    let mut batches = Vec::new();
    for segment in segments {
        read_segment(&segment, &mut batches).with_context(|| segment.display().to_string())?;
    }
    Ok(batches)
}

fn read_segment(segment: &Path, batches: &mut Vec<StoredBatch>) -> anyhow::Result<()> {
    let bytes = fs::read(segment)?;
    let mut rest = &bytes[..];
    // A preallocated or just being written end has no whole batch.
    while rest.len() >= HEADER_BYTES {
        let length = 12 + usize::try_from(i32::from_be_bytes(field(rest, 8)))?;
        if length <= 12 || length > rest.len() {
            break;
        }
        ensure!(rest[16] == 2, "a batch of format {}", rest[16]);
        batches.push(StoredBatch {
            base_offset: i64::from_be_bytes(field(rest, 0)),
            bytes: length,
            attributes: i16::from_be_bytes(field(rest, 21)),
            last_offset_delta: i32::from_be_bytes(field(rest, 23)),
            record_count: i32::from_be_bytes(field(rest, 57)),
        });
        rest = &rest[length..];
    }
    Ok(())
}

/// The bytes at a place of a header that is whole.
fn field<const BYTES: usize>(header: &[u8], place: usize) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(&header[place..place + BYTES]);
    bytes
}
