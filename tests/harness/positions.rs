//! What lies in a flow's positions topic, read as MirrorMaker 2's own bytes and by nothing of Tidegate's.

use std::collections::BTreeMap;

use anyhow::Context;

use crate::Servers;
use crate::reader::{Isolation, read_all};

/// Offset of the last record that is known to have arrived, by topic and partition of the source.
pub type Positions = BTreeMap<(String, i32), i64>;

/// The newest position of each partition in `mm2-offsets.SOURCE.internal`; nothing if the topic is not there.
///
/// # Errors
/// When a record of a source partition is not exactly what MirrorMaker 2 would have written.
pub async fn stored_positions(target: &dyn Servers, source: &str) -> anyhow::Result<Positions> {
    let topic = format!("mm2-offsets.{source}.internal");
    let mut positions = Positions::new();
    if !crate::topics::topic_names(target).await?.contains(&topic) {
        return Ok(positions);
    }
    for record in read_all(target, &topic, Isolation::ReadCommitted).await? {
        let key = String::from_utf8(record.content.key.clone().unwrap_or_default())?;
        // Heartbeats and checkpoints keep positions in the same topic.
        if !key.starts_with(r#"["MirrorSourceConnector","#) {
            continue;
        }
        let place = parse_key(source, &key).with_context(|| format!("key {key}"))?;
        match record.content.value {
            None => drop(positions.remove(&place)),
            Some(value) => {
                let value = String::from_utf8(value)?;
                let offset = value.strip_prefix(r#"{"offset":"#).and_then(|rest| rest.strip_suffix('}'));
                let offset = offset.and_then(|digits| digits.parse().ok());
                positions.insert(place, offset.with_context(|| format!("value {value} of key {key}"))?);
            }
        }
    }
    Ok(positions)
}

/// Member by member: MirrorMaker 2 looks positions up by the exact bytes. The scenarios' names need no escapes.
fn parse_key(source: &str, key: &str) -> anyhow::Result<(String, i32)> {
    let head = format!(r#"["MirrorSourceConnector",{{"cluster":"{source}","partition":"#);
    let rest = key.strip_prefix(&head).context("another beginning than MirrorMaker 2's")?;
    let rest = rest.strip_suffix(r#""}]"#).context("another end than MirrorMaker 2's")?;
    let (partition, topic) = rest.split_once(r#","topic":""#).context("no topic behind the partition")?;
    Ok((topic.to_owned(), partition.parse()?))
}
