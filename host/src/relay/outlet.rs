//! Producing: what goes with the next request, and what an acknowledgement settles.

use std::collections::HashMap;

use bytes::Bytes;
use tidegate_wire::batch::BatchBuilder;
use tidegate_wire::client::NodeId;
use tidegate_wire::error::WireError;
use tidegate_wire::produce::{
    BatchSource, CallId, Lane, OutBatch, ProduceEvent, ProducerIdentity, init_producer_id,
};
use tidegate_wire::{ApiKey, ResponseError};
use tokio::time::{Duration, Instant};
use tracing::warn;

use super::WorkerSettings;
use super::lane::{SendRules, SplitError, Workshop};
use super::transform::{EditError, Transform};
use super::worker::{Event, Occupant, WorkerState};
use crate::names::{ClusterAlias, FlowName, Slot, SourceOffset, SourcePartition, TopicName};
use crate::plugin::Chain;
use crate::status::now_ms;

/// Pause before positions are sent again that the target refused, in milliseconds.
const POSITIONS_RETRY_MS: u64 = 1_000;

/// What the target says of a batch that it will not take.
struct Refusal {
    error: ResponseError,
    message: Option<String>,
    /// The first record that it names, by its place in the batch.
    record: Option<i64>,
}

/// The way out of a refusal.
fn remedy(error: ResponseError, target: &TopicName) -> String {
    match error {
        ResponseError::InvalidTimestamp => format!(
            "raise message.timestamp.before.max.ms and message.timestamp.after.max.ms of topic \"{target}\" on the target"
        ),
        ResponseError::InvalidRecord => {
            format!(
                "a compacted topic takes no records without a key: set cleanup.policy = delete on topic \"{target}\""
            )
        }
        ResponseError::TopicAuthorizationFailed => format!("allow WRITE on topic \"{target}\""),
        _ => format!("look at the settings of topic \"{target}\" on the target"),
    }
}

/// What the producer takes its batches from.
struct Outgoing<'a> {
    occupants: &'a mut HashMap<Lane, Occupant>,
    transform: &'a mut Transform,
    chain: Option<&'a mut Chain>,
    flow: &'a FlowName,
    builder: &'a mut BatchBuilder,
    source: &'a ClusterAlias,
    rules: SendRules,
    now: Instant,
    freed_bytes: usize,
    unreadable: Vec<(Lane, EditError)>,
    /// Partitions that a plugin stopped, or that have records for quarantine.
    judged: Vec<Lane>,
    /// Some partition is not through with what waits.
    has_more: bool,
}

impl Outgoing<'_> {
    fn positions(&self, slot: Slot) -> Vec<(SourcePartition, SourceOffset)> {
        let lanes = self.occupants.values().filter_map(Occupant::relay);
        let lanes = lanes.filter(|relay| relay.slot == slot && relay.is_placed);
        lanes.map(|relay| (relay.source.clone(), relay.progress.safe_offset())).collect()
    }
}

impl BatchSource for Outgoing<'_> {
    fn next(&mut self, lane: Lane, bytes_max: usize) -> Option<OutBatch> {
        let wanted_slot = match self.occupants.get_mut(&lane)? {
            Occupant::Relay(relay) => {
                let chain = self.chain.as_deref_mut()?;
                let (before, was_halted) = (relay.unsettled_bytes, relay.is_halted());
                let mut workshop = Workshop { transform: self.transform, chain, flow: self.flow };
                let next = relay.next_batch(bytes_max, self.rules, &mut workshop);
                self.freed_bytes += before - relay.unsettled_bytes;
                self.has_more |= relay.takes_another_turn();
                if relay.is_halted() != was_halted || relay.has_quarantine_to_write() {
                    self.judged.push(lane);
                }
                return next.unwrap_or_else(|error| {
                    self.unreadable.push((lane, error));
                    None
                });
            }
            Occupant::Positions(ledger) => ledger.is_ready(self.now).then_some(ledger.slot)?,
        };
        let positions = self.positions(wanted_slot);
        let Some(Occupant::Positions(ledger)) = self.occupants.get_mut(&lane) else { return None };
        ledger.batch(self.source, positions.into_iter(), now_ms(), self.builder)
    }
}

/// What the settings say of batches that are sent.
pub(super) fn send_rules(settings: &WorkerSettings) -> SendRules {
    SendRules { compression: settings.compression, batch_bytes_max: settings.batch_bytes_max }
}

impl WorkerState {
    /// Sends all that brokers have room for.
    pub(super) fn send_requests(&mut self, now: Instant) {
        let nodes: Vec<NodeId> = self.producer.nodes_ready(now.into_std()).collect();
        for node in nodes {
            while self.send_request(node, now) {}
        }
    }

    fn send_request(&mut self, node: NodeId, now: Instant) -> bool {
        let mut outgoing = Outgoing {
            occupants: &mut self.occupants,
            transform: &mut self.transform,
            builder: &mut self.position_builder,
            source: &self.settings.source_alias,
            chain: self.chain.as_deref_mut(),
            flow: &self.settings.flow,
            rules: send_rules(&self.settings),
            now,
            freed_bytes: 0,
            unreadable: Vec::new(),
            judged: Vec::new(),
            has_more: false,
        };
        let call = self.producer.next_request(node, now.into_std(), &mut outgoing);
        let Outgoing { freed_bytes, unreadable, judged, has_more, .. } = outgoing;
        self.budget.free(freed_bytes);
        if has_more {
            self.wake_at(now);
        }
        for lane in judged {
            self.take_judgement(lane);
        }
        for (lane, error) in unreadable {
            self.pause(lane, format!("a batch of the source can't be read: {error}"), now);
        }
        let Some(call) = call else { return false };
        let id = call.id;
        let answer = self.target.data.send_parts(node, ApiKey::Produce, call.version, call.parts);
        self.tasks.spawn(async move { Event::Produced { call: id, answer: answer.await } });
        true
    }

    pub(super) fn take_produced(&mut self, call: CallId, answer: Result<Bytes, WireError>, now: Instant) {
        if let Err(problem) = &answer {
            warn!(flow = %self.settings.flow, %problem, "a produce request was lost, sending it again");
            self.target.refresh.distrust(now);
        }
        let mut events = Vec::new();
        self.producer.on_answer(call, answer, now.into_std(), &mut events);
        for event in events {
            self.take_produce_event(event, now);
        }
    }

    /// Events of steps that had no list to put them into (a replaced batch, a new lane).
    pub(super) fn take_late_events(&mut self, now: Instant) {
        let mut events = Vec::new();
        self.producer.take_events(&mut events);
        for event in events {
            self.take_produce_event(event, now);
        }
    }

    fn take_produce_event(&mut self, event: ProduceEvent, now: Instant) {
        match event {
            ProduceEvent::Acked { lane, tag, .. } => self.acknowledged(lane, tag),
            ProduceEvent::Failed { lane, tag, error, message, record_errors } => {
                let record = record_errors.first().map(|record| i64::from(record.index));
                self.refused(lane, tag, Refusal { error, message, record }, now);
            }
            ProduceEvent::RefreshMetadata { lane, error } => {
                self.target.refresh.distrust(now);
                self.note_retry(lane, error);
            }
            ProduceEvent::Retrying { lane, error, .. } => self.note_retry(lane, error),
            ProduceEvent::EpochBumped { lane, duplicates_possible } => {
                self.note_duplicates(lane, duplicates_possible);
            }
            ProduceEvent::IdentityExhausted { lane, duplicates_possible } => {
                self.note_duplicates(lane, duplicates_possible);
                let client = self.target.control.clone();
                self.tasks.spawn(async move { Event::Identity(init_producer_id(&client).await) });
            }
            ProduceEvent::BadAnswer { node, problem } => {
                warn!(flow = %self.settings.flow, node, %problem, "a produce answer can't be read, sending again");
            }
        }
    }

    fn note_retry(&mut self, lane: Lane, error: ResponseError) {
        if let Some(relay) = self.relay_lane_mut(lane) {
            relay.is_refused = true;
            relay.stats.set_error(now_ms(), format!("the target answered {error:?}; sending again"));
        }
    }

    /// The target forgot this producer; what was on its way may come to lie there twice. Said, since it can't be
    /// prevented without transactions.
    fn note_duplicates(&mut self, lane: Lane, duplicates_possible: usize) {
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane(lane) else { return };
        warn!(%flow, partition = %relay.source, batches = duplicates_possible,
              "the target lost this producer's state; these batches may be there twice");
    }

    pub(super) fn take_identity(&mut self, identity: Result<ProducerIdentity, WireError>) {
        match identity {
            Ok(identity) => self.producer.set_identity(identity),
            Err(problem) => {
                warn!(flow = %self.settings.flow, %problem, "no new producer id, asking again");
                let client = self.target.control.clone();
                self.tasks.spawn(async move { Event::Identity(init_producer_id(&client).await) });
            }
        }
    }

    fn acknowledged(&mut self, lane: Lane, tag: u64) {
        match self.occupants.get_mut(&lane) {
            Some(Occupant::Relay(relay)) => {
                let Some(settled) = relay.acknowledged(tag) else { return };
                relay.publish_position();
                self.budget.free(settled.source_bytes);
            }
            Some(Occupant::Positions(ledger)) => ledger.stored(tag),
            None => {}
        }
    }

    /// A batch was refused for good: smaller pieces if it was too large, else the partition pauses and says why.
    fn refused(&mut self, lane: Lane, tag: u64, refusal: Refusal, now: Instant) {
        let Refusal { error, message, record } = refusal;
        let words = message.map_or_else(|| format!("{error:?}"), |message| format!("{error:?}: {message}"));
        if let Some(Occupant::Positions(ledger)) = self.occupants.get_mut(&lane) {
            let until = now + Duration::from_millis(POSITIONS_RETRY_MS);
            ledger.refused(tag, until);
            self.producer.replace(lane, tag, Vec::new());
            let topic = &self.settings.positions_topic;
            let problem = format!("the target refused positions for \"{topic}\": {words}");
            warn!(flow = %self.settings.flow, %problem, "positions not stored");
            self.flow.set_error(now_ms(), problem);
            self.wake_at(until);
            return;
        }
        let is_too_large =
            matches!(error, ResponseError::MessageTooLarge | ResponseError::RecordListTooLarge);
        let Some(Occupant::Relay(relay)) = self.occupants.get_mut(&lane) else { return };
        let size = relay.sent(tag).map_or(0, |(header, _)| header.total_bytes());
        if is_too_large {
            relay.learn_bound(size);
        }
        let split =
            if is_too_large { relay.split(tag, &mut self.transform) } else { Err(SplitError::SingleRecord) };
        match split {
            Ok(pieces) => {
                self.producer.replace(lane, tag, pieces);
            }
            Err(problem) => {
                relay.held.push(tag);
                let target = &relay.stats.target_topic;
                let place = relay.first_offset(tag).map_or_else(String::new, |first| match record {
                    Some(record) => format!(" with the record at source offset {}", first.0 + record),
                    None => format!(" that begins at source offset {first}"),
                });
                let problem = match (is_too_large, problem) {
                    (true, SplitError::SingleRecord) => format!(
                        "the target refused a batch of one record and {size} bytes{place} ({words}); raise \
                         max.message.bytes of topic \"{target}\" on the target"
                    ),
                    (true, problem) => {
                        format!("the target refused a batch of {size} bytes{place} ({words}), and {problem}")
                    }
                    (false, _) => {
                        format!("the target refused a batch{place} ({words}); {}", remedy(error, target))
                    }
                };
                self.pause(lane, problem, now);
            }
        }
    }

    /// Sends batches again that were refused for good some time ago.
    pub(super) fn retry_held(&mut self, lane: Lane) {
        let held = self.relay_lane_mut(lane).map(|relay| std::mem::take(&mut relay.held));
        for tag in held.into_iter().flatten() {
            self.producer.retry(lane, tag);
        }
    }
}
