//! Which partitions this process relays, and in which worker. Pure.
//!
//! A partition is relayed when three things hold: the plan has seen it on both sides, its slot is ours, and the slot's
//! stored positions have been read.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{ClusterAlias, Slot, SourceOffset, SourcePartition, TopicName};
use crate::offsets::{position_key, slot_of};

/// A partition to hand to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handout {
    pub(super) partition: SourcePartition,
    pub(super) target_topic: TopicName,
    pub(super) slot: Slot,
    /// First offset to copy; none when no position is stored.
    pub(super) first: Option<SourceOffset>,
    /// What is stored belongs to a topic that is gone.
    pub(super) is_made_anew: bool,
}

/// A slot and the assignment that gave it: what was read of it under an earlier one is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnedSlot {
    pub(super) slot: Slot,
    assignment: u64,
}

/// The stored positions of an owned slot; none until they have been read.
#[derive(Debug)]
struct Owned {
    /// What is read for another number is stale.
    assignment: u64,
    /// The number of the assignment that brought the slot.
    since: u64,
    positions: Option<BTreeMap<SourcePartition, SourceOffset>>,
}

/// What this process owns.
#[derive(Debug)]
pub(super) struct Ownership {
    source: ClusterAlias,
    slot_count: i32,
    /// Owned slots.
    slots: BTreeMap<Slot, Owned>,
    /// The number of the newest assignment.
    assignment: u64,
    ready: BTreeMap<SourcePartition, TopicName>,
    given: BTreeMap<SourcePartition, (Slot, TopicName)>,
    made_anew: BTreeMap<TopicName, MadeAnew>,
}

/// A source topic that was deleted and made anew while we watched.
#[derive(Debug)]
struct MadeAnew {
    /// Slots that came later were somebody else's then, who has seen to it.
    before: u64,
    /// Partitions that began anew.
    begun: BTreeSet<i32>,
}

impl Ownership {
    pub(super) fn new(source: ClusterAlias, slot_count: i32) -> Self {
        Self {
            source,
            slot_count,
            slots: BTreeMap::new(),
            assignment: 0,
            ready: BTreeMap::new(),
            given: BTreeMap::new(),
            made_anew: BTreeMap::new(),
        }
    }

    /// Slots that are ours from now on; their positions are still to be read.
    pub(super) fn assigned(&mut self, slots: &[Slot]) {
        self.assignment += 1;
        for slot in slots {
            let assignment = self.assignment;
            self.slots.insert(*slot, Owned { assignment, since: assignment, positions: None });
        }
    }

    /// Slots that are ours no longer.
    pub(super) fn revoked(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.slots.remove(slot);
        }
        self.given.retain(|_, (slot, _)| !slots.contains(slot));
    }

    /// The stored positions (last settled offsets) of slots that were asked for. Slots that went meanwhile are ignored.
    pub(super) fn positions_read(
        &mut self,
        slots: &[OwnedSlot],
        positions: &BTreeMap<SourcePartition, SourceOffset>,
    ) {
        for OwnedSlot { slot, assignment } in slots {
            let Some(owned) = self.slots.get_mut(slot).filter(|owned| owned.assignment == *assignment) else {
                continue;
            };
            let is_of_slot =
                |partition: &&SourcePartition| slot_for(&self.source, partition, self.slot_count) == *slot;
            let of_slot = positions.keys().filter(is_of_slot);
            let firsts = of_slot.map(|partition| (partition.clone(), positions[partition].next()));
            owned.positions = Some(firsts.collect());
        }
    }

    /// A source topic was deleted and made anew: partitions of it that are handed out from now on begin anew. Those that
    /// are relayed now are the workers' business.
    pub(super) fn made_anew(&mut self, topic: &TopicName) {
        let of_topic = self.given.keys().filter(|partition| partition.topic == *topic);
        let begun = of_topic.map(|partition| partition.partition).collect();
        self.made_anew.insert(topic.clone(), MadeAnew { before: self.assignment, begun });
    }

    /// What the plan has seen on both sides. Answers the partitions that must be let go: no longer there, or under
    /// another name.
    pub(super) fn planned(&mut self, ready: BTreeMap<SourcePartition, TopicName>) -> Vec<SourcePartition> {
        self.ready = ready;
        let is_gone = |(partition, (_, target)): &(&SourcePartition, &(Slot, TopicName))| {
            self.ready.get(partition) != Some(target)
        };
        let gone: Vec<SourcePartition> =
            self.given.iter().filter(is_gone).map(|(partition, _)| partition.clone()).collect();
        for partition in &gone {
            self.forget_stored(partition);
            self.given.remove(partition);
        }
        gone
    }

    /// A partition that was let go has moved since its slot was read: its position must be read again.
    fn forget_stored(&mut self, partition: &SourcePartition) {
        if let Some((slot, _)) = self.given.get(partition)
            && let Some(owned) = self.slots.get_mut(slot)
        {
            // What is being read of it now is stale, too.
            self.assignment += 1;
            *owned = Owned { assignment: self.assignment, since: owned.since, positions: None };
        }
    }

    /// Partitions that are copied, here or on another node, and what their topics are called on the target.
    pub(super) fn ready(&self) -> &BTreeMap<SourcePartition, TopicName> {
        &self.ready
    }

    /// Partitions that can be handed out now; they count as given then.
    pub(super) fn hand_out(&mut self) -> Vec<Handout> {
        let mut handouts = Vec::new();
        for (partition, target_topic) in &self.ready {
            if self.given.contains_key(partition) {
                continue;
            }
            let slot = slot_for(&self.source, partition, self.slot_count);
            let Some(positions) = self.slots.get(&slot).and_then(|owned| owned.positions.as_ref()) else {
                continue;
            };
            let first = positions.get(partition).copied();
            let since = self.slots.get(&slot).map_or(0, |owned| owned.since);
            let anew = self.made_anew.get_mut(&partition.topic).filter(|anew| since <= anew.before);
            let is_made_anew = anew.is_some_and(|anew| anew.begun.insert(partition.partition));
            let (partition, target_topic) = (partition.clone(), target_topic.clone());
            self.given.insert(partition.clone(), (slot, target_topic.clone()));
            handouts.push(Handout { partition, target_topic, slot, first, is_made_anew });
        }
        handouts
    }

    /// Owned slots whose positions are still to be read.
    pub(super) fn unread(&self) -> Vec<OwnedSlot> {
        let unread = self.slots.iter().filter(|(_, owned)| owned.positions.is_none());
        unread.map(|(slot, owned)| OwnedSlot { slot: *slot, assignment: owned.assignment }).collect()
    }

    /// Owned slots.
    pub(super) fn slots(&self) -> Vec<Slot> {
        self.slots.keys().copied().collect()
    }

    /// Whether this process runs the flow's control loop: the owner of slot 0 does.
    pub(super) fn is_leader(&self) -> bool {
        self.slots.contains_key(&Slot(0))
    }

    /// The worker, of `worker_count`, that relays a slot.
    pub(super) fn worker_of(slot: Slot, worker_count: usize) -> usize {
        usize::try_from(slot.0).unwrap_or(0) % worker_count.max(1)
    }

    /// The workers that relay any of `slots`, each with its part.
    pub(super) fn by_worker(slots: &[Slot], worker_count: usize) -> BTreeMap<usize, Vec<Slot>> {
        let mut by_worker: BTreeMap<usize, Vec<Slot>> = BTreeMap::new();
        for slot in slots.iter().copied().collect::<BTreeSet<_>>() {
            by_worker.entry(Self::worker_of(slot, worker_count)).or_default().push(slot);
        }
        by_worker
    }

    /// The slot of a partition.
    pub(super) fn slot_of(&self, partition: &SourcePartition) -> Slot {
        slot_for(&self.source, partition, self.slot_count)
    }
}

fn slot_for(source: &ClusterAlias, partition: &SourcePartition, slot_count: i32) -> Slot {
    slot_of(&position_key(source, partition), slot_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> TopicName {
        TopicName::parse(name).unwrap()
    }

    fn partition(number: i32) -> SourcePartition {
        SourcePartition { topic: topic("t"), partition: number }
    }

    /// One slot, so that every partition hashes to it.
    fn ownership() -> Ownership {
        Ownership::new(ClusterAlias::new("A"), 1)
    }

    fn ready(numbers: &[i32]) -> BTreeMap<SourcePartition, TopicName> {
        numbers.iter().map(|number| (partition(*number), topic("A.t"))).collect()
    }

    fn slots(owned: &[OwnedSlot]) -> Vec<Slot> {
        owned.iter().map(|owned| owned.slot).collect()
    }

    fn firsts(handouts: &[Handout]) -> Vec<(i32, Option<i64>)> {
        handouts
            .iter()
            .map(|handout| (handout.partition.partition, handout.first.map(|first| first.0)))
            .collect()
    }

    #[test]
    fn a_partition_is_given_once_it_is_seen_owned_and_its_position_is_read() {
        let mut owned = ownership();
        assert!(owned.planned(ready(&[0, 1])).is_empty());
        assert!(owned.hand_out().is_empty());
        owned.assigned(&[Slot(0)]);
        assert!(owned.hand_out().is_empty());
        assert_eq!(slots(&owned.unread()), [Slot(0)]);
        let unread = owned.unread();
        owned.positions_read(&unread, &BTreeMap::from([(partition(1), SourceOffset(41))]));
        assert_eq!(firsts(&owned.hand_out()), [(0, None), (1, Some(42))]);
        assert!(owned.hand_out().is_empty());
    }

    #[test]
    fn a_revoked_slot_takes_its_partitions_along_and_is_read_again() {
        let mut owned = ownership();
        owned.assigned(&[Slot(0)]);
        let first = owned.unread();
        owned.planned(ready(&[0]));
        let unread = owned.unread();
        owned.positions_read(&unread, &BTreeMap::new());
        assert_eq!(owned.hand_out().len(), 1);
        owned.revoked(&[Slot(0)]);
        assert!(!owned.is_leader());
        owned.positions_read(&first, &BTreeMap::new());
        assert!(owned.hand_out().is_empty(), "positions of a slot that went are ignored");
        owned.assigned(&[Slot(0)]);
        owned.positions_read(&first, &BTreeMap::new());
        assert!(owned.hand_out().is_empty(), "what was read for an earlier assignment is stale");
        let unread = owned.unread();
        owned.positions_read(&unread, &BTreeMap::from([(partition(0), SourceOffset(9))]));
        assert_eq!(firsts(&owned.hand_out()), [(0, Some(10))]);
    }

    #[test]
    fn a_topic_that_is_gone_or_renamed_is_let_go() {
        let mut owned = ownership();
        owned.assigned(&[Slot(0)]);
        owned.planned(ready(&[0, 1]));
        let unread = owned.unread();
        owned.positions_read(&unread, &BTreeMap::new());
        owned.hand_out();
        let mut renamed = ready(&[0, 1]);
        renamed.insert(partition(1), topic("B.t"));
        assert_eq!(owned.planned(renamed), [partition(1)]);
        assert_eq!(slots(&owned.unread()), [Slot(0)], "its position has moved since it was read");
        assert_eq!(owned.planned(BTreeMap::new()), [partition(0)]);
    }

    #[test]
    fn slots_are_spread_over_workers() {
        let slots: Vec<Slot> = (0..5).map(Slot).collect();
        let by_worker = Ownership::by_worker(&slots, 2);
        assert_eq!(by_worker[&0], [Slot(0), Slot(2), Slot(4)]);
        assert_eq!(by_worker[&1], [Slot(1), Slot(3)]);
    }

    #[test]
    fn a_topic_that_was_made_anew_begins_anew_once_and_only_where_it_was_ours() {
        let mut owned = ownership();
        owned.assigned(&[Slot(0)]);
        owned.planned(ready(&[0]));
        let stored = BTreeMap::from([(partition(0), SourceOffset(9)), (partition(1), SourceOffset(9))]);
        let unread = owned.unread();
        owned.positions_read(&unread, &stored);
        let anew = |handouts: Vec<Handout>| -> Vec<(i32, bool)> {
            handouts.iter().map(|handout| (handout.partition.partition, handout.is_made_anew)).collect()
        };
        assert_eq!(anew(owned.hand_out()), [(0, false)]);
        owned.made_anew(&topic("t"));
        owned.planned(ready(&[0, 1]));
        assert_eq!(anew(owned.hand_out()), [(1, true)], "partition 0 is relayed: its worker sees to it");
        owned.planned(BTreeMap::new());
        owned.planned(ready(&[1]));
        let unread = owned.unread();
        owned.positions_read(&unread, &stored);
        assert_eq!(anew(owned.hand_out()), [(1, false)], "once");
        owned.made_anew(&topic("t"));
        owned.revoked(&[Slot(0)]);
        owned.assigned(&[Slot(0)]);
        let unread = owned.unread();
        owned.positions_read(&unread, &stored);
        assert_eq!(anew(owned.hand_out()), [(1, false)], "its owner in between has seen to it");
    }
}
