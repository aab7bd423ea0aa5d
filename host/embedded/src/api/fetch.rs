//! Fetch by topic name, with the long poll: an answer waits for `min_bytes` until `max_wait_ms` is over. No
//! fetch sessions: every answer says session 0, as a broker does whose session cache is full, and clients
//! then send whole requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::{FetchRequest, FetchResponse, ProducerId};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::log::header::{CODEC_ZSTD, Header};
use crate::log::{Log, ReadLimits};
use crate::refusal::Refusal;
use crate::state::State;

/// First Fetch version that may be answered with zstd (KIP-110).
const ZSTD_FETCH_VERSION: i16 = 10;
/// Longest wait that a client can ask for.
const WAIT_MS_MAX: u64 = 10 * 60 * 1000;

impl Serve for FetchRequest {
    fn touched(&self) -> Vec<Touched> {
        let partitions = self.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.topic.to_string(), partition.partition))
        });
        partitions.map(|(topic, partition)| Touched { topic, partition: Some(partition) }).collect()
    }

    async fn serve(self, call: &Call) -> FetchResponse {
        let answer = FetchResponse::default().with_throttle_time_ms(call.injected.throttle_ms);
        if let Some(error) = refused_whole(&self, call) {
            return answer.with_error_code(error.code());
        }
        let found = wait_for_data(&self, call).await;
        let topics = self.topics.into_iter().zip(found).map(|(topic, partitions)| {
            let indexes = topic.partitions.iter().map(|partition| partition.partition);
            let partitions = indexes.zip(partitions).map(|(index, found)| found.into_answer(index)).collect();
            FetchableTopicResponse::default().with_topic(topic.topic).with_partitions(partitions)
        });
        answer.with_responses(topics.collect())
    }
}

/// Sessions that we never gave, and followers, which do not exist here.
fn refused_whole(request: &FetchRequest, call: &Call) -> Option<ResponseError> {
    let whole = call.injected(Part::Whole).map(|(error, _)| error);
    let session = (request.session_id != 0).then_some(ResponseError::FetchSessionIdNotFound);
    let follower = (request.replica_id.0 >= 0).then_some(ResponseError::InvalidRequest);
    // An error for the whole of an older answer has no place (v7 brought the field): it goes to every
    // partition.
    whole.filter(|_| call.version >= 7 && request.topics.is_empty()).or(session).or(follower)
}

/// What was found for one partition.
struct Found {
    outcome: Result<Read, Refusal>,
}

struct Read {
    high_watermark: i64,
    last_stable_offset: i64,
    log_start_offset: i64,
    aborted: Option<Vec<AbortedTransaction>>,
    parts: Vec<Bytes>,
}

impl Read {
    fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }
}

/// Reads until there is enough, something is wrong, or the time is over.
async fn wait_for_data(request: &FetchRequest, call: &Call) -> Vec<Vec<Found>> {
    let wait_ms = u64::try_from(request.max_wait_ms).unwrap_or(0).min(WAIT_MS_MAX);
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let bell = Arc::new(Notify::new());
    let mut last_look = wait_ms == 0 || request.min_bytes <= 0 || request.topics.is_empty();
    loop {
        let look = look(request, call, (!last_look).then_some(&bell));
        if look.is_enough || last_look {
            return look.found;
        }
        tokio::select! {
            () = bell.notified() => {}
            () = tokio::time::sleep_until(deadline) => last_look = true,
        }
    }
}

struct Look {
    found: Vec<Vec<Found>>,
    is_enough: bool,
}

/// One pass over all partitions, under one lock; leaves the bell there if it is not enough.
fn look(request: &FetchRequest, call: &Call, bell: Option<&Arc<Notify>>) -> Look {
    let mut state = call.shared.lock();
    let mut room = usize::try_from(request.max_bytes).unwrap_or(0);
    let mut nothing_yet = true;
    let mut any_error = false;
    let mut bytes = 0;
    let mut found = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            let reading =
                Reading { isolation_level: request.isolation_level, room, first_batch_whole: nothing_yet };
            let part = Part::Partition(&topic.topic, wanted.partition);
            let outcome = call.attempt(part, || read(&state, call, &topic.topic, wanted, reading));
            match &outcome {
                Ok(read) => {
                    let size = read.bytes();
                    bytes += size;
                    room = room.saturating_sub(size);
                    nothing_yet &= size == 0;
                }
                Err(_) => any_error = true,
            }
            partitions.push(Found { outcome });
        }
        found.push(partitions);
    }
    let is_enough = any_error || bytes >= usize::try_from(request.min_bytes).unwrap_or(0);
    if let (false, Some(bell)) = (is_enough, bell) {
        leave_bell(&mut state, request, bell);
    }
    Look { found, is_enough }
}

fn leave_bell(state: &mut State, request: &FetchRequest, bell: &Arc<Notify>) {
    for topic in &request.topics {
        for wanted in &topic.partitions {
            if let Ok(partition) = state.partition_mut(&topic.topic, wanted.partition) {
                partition.wait_with(bell);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Reading {
    isolation_level: i8,
    room: usize,
    first_batch_whole: bool,
}

fn read(
    state: &State,
    call: &Call,
    topic: &str,
    wanted: &FetchPartition,
    reading: Reading,
) -> Result<Read, Refusal> {
    let partition = state.partition(topic, wanted.partition)?;
    partition.check_leader(call.node, wanted.current_leader_epoch)?;
    let log = &partition.log;
    if wanted.fetch_offset < log.start_offset() || wanted.fetch_offset > log.end_offset() {
        return Err(ResponseError::OffsetOutOfRange.into());
    }
    let committed_only = reading.isolation_level == 1;
    let until_offset = if committed_only { log.last_stable_offset() } else { log.end_offset() };
    let partition_bytes_max = usize::try_from(wanted.partition_max_bytes).unwrap_or(0);
    let parts = log.read(
        wanted.fetch_offset,
        ReadLimits {
            until_offset,
            bytes_max: partition_bytes_max.min(reading.room),
            first_batch_whole: reading.first_batch_whole,
        },
    );
    if call.version < ZSTD_FETCH_VERSION && parts.iter().any(is_zstd) {
        return Err(ResponseError::UnsupportedCompressionType.into());
    }
    let aborted = committed_only.then(|| aborted(log, wanted.fetch_offset, &parts, until_offset));
    Ok(Read {
        high_watermark: log.end_offset(),
        last_stable_offset: log.last_stable_offset(),
        log_start_offset: log.start_offset(),
        aborted,
        parts,
    })
}

fn is_zstd(part: &Bytes) -> bool {
    Header::parse(part).is_some_and(|header| header.codec() == CODEC_ZSTD)
}

/// Aborted transactions that touch what is being sent.
fn aborted(log: &Log, from: i64, parts: &[Bytes], until_offset: i64) -> Vec<AbortedTransaction> {
    let last = parts.iter().rev().find_map(|part| Header::parse(part));
    let until = last.map_or(from, |header| header.last_offset() + 1).min(until_offset);
    let found = log.aborted_within(from, until).into_iter();
    found
        .map(|aborted| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(aborted.producer_id))
                .with_first_offset(aborted.first_offset)
        })
        .collect()
}

impl Found {
    fn into_answer(self, index: i32) -> PartitionData {
        let answer = PartitionData::default().with_partition_index(index);
        match self.outcome {
            Ok(read) => answer
                .with_high_watermark(read.high_watermark)
                .with_last_stable_offset(read.last_stable_offset)
                .with_log_start_offset(read.log_start_offset)
                .with_aborted_transactions(read.aborted)
                .with_records(Some(joined(read.parts))),
            Err(refusal) => answer
                .with_error_code(refusal.code())
                .with_high_watermark(-1)
                .with_last_stable_offset(-1)
                .with_log_start_offset(-1)
                .with_aborted_transactions(None)
                .with_records(Some(Bytes::new())),
        }
    }
}

fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    for part in parts {
        all.extend_from_slice(&part);
    }
    all.freeze()
}
