//! What can be wrong with a batch, in words that a person can act on. Callers add topic, partition and
//! offset.

use std::fmt;

use thiserror::Error;

use super::Codec;

/// Why a batch can't be read or built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Message format 0 or 1, as written before Kafka 0.11. Brokers from 4.0 on write none, but they don't
    /// convert what an older release left on their disks (KIP-724).
    #[error(
        "record batch at byte {position} has the old message format {magic}, only format 2 is read; \
         rewrite the topic at the source: copy its records with a current client into a new topic \
         whose message.format.version is 0.11 or later (brokers 4.0 and newer write no old formats, \
         but serve what an older release left in their logs)"
    )]
    OldMagic {
        /// Where the batch begins.
        position: usize,
        /// 0 or 1.
        magic: i8,
    },
    /// A message format that Kafka has not defined yet, or bytes that are no batch.
    #[error(
        "record batch at byte {position} has the unknown message format {magic}, format 2 is wanted; \
         the bytes are damaged, or the broker is newer than this program"
    )]
    UnknownMagic {
        /// Where the batch begins.
        position: usize,
        /// The byte found.
        magic: i8,
    },
    /// The structure is broken.
    #[error("malformed record batch at byte {position} of {part}: {flaw}")]
    Malformed {
        /// Byte counted from the start of `part`.
        position: usize,
        /// What the position counts in.
        part: Part,
        /// What is wrong there.
        flaw: Flaw,
    },
    /// A fetch answer ends inside its first batch, so nothing of it can be used.
    #[error(
        "the first record batch of the answer takes {needed_bytes} bytes, the answer has {answer_bytes}; \
         raise max.partition.fetch.bytes and fetch.max.bytes to at least {needed_bytes}"
    )]
    FirstBatchLargerThanAnswer {
        /// Size of the whole batch; the size of a header while not even that is there.
        needed_bytes: usize,
        /// What the answer holds.
        answer_bytes: usize,
    },
    /// The checksum doesn't fit the bytes.
    #[error(
        "record batch at offset {base_offset} is damaged: its CRC32C is {stored:#010x}, \
         its bytes give {computed:#010x}; fetch it again, and check the broker's disk if it stays so"
    )]
    CrcMismatch {
        /// First offset of the batch.
        base_offset: i64,
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The attributes name a codec that does not exist.
    #[error("record batch is compressed with the unknown codec {id}, codecs 0 to 4 are known")]
    UnknownCodec {
        /// Lowest three bits of the attributes: 5, 6 or 7.
        id: u8,
    },
    /// The compressed bytes are broken.
    #[error("could not decompress {codec} at byte {position} of the batch: {detail}")]
    Decompression {
        /// The batch's codec.
        codec: Codec,
        /// Byte counted from the batch's first; start of the block or frame that failed.
        position: usize,
        /// What the codec says.
        detail: String,
    },
    /// More comes out than the limit allows.
    #[error(
        "record batch decompresses with {codec} to more than the limit of {limit_bytes} bytes; \
         raise the limit if the batch is honest"
    )]
    OutputTooLarge {
        /// The batch's codec.
        codec: Codec,
        /// The limit that was given to the decompressor.
        limit_bytes: usize,
    },
    /// The compressor failed, which it never does for lack of room.
    #[error("could not compress {bytes} bytes of records with {codec}: {detail}")]
    Compression {
        /// The codec asked for.
        codec: Codec,
        /// Size of the uncompressed records.
        bytes: usize,
        /// What the codec says.
        detail: String,
    },
    /// A batch without records: no broker accepts one.
    #[error("could not build a record batch: no record was pushed")]
    NothingToBuild,
    /// Sizes in a batch are 32 bit numbers.
    #[error("could not build a record batch of more than {limit_bytes} bytes; finish it earlier")]
    TooLargeToBuild {
        /// Greatest size of the records, compressed or not.
        limit_bytes: usize,
    },
}

/// What a position counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The batch itself, or the fetch answer that it lies in.
    Batch,
    /// The decompressed records of a batch.
    DecompressedRecords,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Batch => "the batch",
            Part::DecompressedRecords => "its decompressed records",
        })
    }
}

/// What is wrong at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the sentences are the documentation
pub enum Flaw {
    #[error("{needed_bytes} bytes are needed, {available_bytes} are there")]
    Truncated { needed_bytes: usize, available_bytes: usize },
    #[error("batch length is {0}, a header alone takes 49")]
    BatchLength(i32),
    #[error("{0} bytes follow the batch")]
    BytesBehindBatch(usize),
    #[error("base offset is {0}")]
    BaseOffset(i64),
    #[error("last offset delta is {0}")]
    LastOffsetDelta(i32),
    #[error("record count is {0}")]
    RecordCount(i32),
    #[error("number does not end within its {bytes_max} bytes or is too large for them")]
    Varint { bytes_max: usize },
    #[error("{field} length is {length}, {available_bytes} bytes are left")]
    Length { field: &'static str, length: i32, available_bytes: usize },
    #[error("record has {count} headers, {available_bytes} bytes are left")]
    HeaderCount { count: i32, available_bytes: usize },
    #[error("{0} bytes of the record follow its last header")]
    BytesBehindHeaders(usize),
    #[error("offset delta is {delta}, {lowest} to {highest} are possible here")]
    OffsetDelta { delta: i32, lowest: i32, highest: i32 },
    #[error("record count is {expected}, only {found} records are there")]
    RecordsMissing { expected: i32, found: i32 },
    #[error("{bytes} bytes follow the last of {expected} records")]
    BytesBehindRecords { expected: i32, bytes: usize },
}
