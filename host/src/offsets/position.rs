//! One stored position: a record of the positions topic (`mm2-offsets.SOURCE.internal`). Its key names a source
//! partition, its value the last source offset that is settled.

use serde_json::Value;

use super::json_text::push_json_text;
use crate::names::{ClusterAlias, SourceOffset, SourcePartition, TopicName};

const SOURCE_CONNECTOR: &str = "MirrorSourceConnector";

/// The key of a partition's position. The order of members is that of Java's hash map and must stay: MirrorMaker 2
/// finds a position by the exact bytes.
pub fn position_key(source: &ClusterAlias, partition: &SourcePartition) -> Vec<u8> {
    let mut key = Vec::with_capacity(96);
    key.extend_from_slice(b"[\"MirrorSourceConnector\",{\"cluster\":");
    push_json_text(&mut key, source.as_str());
    key.extend_from_slice(format!(",\"partition\":{},\"topic\":", partition.partition).as_bytes());
    push_json_text(&mut key, partition.topic.as_str());
    key.extend_from_slice(b"}]");
    key
}

/// The cluster and partition that a key names. None for what is not ours: keys of the checkpoint and heartbeat
/// connectors, of other programs, and keys that say the same in other bytes (MirrorMaker 2 would not find those, and
/// compaction keeps them apart).
pub fn parse_position_key(key: &[u8]) -> Option<(ClusterAlias, SourcePartition)> {
    let Ok(Value::Array(parts)) = serde_json::from_slice(key) else { return None };
    let [Value::String(connector), Value::Object(members)] = parts.as_slice() else { return None };
    if connector != SOURCE_CONNECTOR {
        return None;
    }
    let cluster = ClusterAlias::new(members.get("cluster")?.as_str()?);
    let topic = TopicName::parse(members.get("topic")?.as_str()?).ok()?;
    let number = i32::try_from(members.get("partition")?.as_i64()?).ok()?;
    let partition = SourcePartition { topic, partition: number };
    (position_key(&cluster, &partition) == key).then_some((cluster, partition))
}

/// The value that stores `settled`, the last source offset that is delivered or dropped by policy. Whoever reads it
/// goes on at the offset behind it.
pub fn position_value(settled: SourceOffset) -> Vec<u8> {
    format!("{{\"offset\":{settled}}}").into_bytes()
}

/// What a value of the positions topic says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredPosition {
    /// The last settled source offset.
    Settled(SourceOffset),
    /// The position was taken back: begin as if there never was one.
    Reset,
}

/// A value that MirrorMaker 2 does not write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no position; a position looks like {{\"offset\":123}}")]
pub struct BadPosition(String);

/// How much of a bad value goes into the error text.
const QUOTED_BYTES_MAX: usize = 80;

/// Reads a value. A null value (a tombstone), JSON's `null` and a negative or missing offset are a reset, as
/// MirrorMaker 2 reads them; members that we don't know are ignored.
pub fn parse_position_value(value: Option<&[u8]>) -> Result<StoredPosition, BadPosition> {
    let Some(bytes) = value else { return Ok(StoredPosition::Reset) };
    let bad = || {
        let shown = String::from_utf8_lossy(bytes.get(..QUOTED_BYTES_MAX).unwrap_or(bytes));
        BadPosition(format!("{shown:?}"))
    };
    let members = match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => members,
        Ok(Value::Null) => return Ok(StoredPosition::Reset),
        _ => return Err(bad()),
    };
    match members.get("offset") {
        None | Some(Value::Null) => Ok(StoredPosition::Reset),
        Some(offset) => match offset.as_i64() {
            Some(offset) if offset >= 0 => Ok(StoredPosition::Settled(SourceOffset(offset))),
            Some(_) => Ok(StoredPosition::Reset),
            None => Err(bad()),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn partition(topic: &str, partition: i32) -> SourcePartition {
        SourcePartition { topic: TopicName::parse(topic).unwrap(), partition }
    }

    #[test]
    fn keys_are_those_of_mirror_maker() {
        let check = |alias: &str, topic: &str, number: i32, expected: &str| {
            let alias = ClusterAlias::new(alias);
            let partition = partition(topic, number);
            let key = position_key(&alias, &partition);
            assert_eq!(String::from_utf8(key.clone()).unwrap(), expected);
            assert_eq!(parse_position_key(&key), Some((alias, partition)));
        };
        check("A", "t", 0, r#"["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]"#);
        check(
            "us-west.1",
            "orders_eu",
            2147483647,
            r#"["MirrorSourceConnector",{"cluster":"us-west.1","partition":2147483647,"topic":"orders_eu"}]"#,
        );
        check("q\"\\", "t", 1, r#"["MirrorSourceConnector",{"cluster":"q\"\\","partition":1,"topic":"t"}]"#);
    }

    #[test]
    fn foreign_keys_are_not_ours() {
        let check = |key: &str| assert_eq!(parse_position_key(key.as_bytes()), None, "{key}");
        check(r#"["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]"#);
        check(r#"["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]"#);
        check(r#"["MirrorSourceConnector",{"partition":0,"cluster":"A","topic":"t"}]"#);
        check(r#"["MirrorSourceConnector", {"cluster":"A","partition":0,"topic":"t"}]"#);
        check(r#"["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"a/b"}]"#);
        check(r#"["MirrorSourceConnector",{"cluster":"A","partition":99999999999,"topic":"t"}]"#);
        check(r#"["MirrorSourceConnector",{"cluster":"A","partition":0.5,"topic":"t"}]"#);
        check(r#"["MirrorSourceConnector",{"cluster":"A","partition":0}]"#);
        check(r#"["MirrorSourceConnector"]"#);
        check("{}");
        check("");
        check("[[[[");
    }

    #[test]
    fn values_are_those_of_mirror_maker() {
        assert_eq!(position_value(SourceOffset(123)), br#"{"offset":123}"#);
        let check = |value: Option<&str>, expected: StoredPosition| {
            assert_eq!(parse_position_value(value.map(str::as_bytes)), Ok(expected), "{value:?}");
        };
        let settled = |offset| StoredPosition::Settled(SourceOffset(offset));
        check(Some(r#"{"offset":123}"#), settled(123));
        check(Some(r#"{"offset":0}"#), settled(0));
        check(Some(r#"{"offset":9223372036854775807}"#), settled(i64::MAX));
        check(Some("{ \"other\": 1, \"offset\" : 4294967296 }"), settled(4_294_967_296));
        check(Some(r#"{"offset":-1}"#), StoredPosition::Reset);
        check(Some(r#"{"offset":null}"#), StoredPosition::Reset);
        check(Some("{}"), StoredPosition::Reset);
        check(Some("null"), StoredPosition::Reset);
        check(None, StoredPosition::Reset);
    }

    #[test]
    fn values_that_are_no_position_are_told() {
        let check = |value: &str, expected: &str| {
            assert_eq!(parse_position_value(Some(value.as_bytes())).unwrap_err().to_string(), expected);
        };
        check(
            r#"{"offset":"12"}"#,
            r#""{\"offset\":\"12\"}" is no position; a position looks like {"offset":123}"#,
        );
        check("", r#""" is no position; a position looks like {"offset":123}"#);
        check("[1]", r#""[1]" is no position; a position looks like {"offset":123}"#);
        check(
            r#"{"offset":9223372036854775808}"#,
            r#""{\"offset\":9223372036854775808}" is no position; a position looks like {"offset":123}"#,
        );
    }

    proptest! {
        #[test]
        fn every_key_is_read_back(alias in any::<String>(), topic in "[a-zA-Z0-9_-]{1,249}", number in 0..=i32::MAX) {
            let (alias, partition) = (ClusterAlias::new(&alias), partition(&topic, number));
            let key = position_key(&alias, &partition);
            prop_assert_eq!(parse_position_key(&key), Some((alias, partition)));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_position_key(&bytes);
            let _ = parse_position_value(Some(&bytes));
        }
    }
}
