//! A record that owns its parts.

/// A record before or after a plugin. A header's name is UTF-8 here; the others never reach a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    /// The offset on the source.
    pub offset: i64,
    /// Milliseconds since 1970, if it has a time.
    pub timestamp_ms: Option<i64>,
    /// The key, if it has one.
    pub key: Option<Vec<u8>>,
    /// The value; a tombstone has none.
    pub value: Option<Vec<u8>>,
    /// Names and values, in order; a value may be null.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl OwnedRecord {
    /// With this key.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(key.as_ref().to_vec());
        self
    }

    /// With this value.
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.value = Some(value.as_ref().to_vec());
        self
    }

    /// With one more header.
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), Some(value.as_ref().to_vec())));
        self
    }

    /// With one more header, whose value is null.
    pub fn null_header(mut self, name: impl Into<String>) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    /// With this time; without one there is none.
    pub fn timestamp_ms(mut self, timestamp_ms: i64) -> Self {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }

    /// At this offset instead of the one behind the record before: a gap, as compaction leaves it.
    pub fn offset(mut self, offset: i64) -> Self {
        self.offset = offset;
        self
    }
}
