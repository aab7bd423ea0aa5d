//! What answers do to lanes.

use std::time::Instant;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::super::ProduceEvent;
use super::super::answer::{PartitionAnswer, decode_answer};
use super::super::lane::{Moment, Outcome};
use super::{Call, CallBatch, CallId, Lane, Producer};
use crate::error::WireError;

impl Producer {
    /// Takes the answer of a request, or the reason why there is none. A call that is not in flight is ignored.
    pub fn on_answer(
        &mut self,
        call: CallId,
        answer: Result<Bytes, WireError>,
        now: Instant,
        events: &mut Vec<ProduceEvent>,
    ) {
        events.append(&mut self.late_events);
        let Some(index) = self.calls.iter().position(|other| other.id == call) else { return };
        let mut call = self.calls.swap_remove(index);
        if let Some(node) = self.nodes.get_mut(&call.node) {
            node.in_flight -= 1;
        }
        match answer {
            Ok(body) => self.on_body(&mut call, &body, now, events),
            Err(error) => self.on_lost(&call, may_have_arrived(&error), now, events),
        }
        self.nodes.retain(|_, node| node.in_flight > 0 || !node.lanes.is_empty());
    }

    fn on_body(&mut self, call: &mut Call, body: &Bytes, now: Instant, events: &mut Vec<ProduceEvent>) {
        let decoded = decode_answer(body, call.version, |answer| {
            let Some(batch) = self.answered(call, &answer) else { return };
            batch.is_answered = true;
            let (lane, id) = (batch.lane, call.id);
            self.on_outcome(lane, id, outcome_of(answer), now, events);
        });
        let missing = call.batches.iter().filter(|batch| !batch.is_answered).count();
        let problem = match decoded {
            Err(error) => error.to_string(),
            Ok(()) if missing > 0 => format!("{missing} of {} partitions are missing", call.batches.len()),
            Ok(()) => return,
        };
        events.push(ProduceEvent::BadAnswer { node: call.node, problem });
        self.on_lost(call, true, now, events);
    }

    /// The batch of `call` that `answer` speaks of, unless it was spoken of before.
    fn answered<'c>(&self, call: &'c mut Call, answer: &PartitionAnswer<'_>) -> Option<&'c mut CallBatch> {
        let name = std::str::from_utf8(answer.topic).ok()?;
        let topic = *self.topic_numbers.get(name)?;
        let place = (topic, answer.partition);
        let index = call.batches.binary_search_by_key(&place, |b| (b.topic, b.partition)).ok()?;
        Some(&mut call.batches[index]).filter(|batch| !batch.is_answered)
    }

    fn on_lost(&mut self, call: &Call, may_be_in_log: bool, now: Instant, events: &mut Vec<ProduceEvent>) {
        for batch in call.batches.iter().filter(|batch| !batch.is_answered) {
            self.on_outcome(batch.lane, call.id, Outcome::Lost { may_be_in_log }, now, events);
        }
    }

    fn on_outcome(
        &mut self,
        lane: Lane,
        call: CallId,
        outcome: Outcome,
        now: Instant,
        events: &mut Vec<ProduceEvent>,
    ) {
        let at = Moment { now, options: &self.options, newest: self.identity };
        if let Some(state) = self.lanes.get_mut(lane.0).and_then(Option::as_mut) {
            state.on_outcome(call, outcome, events, &at);
        }
    }
}

fn outcome_of(answer: PartitionAnswer<'_>) -> Outcome {
    let base_offset = answer.base_offset;
    match ResponseError::try_from_code(answer.error_code) {
        None => Outcome::Acked { base_offset },
        Some(error) => Outcome::Refused {
            error,
            base_offset,
            message: answer.message,
            record_errors: answer.record_errors,
        },
    }
}

/// Whether the broker may have read the request.
fn may_have_arrived(error: &WireError) -> bool {
    !matches!(
        error,
        WireError::Address { .. }
            | WireError::Unreachable { .. }
            | WireError::NoBroker { .. }
            | WireError::Unsupported { .. }
            | WireError::UnknownNode { .. }
            | WireError::Unwritable { .. }
            | WireError::QueueFull { .. }
    )
}
