//! What becomes of a batch that was sent.

use kafka_protocol::ResponseError;

use super::super::class::{ErrorClass, classify};
use super::super::{CallId, ProduceEvent, RecordError};
use super::{LaneState, Moment, Place};

/// What the broker, or the loss of its answer, says about one batch.
#[derive(Debug)]
pub(in super::super) enum Outcome {
    /// In the log.
    Acked { base_offset: i64 },
    /// Refused.
    Refused {
        error: ResponseError,
        base_offset: i64,
        message: Option<String>,
        record_errors: Vec<RecordError>,
    },
    /// No answer.
    Lost { may_be_in_log: bool },
}

impl LaneState {
    /// Takes the outcome of this lane's batch in `call`; unknown calls are ignored.
    pub(in super::super) fn on_outcome(
        &mut self,
        call: CallId,
        outcome: Outcome,
        events: &mut Vec<ProduceEvent>,
        at: &Moment,
    ) {
        let Some(index) = self.queue.iter().position(|entry| entry.place == Place::InFlight(call)) else {
            return;
        };
        self.in_flight -= 1;
        match outcome {
            Outcome::Acked { base_offset } => self.on_acked(index, base_offset, events, at),
            Outcome::Lost { may_be_in_log } => {
                self.will_retry(index, may_be_in_log);
                events.push(ProduceEvent::RefreshMetadata {
                    lane: self.lane,
                    error: ResponseError::NetworkException,
                });
            }
            Outcome::Refused { error, base_offset, message, record_errors } => {
                match self.queue[index].effective(classify(error)) {
                    ErrorClass::Duplicate => self.on_acked(index, base_offset, events, at),
                    ErrorClass::Retry { needs_metadata, may_be_in_log } => {
                        self.will_retry(index, may_be_in_log);
                        events.push(self.retry_event(needs_metadata, error));
                    }
                    ErrorClass::RetryBounded => {
                        self.will_retry(index, false);
                        events.push(self.retry_event(false, error));
                    }
                    ErrorClass::OutOfOrder => self.on_out_of_order(index),
                    ErrorClass::StaleEpoch => self.on_stale_epoch(index),
                    ErrorClass::Fatal => {
                        self.fail(index);
                        let tag = self.queue[index].batch.tag;
                        events.push(ProduceEvent::Failed {
                            lane: self.lane,
                            tag,
                            error,
                            message,
                            record_errors,
                        });
                    }
                }
            }
        }
        self.settle(at, events);
    }

    fn on_acked(&mut self, index: usize, base_offset: i64, events: &mut Vec<ProduceEvent>, at: &Moment) {
        let entry = &mut self.queue[index];
        entry.place = Place::Acked;
        events.push(ProduceEvent::Acked { lane: self.lane, tag: entry.batch.tag, base_offset });
        if entry.sequence.is_some() && !self.is_muted {
            self.trusted_at = Some(at.now);
        }
        self.attempts = 0;
        while self.queue.front().is_some_and(|entry| entry.place == Place::Acked) {
            self.queue.pop_front();
        }
    }

    fn will_retry(&mut self, index: usize, may_be_in_log: bool) {
        let entry = &mut self.queue[index];
        entry.place = Place::Waiting;
        entry.may_be_in_log |= may_be_in_log;
        // Its number was withdrawn while it was on its way.
        self.numbers_spoilt |= entry.sequence.is_none() && may_be_in_log;
        self.mute();
        self.backs_off = true;
    }

    /// For the first unacked batch the broker's state is not ours. For another one it is the echo of its predecessor's
    /// failure, as for one whose number was withdrawn while it was on its way.
    fn on_out_of_order(&mut self, index: usize) {
        let is_first = self.queue.iter().take(index).all(|entry| entry.place == Place::Acked);
        if is_first && self.queue[index].sequence.is_some() {
            self.needs_bump = true;
            self.backs_off = true;
        }
        self.queue[index].place = Place::Waiting;
        self.mute();
    }

    fn on_stale_epoch(&mut self, index: usize) {
        self.queue[index].place = Place::Waiting;
        self.needs_bump = true;
        self.backs_off = true;
        self.mute();
    }

    fn fail(&mut self, index: usize) {
        self.queue[index].place = Place::Failed;
        self.mute();
    }

    /// After an error the broker's state is doubtful until the next ack.
    fn mute(&mut self) {
        self.is_muted = true;
        self.trusted_at = None;
    }

    fn retry_event(&self, needs_metadata: bool, error: ResponseError) -> ProduceEvent {
        match needs_metadata {
            true => ProduceEvent::RefreshMetadata { lane: self.lane, error },
            false => {
                ProduceEvent::Retrying { lane: self.lane, error, attempts: self.attempts.saturating_add(1) }
            }
        }
    }
}
