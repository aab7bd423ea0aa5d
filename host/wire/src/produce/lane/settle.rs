//! What a lane decides once nothing of it is in flight: backoff, new numbers, a new epoch; and what the caller may do with
//! a failed batch.

use super::super::{OutBatch, ProduceEvent, ProducerIdentity};
use super::{Entry, LaneState, Moment, Numbering, Place};

impl LaneState {
    /// Ends a round of sends, once nothing is in flight.
    pub(super) fn settle(&mut self, at: &Moment, events: &mut Vec<ProduceEvent>) {
        if self.in_flight > 0 {
            return;
        }
        self.is_muted = false;
        if std::mem::take(&mut self.backs_off) {
            self.attempts = self.attempts.saturating_add(1);
            self.retry_at = Some(at.now + at.options.retry_delay(self.attempts));
        }
        self.bump_if_due(at.newest, events);
    }

    /// A new epoch if one is needed and nothing under the old one is in flight or waits for its resend.
    pub(in super::super) fn bump_if_due(&mut self, newest: ProducerIdentity, events: &mut Vec<ProduceEvent>) {
        let is_due = self.needs_bump || (self.numbers_spoilt && self.starts_without_number());
        if is_due && self.in_flight == 0 && !self.needs_identity {
            self.bump(newest, events);
        }
    }

    /// Nothing with a number of this epoch is left to be resent.
    fn starts_without_number(&self) -> bool {
        self.queue.iter().all(|entry| entry.sequence.is_none() || entry.place == Place::Acked)
    }

    fn bump(&mut self, newest: ProducerIdentity, events: &mut Vec<ProduceEvent>) {
        let is_in_doubt = |entry: &&Entry| entry.place != Place::Acked && entry.may_be_in_log;
        let in_doubt = self.queue.iter().filter(is_in_doubt).count();
        let duplicates_possible = in_doubt + std::mem::take(&mut self.replaced_in_doubt);
        let lane = self.lane;
        match self.numbering.bumped(newest) {
            Some(numbering) => {
                self.restart(numbering);
                events.push(ProduceEvent::EpochBumped { lane, duplicates_possible });
            }
            None => {
                self.needs_identity = true;
                events.push(ProduceEvent::IdentityExhausted { lane, duplicates_possible });
            }
        }
    }

    /// A new identity for a lane that has no epoch left; others go on with theirs. The same id again is no help: its
    /// numbers are used.
    pub(in super::super) fn on_new_identity(&mut self, identity: ProducerIdentity) {
        if self.needs_identity && identity.id != self.numbering.identity.id {
            self.restart(Numbering::start(identity));
        }
    }

    fn restart(&mut self, numbering: Numbering) {
        self.numbering = numbering;
        self.needs_identity = false;
        self.needs_bump = false;
        self.numbers_spoilt = false;
        self.trusted_at = None;
        self.queue.retain(|entry| entry.place != Place::Acked);
        for entry in &mut self.queue {
            entry.sequence = None;
            entry.may_be_in_log = false;
        }
    }

    /// Puts `smaller` into the place of the failed batch `tag` and withdraws the numbers from there on: the broker refused
    /// the batch, so its numbers are unused and the next batch takes them. Without a failed batch of this tag nothing happens
    /// and the answer is `false`.
    pub(in super::super) fn replace(
        &mut self,
        tag: u64,
        smaller: Vec<OutBatch>,
        newest: ProducerIdentity,
        events: &mut Vec<ProduceEvent>,
    ) -> bool {
        let Some(index) = self.failed_at(tag) else { return false };
        self.replaced_in_doubt += usize::from(self.queue[index].may_be_in_log);
        self.withdraw_numbers_from(index);
        let behind = self.queue.split_off(index + 1);
        self.queue.pop_back();
        self.queue.extend(smaller.into_iter().map(Entry::new));
        self.queue.extend(behind);
        while self.queue.front().is_some_and(|entry| entry.place == Place::Acked) {
            self.queue.pop_front();
        }
        self.bump_if_due(newest, events);
        true
    }

    /// Sends the failed batch `tag` again as it is, under the same number.
    pub(in super::super) fn retry(&mut self, tag: u64) -> bool {
        let Some(index) = self.failed_at(tag) else { return false };
        self.queue[index].place = Place::Waiting;
        true
    }

    fn failed_at(&self, tag: u64) -> Option<usize> {
        self.queue.iter().position(|entry| entry.place == Place::Failed && entry.batch.tag == tag)
    }

    fn withdraw_numbers_from(&mut self, index: usize) {
        if let Some(sequence) = self.queue[index].sequence {
            self.numbering.next_sequence = sequence;
        }
        for entry in self.queue.iter_mut().skip(index) {
            self.numbers_spoilt |= entry.may_be_in_log || entry.place == Place::Acked;
            entry.sequence = None;
        }
    }

    /// Ends the lane. Gives the tags of what was not acked, in order, and where a later lane for the same partition goes on.
    pub(in super::super) fn close(self) -> (Vec<u64>, Retired) {
        let unacked = || self.queue.iter().filter(|entry| entry.place != Place::Acked);
        let tags = unacked().map(|entry| entry.batch.tag).collect();
        let is_spoilt = self.needs_bump
            || self.numbers_spoilt
            || self.queue.iter().any(|entry| entry.may_be_in_log || entry.place == Place::Acked);
        let unused = unacked().find_map(|entry| entry.sequence);
        let next_sequence = unused.unwrap_or(self.numbering.next_sequence);
        (tags, Retired { numbering: Numbering { next_sequence, ..self.numbering }, is_spoilt })
    }
}

/// Where the sequence of a removed lane stands: numbers that were used must not be used again under the same epoch, a
/// broker would take the batch for a duplicate and drop it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Retired {
    pub(super) numbering: Numbering,
    /// Numbers behind that may have been used: a new epoch is needed.
    pub(super) is_spoilt: bool,
}
