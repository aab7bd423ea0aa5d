//! Snappy: Java's clients frame their blocks (the format of the xerial library), librdkafka and others send
//! one raw block.

use super::{Failure, Output, broken};

/// Start of the framed stream. As a raw block these bytes would refer back to before its start, so they are
/// none.
const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, version and oldest compatible version: all framed streams begin with it.
const FRAME_HEADER_BYTES: usize = 16;
/// Both versions are 1.
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// Uncompressed size of the blocks that Java writes.
const BLOCK_BYTES: usize = 32 << 10;
/// A copy of 64 bytes takes 3, and nothing in the format gives more: a block that claims more lies.
const EXPANSION_MAX: usize = 22;

#[derive(Debug, Default)]
pub(super) struct Reader(snap::raw::Decoder);

impl Reader {
    pub(super) fn decompress(&mut self, payload: &[u8], output: &mut Output) -> Result<(), Failure> {
        if !payload.starts_with(&MAGIC) {
            return self.read_block(payload, 0, output);
        }
        if payload.len() < FRAME_HEADER_BYTES {
            return Err(broken(0, "truncated snappy frame header"));
        }
        let mut position = FRAME_HEADER_BYTES;
        while position < payload.len() {
            let block = next_block(&payload[position..])
                .ok_or_else(|| broken(position, "length of a snappy block reaches past the end"))?;
            self.read_block(block, position + 4, output)?;
            position += 4 + block.len();
        }
        Ok(())
    }

    fn read_block(&mut self, block: &[u8], position: usize, output: &mut Output) -> Result<(), Failure> {
        let claimed =
            snap::raw::decompress_len(block).map_err(|error| broken(position, error.to_string()))?;
        if claimed > block.len().saturating_mul(EXPANSION_MAX) {
            return Err(broken(position, format!("{} bytes can't hold {claimed} bytes", block.len())));
        }
        let (_, room) = output.split(claimed)?;
        let written = self.0.decompress(block, room).map_err(|error| broken(position, error.to_string()))?;
        output.advance(written);
        Ok(())
    }
}

/// The block at the start, without its length.
fn next_block(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(..usize::try_from(i32::from_be_bytes(*length)).ok()?)
}

pub(super) struct Writer(snap::raw::Encoder);

impl Default for Writer {
    fn default() -> Self {
        Writer(snap::raw::Encoder::new())
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Framed: old Java clients can't read raw blocks, everyone reads these.
    pub(super) fn compress(&mut self, records: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        output.extend_from_slice(&MAGIC);
        output.extend_from_slice(&VERSIONS);
        for block in records.chunks(BLOCK_BYTES) {
            let start = output.len() + 4;
            output.resize(start + snap::raw::max_compress_len(block.len()), 0);
            let bytes = self.0.compress(block, &mut output[start..]).map_err(|error| error.to_string())?;
            output[start - 4..start].copy_from_slice(&(bytes as u32).to_be_bytes());
            output.truncate(start + bytes);
        }
        Ok(())
    }
}
