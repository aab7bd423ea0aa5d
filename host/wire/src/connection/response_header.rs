//! What stands between an answer's correlation id and its body.

use bytes::{Buf, Bytes};

/// Response header version 1 ends with tagged fields (KIP-482), none of which is known today.
pub(super) fn skip_tagged_fields(answer: &mut Bytes) -> Option<()> {
    for _ in 0..take_varint(answer)? {
        take_varint(answer)?;
        let bytes = usize::try_from(take_varint(answer)?).ok()?;
        if bytes > answer.len() {
            return None;
        }
        answer.advance(bytes);
    }
    Some(())
}

fn take_varint(answer: &mut Bytes) -> Option<u32> {
    let mut value = 0u32;
    for index in 0..5 {
        let byte = answer.try_get_u8().ok()?;
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &'static [u8], body: Option<&'static [u8]>) {
        let mut answer = Bytes::from_static(bytes);
        let skipped = skip_tagged_fields(&mut answer);
        assert_eq!(skipped.map(|()| answer), body.map(Bytes::from_static), "{bytes:?}");
    }

    #[test]
    fn unknown_fields_are_skipped() {
        check(b"\0body", Some(b"body"));
        check(b"\x02\x07\x03abc\x80\x01\0body", Some(b"body"));
    }

    #[test]
    fn a_header_without_an_end_is_none() {
        for bytes in [
            &b""[..],
            b"\x01",
            b"\x01\x07",
            b"\x01\x07\x05abc",
            b"\xff\xff\xff\xff\xff\x01",
            b"\xff\xff\xff\xff\x0f",
        ] {
            check(bytes, None);
        }
    }
}
