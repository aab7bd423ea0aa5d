//! LZ4's frame format. Only the blocks are left to the crate, so they are decompressed where they shall lie,
//! without the two buffers and the copy of a stream reader.
//!
//! The frame's own checksums are skipped, not checked: the batch's CRC32C covers the same bytes and is
//! checked before.

use lz4_flex::block::{self, CompressTable, DecompressError};

use super::{Failure, Output, broken};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 1, independent blocks, no checksums, no size; blocks of 64 KiB; checksum of these two bytes. As
/// Java writes it.
const DESCRIPTOR: [u8; 3] = [0x60, 0x40, 0x82];
const BLOCK_BYTES: usize = 64 << 10;

const VERSION_MASK: u8 = 0xc0;
const VERSION: u8 = 0x40;
const INDEPENDENT_BLOCKS: u8 = 0x20;
const BLOCK_CHECKSUMS: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const CONTENT_CHECKSUM: u8 = 0x04;
const DICTIONARY_ID: u8 = 0x01;

/// Highest bit of a block's length: it is stored uncompressed.
const STORED: u32 = 1 << 31;
/// How far a linked block may refer back.
const WINDOW_BYTES: usize = 64 << 10;
/// One byte of a length adds 255 to a match, and nothing in the format gives more.
const EXPANSION_MAX: usize = 255;

/// What the frame's descriptor says about its blocks.
struct Frame {
    linked: bool,
    block_checksum_bytes: usize,
    content_checksum_bytes: usize,
    block_bytes_max: usize,
    descriptor_end: usize,
}

impl Frame {
    fn parse(payload: &[u8]) -> Result<Frame, Failure> {
        let Some(&[flags, block_size]) = payload.strip_prefix(&MAGIC).and_then(|rest| rest.first_chunk())
        else {
            return Err(broken(0, "not an lz4 frame, or a truncated one"));
        };
        if flags & VERSION_MASK != VERSION {
            return Err(broken(4, format!("lz4 frame version in {flags:#04x} is not 1")));
        }
        if flags & DICTIONARY_ID != 0 {
            return Err(broken(4, "lz4 frame wants a dictionary, Kafka has none"));
        }
        // 64 KiB, 256 KiB, 1 MiB or 4 MiB.
        let block_bytes_max = match (block_size >> 4) & 7 {
            size @ 4..=7 => 1 << (2 * size + 8),
            size => return Err(broken(5, format!("unknown lz4 block size {size}"))),
        };
        let checksum_bytes = |flag| if flags & flag != 0 { 4 } else { 0 };
        let content_size_bytes = if flags & CONTENT_SIZE != 0 { 8 } else { 0 };
        Ok(Frame {
            linked: flags & INDEPENDENT_BLOCKS == 0,
            block_checksum_bytes: checksum_bytes(BLOCK_CHECKSUMS),
            content_checksum_bytes: checksum_bytes(CONTENT_CHECKSUM),
            block_bytes_max,
            descriptor_end: MAGIC.len() + 2 + content_size_bytes + 1,
        })
    }
}

pub(super) fn decompress(payload: &[u8], output: &mut Output) -> Result<(), Failure> {
    let frame = Frame::parse(payload)?;
    let mut position = frame.descriptor_end;
    loop {
        let Some(length) = payload.get(position..).and_then(|rest| rest.first_chunk()) else {
            return Err(broken(position, "truncated lz4 frame: no end mark"));
        };
        let length = u32::from_le_bytes(*length);
        position += 4;
        if length == 0 {
            break;
        }
        let end = position + (length & !STORED) as usize;
        let Some(block) = payload.get(position..end) else {
            return Err(broken(position, "length of an lz4 block reaches past the end"));
        };
        if length & STORED != 0 {
            copy_stored(block, position, &frame, output)?;
        } else {
            read_block(block, position, &frame, output)?;
        }
        position = end + frame.block_checksum_bytes;
    }
    if position + frame.content_checksum_bytes != payload.len() {
        return Err(broken(position, "lz4 frame does not end with the batch"));
    }
    Ok(())
}

fn copy_stored(block: &[u8], position: usize, frame: &Frame, output: &mut Output) -> Result<(), Failure> {
    if block.len() > frame.block_bytes_max {
        return Err(broken(position, "stored lz4 block is larger than the frame allows"));
    }
    output.append(block)
}

fn read_block(block: &[u8], position: usize, frame: &Frame, output: &mut Output) -> Result<(), Failure> {
    let possible_bytes = frame.block_bytes_max.min(block.len() * EXPANSION_MAX);
    let room_bytes = possible_bytes.min(output.allowance_bytes());
    let (filled, room) = output.split(room_bytes)?;
    let window = if frame.linked { &filled[filled.len().saturating_sub(WINDOW_BYTES)..] } else { &[] };
    let written = block::decompress_into_with_dict(block, room, window).map_err(|error| match error {
        DecompressError::OutputTooSmall { .. } if room_bytes < possible_bytes => Failure::TooLarge,
        error => broken(position, error.to_string()),
    })?;
    output.advance(written);
    Ok(())
}

#[derive(Default)]
pub(super) struct Writer(Option<CompressTable>);

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    pub(super) fn compress(&mut self, records: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let table = self.0.get_or_insert_with(CompressTable::large);
        output.extend_from_slice(&MAGIC);
        output.extend_from_slice(&DESCRIPTOR);
        for block in records.chunks(BLOCK_BYTES) {
            let start = output.len() + 4;
            output.resize(start + block::get_maximum_output_size(block.len()), 0);
            let bytes = block::compress_into_with_table(block, &mut output[start..], table)
                .map_err(|error| error.to_string())?;
            let length = if bytes < block.len() {
                output.truncate(start + bytes);
                bytes as u32
            } else {
                output.truncate(start);
                output.extend_from_slice(block);
                block.len() as u32 | STORED
            };
            output[start - 4..start].copy_from_slice(&length.to_le_bytes());
        }
        output.extend_from_slice(&[0; 4]);
        Ok(())
    }
}
