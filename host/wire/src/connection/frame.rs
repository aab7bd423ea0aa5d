//! A request frame as pieces that are never joined: size and header in one small piece, then the body's parts. It is a `Buf` with
//! many chunks, so that tokio writes it with `writev`.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;

/// Pieces in the order of writing. What is written is dropped piece by piece.
#[derive(Debug)]
pub(crate) struct Frame {
    pieces: VecDeque<Bytes>,
    remaining: usize,
}

impl Frame {
    /// None when the frame would not fit the protocol's 31-bit size.
    pub(crate) fn new(
        api: ApiKey,
        version: i16,
        correlation: i32,
        client_id: &str,
        parts: Vec<Bytes>,
    ) -> Option<Frame> {
        let header = header(api, version, correlation, client_id);
        let body_bytes: usize = parts.iter().map(Bytes::len).sum();
        let size = i32::try_from(header.len() + body_bytes).ok()?;
        let mut first = BytesMut::with_capacity(4 + header.len());
        first.put_i32(size);
        first.put_slice(&header);
        let mut pieces = VecDeque::with_capacity(1 + parts.len());
        pieces.push_back(first.freeze());
        pieces.extend(parts.into_iter().filter(|part| !part.is_empty()));
        Some(Frame { pieces, remaining: 4 + header.len() + body_bytes })
    }
}

/// Request header version 1, or 2 (with an empty list of tagged fields) for the flexible versions of a request (KIP-482).
fn header(api: ApiKey, version: i16, correlation: i32, client_id: &str) -> Vec<u8> {
    // A client id is a short string in the protocol; a longer one is cut rather than breaking every frame.
    let mut name_bytes = client_id.len().min(i16::MAX as usize);
    while !client_id.is_char_boundary(name_bytes) {
        name_bytes -= 1;
    }
    let mut header = Vec::with_capacity(11 + name_bytes);
    header.put_i16(api as i16);
    header.put_i16(version);
    header.put_i32(correlation);
    header.put_i16(name_bytes as i16);
    header.put_slice(&client_id.as_bytes()[..name_bytes]);
    if api.request_header_version(version) >= 2 {
        header.put_u8(0);
    }
    header
}

impl Buf for Frame {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece.as_ref())
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        count
    }

    fn advance(&mut self, mut written: usize) {
        self.remaining -= written;
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(api: ApiKey, version: i16) -> Frame {
        let parts = vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"cde")];
        Frame::new(api, version, 7, "me", parts).unwrap()
    }

    #[test]
    fn header_version_follows_the_request_version() {
        let mut old = frame(ApiKey::Produce, 8);
        let wanted = b"\0\0\0\x11\0\0\0\x08\0\0\0\x07\0\x02meabcde";
        assert_eq!(&old.copy_to_bytes(old.remaining())[..], wanted);
        let mut flexible = frame(ApiKey::Fetch, 12);
        let wanted = b"\0\0\0\x12\0\x01\0\x0c\0\0\0\x07\0\x02me\0abcde";
        assert_eq!(&flexible.copy_to_bytes(flexible.remaining())[..], wanted);
    }

    #[test]
    fn parts_are_written_from_where_they_lie() {
        let frame = frame(ApiKey::Produce, 8);
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(frame.chunks_vectored(&mut slices), 3);
        assert_eq!(slices[1].as_ptr(), frame.pieces[1].as_ptr());
    }

    #[test]
    fn any_partial_write_leaves_the_rest() {
        let whole = {
            let mut frame = frame(ApiKey::Produce, 8);
            frame.copy_to_bytes(frame.remaining())
        };
        for written in 0..=whole.len() {
            let mut frame = frame(ApiKey::Produce, 8);
            frame.advance(written);
            assert_eq!(frame.remaining(), whole.len() - written);
            assert_eq!(frame.copy_to_bytes(frame.remaining()), whole.slice(written..));
        }
    }
}
