//! Records as a reader sees them, and numbered ones whose content follows from their number alone.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;
use std::time::SystemTime;

/// What must arrive unchanged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// The key; null and empty differ.
    pub key: Option<Vec<u8>>,
    /// The value; null (a tombstone) and empty differ.
    pub value: Option<Vec<u8>>,
    /// Headers in their order, with duplicates.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Milliseconds since 1970; −1 is "none".
    pub timestamp_ms: i64,
}

/// A record at its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Its partition.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Whether the broker set the timestamp when it appended the record.
    pub log_append_time: bool,
    /// What must arrive unchanged.
    pub content: Content,
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<String> = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name:?}={}", short(value.as_deref())))
            .collect();
        let (key, value) = (short(self.key.as_deref()), short(self.value.as_deref()));
        write!(
            formatter,
            "key {key}, value {value}, headers [{}], time {}",
            headers.join(", "),
            self.timestamp_ms
        )
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}] offset {}: {:?}", self.partition, self.offset, self.content)
    }
}

/// Bytes for a message: their text if they are short text, else their number and beginning.
fn short(bytes: Option<&[u8]>) -> String {
    const SHOWN: usize = 48;
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() <= SHOWN => format!("{:?}", String::from_utf8_lossy(bytes)),
        Some(bytes) => format!("{} bytes {:?}…", bytes.len(), String::from_utf8_lossy(&bytes[..SHOWN])),
    }
}

/// A producer's endless list of records. Together they show every combination of null, empty, odd and plain parts.
#[derive(Debug, Clone, Copy)]
pub struct Numbered {
    /// Tells several producers' records apart.
    pub producer: u32,
    /// Partitions that the records are dealt out to in turn.
    pub partition_count: i32,
    /// Size of an ordinary value.
    pub value_bytes: usize,
}

/// Time of record 0: half an hour ago. The broker forgets a producer by the time of its records: after a restart it takes
/// one whose records are older than a day (`producer.id.expiration.ms`) for unknown, and then a batch that is sent again
/// comes twice, whoever sent it. Old times would blame the copy for that.
static FIRST_TIMESTAMP_MS: LazyLock<i64> = LazyLock::new(|| {
    const HALF_AN_HOUR_MS: i64 = 30 * 60 * 1000;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as i64 - HALF_AN_HOUR_MS
});

impl Numbered {
    /// The partition of a record.
    pub fn partition(&self, number: u64) -> i32 {
        ((number + u64::from(self.producer)) % self.partition_count.unsigned_abs() as u64) as i32
    }

    /// The content of a record. No two of all producers are equal.
    pub fn content(&self, number: u64) -> Content {
        let name = format!("{}-{number}", self.producer);
        let mut timestamp_ms = *FIRST_TIMESTAMP_MS + number as i64;
        let mut key = Some(name.clone().into_bytes());
        let mut value = Some(self.value(&name));
        match number % 16 {
            0 => key = None,
            3 => key = Some(Vec::new()),
            5 => value = None,
            7 => value = Some(Vec::new()),
            11 => timestamp_ms = 1,
            13 => timestamp_ms = -1,
            _ => {}
        }
        Content { key, value, headers: headers(number), timestamp_ms }
    }

    /// The numbers whose records have a time. MirrorMaker 2 itself gives a record without one (−1) the present time, so
    /// only these come through it unchanged.
    pub fn dated(&self, numbers: Range<u64>) -> Vec<u64> {
        numbers.filter(|number| self.content(*number).timestamp_ms >= 0).collect()
    }

    /// Half text that compresses well, half noise that follows from the name.
    fn value(&self, name: &str) -> Vec<u8> {
        let mut value = format!("record {name} ").into_bytes();
        let text = b"the quick brown fox jumps over the lazy dog, ";
        let text_bytes = self.value_bytes / 2;
        value.extend(text.iter().cycle().take(text_bytes.saturating_sub(value.len())));
        let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }) | 1;
        while value.len() < self.value_bytes {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            value.extend(state.to_le_bytes());
        }
        value.truncate(self.value_bytes.max(name.len() + 8));
        value
    }
}

fn headers(number: u64) -> Vec<(String, Option<Vec<u8>>)> {
    let header = |name: &str, value: Option<&[u8]>| (name.to_owned(), value.map(<[u8]>::to_vec));
    match number % 9 {
        1 => vec![header("one", Some(b"1"))],
        2 => vec![header("twice", Some(b"a")), header("twice", Some(b"b")), header("twice", Some(b"a"))],
        3 => vec![header("null", None)],
        4 => vec![header("empty", Some(b""))],
        5 => vec![header("z", Some(b"26")), header("a", Some(b"1")), header("m", None)],
        6 => vec![header("Schlüssel-鍵", Some(&[0, 255, 128, 7]))],
        7 => vec![header("null", None), header("null", Some(b"")), header("", Some(b"no name"))],
        _ => Vec::new(),
    }
}
