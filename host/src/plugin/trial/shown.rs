//! Records as a person reads them: text where bytes are text, base64 where they are not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::TrialRecord;

/// Longer byte strings are shown up to here.
const SHOWN_BYTES_MAX: usize = 4096;

/// A byte string, readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Shown {
    /// Null.
    Null,
    /// UTF-8.
    Text(String),
    /// Anything else.
    Base64 {
        /// The bytes.
        base64: String,
    },
    /// The beginning of a long one.
    Cut {
        /// The first bytes, those of a broken character replaced.
        begins: String,
        /// The whole length in bytes.
        length_bytes: usize,
    },
}

/// A record, readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownRecord {
    /// Its key.
    pub key: Shown,
    /// Its value.
    pub value: Shown,
    /// Names and values, in order.
    pub headers: Vec<(Shown, Shown)>,
}

impl Shown {
    /// Makes bytes readable.
    pub fn of(bytes: Option<&[u8]>) -> Self {
        let Some(bytes) = bytes else { return Self::Null };
        if bytes.len() > SHOWN_BYTES_MAX {
            let begins = String::from_utf8_lossy(&bytes[..SHOWN_BYTES_MAX]).into_owned();
            return Self::Cut { begins, length_bytes: bytes.len() };
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64 { base64: STANDARD.encode(bytes) },
        }
    }
}

impl ShownRecord {
    /// Makes a record readable.
    pub fn of(record: &TrialRecord) -> Self {
        let header =
            |(name, value): &(Vec<u8>, Option<Vec<u8>>)| (Shown::of(Some(name)), Shown::of(value.as_deref()));
        Self {
            key: Shown::of(record.key.as_deref()),
            value: Shown::of(record.value.as_deref()),
            headers: record.headers.iter().map(header).collect(),
        }
    }

    /// One line for each part, values that are JSON spread over several, so that a line diff says what changed.
    pub fn lines(&self, spread_json: bool) -> Vec<String> {
        let mut lines = vec![format!("key: {}", self.key)];
        match self.value.as_json().filter(|_| spread_json) {
            Some(json) => {
                lines.push("value:".to_owned());
                lines.extend(json.lines().map(|line| format!("  {line}")));
            }
            None => lines.push(format!("value: {}", self.value)),
        }
        lines.extend(self.headers.iter().map(|(name, value)| format!("header {name}: {value}")));
        lines
    }
}

impl Shown {
    /// A JSON object or list, spread over lines.
    pub(super) fn as_json(&self) -> Option<String> {
        let Self::Text(text) = self else { return None };
        let json: serde_json::Value = serde_json::from_str(text).ok()?;
        let is_spread = json.is_object() || json.is_array();
        is_spread.then(|| serde_json::to_string_pretty(&json).ok()).flatten()
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Text(text) => write!(formatter, "{text:?}"),
            Self::Base64 { base64 } => write!(formatter, "base64 {base64}"),
            Self::Cut { begins, length_bytes } => write!(formatter, "{begins:?}… ({length_bytes} bytes)"),
        }
    }
}
