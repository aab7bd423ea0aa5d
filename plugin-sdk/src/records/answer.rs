//! The answer to a batch as the host reads it: bytes, and words that point into them. The contract says what each
//! word means.

/// Words of one edit.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) const OP_WORD_COUNT: usize = 6;
/// The length of a null header value.
pub(crate) const NULL_LENGTH: u32 = u32::MAX;

/// What an edit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Drop = 0,
    Reject = 1,
    SetHeader = 2,
    AddHeader = 3,
    RenameHeader = 4,
    RemoveHeader = 5,
    SetKey = 6,
    SetValue = 7,
    ClearValue = 8,
    SpliceValue = 9,
}

/// A part of the answer's bytes, or a range of the old value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

impl Span {
    pub(crate) const NULL: Self = Self { offset: 0, length: NULL_LENGTH };
}

/// Longer byte strings are written anew each time: comparing them would cost what copying costs.
const REMEMBERED_BYTES_MAX: usize = 256;
/// So many byte strings are remembered: names and values that are the same in every record.
const REMEMBERED_COUNT_MAX: usize = 8;

/// A byte string that stands in the answer already.
#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    /// Where it lay in the plugin's memory. A first guess only: the memory may hold something else by now.
    address: usize,
    span: Span,
    is_used: bool,
}

/// Both buffers are kept from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) data: Vec<u8>,
    pub(crate) ops: Vec<u32>,
    remembered: [Remembered; REMEMBERED_COUNT_MAX],
    /// Which one is looked at first when room is needed.
    hand: usize,
}

impl Answer {
    pub(crate) const fn new() -> Self {
        const NOTHING: Remembered =
            Remembered { address: 0, span: Span { offset: 0, length: 0 }, is_used: false };
        Self { data: Vec::new(), ops: Vec::new(), remembered: [NOTHING; REMEMBERED_COUNT_MAX], hand: 0 }
    }

    /// Forgets the last batch.
    pub(crate) fn start(&mut self) {
        self.data.clear();
        self.ops.clear();
        self.remembered = Default::default();
    }

    pub(crate) fn push(&mut self, record: u32, code: Code, a: Span, b: Span) {
        self.ops.extend_from_slice(&[record, code as u32, a.offset, a.length, b.offset, b.length]);
    }

    /// Where the bytes stand in the answer; those that were written a moment ago are not written again.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Span {
        if bytes.is_empty() {
            return Span::default();
        }
        if bytes.len() > REMEMBERED_BYTES_MAX {
            return self.write(bytes);
        }
        let address = bytes.as_ptr() as usize;
        for known in &mut self.remembered {
            if known.address == address && known.span.length as usize == bytes.len() {
                let start = known.span.offset as usize;
                if self.data.get(start..start + bytes.len()) == Some(bytes) {
                    known.is_used = true;
                    return known.span;
                }
            }
        }
        let span = self.write(bytes);
        self.remember(address, span);
        span
    }

    fn write(&mut self, bytes: &[u8]) -> Span {
        let span = Span { offset: self.data.len() as u32, length: bytes.len() as u32 };
        self.data.extend_from_slice(bytes);
        span
    }

    /// Takes the place of one that was not used lately, so that what differs from record to record does not push out
    /// what is the same in all.
    fn remember(&mut self, address: usize, span: Span) {
        loop {
            self.hand = (self.hand + 1) % REMEMBERED_COUNT_MAX;
            let Some(known) = self.remembered.get_mut(self.hand) else { return };
            if !known.is_used {
                *known = Remembered { address, span, is_used: false };
                return;
            }
            known.is_used = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_written_once_a_batch() {
        let mut answer = Answer::new();
        for _ in 0..2 {
            answer.start();
            for number in 0..100_u32 {
                let differing = number.to_string().into_bytes();
                let constant = answer.put(b"constant");
                assert_eq!((constant.offset, constant.length), (0, 8));
                answer.put(&differing);
            }
            assert_eq!(answer.data.len(), 8 + 10 + 2 * 90);
        }
    }

    #[test]
    fn a_reused_buffer_is_no_constant() {
        let mut answer = Answer::new();
        let mut buffer = b"first".to_vec();
        let first = answer.put(&buffer);
        buffer.copy_from_slice(b"other");
        let other = answer.put(&buffer);

        assert_eq!((first.offset, other.offset), (0, 5));
        assert_eq!(answer.data, b"firstother");
    }
}
