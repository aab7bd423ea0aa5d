//! JSON strings as Jackson's UTF-8 generator writes them with its default settings: Connect writes offset keys with
//! it, and readers look keys up by their exact bytes.

/// Appends `text` as a JSON string, quotes included. Quotes, backslashes and control characters are escaped (the five
/// short forms, else four upper-case hex digits), `/` and other characters are not; those beyond the basic plane
/// become two escaped surrogates.
pub(super) fn push_json_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'"');
    for character in text.chars() {
        match character {
            '"' => bytes.extend_from_slice(b"\\\""),
            '\\' => bytes.extend_from_slice(b"\\\\"),
            '\u{8}' => bytes.extend_from_slice(b"\\b"),
            '\t' => bytes.extend_from_slice(b"\\t"),
            '\n' => bytes.extend_from_slice(b"\\n"),
            '\u{c}' => bytes.extend_from_slice(b"\\f"),
            '\r' => bytes.extend_from_slice(b"\\r"),
            '\0'..='\u{1f}' | '\u{10000}'.. => push_escaped(bytes, character),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes.push(b'"');
}

fn push_escaped(bytes: &mut Vec<u8>, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        bytes.extend_from_slice(format!("\\u{unit:04X}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_jackson_does() {
        let check = |text: &str, expected: &str| {
            let mut bytes = Vec::new();
            push_json_text(&mut bytes, text);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        };
        check("plain-1.2_3", "\"plain-1.2_3\"");
        check("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
        check("\u{8}\t\n\u{c}\r", "\"\\b\\t\\n\\f\\r\"");
        check("\u{0}\u{1f}\u{7f}", "\"\\u0000\\u001F\u{7f}\"");
        check("größe €", "\"größe €\"");
        check("\u{1f600}", "\"\\uD83D\\uDE00\"");
    }
}
