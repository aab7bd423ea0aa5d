//! Follows the plugins topic on connections of its own and brings its records to the flow's loop.

use std::time::Duration;

use tokio::sync::mpsc;
use tracing::warn;

use crate::cluster::{ClusterAdmin, LogReader, LogRecord, plugins_topic};
use crate::names::{FlowName, TopicName};

/// How long the leader may wait for a record, in milliseconds.
const WAIT_MS: u64 = 5_000;

/// A topic that is not there is looked for again after this time, in milliseconds: another node may make it.
const LOOK_MS: u64 = 400;

/// Parts that may wait for the loop.
const PARTS_MAX: usize = 16;

/// Keys and values of one flow's plugins topic come to no more than this; larger is refused at a start, in bytes.
const TOPIC_BYTES_MAX: usize = 3 << 30;

/// Reads what the topic holds; nothing when there is no topic. Goes on with the reader, if there is one.
pub(super) async fn read_all(
    target: &ClusterAdmin,
    flow: &FlowName,
    mut take: impl FnMut(&LogRecord),
) -> anyhow::Result<Option<LogReader>> {
    let topic = plugins_topic(&flow.source);
    if target.find_topic(&topic).await?.is_none() {
        return Ok(None);
    }
    let mut reader = reader(target, &topic);
    let mut bytes = 0;
    loop {
        let part = reader.poll(Duration::ZERO).await?;
        for record in &part.records {
            bytes += record.value.as_ref().map_or(0, bytes::Bytes::len);
            take(record);
        }
        anyhow::ensure!(
            bytes <= TOPIC_BYTES_MAX,
            "topic \"{topic}\" holds more than {TOPIC_BYTES_MAX} bytes; is it compacted?"
        );
        if part.is_end {
            return Ok(Some(reader));
        }
    }
}

fn reader(target: &ClusterAdmin, topic: &TopicName) -> LogReader {
    LogReader::new(target.client().with_own_connections(), topic, 0, 0)
}

/// The records that come from now on, until the receiver is dropped.
pub(super) fn follow(
    target: ClusterAdmin,
    flow: FlowName,
    reader: Option<LogReader>,
) -> mpsc::Receiver<Vec<LogRecord>> {
    let (sender, records) = mpsc::channel(PARTS_MAX);
    tokio::spawn(async move {
        let closed = sender.clone();
        tokio::select! {
            () = closed.closed() => {}
            () = follow_forever(&target, &flow, reader, &sender) => {}
        }
    });
    records
}

async fn follow_forever(
    target: &ClusterAdmin,
    flow: &FlowName,
    mut known: Option<LogReader>,
    sender: &mpsc::Sender<Vec<LogRecord>>,
) {
    let topic = plugins_topic(&flow.source);
    loop {
        let Some(log) = &mut known else {
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            // A failure shows again at the next look.
            if let Ok(Some(_)) = target.topic(&topic).await {
                known = Some(reader(target, &topic));
            }
            continue;
        };
        match log.poll(Duration::from_millis(WAIT_MS)).await {
            Ok(part) if part.records.is_empty() => {}
            Ok(part) => {
                if sender.send(part.records).await.is_err() {
                    return;
                }
            }
            Err(problem) => {
                let problem = format!("{problem:#}");
                warn!(%flow, problem, "decisions about plugins can't be followed now, trying again");
                // It may have been deleted.
                if let Ok(None) = target.find_topic(&topic).await {
                    known = None;
                }
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
        }
    }
}
