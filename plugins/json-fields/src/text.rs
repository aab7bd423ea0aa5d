//! JSON strings: out of their escapes and into them.

/// Appends what stands between the quotes of a checked JSON string, without its escapes. One half of a surrogate
/// pair becomes U+FFFD.
pub fn unescape(inside: &[u8], into: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = rest.split_at(at);
        into.extend_from_slice(plain);
        rest = unescape_one(escape, into);
    }
    into.extend_from_slice(rest);
}

/// Takes one escape from the front and gives what is behind it. What is no escape, which a checked string does not
/// have, goes over as it stands.
fn unescape_one<'a>(escape: &'a [u8], into: &mut Vec<u8>) -> &'a [u8] {
    let plain = match escape.get(1) {
        Some(b'b') => 0x8,
        Some(b'f') => 0xc,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return unescape_unicode(escape, into),
        Some(byte) => *byte,
        None => b'\\',
    };
    into.push(plain);
    escape.get(2..).unwrap_or_default()
}

fn unescape_unicode<'a>(escape: &'a [u8], into: &mut Vec<u8>) -> &'a [u8] {
    let Some(first) = code_unit(escape) else {
        into.push(b'\\');
        return escape.get(1..).unwrap_or_default();
    };
    let behind = escape.get(6..).unwrap_or_default();
    let mut code = first;
    let mut rest = behind;
    if (0xd800..0xdc00).contains(&first)
        && let Some(low @ 0xdc00..0xe000) = code_unit(behind)
    {
        code = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
        rest = behind.get(6..).unwrap_or_default();
    }
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    rest
}

/// The number of a `\uXXXX` at the front.
fn code_unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

/// Appends a text as a JSON string, quotes included. The text must be UTF-8, which is not checked.
pub fn write_string(text: &[u8], into: &mut Vec<u8>) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    into.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => into.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f => {
                into.extend_from_slice(b"\\u00");
                into.push(DIGITS[usize::from(byte >> 4)]);
                into.push(DIGITS[usize::from(byte & 15)]);
            }
            _ => into.push(*byte),
        }
    }
    into.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescaped(inside: &str) -> String {
        let mut into = Vec::new();
        unescape(inside.as_bytes(), &mut into);
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn escapes_are_taken_off() {
        let check = |inside: &str, text: &str| assert_eq!(unescaped(inside), text, "{inside}");
        check("", "");
        check("plain é", "plain é");
        check(r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t");
        check(r"\u0065mail\u00E9\u20ac", "emailé€");
        check(r"a\ud83d\uDE00b", "a😀b");
        check(r"\ud83d!", "\u{fffd}!");
        check(r"\ud83d\u0041", "\u{fffd}A");
        check(r"\ude00\ud83d", "\u{fffd}\u{fffd}");
    }

    #[test]
    fn what_no_checked_string_holds_ends_nothing() {
        assert_eq!(unescaped(r"a\"), r"a\");
        assert_eq!(unescaped(r"\u12"), r"\u12");
        assert_eq!(unescaped(r"\u12xyz"), r"\u12xyz");
    }

    #[test]
    fn strings_are_written_so_that_others_can_read_them() {
        for text in ["", "plain", "\"\\/", "\u{0}\u{1f}\n\u{7f}", "é😀\u{fffd}"] {
            let mut written = Vec::new();
            write_string(text.as_bytes(), &mut written);
            assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), text);
        }
    }
}
