//! A record in quarantine: the key, value and headers that it had on the source, and behind them ten headers that say where it
//! is from and why it is here. Pure; who writes and reads the topic is elsewhere.
//!
//! All ten are UTF-8 text, numbers in decimal, always in this order, always last. So a record that carries such headers of its
//! own (a quarantine topic that is itself copied) keeps them: only the last ten are this program's.

use std::str::FromStr;

use crate::names::{SourceOffset, TopicName};

/// The flow, `source->target`.
pub const FLOW: &str = "tidegate.quarantine.flow";
/// The topic on the source.
pub const TOPIC: &str = "tidegate.quarantine.topic";
/// The partition on the source.
pub const PARTITION: &str = "tidegate.quarantine.partition";
/// The offset on the source.
pub const OFFSET: &str = "tidegate.quarantine.offset";
/// The record's time on the source, in milliseconds since 1970; −1 = it has none. The record in quarantine carries the time at
/// which it was put there, so that the topic's retention counts from then.
pub const TIMESTAMP: &str = "tidegate.quarantine.timestamp";
/// The plugin's name in the configuration.
pub const PLUGIN: &str = "tidegate.quarantine.plugin";
/// The version that the plugin says it has.
pub const VERSION: &str = "tidegate.quarantine.version";
/// SHA-256 of the plugin's module in hex digits.
pub const DIGEST: &str = "tidegate.quarantine.digest";
/// The number of the chain that judged it.
pub const GENERATION: &str = "tidegate.quarantine.generation";
/// Why, in words.
pub const REASON: &str = "tidegate.quarantine.reason";

/// The names, in the order in which they stand.
pub const HEADERS: [&str; 10] =
    [FLOW, TOPIC, PARTITION, OFFSET, TIMESTAMP, PLUGIN, VERSION, DIGEST, GENERATION, REASON];

/// A reason is cut to at most this many bytes: a plugin may give a long one.
pub const REASON_BYTES_MAX: usize = 1_024;

/// Where a record in quarantine is from and why it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineNote {
    /// `source->target`.
    pub flow: String,
    /// The topic on the source.
    pub topic: TopicName,
    /// The partition on the source.
    pub partition: i32,
    /// The offset on the source.
    pub offset: SourceOffset,
    /// The record's time on the source; −1 = it has none.
    pub timestamp_ms: i64,
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// The version that the plugin says it has.
    pub version: String,
    /// SHA-256 of the plugin's module in hex digits.
    pub digest: String,
    /// The number of the chain that judged it.
    pub generation: u64,
    /// Why, in words.
    pub reason: String,
}

/// A record without the ten headers, or with others in their place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record is not one that Tidegate put into quarantine: {0}")]
pub struct BadNote(String);

/// A header as it lies in a record.
pub type Header<'a> = (&'a [u8], Option<&'a [u8]>);

impl QuarantineNote {
    /// The values of [`HEADERS`], in their order.
    pub fn values(&self) -> [String; HEADERS.len()] {
        [
            self.flow.clone(),
            self.topic.to_string(),
            self.partition.to_string(),
            self.offset.to_string(),
            self.timestamp_ms.to_string(),
            self.plugin.clone(),
            self.version.clone(),
            self.digest.clone(),
            self.generation.to_string(),
            cut(&self.reason, REASON_BYTES_MAX).to_owned(),
        ]
    }

    /// Reads the note of a record, and answers how many of `headers`, from the first on, are the record's own.
    pub fn read(headers: &[Header<'_>]) -> Result<(Self, usize), BadNote> {
        let own = headers.len().checked_sub(HEADERS.len());
        let own = own.ok_or_else(|| BadNote(format!("it has {} headers", headers.len())))?;
        let mut values = Vec::with_capacity(HEADERS.len());
        for (expected, (name, value)) in HEADERS.iter().zip(&headers[own..]) {
            if *name != expected.as_bytes() {
                return Err(BadNote(format!("header \"{expected}\" is missing")));
            }
            let value = value.and_then(|value| std::str::from_utf8(value).ok());
            values.push(value.ok_or_else(|| BadNote(format!("header \"{expected}\" is not text")))?);
        }
        let note = Self {
            flow: values[0].to_owned(),
            topic: TopicName::parse(values[1]).map_err(|_| bad(TOPIC, values[1]))?,
            partition: number(PARTITION, values[2])?,
            offset: SourceOffset(number(OFFSET, values[3])?),
            timestamp_ms: number(TIMESTAMP, values[4])?,
            plugin: values[5].to_owned(),
            version: values[6].to_owned(),
            digest: values[7].to_owned(),
            generation: number(GENERATION, values[8])?,
            reason: values[9].to_owned(),
        };
        Ok((note, own))
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, BadNote> {
    value.parse().map_err(|_| bad(name, value))
}

fn bad(name: &str, value: &str) -> BadNote {
    BadNote(format!("header \"{name}\" is {:?}", cut(value, 80)))
}

/// The longest head of `text` that has at most so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note() -> QuarantineNote {
        QuarantineNote {
            flow: "east->west".into(),
            topic: TopicName::parse("orders").unwrap(),
            partition: 3,
            offset: SourceOffset(812),
            timestamp_ms: -1,
            plugin: "mask".into(),
            version: "0.2.1".into(),
            digest: "ab12".into(),
            generation: 7,
            reason: "is no JSON".into(),
        }
    }

    fn with_values<'a>(own: &[Header<'a>], values: &'a [String]) -> Vec<Header<'a>> {
        let ours = HEADERS.iter().zip(values);
        let ours = ours.map(|(name, value)| (name.as_bytes(), Some(value.as_bytes())));
        own.iter().copied().chain(ours).collect()
    }

    #[test]
    fn the_names_are_those_that_other_programs_look_for() {
        let short: Vec<&str> =
            HEADERS.iter().map(|name| name.strip_prefix("tidegate.quarantine.").unwrap()).collect();
        assert_eq!(
            short,
            [
                "flow",
                "topic",
                "partition",
                "offset",
                "timestamp",
                "plugin",
                "version",
                "digest",
                "generation",
                "reason"
            ]
        );
        let values = note().values();
        assert_eq!(
            values,
            ["east->west", "orders", "3", "812", "-1", "mask", "0.2.1", "ab12", "7", "is no JSON"]
        );
    }

    #[test]
    fn headers_of_the_records_own_stay_its_own_whatever_they_are_called() {
        let own: [Header<'_>; 3] =
            [(b"a", None), (REASON.as_bytes(), Some(b"an older one")), (FLOW.as_bytes(), Some(b"x->y"))];
        let values = note().values();
        assert_eq!(QuarantineNote::read(&with_values(&own, &values)), Ok((note(), 3)));
    }

    #[test]
    fn what_is_no_note_is_refused_in_words() {
        let check = |headers: &[Header<'_>], expected: &str| {
            let text = QuarantineNote::read(headers).unwrap_err().to_string();
            let start = "the record is not one that Tidegate put into quarantine: ";
            assert_eq!(text.strip_prefix(start), Some(expected));
        };
        check(&[], "it has 0 headers");
        let values = note().values();
        let mut headers = with_values(&[], &values);
        headers[3].1 = Some(b"many");
        check(&headers, "header \"tidegate.quarantine.offset\" is \"many\"");
        headers[3].1 = None;
        check(&headers, "header \"tidegate.quarantine.offset\" is not text");
        headers[0].0 = b"other";
        check(&headers, "header \"tidegate.quarantine.flow\" is missing");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = format!("{}é", "x".repeat(REASON_BYTES_MAX - 1));
        let long = QuarantineNote { reason, ..note() };
        assert_eq!(long.values()[9], "x".repeat(REASON_BYTES_MAX - 1));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            partition in any::<i32>(),
            offset in any::<i64>(),
            timestamp_ms in any::<i64>(),
            generation in any::<u64>(),
            reason in ".{0,200}",
            plugin in ".{0,20}",
        ) {
            let offset = SourceOffset(offset);
            let written = QuarantineNote { partition, offset, timestamp_ms, generation, reason, plugin, ..note() };
            let values = written.values();
            prop_assert_eq!(QuarantineNote::read(&with_values(&[], &values)), Ok((written, 0)));
        }
    }
}
