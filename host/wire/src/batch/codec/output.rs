//! Where decompressed bytes go: one buffer that is kept, zeroed only where it grows, and never above its
//! limit.

use super::Failure;
use crate::batch::pool::KEPT_BUFFER_BYTES_MAX;

/// Smallest step of growth, in bytes.
const GROWTH_BYTES_MIN: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Output {
    /// As long as it ever had to be; valid up to `filled_bytes`.
    buffer: Vec<u8>,
    filled_bytes: usize,
    limit_bytes: usize,
}

impl Output {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Output { buffer: Vec::new(), filled_bytes: 0, limit_bytes }
    }

    /// Forgets the last batch. A huge one's memory goes back to the system as soon as a smaller one came
    /// after it.
    pub(super) fn start(&mut self) {
        if self.buffer.len() > KEPT_BUFFER_BYTES_MAX && self.filled_bytes < KEPT_BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        self.filled_bytes = 0;
    }

    pub(super) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.buffer[..self.filled_bytes]
    }

    /// What may still be added.
    pub(super) fn allowance_bytes(&self) -> usize {
        self.limit_bytes - self.filled_bytes
    }

    /// What is filled, and `wanted_bytes` of room behind it. The caller has a reason for the number that
    /// doesn't rest on a length from the wire alone.
    pub(super) fn split(&mut self, wanted_bytes: usize) -> Result<(&[u8], &mut [u8]), Failure> {
        if wanted_bytes > self.allowance_bytes() {
            return Err(Failure::TooLarge);
        }
        let end = self.filled_bytes + wanted_bytes;
        if end > self.buffer.len() {
            let grown = end.max(self.buffer.len() * 2).max(GROWTH_BYTES_MIN).min(self.limit_bytes);
            self.buffer.reserve_exact(grown - self.buffer.len());
            self.buffer.resize(grown, 0);
        }
        let (filled, room) = self.buffer.split_at_mut(self.filled_bytes);
        Ok((filled, &mut room[..wanted_bytes]))
    }

    /// All the room that there is now: at least one byte, unless the limit is reached.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let wanted_bytes = (self.buffer.len() - self.filled_bytes).max(1).min(self.allowance_bytes());
        match self.split(wanted_bytes) {
            Ok(_) => &mut self.buffer[self.filled_bytes..],
            Err(_) => &mut [],
        }
    }

    /// As [`Output::room`], after the room turned out too small: twice as large, or empty when the limit is
    /// reached.
    pub(super) fn larger_room(&mut self) -> Result<&mut [u8], Failure> {
        let wanted_bytes =
            (self.buffer.len() * 2).max(GROWTH_BYTES_MIN).min(self.limit_bytes) - self.filled_bytes;
        if self.filled_bytes + wanted_bytes <= self.buffer.len() {
            return Err(Failure::TooLarge);
        }
        self.split(wanted_bytes).map(|(_, room)| room)
    }

    /// Copies `bytes` behind what is filled.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.split(bytes.len())?.1.copy_from_slice(bytes);
        self.advance(bytes.len());
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// The first `bytes` of the room are now filled.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.filled_bytes += bytes;
    }
}
