//! Random life of one partition: fetches, sends, acknowledgements in any order, swaps, pauses, quarantine. Whatever happens, no
//! position passes an unsettled record, the order is the source's, and each record is edited by exactly one generation.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tidegate_wire::batch::{Batch, Codec};

use super::tests::{AS_IT_COMES, batch, lane, next_batch, values};
use crate::names::SourceOffset;
use crate::relay::chain::RecordChain;
use crate::relay::chain::plain::{PlainChain, Verdict};
use crate::relay::lane::RelayLane;
use crate::relay::quarantine::{QuarantineBatch, TooLarge};
use crate::relay::transform::Transform;

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fetch,
    Send,
    /// Of those on their way, the one at this place (modulo how many there are).
    Acknowledge(usize),
    SplitFirst,
    Swap,
    Resume,
    Quarantine,
    RefuseQuarantine,
    /// The partition throws away what waits, as it does when it pauses.
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Fetch),
        4 => Just(Step::Send),
        4 => any::<usize>().prop_map(Step::Acknowledge),
        1 => Just(Step::SplitFirst),
        1 => Just(Step::Swap),
        1 => Just(Step::Resume),
        2 => Just(Step::Quarantine),
        1 => Just(Step::RefuseQuarantine),
        1 => Just(Step::Forget),
    ]
}

/// What generation `generation` says of a record: always the same, all kinds mixed. Only odd generations pause.
fn verdict(generation: u64, offset: i64, seed: u64) -> Verdict {
    let mixed = (offset as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(generation as u32 * 7);
    match mixed % 16 {
        0..=3 => Verdict::Drop,
        4..=6 => Verdict::Set(format!("{offset} by {generation}").into_bytes()),
        7 if generation % 2 == 1 => Verdict::Halt,
        8 => Verdict::Quarantine,
        _ => Verdict::Keep,
    }
}

/// The partition, its source log, and what the outside saw.
struct World {
    seed: u64,
    log: Vec<Batch>,
    end: i64,
    lane: RelayLane,
    chain: PlainChain,
    transform: Transform,
    /// From which offset on which generation edits.
    changes: BTreeMap<i64, u64>,
    /// Batches on their way: tag and values.
    on_the_way: Vec<(u64, Vec<String>)>,
    /// Values in the order in which they were sent.
    sent: Vec<String>,
    acknowledged: BTreeSet<i64>,
    quarantined: BTreeSet<i64>,
    unwritten: Option<Vec<QuarantineBatch>>,
}

impl World {
    fn new(seed: u64, sizes: &[(i64, i64)]) -> Self {
        let mut log = Vec::new();
        let mut end = 0;
        for (number, (gap, count)) in sizes.iter().enumerate() {
            let codec = if number % 3 == 0 { Codec::None } else { Codec::Lz4 };
            log.push(batch(end + gap, *count, codec));
            end += gap + count;
        }
        let chain = chain(1, seed);
        let mut world = Self {
            seed,
            log,
            end,
            lane: lane(0),
            chain,
            transform: Transform::default(),
            changes: BTreeMap::new(),
            on_the_way: Vec::new(),
            sent: Vec::new(),
            acknowledged: BTreeSet::new(),
            quarantined: BTreeSet::new(),
            unwritten: None,
        };
        world.lane.is_led = true;
        world.take_chain();
        world
    }

    fn take_chain(&mut self) {
        let changeover = self.lane.use_chain(&self.chain);
        self.note_change(changeover.first_offset.unwrap().0);
    }

    /// Earlier generations edit nothing from there on.
    fn note_change(&mut self, first: i64) {
        self.changes.retain(|offset, _| *offset < first);
        self.changes.insert(first, self.chain.generation());
    }

    /// Generation and verdict of a record, as reported.
    fn judged(&self, offset: i64) -> Verdict {
        let (_, generation) = self.changes.range(..=offset).next_back().unwrap();
        verdict(*generation, offset, self.seed)
    }

    fn offsets(&self) -> impl Iterator<Item = i64> + '_ {
        self.log.iter().flat_map(|batch| batch.header.base_offset..batch.header.next_offset())
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Fetch => {
                if self.lane.may_fetch(usize::MAX, tokio::time::Instant::now()) {
                    let from = self.lane.fetch_offset.0;
                    let next = self.log.iter().find(|batch| batch.header.next_offset() > from).cloned();
                    if let Some(batch) = next {
                        self.lane.push(batch);
                    }
                }
            }
            Step::Send => {
                if let Some(out) = next_batch(&mut self.lane, &mut self.chain) {
                    let values = values(out.header, &out.payload);
                    self.sent.extend(values.iter().cloned());
                    self.on_the_way.push((out.tag, values));
                }
                if let Some((batches, _)) = self.lane.quarantine_to_write() {
                    self.unwritten = Some(batches);
                }
            }
            Step::Acknowledge(place) => {
                if !self.on_the_way.is_empty() {
                    let (tag, values) = self.on_the_way.remove(place % self.on_the_way.len());
                    self.lane.acknowledged(tag).unwrap();
                    self.acknowledged.extend(values.iter().map(|value| offset_of(value)));
                }
            }
            Step::SplitFirst => self.split_first(),
            Step::Swap => {
                self.chain = chain(self.chain.generation() + 1, self.seed);
                self.take_chain();
            }
            Step::Resume => {
                self.lane.unhalt();
            }
            Step::Quarantine => {
                if let Some(batches) = self.unwritten.take() {
                    let records = batches.iter().flat_map(|batch| &batch.records);
                    self.quarantined.extend(records.map(|(offset, _)| offset.0));
                    self.lane.quarantined(AS_IT_COMES, &mut self.transform);
                }
            }
            Step::RefuseQuarantine => {
                if let Some(batches) = self.unwritten.take() {
                    let offset = batches[0].records[0].0;
                    let (plugin, reason) = ("plain".into(), "too large".into());
                    self.lane.quarantine_refused(TooLarge { offset, plugin, reason });
                    let first = self.lane.stats.changeover().unwrap().first_offset.unwrap().0;
                    if first < *self.changes.keys().next_back().unwrap() {
                        self.note_change(first);
                    }
                }
            }
            Step::Forget => {
                self.lane.clear_queue();
            }
        }
        self.check_position();
    }

    fn split_first(&mut self) {
        let Some((tag, whole)) = self.on_the_way.first().cloned() else { return };
        let Ok(pieces) = self.lane.split(tag, &mut self.transform) else { return };
        let pieces = pieces.into_iter().map(|piece| (piece.tag, values(piece.header, &piece.payload)));
        let pieces: Vec<_> = pieces.collect();
        assert_eq!(pieces.iter().flat_map(|(_, values)| values.clone()).collect::<Vec<_>>(), whole);
        self.on_the_way.splice(..1, pieces);
    }

    /// All before the safe offset is delivered, dropped or in quarantine.
    fn check_position(&self) {
        let safe = self.lane.progress.safe_offset().0;
        for offset in self.offsets().take_while(|offset| *offset < safe) {
            let is_settled = match self.judged(offset) {
                Verdict::Keep | Verdict::Set(_) => self.acknowledged.contains(&offset),
                Verdict::Drop => true,
                Verdict::Quarantine => self.quarantined.contains(&offset),
                Verdict::Halt => false,
            };
            assert!(is_settled, "{safe} passes {offset}: {:?}", self.judged(offset));
        }
    }

    /// Lets everything come to its end under a generation that pauses nowhere.
    fn finish(&mut self) {
        while self.chain.generation() % 2 == 1 {
            self.step(Step::Swap);
        }
        for _ in 0..10 * self.log.len() + 10 {
            for step in
                [Step::Resume, Step::Fetch, Step::Send, Step::Quarantine, Step::Send, Step::Acknowledge(0)]
            {
                self.step(step);
            }
        }
    }

    fn check_end(&self) {
        assert_eq!(self.lane.progress.safe_offset(), SourceOffset(self.end));
        assert_eq!(self.lane.unsettled_bytes, 0);
        assert!(self.lane.is_idle());
        let expected = self.offsets().filter_map(|offset| match self.judged(offset) {
            Verdict::Keep => Some(offset.to_string()),
            Verdict::Set(value) => Some(String::from_utf8(value).unwrap()),
            _ => None,
        });
        assert_eq!(self.sent, expected.collect::<Vec<_>>(), "generations from {:?}", self.changes);
    }
}

fn chain(generation: u64, seed: u64) -> PlainChain {
    PlainChain::new(generation, move |offset| verdict(generation, offset, seed))
}

fn offset_of(value: &str) -> i64 {
    value.split(' ').next().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_is_lost_reordered_passed_or_edited_twice(
        seed in any::<u64>(),
        sizes in proptest::collection::vec((0_i64..3, 1_i64..12), 1..14),
        steps in proptest::collection::vec(step(), 0..150),
    ) {
        let mut world = World::new(seed, &sizes);
        for step in steps {
            world.step(step);
        }
        world.finish();
        world.check_end();
    }
}
