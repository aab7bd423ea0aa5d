//! The flow's chain in a worker: taken between batches, and what becomes of records that it does not let pass.

use std::sync::Arc;

use tidegate_wire::produce::Lane;
use tracing::{info, warn};

use super::outlet::send_rules;
use super::quarantine::{QuarantineWriter, TooLarge};
use super::worker::{Event, LaneKey, Occupant, WorkerState};
use crate::config::QuarantineSide;
use crate::names::SourcePartition;
use crate::plugin::Chain;
use crate::status::Changeover;

impl WorkerState {
    /// Edits with `chain` from now on; answers from where on in each partition. Partitions that stood still because of a plugin
    /// go on.
    pub(super) fn take_chain(&mut self, chain: Box<Chain>) -> Vec<(SourcePartition, Changeover)> {
        let mut taken = Vec::with_capacity(self.by_source.len());
        for occupant in self.occupants.values_mut() {
            if let Occupant::Relay(relay) = occupant {
                taken.push((relay.source.clone(), relay.use_chain(&*chain)));
            }
        }
        taken.sort_by(|one, other| one.0.cmp(&other.0));
        info!(flow = %self.settings.flow, generation = chain.generation(), partitions = taken.len(), "chain taken");
        self.chain = Some(chain);
        taken
    }

    /// Lets partitions go on that a plugin stopped; answers which.
    pub(super) fn resume_halted(&mut self, partitions: Option<&[SourcePartition]>) -> Vec<SourcePartition> {
        let is_meant = |partition: &SourcePartition| partitions.is_none_or(|meant| meant.contains(partition));
        let mut resumed = Vec::new();
        for occupant in self.occupants.values_mut() {
            if let Occupant::Relay(relay) = occupant
                && is_meant(&relay.source)
                && relay.unhalt()
            {
                info!(flow = %self.settings.flow, partition = %relay.source, "partition resumed");
                resumed.push(relay.source.clone());
            }
        }
        resumed.sort();
        resumed
    }

    /// Says that a partition stands still, and has its quarantined records written.
    pub(super) fn take_judgement(&mut self, lane: Lane) {
        self.tell_halt(lane);
        let Some(Occupant::Relay(relay)) = self.occupants.get_mut(&lane) else { return };
        let Some((batches, is_failing)) = relay.quarantine_to_write() else { return };
        let key = LaneKey { lane, number: relay.number };
        let quarantine = &self.settings.quarantine;
        let (client, cluster) = match quarantine.side {
            QuarantineSide::Source => (self.source.control.clone(), self.settings.flow.source.clone()),
            QuarantineSide::Target => (self.target.control.clone(), self.settings.flow.target.clone()),
        };
        let writer = QuarantineWriter {
            flow: self.settings.flow.clone(),
            source_alias: self.settings.source_alias.clone(),
            partition: relay.source.clone(),
            client,
            cluster,
            topic: Arc::from(quarantine.topic.as_str()),
            acks_timeout_ms: i32::try_from(self.settings.acks_timeout.as_millis()).unwrap_or(i32::MAX),
            stats: Arc::clone(&relay.stats),
            is_failing,
        };
        let task =
            self.tasks.spawn(async move { Event::Quarantined { key, result: writer.write(batches).await } });
        relay.quarantine_is_written_by(task);
    }

    /// Quarantined records are written, or can't be.
    pub(super) fn take_quarantined(&mut self, key: LaneKey, result: Result<(), TooLarge>) {
        let rules = send_rules(&self.settings);
        let Some(Occupant::Relay(relay)) = self.occupants.get_mut(&key.lane) else { return };
        if relay.number != key.number {
            return;
        }
        let before = relay.unsettled_bytes;
        let is_refused = result.is_err();
        match result {
            Ok(()) => relay.quarantined(rules, &mut self.transform),
            Err(refused) => relay.quarantine_refused(refused),
        }
        self.budget.free(before - relay.unsettled_bytes);
        if is_refused {
            self.tell_halt(key.lane);
        }
    }

    /// In the log once a pause; status and metrics show it as long as it lasts.
    fn tell_halt(&self, lane: Lane) {
        let Some(relay) = self.relay_lane(lane).filter(|relay| relay.is_halted()) else { return };
        let Some(paused) = relay.stats.paused() else { return };
        warn!(flow = %self.settings.flow, topic = %relay.source.topic, partition = relay.source.partition,
              offset = %paused.offset, plugin = paused.plugin, generation = paused.generation, reason = paused.reason,
              "partition paused by a plugin; resume it, or swap the plugin");
    }
}
