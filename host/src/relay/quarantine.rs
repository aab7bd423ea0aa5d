//! Records in quarantine: built from what was read, written to their topic, waited for. A partition of which records go there
//! stands still until they lie there; the others go on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tidegate_wire::batch::{BatchBuilder, BatchError, BuiltBatch, Codec};
use tidegate_wire::client::Client;
use tidegate_wire::metadata::{ClusterMetadata, TopicSelection};
use tidegate_wire::produce::{OnceError, produce_once};
use tracing::{debug, warn};

use super::leaders::leader_of;
use super::transform::{Origin, Transform};
use crate::names::{ClusterAlias, FlowName, SourceOffset, SourcePartition};
use crate::offsets::quarantine::{HEADERS, QuarantineNote};
use crate::offsets::{position_key, slot_of};
use crate::plugin::Condemned;
use crate::record::RecordNow;
use crate::status::{PartitionStats, now_ms};

/// A batch of quarantined records takes no further record once it holds this many bytes before compression.
const BATCH_BYTES_MAX: usize = 512 * 1024;

/// Pause before a refused write is tried again, in milliseconds, doubled up to [`RETRY_MS_MAX`].
const RETRY_MS: u64 = 200;

/// The longest such pause. There is no last try: until the records lie in quarantine the partition waits.
const RETRY_MS_MAX: u64 = 10_000;

/// A record that goes to quarantine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condemnation<'a> {
    pub(super) origin: Origin<'a>,
    /// As it was read.
    pub(super) original: RecordNow<'a>,
    pub(super) condemned: &'a Condemned,
}

/// Records for the quarantine topic, in the order of the source.
#[derive(Clone, Debug)]
pub(super) struct QuarantineBatch {
    pub(super) batch: BuiltBatch,
    /// The offset of each on the source, and the plugin that judged it.
    pub(super) records: Vec<(SourceOffset, Arc<str>)>,
}

/// Puts quarantined records together.
#[derive(Debug, Default)]
pub(super) struct QuarantineBuilder {
    builder: BatchBuilder,
    records: Vec<(SourceOffset, Arc<str>)>,
    done: Vec<QuarantineBatch>,
}

impl QuarantineBuilder {
    /// Begins; `codec` is that of the batch that the records lay in, so that what was small enough there is so here.
    pub(super) fn start(&mut self, codec: Codec) {
        self.builder.start(codec);
        self.records.clear();
        self.done.clear();
    }

    pub(super) fn push(&mut self, record: Condemnation<'_>) -> Result<(), BatchError> {
        let Condemnation { origin, original, condemned } = record;
        let note = QuarantineNote {
            flow: origin.flow.to_string(),
            topic: origin.partition.topic.clone(),
            partition: origin.partition.partition,
            offset: original.offset,
            timestamp_ms: original.timestamp_ms,
            plugin: condemned.plugin.clone(),
            version: condemned.version.clone(),
            digest: condemned.digest.clone(),
            generation: condemned.generation,
            reason: condemned.reason.clone(),
        };
        let values = note.values();
        let notes =
            HEADERS.iter().zip(&values).map(|(name, value)| (name.as_bytes(), Some(value.as_bytes())));
        let headers: Vec<_> = original.headers().chain(notes).collect();
        self.builder.push_parts(original.key(), original.value(), &headers, now_ms());
        self.records.push((original.offset, condemned.plugin.as_str().into()));
        if self.builder.uncompressed_bytes() >= BATCH_BYTES_MAX { self.cut() } else { Ok(()) }
    }

    /// What was put together.
    pub(super) fn finish(&mut self) -> Result<Vec<QuarantineBatch>, BatchError> {
        self.cut()?;
        Ok(std::mem::take(&mut self.done))
    }

    fn cut(&mut self) -> Result<(), BatchError> {
        if !self.records.is_empty() {
            let batch = self.builder.finish()?;
            self.done.push(QuarantineBatch { batch, records: std::mem::take(&mut self.records) });
        }
        Ok(())
    }
}

/// A record that the quarantine topic does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    pub(super) offset: SourceOffset,
    pub(super) plugin: String,
    pub(super) reason: String,
}

/// Writes the records of one source partition to the quarantine topic.
#[derive(Debug)]
pub(super) struct QuarantineWriter {
    pub(super) flow: FlowName,
    pub(super) source_alias: ClusterAlias,
    pub(super) partition: SourcePartition,
    /// Of the cluster that the topic lies on.
    pub(super) client: Client,
    /// The alias of that cluster, for sentences.
    pub(super) cluster: ClusterAlias,
    pub(super) topic: Arc<str>,
    pub(super) acks_timeout_ms: i32,
    pub(super) stats: Arc<PartitionStats>,
    /// Set while the last try did not succeed.
    pub(super) is_failing: Arc<AtomicBool>,
}

impl QuarantineWriter {
    /// Writes the batches in order, each until it lies there. Ends early only at a record that is too large for the topic.
    pub(super) async fn write(self, batches: Vec<QuarantineBatch>) -> Result<(), TooLarge> {
        let mut pending = VecDeque::from(batches);
        let mut attempts = 0;
        while let Some(next) = pending.pop_front() {
            match self.write_one(&next.batch).await {
                Ok(()) => {
                    attempts = 0;
                    self.is_failing.store(false, Ordering::Relaxed);
                }
                Err(problem) if is_too_large(&problem) => {
                    let halves = halves(&next).map_err(|words| self.too_large(&next, &words, &problem))?;
                    halves.into_iter().rev().for_each(|half| pending.push_front(half));
                }
                Err(problem) => {
                    pending.push_front(next);
                    self.tell(&problem, attempts);
                    let pause_ms = RETRY_MS.saturating_mul(1 << attempts.min(10)).min(RETRY_MS_MAX);
                    attempts = attempts.saturating_add(1);
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
            }
        }
        Ok(())
    }

    async fn write_one(&self, batch: &BuiltBatch) -> anyhow::Result<()> {
        let selection = TopicSelection::Named(vec![Arc::clone(&self.topic)]);
        let metadata = self.client.refresh_metadata(selection).await?;
        let partition = self.partition_for(&metadata)?;
        let (leader, _epoch) = leader_of(&metadata, &self.topic, partition)
            .with_context(|| format!("its partition {partition} has no leader"))?;
        produce_once(&self.client, leader, &self.topic, partition, batch, self.acks_timeout_ms).await?;
        Ok(())
    }

    /// All of one source partition goes to one partition, so that the order stays.
    fn partition_for(&self, metadata: &ClusterMetadata) -> anyhow::Result<i32> {
        let topic = metadata.topics.get(&self.topic).context("the cluster told nothing of it")?;
        if let Some(error) = topic.error {
            anyhow::bail!("the cluster answered {error:?}");
        }
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        anyhow::ensure!(count > 0, "it has no partition");
        Ok(slot_of(&position_key(&self.source_alias, &self.partition), count).0)
    }

    /// In the status with every try, in the log once.
    fn tell(&self, problem: &anyhow::Error, attempts: u32) {
        self.is_failing.store(true, Ordering::Relaxed);
        let sentence = format!(
            "records can't be put into quarantine, the partition waits for it: topic \"{}\" on \"{}\": {problem:#}",
            self.topic, self.cluster
        );
        if attempts == 0 {
            warn!(flow = %self.flow, partition = %self.partition, problem = %sentence, "quarantine not written");
        } else {
            debug!(flow = %self.flow, partition = %self.partition, problem = %sentence, "quarantine not written");
        }
        self.stats.set_error(now_ms(), sentence);
    }

    fn too_large(&self, refused: &QuarantineBatch, words: &str, problem: &anyhow::Error) -> TooLarge {
        let (offset, plugin) = refused.records.first().map_or_else(
            || (SourceOffset(0), String::new()),
            |(offset, plugin)| (*offset, plugin.to_string()),
        );
        let bytes = refused.batch.header.total_bytes();
        let reason = format!(
            "a record of {bytes} bytes can't be put into quarantine ({problem:#}; {words}); raise max.message.bytes of topic \
             \"{}\" on \"{}\", then resume the partition",
            self.topic, self.cluster
        );
        TooLarge { offset, plugin, reason }
    }
}

fn is_too_large(problem: &anyhow::Error) -> bool {
    problem.downcast_ref::<OnceError>().is_some_and(OnceError::is_too_large)
}

/// The first and the second half of the records; words when it is a single one.
fn halves(whole: &QuarantineBatch) -> Result<[QuarantineBatch; 2], String> {
    let split = Transform::default().split(&whole.batch.header, &whole.batch.payload);
    match split {
        Ok(Some([first, second])) => {
            let count = usize::try_from(first.header.record_count).unwrap_or(0).min(whole.records.len());
            let (early, late) = whole.records.split_at(count);
            Ok([
                QuarantineBatch { batch: first, records: early.to_vec() },
                QuarantineBatch { batch: second, records: late.to_vec() },
            ])
        }
        Ok(None) => Err("it is a single record".to_owned()),
        Err(problem) => Err(problem.to_string()),
    }
}
