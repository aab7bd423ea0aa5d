//! The five codecs of a batch, each by its number, and the decompressor.
//!
//! Formats: gzip (RFC 1952); snappy in the framing of Java's snappy library or as a raw block; lz4's and
//! zstd's frames.

mod gzip;
mod lz4;
mod output;
mod snappy;
mod zstd;

use std::fmt;

use super::error::{BatchError, Part};
use super::header::HEADER_BYTES;
use super::iterate::Batch;
use super::records::Records;
use output::Output;

/// How a batch's records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// All of them, by number.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    /// The codec with this number in a batch's attributes.
    pub fn from_id(id: u8) -> Result<Codec, BatchError> {
        Codec::ALL.get(usize::from(id)).copied().ok_or(BatchError::UnknownCodec { id })
    }

    /// Its number in a batch's attributes.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Its name in Kafka's `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the records of one batch may decompress to, in bytes. A batch is about 1 MB by Kafka's defaults, and
/// text of a thousand equal records may have been 100 MB before; a bomb reaches gigabytes.
pub const DECOMPRESSED_BYTES_MAX_DEFAULT: usize = 128 << 20;

/// What a codec says is wrong: byte of the compressed payload, and its words. The batch's error is made from
/// it.
#[derive(Debug)]
enum Failure {
    Broken { position: usize, detail: String },
    TooLarge,
}

fn broken(position: usize, detail: impl Into<String>) -> Failure {
    Failure::Broken { position, detail: detail.into() }
}

/// Gives access to a batch's records. Keeps its buffer and the codecs' state, so there should be one per
/// worker.
#[derive(Debug)]
pub struct Decompressor {
    output: Output,
    gzip: gzip::Inflater,
    snappy: snappy::Reader,
    zstd: zstd::Reader,
}

impl Decompressor {
    /// Refuses batches whose records are more than `output_bytes_max` when uncompressed. Allocates nothing
    /// yet.
    pub fn new(output_bytes_max: usize) -> Self {
        Decompressor {
            output: Output::new(output_bytes_max),
            gzip: gzip::Inflater::default(),
            snappy: snappy::Reader::default(),
            zstd: zstd::Reader::default(),
        }
    }

    /// The batch's records. An uncompressed batch is read where it lies; another is decompressed into the own
    /// buffer. The CRC is not checked here.
    pub fn records<'a>(&'a mut self, batch: &'a Batch) -> Result<Records<'a>, BatchError> {
        let payload = batch.bytes.get(HEADER_BYTES..).unwrap_or_default();
        let codec = batch.header.codec()?;
        if codec == Codec::None || (payload.is_empty() && batch.header.record_count == 0) {
            return Ok(Records::new(&batch.header, payload, Part::Batch));
        }
        let records = self.decompress(codec, payload)?;
        Ok(Records::new(&batch.header, records, Part::DecompressedRecords))
    }

    pub(super) fn decompress(&mut self, codec: Codec, payload: &[u8]) -> Result<&[u8], BatchError> {
        let output = &mut self.output;
        output.start();
        let done = match codec {
            Codec::None => output.append(payload),
            Codec::Gzip => self.gzip.decompress(payload, output),
            Codec::Snappy => self.snappy.decompress(payload, output),
            Codec::Lz4 => lz4::decompress(payload, output),
            Codec::Zstd => self.zstd.decompress(payload, output),
        };
        match done {
            Ok(()) => Ok(self.output.filled()),
            Err(Failure::Broken { position, detail }) => {
                Err(BatchError::Decompression { codec, position: HEADER_BYTES + position, detail })
            }
            Err(Failure::TooLarge) => {
                Err(BatchError::OutputTooLarge { codec, limit_bytes: self.output.limit_bytes() })
            }
        }
    }

    /// Memory of the buffer for decompressed records.
    #[cfg(test)]
    pub(super) fn buffer_bytes(&self) -> usize {
        self.output.buffer_bytes()
    }
}

impl Default for Decompressor {
    fn default() -> Self {
        Decompressor::new(DECOMPRESSED_BYTES_MAX_DEFAULT)
    }
}

/// The state of the compressing codecs, each made when it is first used.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    gzip: gzip::Deflater,
    snappy: snappy::Writer,
    lz4: lz4::Writer,
    zstd: zstd::Writer,
}

impl Compressor {
    /// Puts `records`, compressed, into the empty `output`. [`Codec::None`] copies.
    pub(crate) fn compress(
        &mut self,
        codec: Codec,
        records: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        match codec {
            Codec::None => {
                output.extend_from_slice(records);
                Ok(())
            }
            Codec::Gzip => self.gzip.compress(records, output),
            Codec::Snappy => self.snappy.compress(records, output),
            Codec::Lz4 => self.lz4.compress(records, output),
            Codec::Zstd => self.zstd.compress(records, output),
        }
        .map_err(|detail: String| BatchError::Compression { codec, bytes: records.len(), detail })
    }
}
