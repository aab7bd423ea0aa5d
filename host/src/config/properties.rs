//! Java's `.properties` syntax, read as `java.util.Properties.load(InputStream)` reads it: ISO-8859-1, `\uXXXX`,
//! continuation lines, `=`, `:` or blanks between key and value, `#` and `!` comments. Even its odd corners: a lone
//! backslash at the end of the file is a pair of an empty key and an empty value.

use std::collections::HashMap;

use super::problem::Problem;

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The key, escapes resolved.
    pub key: String,
    /// The value, escapes resolved; trailing blanks are part of it.
    pub value: String,
    /// The line where the key begins, from 1.
    pub line: usize,
}

/// A file's pairs, in the order of their last places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// One for each key: the last one wins.
    pub pairs: Vec<Property>,
    /// Keys that stand twice, characters that Java's strings hold and ours can't, UTF-8 that will be misread.
    pub warnings: Vec<Problem>,
    /// Malformed escapes. Java reads nothing of such a file; we go on, to tell all of them.
    pub problems: Vec<Problem>,
}

/// Reads a file's bytes.
pub fn parse(bytes: &[u8]) -> Properties {
    let mut properties = Properties::default();
    let mut lines = LogicalLines { bytes, at: 0, line: 1 };
    while let Some(line) = lines.next_line() {
        add_line(&mut properties, &line);
    }
    keep_last_of_each_key(&mut properties);
    properties
}

fn add_line(properties: &mut Properties, line: &LogicalLine) {
    let (key_bytes, value_bytes) = line.split();
    let number = line.number;
    let (key, value) = match (unescape(key_bytes), unescape(value_bytes)) {
        (Ok(key), Ok(value)) => (key, value),
        (key, _) => {
            properties.problems.push(Problem {
                line: Some(number),
                key: key.ok().map(|key| key.text),
                found: None,
                text: "malformed \\uxxxx encoding: four hexadecimal digits must follow \\u; write \\\\u for a backslash"
                    .into(),
                closest: None,
            });
            return;
        }
    };
    let mut warn = |text: &str| {
        properties.warnings.push(Problem {
            line: Some(number),
            key: Some(key.text.clone()),
            found: None,
            text: text.into(),
            closest: None,
        });
    };
    if key.lone_surrogate || value.lone_surrogate {
        warn(
            "half of a surrogate pair stands alone and is read as U+FFFD; write both halves, as in \\ud83d\\ude00",
        );
    }
    if looks_like_utf8(&line.bytes) {
        warn(
            "the line holds UTF-8, but Java reads this file as ISO-8859-1; write such characters as \\uXXXX",
        );
    }
    properties.pairs.push(Property { key: key.text, value: value.text, line: number });
}

fn keep_last_of_each_key(properties: &mut Properties) {
    let mut last_line: HashMap<String, usize> = HashMap::new();
    for pair in &properties.pairs {
        if let Some(earlier) = last_line.insert(pair.key.clone(), pair.line) {
            properties.warnings.push(Problem {
                line: Some(pair.line),
                key: Some(pair.key.clone()),
                found: None,
                text: format!("stands on line {earlier} already; the last one wins, remove the other"),
                closest: None,
            });
        }
    }
    properties.pairs.retain(|pair| last_line.get(&pair.key) == Some(&pair.line));
}

/// A line with its continuations joined, escapes still in it.
struct LogicalLine {
    bytes: Vec<u8>,
    number: usize,
}

impl LogicalLine {
    fn split(&self) -> (&[u8], &[u8]) {
        let line = &self.bytes;
        let mut escaped = false;
        let key_end = line
            .iter()
            .position(|&byte| {
                let ends = !escaped && (is_separator(byte) || is_blank(byte));
                escaped = byte == b'\\' && !escaped;
                ends
            })
            .unwrap_or(line.len());
        let mut separator_seen = false;
        let value_start = line[key_end..]
            .iter()
            .position(|&byte| {
                if is_separator(byte) && !separator_seen {
                    separator_seen = true;
                    return false;
                }
                !is_blank(byte)
            })
            .map_or(line.len(), |skipped| key_end + skipped);
        (&line[..key_end], &line[value_start..])
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'=' | b':')
}

struct LogicalLines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl LogicalLines<'_> {
    /// The next byte; line ends are counted, CR LF once.
    fn take(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if byte == b'\r' || (byte == b'\n' && !(self.at >= 2 && self.bytes[self.at - 2] == b'\r')) {
            self.line += 1;
        }
        Some(byte)
    }

    fn skip_comment(&mut self) {
        while let Some(byte) = self.take() {
            if byte == b'\r' || byte == b'\n' {
                return;
            }
        }
    }

    /// The state machine of `Properties.LineReader.readLine`.
    fn next_line(&mut self) -> Option<LogicalLine> {
        let mut joined = Vec::new();
        let mut number = self.line;
        let (mut skip_blanks, mut continued, mut backslash) = (true, false, false);
        loop {
            let line_now = self.line;
            let Some(byte) = self.take() else {
                if backslash {
                    joined.pop();
                    return Some(LogicalLine { bytes: joined, number });
                }
                return (!joined.is_empty()).then_some(LogicalLine { bytes: joined, number });
            };
            let ends_line = byte == b'\r' || byte == b'\n';
            if skip_blanks {
                if is_blank(byte) || (ends_line && !continued) {
                    continue;
                }
                (skip_blanks, continued) = (false, false);
            }
            if joined.is_empty() {
                if byte == b'#' || byte == b'!' {
                    self.skip_comment();
                    skip_blanks = true;
                    continue;
                }
                number = line_now;
            }
            if !ends_line {
                joined.push(byte);
                backslash = byte == b'\\' && !backslash;
            } else if joined.is_empty() {
                skip_blanks = true;
            } else if backslash {
                joined.pop();
                if self.at == self.bytes.len() {
                    return Some(LogicalLine { bytes: joined, number });
                }
                (skip_blanks, continued, backslash) = (true, true, false);
                if byte == b'\r' && self.bytes.get(self.at) == Some(&b'\n') {
                    self.take();
                }
            } else {
                return Some(LogicalLine { bytes: joined, number });
            }
        }
    }
}

struct Malformed;

struct Text {
    text: String,
    lone_surrogate: bool,
}

fn unescape(bytes: &[u8]) -> Result<Text, Malformed> {
    let mut units: Vec<u16> = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            units.push(byte.into());
            continue;
        }
        let Some((&escape, behind)) = rest.split_first() else { break };
        rest = behind;
        units.push(match escape {
            b'u' => {
                let (digits, behind) = rest.split_at_checked(4).ok_or(Malformed)?;
                rest = behind;
                hex_unit(digits)?
            }
            b't' => 0x09,
            b'n' => 0x0a,
            b'f' => 0x0c,
            b'r' => 0x0d,
            other => other.into(),
        });
    }
    let text = String::from_utf16_lossy(&units);
    let lone_surrogate = char::decode_utf16(units).any(|unit| unit.is_err());
    Ok(Text { text, lone_surrogate })
}

fn hex_unit(digits: &[u8]) -> Result<u16, Malformed> {
    digits.iter().try_fold(0u16, |unit, &digit| {
        let value = char::from(digit).to_digit(16).ok_or(Malformed)?;
        Ok(unit << 4 | value as u16)
    })
}

/// Whether the bytes hold a character of several UTF-8 bytes. Latin-1 text hardly ever does by chance.
fn looks_like_utf8(bytes: &[u8]) -> bool {
    !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests;
