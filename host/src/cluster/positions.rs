//! Reads stored positions back: the owner of a slot reads that partition of the positions topic from its first record
//! to its end, and what then stands last under each key is where to go on.
//!
//! It reads everything and judges transactions itself, by their markers. Reading committed records only would stop at
//! the first open transaction (of a MirrorMaker 2 that was killed) and miss what others stored behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tidegate_wire::batch::{Batch, Batches, Decompressor};
use tidegate_wire::client::{
    Client, FetchParameters, FetchPartition, FetchedPartition, Isolation, ListedOffset, OffsetAt,
};
use tidegate_wire::metadata::TopicSelection;
use tracing::{debug, warn};

use crate::names::{ClusterAlias, Slot, SourceOffset, SourcePartition};
use crate::offsets::{StoredPosition, parse_position_key, parse_position_value, slot_of};

/// The most that one fetch answers for one slot. A batch that is larger comes whole all the same.
const SLOT_FETCH_BYTES_MAX: i32 = 1 << 20;

/// The most that one fetch answers.
const FETCH_BYTES_MAX: i32 = 16 << 20;

/// How long a broker may wait with an answer; there is something to answer with, so it does not.
const FETCH_WAIT_MS_MAX: i32 = 500;

/// A batch of positions unpacks to at most so much.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// Answers without progress (errors, moving leaders) are borne so many times in a row …
const IDLE_ROUNDS_COUNT_MAX: u32 = 100;

/// … with this pause between them.
const IDLE_PAUSE_MS: u64 = 100;

/// The positions that are stored in `slots` of `topic` for partitions of `source`: the last settled offset of each,
/// behind which to go on. Partitions that were reset are absent. The end is taken at the beginning of the call.
pub async fn read_positions(
    client: &Client,
    topic: &str,
    source: &ClusterAlias,
    slots: &[Slot],
) -> anyhow::Result<BTreeMap<SourcePartition, SourceOffset>> {
    let context = || format!("could not read positions from topic \"{topic}\"");
    let topic: Arc<str> = topic.into();
    let metadata = client
        .refresh_metadata(TopicSelection::Named(vec![Arc::clone(&topic)]))
        .await
        .with_context(context)?;
    let slot_count = metadata.topics.get(&topic).map_or(0, |topic| topic.partitions.len());
    if slot_count == 0 {
        bail!("positions topic \"{topic}\" is gone; was it deleted?");
    }
    let mut reading = Reading::begin(client, topic, slots).await.with_context(context)?;
    let mut positions = Positions::new(source.clone(), i32::try_from(slot_count).unwrap_or(i32::MAX));
    reading.run(client, &mut positions).await.with_context(context)?;
    Ok(positions.finish())
}

/// One slot that is being read.
struct SlotReading {
    slot: Slot,
    next_offset: i64,
    end_offset: i64,
}

struct Reading {
    topic: Arc<str>,
    slots: Vec<SlotReading>,
}

impl Reading {
    async fn begin(client: &Client, topic: Arc<str>, slots: &[Slot]) -> anyhow::Result<Self> {
        let partitions: Vec<_> = slots.iter().map(|slot| (Arc::clone(&topic), slot.0)).collect();
        if partitions.is_empty() {
            return Ok(Self { topic, slots: Vec::new() });
        }
        let first = list(client, &partitions, OffsetAt::Earliest).await?;
        let end = list(client, &partitions, OffsetAt::Latest).await?;
        let slot = |slot: &Slot| -> Option<SlotReading> {
            Some(SlotReading {
                slot: *slot,
                next_offset: *first.get(&slot.0)?,
                end_offset: *end.get(&slot.0)?,
            })
        };
        let readings: Vec<_> = slots.iter().filter_map(slot).collect();
        if readings.len() != slots.len() {
            bail!("the brokers did not tell where its partitions begin and end");
        }
        Ok(Self { topic, slots: readings })
    }

    async fn run(&mut self, client: &Client, positions: &mut Positions) -> anyhow::Result<()> {
        let mut decompressor = Decompressor::new(UNPACKED_BYTES_MAX);
        let mut idle_rounds = 0;
        loop {
            self.slots.retain(|slot| slot.next_offset < slot.end_offset);
            if self.slots.is_empty() {
                return Ok(());
            }
            let answers = self.fetch(client).await;
            let mut problem = None;
            let mut moved = false;
            for answer in answers {
                match answer {
                    Ok(fetched) => moved |= self.take(&fetched, &mut decompressor, positions)?,
                    Err(error) => problem = Some(error),
                }
            }
            if moved {
                idle_rounds = 0;
                continue;
            }
            idle_rounds += 1;
            if idle_rounds == IDLE_ROUNDS_COUNT_MAX {
                let error = problem.unwrap_or_else(|| anyhow::anyhow!("the brokers answer nothing"));
                return Err(error.context(format!("no progress in {IDLE_ROUNDS_COUNT_MAX} attempts")));
            }
            tokio::time::sleep(Duration::from_millis(IDLE_PAUSE_MS)).await;
            // Leaders may have moved; a failure shows in the next round.
            let _ = client.refresh_metadata(TopicSelection::Named(vec![Arc::clone(&self.topic)])).await;
        }
    }

    /// One fetch of each leader.
    async fn fetch(&self, client: &Client) -> Vec<anyhow::Result<FetchedPartition>> {
        let metadata = client.metadata();
        let known = metadata.topics.get(&self.topic);
        let mut by_leader: BTreeMap<i32, Vec<FetchPartition>> = BTreeMap::new();
        let mut answers = Vec::new();
        for slot in &self.slots {
            let partition = known.and_then(|topic| topic.partitions.get(&slot.slot.0));
            let Some((leader, partition)) = partition.and_then(|found| Some((found.leader?, found))) else {
                answers.push(Err(anyhow::anyhow!("slot {} has no leader", slot.slot)));
                continue;
            };
            by_leader.entry(leader).or_default().push(FetchPartition {
                topic: Arc::clone(&self.topic),
                partition: slot.slot.0,
                offset: slot.next_offset,
                leader_epoch: partition.leader_epoch,
                max_bytes: SLOT_FETCH_BYTES_MAX,
            });
        }
        let parameters = FetchParameters {
            max_wait_ms: FETCH_WAIT_MS_MAX,
            min_bytes: 1,
            max_bytes: FETCH_BYTES_MAX,
            isolation: Isolation::ReadUncommitted,
        };
        for (leader, partitions) in by_leader {
            match client.fetch(leader, &parameters, &partitions).await {
                Ok(answer) => answers.extend(answer.partitions.into_iter().map(checked)),
                Err(error) => answers.push(Err(error.into())),
            }
        }
        answers
    }

    /// Takes one answer; says whether it brought us on.
    fn take(
        &mut self,
        fetched: &FetchedPartition,
        decompressor: &mut Decompressor,
        positions: &mut Positions,
    ) -> anyhow::Result<bool> {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.slot.0 == fetched.partition) else {
            return Ok(false);
        };
        // The log's beginning may have moved past us.
        if fetched.log_start_offset > slot.next_offset {
            slot.next_offset = fetched.log_start_offset;
        }
        let before = slot.next_offset;
        for batch in Batches::new(fetched.records.clone()) {
            let batch =
                batch.with_context(|| format!("slot {} at offset {}", slot.slot, slot.next_offset))?;
            if batch.header.next_offset() <= slot.next_offset {
                continue;
            }
            positions
                .take(slot.slot, &batch, slot.next_offset, decompressor)
                .with_context(|| format!("slot {} at offset {}", slot.slot, batch.header.base_offset))?;
            slot.next_offset = batch.header.next_offset();
        }
        Ok(slot.next_offset > before)
    }
}

fn checked(fetched: FetchedPartition) -> anyhow::Result<FetchedPartition> {
    match fetched.error {
        // Out of range: the log was cut while we read; its new beginning comes with the answer.
        Some(kafka_protocol::ResponseError::OffsetOutOfRange) if fetched.log_start_offset >= 0 => Ok(fetched),
        Some(error) => Err(anyhow::anyhow!("slot {}: {error:?}", fetched.partition)),
        None => Ok(fetched),
    }
}

async fn list(
    client: &Client,
    partitions: &[(Arc<str>, i32)],
    at: OffsetAt,
) -> anyhow::Result<BTreeMap<i32, i64>> {
    let listed = client.list_offsets(partitions, at, Isolation::ReadUncommitted).await?;
    let offset = |listed: ListedOffset| match listed.error {
        // No offset: an empty log of a very old format; there is nothing to read.
        None => Ok((listed.partition, listed.offset.unwrap_or(0))),
        Some(error) => Err(anyhow::anyhow!("partition {}: {error:?}", listed.partition)),
    };
    listed.into_iter().map(offset).collect()
}

/// What one record says.
struct Stored {
    log_offset: i64,
    position: StoredPosition,
}

/// The last record of each key, and what open transactions would add to that.
struct Positions {
    source: ClusterAlias,
    slot_count: i32,
    latest: BTreeMap<SourcePartition, Stored>,
    open: BTreeMap<(Slot, i64), BTreeMap<SourcePartition, Stored>>,
}

impl Positions {
    fn new(source: ClusterAlias, slot_count: i32) -> Self {
        Self { source, slot_count, latest: BTreeMap::new(), open: BTreeMap::new() }
    }

    fn take(
        &mut self,
        slot: Slot,
        batch: &Batch,
        from_offset: i64,
        decompressor: &mut Decompressor,
    ) -> anyhow::Result<()> {
        batch.check_crc()?;
        let header = batch.header;
        let transaction = (slot, header.producer_id);
        for record in decompressor.records(batch)? {
            let record = record?;
            let log_offset = header.base_offset + i64::from(record.offset_delta);
            if header.is_control() {
                self.end_transaction(transaction, is_commit(record.key));
            } else if log_offset >= from_offset
                && let Some((partition, stored)) = self.read(slot, log_offset, record.key, record.value)
            {
                if header.is_transactional() {
                    insert_later(self.open.entry(transaction).or_default(), partition, stored);
                } else {
                    insert_later(&mut self.latest, partition, stored);
                }
            }
        }
        Ok(())
    }

    fn read(
        &self,
        slot: Slot,
        log_offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Option<(SourcePartition, Stored)> {
        let key = key?;
        let (cluster, partition) = parse_position_key(key)?;
        if cluster != self.source {
            return None;
        }
        if slot_of(key, self.slot_count) != slot {
            // Partitions were added to the topic: keys moved, and what was stored before lies where nobody looks.
            warn!(%partition, %slot, log_offset, "a position lies in the wrong slot and is ignored");
            return None;
        }
        match parse_position_value(value) {
            Ok(position) => Some((partition, Stored { log_offset, position })),
            Err(error) => {
                warn!(%partition, %slot, log_offset, %error, "a position can't be read and is ignored");
                None
            }
        }
    }

    fn end_transaction(&mut self, transaction: (Slot, i64), is_commit: bool) {
        let Some(records) = self.open.remove(&transaction) else { return };
        if !is_commit {
            debug!(slot = %transaction.0, records = records.len(), "positions of an aborted transaction are ignored");
            return;
        }
        for (partition, stored) in records {
            insert_later(&mut self.latest, partition, stored);
        }
    }

    fn finish(self) -> BTreeMap<SourcePartition, SourceOffset> {
        for ((slot, producer_id), records) in &self.open {
            warn!(%slot, producer_id, records = records.len(), "positions of an open transaction are ignored");
        }
        let settled = |(partition, stored): (SourcePartition, Stored)| match stored.position {
            StoredPosition::Settled(offset) => Some((partition, offset)),
            StoredPosition::Reset => None,
        };
        self.latest.into_iter().filter_map(settled).collect()
    }
}

/// A transaction that ends late must not undo what was stored behind its records.
fn insert_later(known: &mut BTreeMap<SourcePartition, Stored>, partition: SourcePartition, stored: Stored) {
    if known.get(&partition).is_none_or(|old| old.log_offset < stored.log_offset) {
        known.insert(partition, stored);
    }
}

/// A control record's key: version, then type 0 (abort) or 1 (commit), both 16 bits.
fn is_commit(key: Option<&[u8]>) -> bool {
    matches!(key, Some([_, _, 0, 1, ..]))
}

#[cfg(test)]
mod tests;
