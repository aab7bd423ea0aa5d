//! Zigzag varints as Kafka writes them (`ByteUtils` there), and the cursor that reads records.

use super::error::Flaw;

/// Bytes of the longest varint of 32 bits.
pub(crate) const VARINT_BYTES_MAX: usize = 5;
/// Bytes of the longest varint of 64 bits.
pub(crate) const VARLONG_BYTES_MAX: usize = 10;

/// Reads forward through a slice; every step checks what is left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    total_bytes: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes, total_bytes: bytes.len() }
    }

    /// How much has been read.
    pub(crate) fn position(&self) -> usize {
        self.total_bytes - self.rest.len()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn read_byte(&mut self) -> Result<u8, Flaw> {
        let Some((byte, rest)) = self.rest.split_first() else {
            return Err(Flaw::Truncated { needed_bytes: 1, available_bytes: 0 });
        };
        self.rest = rest;
        Ok(*byte)
    }

    /// The next `length` bytes, or `None` when fewer are left.
    #[inline]
    pub(crate) fn read_slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(slice)
    }

    #[inline]
    pub(crate) fn read_varint(&mut self) -> Result<i32, Flaw> {
        let raw = match self.read_short_number() {
            Some(short) => short,
            None => self.read_long_number(VARINT_BYTES_MAX, u32::BITS)? as u32,
        };
        Ok(((raw >> 1) as i32) ^ -((raw & 1) as i32))
    }

    #[inline]
    pub(crate) fn read_varlong(&mut self) -> Result<i64, Flaw> {
        let raw = match self.read_short_number() {
            Some(short) => u64::from(short),
            None => self.read_long_number(VARLONG_BYTES_MAX, u64::BITS)?,
        };
        Ok(((raw >> 1) as i64) ^ -((raw & 1) as i64))
    }

    /// A number of one or two bytes: nearly all lengths and deltas are.
    #[inline]
    fn read_short_number(&mut self) -> Option<u32> {
        match *self.rest {
            [byte, ref rest @ ..] if byte < 0x80 => {
                self.rest = rest;
                Some(u32::from(byte))
            }
            [low, high, ref rest @ ..] if high < 0x80 => {
                self.rest = rest;
                Some(u32::from(low & 0x7f) | u32::from(high) << 7)
            }
            _ => None,
        }
    }

    /// Reads up to `bytes_max` groups of seven bits. The last one may only hold what is left of `bits`; Java
    /// shifts the rest away silently, so no writer makes use of it.
    fn read_long_number(&mut self, bytes_max: usize, bits: u32) -> Result<u64, Flaw> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(bytes_max).enumerate() {
            let shift = 7 * index as u32;
            let group = u64::from(byte & 0x7f);
            if bits - shift < 7 && group >> (bits - shift) != 0 {
                return Err(Flaw::Varint { bytes_max });
            }
            value |= group << shift;
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        let available_bytes = self.remaining();
        if available_bytes < bytes_max {
            return Err(Flaw::Truncated { needed_bytes: available_bytes + 1, available_bytes });
        }
        Err(Flaw::Varint { bytes_max })
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes that `value` takes as a varint or varlong: for a number of 32 bits both are the same.
#[inline]
pub(crate) fn varint_bytes(value: i64) -> usize {
    let bits = u64::BITS - (zigzag(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Bytes gathered on the stack, so that a record's start is appended in one step.
#[derive(Debug)]
pub(crate) struct Scratch<const SIZE: usize> {
    bytes: [u8; SIZE],
    filled: usize,
}

impl<const SIZE: usize> Scratch<SIZE> {
    pub(crate) fn new() -> Self {
        Scratch { bytes: [0; SIZE], filled: 0 }
    }

    #[inline]
    pub(crate) fn write_byte(&mut self, byte: u8) {
        self.bytes[self.filled] = byte;
        self.filled += 1;
    }

    /// Writes a varint, or a varlong: for a number of 32 bits both are the same.
    #[inline]
    pub(crate) fn write_varint(&mut self, value: i64) {
        let mut rest = zigzag(value);
        while rest >= 0x80 {
            self.write_byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.write_byte(rest as u8);
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

/// Appends a varint to `output`.
pub(crate) fn push_varint(output: &mut Vec<u8>, value: i64) {
    let mut number = Scratch::<VARLONG_BYTES_MAX>::new();
    number.write_varint(value);
    output.extend_from_slice(number.as_slice());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: i64, expected: &[u8]) {
        let mut written = Vec::new();
        push_varint(&mut written, value);
        assert_eq!(written, expected);
        assert_eq!(varint_bytes(value), expected.len());
        assert_eq!(Cursor::new(expected).read_varlong(), Ok(value));
        if let Ok(small) = i32::try_from(value) {
            assert_eq!(Cursor::new(expected).read_varint(), Ok(small));
        }
    }

    #[test]
    fn numbers_are_written_as_kafka_writes_them() {
        check(0, &[0]);
        check(-1, &[1]);
        check(1, &[2]);
        check(63, &[0x7e]);
        check(-64, &[0x7f]);
        check(64, &[0x80, 1]);
        check(-65, &[0x81, 1]);
        check(8191, &[0xfe, 0x7f]);
        check(8192, &[0x80, 0x80, 1]);
        check(i64::from(i32::MAX), &[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        check(i64::from(i32::MIN), &[0xff, 0xff, 0xff, 0xff, 0x0f]);
        check(i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        check(i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }

    #[test]
    fn longer_forms_than_needed_are_read() {
        assert_eq!(Cursor::new(&[0x82, 0x80, 0]).read_varint(), Ok(1));
    }

    #[test]
    fn endless_numbers_are_refused() {
        let too_long = Err(Flaw::Varint { bytes_max: 5 });
        assert_eq!(Cursor::new(&[0xff; 6]).read_varint(), too_long);
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).read_varint(), too_long);
        let too_long = Err(Flaw::Varint { bytes_max: 10 });
        assert_eq!(Cursor::new(&[0xff; 11]).read_varlong(), too_long);
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).read_varlong(),
            too_long
        );
    }

    #[test]
    fn cut_numbers_are_truncated() {
        let cut =
            |available_bytes| Err(Flaw::Truncated { needed_bytes: available_bytes + 1, available_bytes });
        assert_eq!(Cursor::new(&[]).read_varint(), cut(0));
        assert_eq!(Cursor::new(&[0x80, 0x80]).read_varint(), cut(2));
    }

    proptest! {
        #[test]
        fn any_number_comes_back(value: i64, small: i32) {
            let mut written = Vec::new();
            push_varint(&mut written, value);
            prop_assert_eq!(written.len(), varint_bytes(value));
            push_varint(&mut written, i64::from(small));
            let mut cursor = Cursor::new(&written);
            prop_assert_eq!(cursor.read_varlong(), Ok(value));
            prop_assert_eq!(cursor.read_varint(), Ok(small));
            prop_assert_eq!(cursor.remaining(), 0);
        }
    }
}
