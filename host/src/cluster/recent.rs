//! The last records of a topic, a bounded number of them: what a plugin is tried on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tidegate_wire::batch::{Batch, Batches, DECOMPRESSED_BYTES_MAX_DEFAULT, Decompressor, record_timestamp};
use tidegate_wire::client::{Client, Isolation};
use tidegate_wire::fetch::{CommittedFilter, FetchParameters, FetchPartition, FetchedPartition};
use tidegate_wire::list_offsets::{ListedOffset, OffsetAt};
use tidegate_wire::metadata::TopicSelection;
use tokio::time::Instant;

use crate::names::TopicName;
use crate::record::{OwnedBatch, OwnedRecord};

/// More records than anybody tries a plugin on at once.
pub const RECENT_RECORD_COUNT_MAX: usize = 1_000_000;
/// The records that are kept come to no more than this; older ones are left out.
const RECENT_BYTES_MAX: usize = 256 << 20;
/// Bound on one answer.
const FETCH_BYTES_MAX: i32 = 4 << 20;
/// How long a broker may wait before it says that there is nothing.
const FETCH_WAIT_MS_MAX: i32 = 500;
/// How long reading may take in all.
const READ_DEADLINE: Duration = Duration::from_secs(60);
/// Fetches of one partition in a row that may bring nothing.
const IDLE_FETCH_COUNT_MAX: u32 = 10;
/// Wait before a leader is asked again that had no answer, in milliseconds.
const IDLE_PAUSE_MS: u64 = 100;

/// Reads up to `count` of the last committed records of `topic`: as many of each partition, from the ends backwards. One
/// batch for each partition that has records. Fewer come where transactions and compaction leave gaps.
///
/// Errors: the topic does not exist, a partition has no leader, or a minute was not enough.
pub async fn recent_records(
    client: &Client,
    topic: &TopicName,
    count: usize,
) -> anyhow::Result<Vec<OwnedBatch>> {
    let name: Arc<str> = topic.as_str().into();
    let ends = ends(client, &name).await.with_context(|| format!("could not look at topic \"{topic}\""))?;
    let filled_count = ends.iter().filter(|(_, end)| end.count() > 0).count();
    if filled_count == 0 {
        return Ok(Vec::new());
    }
    let mut left = count.min(RECENT_RECORD_COUNT_MAX);
    let share = left.div_ceil(filled_count);
    let bytes_max = RECENT_BYTES_MAX / filled_count;
    let deadline = Instant::now() + READ_DEADLINE;
    let mut batches = Vec::new();
    for (partition, end) in ends.into_iter().filter(|(_, end)| end.count() > 0) {
        if left == 0 {
            break;
        }
        let reading = Reading::new(Arc::clone(&name), partition, end, share.min(left), bytes_max);
        let records = tokio::time::timeout_at(deadline, reading.run(client))
            .await
            .map_err(|_| anyhow::anyhow!("{} s were not enough", READ_DEADLINE.as_secs()))
            .and_then(|read| read)
            .with_context(|| format!("could not read the last records of {topic}[{partition}]"))?;
        left -= records.len().min(left);
        if !records.is_empty() {
            batches.push(OwnedBatch { topic: topic.clone(), partition, records });
        }
    }
    Ok(batches)
}

/// Where a partition begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    first: i64,
    next: i64,
}

impl Ends {
    fn count(self) -> usize {
        usize::try_from(self.next.saturating_sub(self.first)).unwrap_or(0)
    }
}

async fn ends(client: &Client, topic: &Arc<str>) -> anyhow::Result<BTreeMap<i32, Ends>> {
    client.refresh_metadata(TopicSelection::Named(vec![Arc::clone(topic)])).await?;
    let metadata = client.metadata();
    let known = metadata.topics.get(topic);
    let Some(known) = known.filter(|known| known.error.is_none() && !known.partitions.is_empty()) else {
        match known.and_then(|known| known.error) {
            Some(error) => bail!("the cluster answers {error:?}"),
            None => bail!("the cluster has no such topic"),
        }
    };
    let partitions: Vec<_> = known.partitions.keys().map(|number| (Arc::clone(topic), *number)).collect();
    let first = list(client, &partitions, OffsetAt::Earliest).await?;
    let next = list(client, &partitions, OffsetAt::Latest).await?;
    let both = first
        .into_iter()
        .filter_map(|(partition, first)| Some((partition, Ends { first, next: *next.get(&partition)? })));
    Ok(both.collect())
}

async fn list(
    client: &Client,
    partitions: &[(Arc<str>, i32)],
    at: OffsetAt,
) -> anyhow::Result<BTreeMap<i32, i64>> {
    let listed = client.list_offsets(partitions, at, Isolation::ReadCommitted).await?;
    let offset = |listed: ListedOffset| match listed.error {
        None => Ok((listed.partition, listed.offset.unwrap_or(0))),
        Some(error) => Err(anyhow::anyhow!("partition {}: {error:?}", listed.partition)),
    };
    listed.into_iter().map(offset).collect()
}

/// One partition that is being read up to its end.
struct Reading {
    topic: Arc<str>,
    partition: i32,
    next_offset: i64,
    end_offset: i64,
    count_max: usize,
    bytes_max: usize,
    records: VecDeque<OwnedRecord>,
    bytes: usize,
    decompressor: Decompressor,
}

impl Reading {
    fn new(topic: Arc<str>, partition: i32, ends: Ends, count_max: usize, bytes_max: usize) -> Self {
        let back = i64::try_from(count_max).unwrap_or(i64::MAX);
        Self {
            topic,
            partition,
            next_offset: ends.first.max(ends.next.saturating_sub(back)),
            end_offset: ends.next,
            count_max,
            bytes_max,
            records: VecDeque::new(),
            bytes: 0,
            decompressor: Decompressor::new(DECOMPRESSED_BYTES_MAX_DEFAULT),
        }
    }

    async fn run(mut self, client: &Client) -> anyhow::Result<Vec<OwnedRecord>> {
        let mut idle_count = 0;
        while self.next_offset < self.end_offset {
            let before = self.next_offset;
            let problem = match self.fetch(client).await {
                Ok(fetched) => self.take(fetched).map(|()| None)?,
                Err(problem) => Some(problem),
            };
            if self.next_offset > before {
                idle_count = 0;
                continue;
            }
            idle_count += 1;
            if idle_count == IDLE_FETCH_COUNT_MAX {
                return Err(problem.unwrap_or_else(|| anyhow::anyhow!("its leader answers nothing")));
            }
            tokio::time::sleep(Duration::from_millis(IDLE_PAUSE_MS)).await;
            // The leader may have moved; a failure shows in the next round.
            let _ = client.refresh_metadata(TopicSelection::Named(vec![Arc::clone(&self.topic)])).await;
        }
        Ok(self.records.into())
    }

    async fn fetch(&self, client: &Client) -> anyhow::Result<FetchedPartition> {
        let Some((leader, leader_epoch)) = client.metadata().leader(&self.topic, self.partition) else {
            bail!("it has no leader");
        };
        let partition = FetchPartition {
            topic: Arc::clone(&self.topic),
            partition: self.partition,
            offset: self.next_offset,
            leader_epoch,
            max_bytes: FETCH_BYTES_MAX,
        };
        let parameters = FetchParameters {
            max_wait_ms: FETCH_WAIT_MS_MAX,
            min_bytes: 1,
            max_bytes: FETCH_BYTES_MAX,
            isolation: Isolation::ReadCommitted,
        };
        let answer = client.fetch(leader, &parameters, &[partition]).await?;
        let fetched = answer.partitions.into_iter().find(|fetched| fetched.partition == self.partition);
        let fetched = fetched.context("its leader answers nothing")?;
        match fetched.error {
            None => Ok(fetched),
            // Retention was quicker; the new beginning comes with the answer.
            Some(_) if fetched.log_start_offset > self.next_offset => Ok(fetched),
            Some(error) => bail!("its leader answers {error:?}"),
        }
    }

    fn take(&mut self, fetched: FetchedPartition) -> anyhow::Result<()> {
        self.next_offset = self.next_offset.max(fetched.log_start_offset);
        let mut filter = CommittedFilter::new(fetched.aborted);
        for batch in Batches::new(fetched.records) {
            let batch = batch?;
            if filter.keep(&batch) && batch.header.next_offset() > self.next_offset {
                self.take_batch(&batch)?;
            }
            self.next_offset = self.next_offset.max(batch.header.next_offset());
        }
        Ok(())
    }

    fn take_batch(&mut self, batch: &Batch) -> anyhow::Result<()> {
        batch.check_crc()?;
        let header = batch.header;
        for record in self.decompressor.records(batch)? {
            let record = record?;
            let offset = header.base_offset + i64::from(record.offset_delta);
            if offset < self.next_offset || offset >= self.end_offset {
                continue;
            }
            let owned = OwnedRecord {
                offset,
                timestamp_ms: record_timestamp(&header, &record),
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: record
                    .headers
                    .iter()
                    .map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec)))
                    .collect(),
            };
            self.bytes += owned.size_bytes();
            self.records.push_back(owned);
            while self.records.len() > self.count_max || self.bytes > self.bytes_max {
                let Some(oldest) = self.records.pop_front() else { break };
                self.bytes -= oldest.size_bytes();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
