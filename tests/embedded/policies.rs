//! A worker of the relay with a chain of plain Rust in it, between two brokers in memory: filters, pauses, quarantine, swaps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use tidegate::config::{NameList, OffsetReset, OnFault, QuarantineConfig, QuarantineSide, TopicFilter};
use tidegate::names::{ClusterAlias, FlowName, Slot, SourceOffset, SourcePartition, TopicName};
use tidegate::offsets::quarantine::QuarantineNote;
use tidegate::plugin::{
    Answer, BatchWords, CallFigures, Chain, ChainPlugin, Fault, LoadError, Needed, RecordsCall, RecordsSource,
};
use tidegate::relay::{Command, LaneStart, Worker, WorkerSettings};
use tidegate::status::{Changeover, PartitionStats, Registry};
use tidegate_tests::{Isolation, Record, end_offsets, eventually, read_all, stored_positions};
use tidegate_wire::client::ClientOptions;
use tokio::sync::{mpsc, oneshot};

use super::{Pair, RECORDS, TARGET_TOPIC, TOPIC};
use crate::scenario::ARRIVAL_DEADLINE;

const POSITIONS_TOPIC: &str = "mm2-offsets.mem.internal";
const QUARANTINE_TOPIC: &str = "tidegate-quarantine.target.internal";

/// What the plugin says of a record.
#[derive(Clone, Copy)]
enum Say {
    Nothing,
    Drop,
    Reject,
}

type Judge = fn(partition: i32, offset: i64) -> Say;

#[derive(Clone, Copy)]
struct Plain(Judge);

impl RecordsSource for Plain {
    fn start(&self) -> Result<Box<dyn RecordsCall>, LoadError> {
        Ok(Box::new(*self))
    }

    fn note(&self, _call: &CallFigures<'_>) {}
}

impl RecordsCall for Plain {
    fn process(&mut self, batch: &BatchWords<'_>) -> Result<Answer, Fault> {
        let mut answer = Answer { data: b"not liked".to_vec(), ops: Vec::new() };
        for (index, record) in (0..).zip(batch.recs.chunks(batch.rec_words as usize)) {
            match (self.0)(batch.partition, batch.base_offset + i64::from(record[0])) {
                Say::Nothing => {}
                Say::Drop => answer.ops.extend([index, 0, 0, 0, 0, 0]),
                Say::Reject => answer.ops.extend([index, 1, 0, answer.data.len() as u32, 0, 0]),
            }
        }
        Ok(answer)
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

fn chain(generation: u64, on_fault: OnFault, judge: Judge) -> Box<Chain> {
    let topics = TopicFilter {
        include: NameList::parse(&[".*"]).unwrap(),
        exclude: NameList::parse::<&str>(&[]).unwrap(),
    };
    let plugin = ChainPlugin {
        name: "plain".into(),
        version: "1.0.0".into(),
        digest: "d1".into(),
        topics,
        on_fault,
        memory_bytes: 1024 * 1024,
        needed: Needed::default(),
        source: Arc::new(Plain(judge)),
    };
    Box::new(Chain::of(generation, vec![plugin]).unwrap())
}

/// A worker that relays all partitions of the topic.
struct Bench {
    pair: Pair,
    worker: Worker,
    stats: BTreeMap<i32, Arc<PartitionStats>>,
}

fn partition(number: i32) -> SourcePartition {
    SourcePartition { topic: TopicName::parse(TOPIC).unwrap(), partition: number }
}

impl Bench {
    async fn start() -> Bench {
        let pair = Pair::start(1).await;
        pair.target.create_topic(TARGET_TOPIC, RECORDS.partition_count, &[]).unwrap();
        pair.target.create_topic(POSITIONS_TOPIC, 1, &[("cleanup.policy", "compact")]).unwrap();
        pair.produce(0..2_000).await;
        let name = FlowName { source: ClusterAlias::new("mem"), target: ClusterAlias::new("target") };
        let flow = Registry::default().flow(&name);
        let (ended, _nobody_waits) = mpsc::channel(1);
        let worker = Worker::spawn(0, settings(&pair, name), flow, ended).unwrap();
        let target_topic = TopicName::parse(TARGET_TOPIC).unwrap();
        let stats: BTreeMap<i32, Arc<PartitionStats>> = (0..RECORDS.partition_count)
            .map(|number| (number, Arc::new(PartitionStats::new(target_topic.clone(), Slot(0)))))
            .collect();
        let starts = stats.iter().map(|(number, stats)| LaneStart {
            partition: partition(*number),
            target_topic: target_topic.clone(),
            slot: Slot(0),
            first: Some(SourceOffset(0)),
            is_made_anew: false,
            stats: Arc::clone(stats),
        });
        worker.commands.send(Command::Add(starts.collect())).await.unwrap();
        Bench { pair, worker, stats }
    }

    async fn take(&self, chain: Box<Chain>) -> Vec<(SourcePartition, Changeover)> {
        let (taken, answer) = oneshot::channel();
        self.worker.commands.send(Command::TakeChain { chain, taken }).await.unwrap();
        answer.await.unwrap()
    }

    async fn resume(&self, partitions: Option<Vec<SourcePartition>>) -> Vec<SourcePartition> {
        let (done, answer) = oneshot::channel();
        self.worker.commands.send(Command::Resume { partitions, done }).await.unwrap();
        answer.await.unwrap()
    }

    fn position(&self, number: i32) -> i64 {
        self.stats[&number].position.load(Ordering::Relaxed)
    }

    /// Waits until these partitions are settled to the end.
    async fn settles(&self, partitions: &[i32]) {
        let ends = end_offsets(&self.pair.source, TOPIC).await.unwrap();
        let settled = eventually("settled partitions", ARRIVAL_DEADLINE, async || {
            for number in partitions {
                let (position, end) = (self.position(*number), ends[number]);
                let error = self.stats[number].last_error();
                ensure!(position == end, "partition {number} is at {position} of {end}: {error:?}");
            }
            Ok(())
        });
        settled.await.unwrap();
    }

    async fn waits(&self, what: &str, holds: impl Fn() -> bool) {
        let held = eventually(what, ARRIVAL_DEADLINE, async || {
            ensure!(holds(), "not yet");
            Ok(())
        });
        held.await.unwrap();
    }

    /// Lets the worker end; answers the source's records that `is_copied` picks and the target's, both by partition.
    async fn end(self, is_copied: impl Fn(&Record) -> bool) -> Pair {
        let closing = self.worker.close();
        tokio::task::spawn_blocking(move || closing.join()).await.unwrap().unwrap();
        let source = read_all(&self.pair.source, TOPIC, Isolation::ReadUncommitted).await.unwrap();
        let target = read_all(&self.pair.target, TARGET_TOPIC, Isolation::ReadUncommitted).await.unwrap();
        let key = |record: &Record| (record.partition, record.content.clone());
        let expected: Vec<_> = source.iter().filter(|record| is_copied(record)).map(key).collect();
        assert_eq!(target.iter().map(key).collect::<Vec<_>>(), expected);
        self.pair
    }
}

fn settings(pair: &Pair, flow: FlowName) -> WorkerSettings {
    let client =
        |servers: String| ClientOptions { bootstrap_servers: vec![servers], ..ClientOptions::default() };
    WorkerSettings {
        source_alias: flow.source.clone(),
        flow,
        source: client(pair.source.bootstrap_servers()),
        target: client(pair.target.bootstrap_servers()),
        fetch_wait: Duration::from_millis(100),
        fetch_bytes_min: 1,
        fetch_bytes_max: 1024 * 1024,
        partition_fetch_bytes_max: 256 * 1024,
        isolation: tidegate_wire::client::Isolation::ReadUncommitted,
        offset_reset: OffsetReset::Earliest,
        compression: None,
        batch_bytes_max: None,
        request_bytes_max: 1024 * 1024,
        acks_timeout: Duration::from_secs(10),
        retry_backoff: Duration::from_millis(50),
        retry_backoff_max: Duration::from_millis(500),
        buffer_bytes_max: 4 * 1024 * 1024,
        positions_topic: TopicName::parse(POSITIONS_TOPIC).unwrap(),
        commit_interval: Duration::from_millis(200),
        quarantine: QuarantineConfig {
            topic: QUARANTINE_TOPIC.to_owned(),
            side: QuarantineSide::Source,
            replication_factor: -1,
        },
    }
}

const ALL: [i32; 4] = [0, 1, 2, 3];

#[tokio::test(flavor = "multi_thread")]
async fn without_a_chain_nothing_leaves_and_a_filter_lets_out_what_it_keeps() {
    let bench = Bench::start().await;
    bench
        .waits("fetched records", || {
            ALL.iter().all(|number| bench.stats[number].source_end.load(Ordering::Relaxed) > 0)
        })
        .await;
    let sent: i64 = end_offsets(&bench.pair.target, TARGET_TOPIC).await.unwrap().values().sum();
    assert_eq!(sent, 0, "no chain yet");
    bench
        .take(chain(1, OnFault::Pause, |_, offset| if offset % 3 == 0 { Say::Nothing } else { Say::Drop }))
        .await;
    bench.settles(&ALL).await;
    let ends = end_offsets(&bench.pair.source, TOPIC).await.unwrap();
    let dropped: u64 = ALL.iter().map(|number| bench.stats[number].dropped.load(Ordering::Relaxed)).sum();
    let pair = bench.end(|record| record.offset % 3 == 0).await;
    let kept: i64 = end_offsets(&pair.target, TARGET_TOPIC).await.unwrap().values().sum();
    assert_eq!(i64::try_from(dropped).unwrap() + kept, ends.values().sum::<i64>());
    // The last records of some partitions were dropped; their positions are stored all the same.
    let stored = stored_positions(&pair.target, "mem").await.unwrap();
    for number in ALL {
        assert_eq!(stored.get(&(TOPIC.to_owned(), number)), Some(&(ends[&number] - 1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_record_pauses_its_partition_alone_until_a_swap() {
    let bench = Bench::start().await;
    let judge: Judge =
        |partition, offset| if (partition, offset) == (2, 50) { Say::Reject } else { Say::Nothing };
    bench.take(chain(1, OnFault::Pause, judge)).await;
    bench.settles(&[0, 1, 3]).await;
    bench.waits("a pause", || bench.stats[&2].paused().is_some() && bench.position(2) == 50).await;
    let paused = bench.stats[&2].paused().unwrap();
    assert_eq!(
        (paused.offset, paused.plugin.as_str(), paused.generation, paused.reason.as_str()),
        (SourceOffset(50), "plain", 1, "not liked")
    );
    assert_eq!(bench.resume(Some(vec![partition(1)])).await, []);
    assert_eq!(bench.resume(None).await, [partition(2)]);
    bench.waits("the next pause", || bench.stats[&2].paused().is_some()).await;
    assert_eq!(bench.position(2), 50);
    let taken = bench.take(chain(2, OnFault::Pause, |_, _| Say::Nothing)).await;
    let ends = end_offsets(&bench.pair.source, TOPIC).await.unwrap();
    let first = |number: i32| if number == 2 { 50 } else { ends[&number] };
    let expected = ALL.map(|number| {
        let first_offset = Some(SourceOffset(first(number)));
        (partition(number), Changeover { generation: 2, first_offset })
    });
    assert_eq!(taken, expected);
    bench.settles(&ALL).await;
    bench.end(|_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_passes_a_record_that_is_not_in_quarantine_yet() {
    let bench = Bench::start().await;
    let judge: Judge =
        |partition, offset| if partition == 1 && offset % 100 == 7 { Say::Reject } else { Say::Nothing };
    bench.take(chain(1, OnFault::Quarantine, judge)).await;
    bench.settles(&[0, 2, 3]).await;
    bench.waits("a sentence about the missing topic", || bench.stats[&1].last_error().is_some()).await;
    assert!(bench.position(1) <= 7);
    let sentence = bench.stats[&1].last_error().unwrap().message;
    assert_eq!(
        sentence,
        "records can't be put into quarantine, the partition waits for it: topic \
         \"tidegate-quarantine.target.internal\" on \"mem\": the cluster answered UnknownTopicOrPartition"
    );
    bench.pair.source.create_topic(QUARANTINE_TOPIC, 3, &[]).unwrap();
    bench.settles(&ALL).await;
    let quarantined = bench.stats[&1].quarantined.load(Ordering::Relaxed);
    assert_eq!(quarantined, 5);
    let is_rejected = |record: &Record| record.partition == 1 && record.offset % 100 == 7;
    let pair = bench.end(|record| !is_rejected(record)).await;
    let source = read_all(&pair.source, TOPIC, Isolation::ReadUncommitted).await.unwrap();
    let rejected: Vec<&Record> = source.iter().filter(|record| is_rejected(record)).collect();
    let stored = read_all(&pair.source, QUARANTINE_TOPIC, Isolation::ReadUncommitted).await.unwrap();
    assert_eq!(stored.len(), rejected.len());
    for (stored, original) in stored.iter().zip(rejected) {
        let headers = &stored.content.headers;
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref())).collect();
        let (note, own) = QuarantineNote::read(&headers).unwrap();
        assert_eq!(
            (note.topic.as_str(), note.partition, note.offset.0, note.reason.as_str()),
            (TOPIC, original.partition, original.offset, "not liked")
        );
        assert_eq!(note.timestamp_ms, original.content.timestamp_ms);
        assert_eq!(stored.content.headers[..own], original.content.headers);
        assert_eq!(
            (&stored.content.key, &stored.content.value),
            (&original.content.key, &original.content.value)
        );
    }
}
