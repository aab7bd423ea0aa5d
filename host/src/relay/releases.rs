//! Taking partitions up and letting them go.
//!
//! What is let go stops reading, settles, has its position stored, and only then is the order answered. When the time for
//! that is over, the rest is abandoned: nothing of it is sent or stored any more, since another process may already relay
//! it; it is forgotten once its last answers have come.

use std::sync::Arc;

use tidegate_wire::produce::Lane;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};
use tracing::warn;

use super::LaneStart;
use super::lane::{Condition, RelayLane};
use super::ledger::Ledger;
use super::worker::{LaneKey, Occupant, WorkerState};
use crate::names::{Slot, SourcePartition};

/// New partitions have their first positions stored this soon, in milliseconds: a process that is killed again and again
/// before the ordinary interval has passed would else start from the same place each time.
const FIRST_COMMIT_MS: u64 = 500;

/// How long a worker that ends by itself (its orders have ended) may settle, in milliseconds.
const CLOSE_SETTLE_MS_MAX: u64 = 20_000;

/// Partitions that are being let go.
#[derive(Debug)]
pub(super) struct Release {
    lanes: Vec<LaneKey>,
    /// Slots that go with them; empty when only single partitions go.
    slots: Vec<Slot>,
    done: Option<oneshot::Sender<()>>,
    deadline: Instant,
    is_abandoned: bool,
}

impl Release {
    /// When there is something to do about it even if nothing else happens.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        (!self.is_abandoned).then_some(self.deadline)
    }
}

impl WorkerState {
    /// Takes partitions up; those that are relayed already stay as they are.
    pub(super) fn add_lanes(&mut self, starts: Vec<LaneStart>, now: Instant) {
        for start in starts {
            match self.by_source.get(&start.partition).and_then(|lane| self.relay_lane(*lane)) {
                Some(lane) if lane.condition == Condition::Draining => self.postponed.push(start),
                Some(_) => {}
                None => self.add_lane(start),
            }
        }
        self.source.refresh.now(now);
        self.target.refresh.now(now);
        self.commit_due = self.commit_due.min(now + Duration::from_millis(FIRST_COMMIT_MS));
    }

    fn add_lane(&mut self, start: LaneStart) {
        let slot = start.slot;
        let ledger_lane = self.ledger_lane(slot);
        if let (Some(first), Some(Occupant::Positions(ledger))) =
            (start.first, self.occupants.get_mut(&ledger_lane))
        {
            ledger.loaded(start.partition.clone(), first);
        }
        let lane = self.producer.add_lane(start.target_topic.as_str().into(), start.partition.partition);
        self.flow.add_partition(start.partition.clone(), Arc::clone(&start.stats));
        self.by_source.insert(start.partition.clone(), lane);
        let first = start.first.filter(|_| !start.is_made_anew);
        let is_located = first.is_some();
        self.next_number += 1;
        let mut relay = RelayLane::new(self.next_number, start.partition, slot, first, start.stats);
        relay.is_made_anew = start.is_made_anew;
        if let Some(chain) = &self.chain {
            relay.use_chain(&**chain);
        }
        relay.publish_position();
        self.occupants.insert(lane, Occupant::Relay(Box::new(relay)));
        self.lead_lane(lane);
        if !is_located {
            self.locate(lane);
        }
    }

    /// The producer's lane for a slot's positions; made when the slot is new.
    fn ledger_lane(&mut self, slot: Slot) -> Lane {
        if let Some(lane) = self.ledgers.get(&slot) {
            return *lane;
        }
        let lane = self.producer.add_lane(self.settings.positions_topic.as_str().into(), slot.0);
        self.ledgers.insert(slot, lane);
        self.occupants.insert(lane, Occupant::Positions(Ledger::new(slot)));
        self.abandoned.remove(&lane);
        self.lead_lane(lane);
        lane
    }

    /// Begins to let slots go.
    pub(super) fn release_slots(&mut self, slots: Vec<Slot>, done: oneshot::Sender<()>, deadline: Instant) {
        let lanes = self.drain_lanes(|_, slot| slots.contains(&slot));
        self.releases.push(Release { lanes, slots, done: Some(done), deadline, is_abandoned: false });
    }

    /// Begins to let single partitions go.
    pub(super) fn release_partitions(
        &mut self,
        partitions: &[SourcePartition],
        done: oneshot::Sender<()>,
        deadline: Instant,
    ) {
        let lanes = self.drain_lanes(|partition, _| partitions.contains(partition));
        let slots = Vec::new();
        self.releases.push(Release { lanes, slots, done: Some(done), deadline, is_abandoned: false });
    }

    /// Begins to let everything go, because the worker ends.
    pub(super) fn release_everything(&mut self, now: Instant) {
        let lanes = self.drain_lanes(|_, _| true);
        let slots = self.ledgers.keys().copied().collect();
        let deadline = now + Duration::from_millis(CLOSE_SETTLE_MS_MAX);
        self.releases.push(Release { lanes, slots, done: None, deadline, is_abandoned: false });
    }

    /// Whether everything that is still being let go was given up.
    pub(super) fn is_all_abandoned(&self) -> bool {
        self.releases.iter().all(|release| release.is_abandoned)
    }

    /// Stops reading the partitions that `is_meant` picks and throws away what was not sent yet.
    fn drain_lanes(&mut self, is_meant: impl Fn(&SourcePartition, Slot) -> bool) -> Vec<LaneKey> {
        self.postponed.retain(|start| !is_meant(&start.partition, start.slot));
        let mut drained = Vec::new();
        for (lane, occupant) in &mut self.occupants {
            if let Occupant::Relay(relay) = occupant
                && is_meant(&relay.source, relay.slot)
            {
                self.budget.free(relay.clear_queue());
                relay.condition = Condition::Draining;
                drained.push(LaneKey { lane: *lane, number: relay.number });
            }
        }
        drained
    }

    /// Lets go of what is settled and stored, and gives up what took too long.
    pub(super) fn advance_releases(&mut self, now: Instant) {
        for mut release in std::mem::take(&mut self.releases) {
            let is_done = self.is_settled(&release) && self.is_stored(&release);
            if !release.is_abandoned && now >= release.deadline && !is_done {
                self.abandon(&mut release);
            }
            let is_over = if release.is_abandoned { self.is_silent(&release) } else { is_done };
            if is_over {
                self.finish_release(&mut release);
            } else {
                self.ask_for_positions(&release);
                self.releases.push(release);
            }
        }
    }

    fn lanes_of<'a>(&'a self, release: &'a Release) -> impl Iterator<Item = (Lane, &'a RelayLane)> {
        release.lanes.iter().filter_map(|key| Some((key.lane, self.lane_of(*key)?)))
    }

    /// Whether nothing is on its way that could still succeed.
    fn is_settled(&self, release: &Release) -> bool {
        self.lanes_of(release).all(|(lane, relay)| {
            let is_given_up = !relay.held.is_empty() && self.producer.in_flight(lane) == 0;
            relay.is_idle() || is_given_up || relay.is_stuck_on_quarantine()
        })
    }

    /// Whether the positions of what is settled are stored.
    fn is_stored(&self, release: &Release) -> bool {
        let is_quiet = |slot: &Slot| self.ledger(*slot).is_none_or(Ledger::is_quiet);
        self.lanes_of(release).all(|(_, relay)| !self.is_unstored(relay))
            && release.slots.iter().all(is_quiet)
    }

    /// Positions that are news are stored as soon as their partitions have settled.
    fn ask_for_positions(&mut self, release: &Release) {
        if release.is_abandoned || !self.is_settled(release) {
            return;
        }
        let unstored = self.lanes_of(release).filter(|(_, relay)| self.is_unstored(relay));
        let slots: Vec<Slot> = unstored.map(|(_, relay)| relay.slot).collect();
        for slot in slots {
            if let Some(ledger) = self.ledger_mut(slot) {
                ledger.want();
            }
        }
    }

    /// Sends and stores nothing of it any more.
    fn abandon(&mut self, release: &mut Release) {
        warn!(flow = %self.settings.flow, slots = ?release.slots, "partitions let go before all was settled; the \
               next owner copies some records again");
        release.is_abandoned = true;
        for key in &release.lanes {
            if let Some(relay) = self.relay_lane_mut(key.lane).filter(|relay| relay.number == key.number) {
                relay.stop_quarantine();
            }
        }
        let ledgers = release.slots.iter().filter_map(|slot| self.ledgers.get(slot)).copied();
        let lanes: Vec<Lane> = release.lanes.iter().map(|key| key.lane).chain(ledgers).collect();
        for lane in lanes {
            self.producer.set_leader(lane, None);
            self.abandoned.insert(lane);
        }
        if let Some(done) = release.done.take() {
            let _receiver_may_be_gone = done.send(());
        }
    }

    /// Whether no answer is awaited any more.
    fn is_silent(&self, release: &Release) -> bool {
        let mut ledgers = release.slots.iter().filter_map(|slot| self.ledgers.get(slot));
        self.lanes_of(release).all(|(lane, _)| self.producer.in_flight(lane) == 0)
            && ledgers.all(|lane| self.producer.in_flight(*lane) == 0)
    }

    fn finish_release(&mut self, release: &mut Release) {
        for key in &release.lanes {
            if self.lane_of(*key).is_some() {
                self.remove_relay(key.lane);
            }
        }
        for slot in &release.slots {
            let is_of_slot = |occupant: &Occupant| occupant.relay().is_some_and(|relay| relay.slot == *slot);
            if self.occupants.values().any(is_of_slot) {
                continue;
            }
            if let Some(lane) = self.ledgers.remove(slot) {
                self.occupants.remove(&lane);
                self.remove_producer_lane(lane);
            }
        }
        if let Some(done) = release.done.take() {
            let _receiver_may_be_gone = done.send(());
        }
        let again = std::mem::take(&mut self.postponed);
        if !again.is_empty() {
            self.add_lanes(again, Instant::now());
        }
    }

    fn remove_relay(&mut self, lane: Lane) {
        let Some(Occupant::Relay(relay)) = self.occupants.remove(&lane) else { return };
        // A batch that was refused for good, or abandoned, was never settled.
        self.budget.free(relay.unsettled_bytes);
        self.by_source.remove(&relay.source);
        self.flow.remove_partition(&relay.source);
        if let Some(ledger) = self.ledger_mut(relay.slot) {
            ledger.forget(&relay.source);
        }
        self.remove_producer_lane(lane);
    }

    fn remove_producer_lane(&mut self, lane: Lane) {
        self.abandoned.remove(&lane);
        if let Err(problem) = self.producer.remove_lane(lane) {
            warn!(flow = %self.settings.flow, %problem, "a settled partition was still in flight");
        }
    }
}
