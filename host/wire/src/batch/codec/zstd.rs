//! Zstandard. Whole payloads are decompressed at once into the output: a stream reader would allocate the
//! window that the frame's header asks for, and copy.

use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, compress_bound, get_error_name, is_error_kind, zstd_sys::ZSTD_ErrorCode,
};

use super::{Failure, Output, broken};

/// Level 1: relaying with every batch rewritten cost 38 CPU-seconds per million records of 10 KiB at level 3,
/// Kafka's default, and 16 with lz4; what level 3 saves in size is little next to it. Batches that pass
/// unchanged keep their own level.
const LEVEL: i32 = 1;

#[derive(Default)]
pub(super) struct Reader(Option<DCtx<'static>>);

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

impl Reader {
    /// The frame's own word on its size is not asked for. When the room is too small, it is doubled and the
    /// work begins anew; as the buffer is kept, that is over after the first batches.
    pub(super) fn decompress(&mut self, payload: &[u8], output: &mut Output) -> Result<(), Failure> {
        let context = match &mut self.0 {
            Some(context) => context,
            empty => empty.insert(DCtx::try_create().ok_or_else(|| broken(0, "no memory for a context"))?),
        };
        let mut result = context.decompress(output.room(), payload);
        loop {
            match result {
                Ok(written) => {
                    output.advance(written);
                    return Ok(());
                }
                Err(code) if is_error_kind(code, ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) => {
                    result = context.decompress(output.larger_room()?, payload);
                }
                Err(code) => return Err(broken(0, get_error_name(code))),
            }
        }
    }
}

#[derive(Default)]
pub(super) struct Writer(Option<CCtx<'static>>);

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    pub(super) fn compress(&mut self, records: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let context = match &mut self.0 {
            Some(context) => context,
            empty => {
                let context = empty.insert(CCtx::try_create().ok_or("no memory for a context")?);
                context.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(get_error_name)?;
                context
            }
        };
        output.reserve(compress_bound(records.len()));
        context.compress2(output, records).map_err(get_error_name)?;
        Ok(())
    }
}
