//! gzip (RFC 1952): the frame is read and written here, so that the deflate state and both buffers can be
//! kept.

use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Failure, Output, broken};

/// Identification, method 8 (deflate), no flags, no time, no extra flags, unknown system: what Kafka's
/// clients write.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const HAS_CHECKSUM: u8 = 0x02;
const HAS_EXTRA: u8 = 0x04;
const HAS_NAME: u8 = 0x08;
const HAS_COMMENT: u8 = 0x10;
const RESERVED: u8 = 0xe0;
/// CRC32 and size, behind the deflated bytes.
const TRAILER_BYTES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Inflater(Option<Decompress>);

impl Inflater {
    /// Members may follow each other, as Java's reader allows.
    pub(super) fn decompress(&mut self, payload: &[u8], output: &mut Output) -> Result<(), Failure> {
        let mut position = 0;
        loop {
            position = self.read_member(payload, position, output)?;
            if position == payload.len() {
                return Ok(());
            }
        }
    }

    fn read_member(&mut self, payload: &[u8], start: usize, output: &mut Output) -> Result<usize, Failure> {
        let header_bytes = header_bytes(&payload[start..])
            .ok_or_else(|| broken(start, "not a gzip header, or a truncated one"))?;
        let deflated = start + header_bytes;
        let filled_before = output.filled().len();
        let end = deflated + self.inflate(&payload[deflated..], deflated, output)?;
        let Some(trailer) = payload.get(end..).and_then(|rest| rest.first_chunk::<TRAILER_BYTES>()) else {
            return Err(broken(end, "truncated gzip trailer"));
        };
        let mut crc = Crc::new();
        crc.update(&output.filled()[filled_before..]);
        let [a, b, c, d, e, f, g, h] = *trailer;
        if (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])) != (crc.sum(), crc.amount()) {
            return Err(broken(end, "gzip checksum or size does not match"));
        }
        Ok(end + TRAILER_BYTES)
    }

    /// Gives the number of bytes that the deflated stream took.
    fn inflate(&mut self, input: &[u8], position: usize, output: &mut Output) -> Result<usize, Failure> {
        let inflater = self.0.get_or_insert_with(|| Decompress::new(false));
        inflater.reset(false);
        loop {
            let (read_before, written_before) = (inflater.total_in(), inflater.total_out());
            let rest = &input[read_before as usize..];
            let status = inflater
                .decompress(rest, output.room(), FlushDecompress::None)
                .map_err(|error| broken(position + read_before as usize, error.to_string()))?;
            let written = (inflater.total_out() - written_before) as usize;
            output.advance(written);
            if status == Status::StreamEnd {
                return Ok(inflater.total_in() as usize);
            }
            if written == 0 && inflater.total_in() == read_before {
                // No progress: the room is used up, or the input is.
                return Err(match output.allowance_bytes() {
                    0 => Failure::TooLarge,
                    _ => broken(position + read_before as usize, "truncated deflate stream"),
                });
            }
        }
    }
}

/// Size of the member's header, or `None` when it isn't one.
fn header_bytes(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<10>()?;
    let flags = header[3];
    if header[..3] != HEADER[..3] || flags & RESERVED != 0 {
        return None;
    }
    let mut end = header.len();
    if flags & HAS_EXTRA != 0 {
        let length = bytes.get(end..)?.first_chunk::<2>()?;
        end += 2 + usize::from(u16::from_le_bytes(*length));
    }
    for text in [HAS_NAME, HAS_COMMENT] {
        if flags & text != 0 {
            end += 1 + bytes.get(end..)?.iter().position(|&byte| byte == 0)?;
        }
    }
    if flags & HAS_CHECKSUM != 0 {
        end += 2;
    }
    (end <= bytes.len()).then_some(end)
}

#[derive(Debug, Default)]
pub(super) struct Deflater(Option<Compress>);

impl Deflater {
    /// Deflate's default level, as Kafka's own default.
    pub(super) fn compress(&mut self, records: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let deflater = self.0.get_or_insert_with(|| Compress::new(Compression::default(), false));
        deflater.reset();
        output.extend_from_slice(&HEADER);
        // Stored blocks cost 5 bytes for each 16 KiB at most; what is too little is grown below.
        output.reserve(records.len() + records.len() / 1024 + 64);
        loop {
            let rest = &records[deflater.total_in() as usize..];
            match deflater.compress_vec(rest, output, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => break,
                Ok(_) => output.reserve(output.len()),
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut crc = Crc::new();
        crc.update(records);
        output.extend_from_slice(&crc.sum().to_le_bytes());
        output.extend_from_slice(&crc.amount().to_le_bytes());
        Ok(())
    }
}
