//! Produce: checks without the log first, then the log's own rules under the lock.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;

use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::log::check::{CheckedBatch, check_records};
use crate::log::header::Stamp;
use crate::log::producers::SequenceVerdict;
use crate::refusal::Refusal;
use crate::settings::TopicSettings;
use crate::state::{Shared, now_ms};

/// Version from which answers carry per-record errors and a message (KIP-467).
const RECORD_ERRORS_VERSION: i16 = 8;

/// What an append tells the client.
#[derive(Debug, Clone, Copy)]
struct Appended {
    base_offset: i64,
    append_time_ms: i64,
    log_start_offset: i64,
}

impl Serve for ProduceRequest {
    fn touched(&self) -> Vec<Touched> {
        let partitions = self.topic_data.iter().flat_map(|topic| {
            topic.partition_data.iter().map(|partition| (topic.name.to_string(), partition.index))
        });
        partitions.map(|(topic, partition)| Touched { topic, partition: Some(partition) }).collect()
    }

    fn wants_answer(&self) -> bool {
        self.acks != 0
    }

    fn must_close(answer: &ProduceResponse) -> bool {
        answer.responses.iter().flat_map(|topic| &topic.partition_responses).any(|part| part.error_code != 0)
    }

    async fn serve(self, call: &Call) -> ProduceResponse {
        let acks = self.acks;
        let topics = self.topic_data.into_iter().map(|topic| serve_topic(call, acks, topic)).collect();
        ProduceResponse::default().with_responses(topics).with_throttle_time_ms(call.injected.throttle_ms)
    }
}

fn serve_topic(call: &Call, acks: i16, topic: TopicProduceData) -> TopicProduceResponse {
    let name = topic.name;
    let serve = |partition: PartitionProduceData| {
        let index = partition.index;
        let outcome = call.attempt(Part::Partition(&name, index), || {
            if !(-1..=1).contains(&acks) {
                return Err(ResponseError::InvalidRequiredAcks.into());
            }
            let batch = check_records(partition.records, call.version)?;
            append(call, &name, index, &batch)
        });
        partition_answer(call.version, index, outcome)
    };
    let partitions = topic.partition_data.into_iter().map(serve).collect();
    TopicProduceResponse::default().with_name(name).with_partition_responses(partitions)
}

fn append(call: &Call, topic: &str, index: i32, batch: &CheckedBatch) -> Result<Appended, Refusal> {
    let shared: &Shared = &call.shared;
    let mut state = shared.lock();
    state.partition(topic, index)?.check_leader(call.node, -1)?;
    let settings = state.topics.get(topic).map(|topic| topic.settings.clone()).unwrap_or_default();
    check_settings(&settings, batch)?;
    let partition = state.partition_mut(topic, index)?;
    match partition.log.producers.judge(&batch.header) {
        SequenceVerdict::Refuse(refusal) => Err(refusal),
        SequenceVerdict::Duplicate(first) => Ok(Appended {
            base_offset: first.base_offset,
            append_time_ms: first.timestamp_ms,
            log_start_offset: partition.log.start_offset(),
        }),
        SequenceVerdict::Append => {
            let stamp = Stamp {
                base_offset: partition.log.end_offset(),
                leader_epoch: partition.leader_epoch,
                append_time_ms: settings.is_log_append_time().then(now_ms),
            };
            let appended = partition.log.append(&batch.bytes, stamp);
            partition.log.shrink_to(shared.options.bytes_max(&settings));
            partition.ring();
            Ok(Appended {
                base_offset: appended.base_offset,
                append_time_ms: stamp.append_time_ms.unwrap_or(-1),
                log_start_offset: partition.log.start_offset(),
            })
        }
    }
}

/// The topic's own limits: size, and how far timestamps may stray. The header's largest timestamp and base
/// timestamp stand for all records of the batch.
fn check_settings(settings: &TopicSettings, batch: &CheckedBatch) -> Result<(), Refusal> {
    let bytes_max = settings.max_message_bytes();
    if batch.bytes.len() > bytes_max {
        return Err(Refusal::new(
            ResponseError::MessageTooLarge,
            format!("the batch has {} bytes, but the topic takes at most {bytes_max}", batch.bytes.len()),
        ));
    }
    if settings.is_log_append_time() {
        return Ok(());
    }
    let (before_ms, after_ms) = settings.timestamp_bounds_ms();
    let now = now_ms();
    let strays = |timestamp: i64| {
        timestamp >= 0
            && (timestamp > now.saturating_add(after_ms) || timestamp < now.saturating_sub(before_ms))
    };
    if strays(batch.header.max_timestamp) || strays(batch.header.base_timestamp) {
        return Err(Refusal::new(
            ResponseError::InvalidTimestamp,
            "one or more records have been rejected due to invalid timestamp",
        ));
    }
    Ok(())
}

fn partition_answer(
    version: i16,
    index: i32,
    outcome: Result<Appended, Refusal>,
) -> PartitionProduceResponse {
    let answer = PartitionProduceResponse::default().with_index(index);
    match outcome {
        Ok(appended) => answer
            .with_base_offset(appended.base_offset)
            .with_log_append_time_ms(appended.append_time_ms)
            .with_log_start_offset(appended.log_start_offset),
        Err(refusal) => {
            let answer = answer
                .with_error_code(refusal.code())
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
                .with_log_start_offset(-1);
            if version < RECORD_ERRORS_VERSION {
                return answer;
            }
            let records = record_errors(&refusal);
            answer.with_error_message(refusal.wire_message()).with_record_errors(records)
        }
    }
}

/// Kafka names the records when the records are at fault; here always the first.
fn record_errors(refusal: &Refusal) -> Vec<BatchIndexAndErrorMessage> {
    let at_fault = matches!(refusal.error, ResponseError::InvalidTimestamp);
    let error = BatchIndexAndErrorMessage::default()
        .with_batch_index(0)
        .with_batch_index_error_message(None::<StrBytes>);
    if at_fault { vec![error] } else { Vec::new() }
}
