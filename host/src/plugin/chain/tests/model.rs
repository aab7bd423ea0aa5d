//! Random chains over random batches, against records that are edited one after another.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::stand_in::{
    Headers, Plain, PlainRecord, Shown, StandIn, Wish, answer, plain_chain, read_words, trap,
};
use super::topic;
use crate::config::OnFault;
use crate::plugin::chain::Place;
use crate::plugin::records::Needed;

/// A plugin: what it wants of a record is decided by its seed and the record's offset.
#[derive(Clone, Debug)]
struct Policy {
    seed: u64,
    needed: Needed,
    on_fault: OnFault,
    guilty: BTreeSet<i64>,
}

/// Numbers that look random (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    fn name(&mut self) -> String {
        ["", "a", "b", "region", "höhe"][self.roll(5)].to_owned()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.roll(4);
        (0..length).map(|_| self.roll(256) as u8).collect()
    }

    fn nullable(&mut self) -> Option<Vec<u8>> {
        (self.roll(3) > 0).then(|| self.bytes())
    }
}

impl Policy {
    fn wishes(&self, offset: i64, value_bytes: Option<usize>) -> Vec<Wish> {
        let mut dice = Dice(self.seed ^ (offset as u64).wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut wishes = vec![];
        if dice.roll(3) == 0 {
            return wishes;
        }
        let splices = value_bytes.filter(|_| dice.roll(2) == 0);
        let mut spliced_to = 0;
        for _ in 0..1 + dice.roll(4) {
            let wish = match dice.roll(10) {
                0 => Wish::SetHeader(dice.name(), dice.nullable()),
                1 => Wish::AddHeader(dice.name(), dice.nullable()),
                2 => Wish::RenameHeader(dice.name(), dice.name()),
                3 => Wish::RemoveHeader(dice.name()),
                4 => Wish::SetKey(dice.bytes()),
                5..=7 => match splices {
                    Some(value_bytes) => {
                        let start = spliced_to + dice.roll(value_bytes - spliced_to + 1);
                        spliced_to = start + dice.roll(value_bytes - start + 1);
                        Wish::SpliceValue(start..spliced_to, dice.bytes())
                    }
                    None if dice.roll(3) == 0 => Wish::ClearValue,
                    None => Wish::SetValue(dice.bytes()),
                },
                8 if dice.roll(2) == 0 => Wish::Drop,
                9 if dice.roll(3) == 0 => Wish::Reject(format!("offset {offset}")),
                _ => continue,
            };
            wishes.push(wish);
        }
        wishes
    }

    fn stand_in(&self) -> StandIn {
        let policy = self.clone();
        StandIn::answering(move |batch| {
            let shown = read_words(batch);
            if shown.iter().any(|record| policy.guilty.contains(&record.offset)) {
                return Err(trap(batch));
            }
            let value_bytes = |record: &Shown| record.value.as_ref().map(Vec::len);
            let wishes = shown.iter().map(|record| policy.wishes(record.offset, value_bytes(record)));
            Ok(answer(&wishes.collect::<Vec<_>>()))
        })
    }

    /// What it should see of a record.
    fn shown(&self, record: &PlainRecord) -> Shown {
        let Needed { key, value, headers, timestamps, header_names } = &self.needed;
        let is_shown = |name: &[u8]| {
            let asked = |wanted: &String| wanted.as_bytes() == name;
            *headers
                && str::from_utf8(name).is_ok()
                && (header_names.is_empty() || header_names.iter().any(asked))
        };
        Shown {
            offset: record.offset,
            timestamp_ms: timestamps.then_some(record.timestamp_ms),
            has_key: record.key.is_some(),
            has_value: record.value.is_some(),
            key: record.key.clone().filter(|_| *key),
            value: record.value.clone().filter(|_| *value),
            headers: record.headers.iter().filter(|(name, _)| is_shown(name)).cloned().collect(),
        }
    }
}

/// The plain way to do what the contract says.
fn edited(record: &PlainRecord, wishes: &[Wish]) -> PlainRecord {
    let mut record = record.clone();
    let old_value = record.value.clone().unwrap_or_default();
    let mut spliced: Option<(Vec<u8>, usize)> = None;
    for wish in wishes {
        let headers = &mut record.headers;
        match wish {
            Wish::Drop | Wish::Reject(_) => unreachable!(),
            Wish::SetHeader(name, value) => set_header(headers, name, value),
            Wish::AddHeader(name, value) => headers.push((name.clone().into_bytes(), value.clone())),
            Wish::RenameHeader(old, new) => {
                for header in headers.iter_mut().filter(|header| header.0 == old.as_bytes()) {
                    header.0 = new.clone().into_bytes();
                }
            }
            Wish::RemoveHeader(name) => headers.retain(|header| header.0 != name.as_bytes()),
            Wish::SetKey(key) => record.key = Some(key.clone()),
            Wish::SetValue(value) => record.value = Some(value.clone()),
            Wish::ClearValue => record.value = None,
            Wish::SpliceValue(range, with) => {
                let (mut value, used) = spliced.take().unwrap_or_default();
                value.extend_from_slice(&old_value[used..range.start]);
                value.extend_from_slice(with);
                spliced = Some((value, range.end));
            }
        }
    }
    if let Some((mut value, used)) = spliced {
        value.extend_from_slice(&old_value[used..]);
        record.value = Some(value);
    }
    record
}

fn set_header(headers: &mut Headers, name: &str, value: &Option<Vec<u8>>) {
    let mut found = 0;
    headers.retain_mut(|header| {
        if header.0 != name.as_bytes() {
            return true;
        }
        header.1.clone_from(value);
        found += 1;
        found == 1
    });
    if found == 0 {
        headers.push((name.as_bytes().to_vec(), value.clone()));
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// None: dropped.
    records: Vec<Option<PlainRecord>>,
    /// Offset, plugin, whether it was a reject.
    quarantined: Vec<(i64, String, bool)>,
    halt: Option<(i64, String, bool)>,
    /// What each plugin saw, in a chain without faults.
    shown: Vec<Vec<Shown>>,
}

fn expected(originals: &[PlainRecord], policies: &[Policy]) -> Outcome {
    let mut outcome =
        Outcome { records: originals.iter().cloned().map(Some).collect(), ..Outcome::default() };
    let mut end = originals.len();
    for (number, policy) in policies.iter().enumerate() {
        let mut shown = vec![];
        for index in 0..end {
            let Some(record) = outcome.records[index].clone() else { continue };
            let seen = policy.shown(&record);
            let wishes = policy.wishes(record.offset, seen.value.as_ref().map(Vec::len));
            shown.push(seen);
            let decisive = wishes.iter().find(|wish| matches!(wish, Wish::Drop | Wish::Reject(_)));
            let is_fault = policy.guilty.contains(&record.offset);
            let is_reject = matches!(decisive, Some(Wish::Reject(_)));
            if !is_fault && !is_reject {
                outcome.records[index] = decisive.is_none().then(|| edited(&record, &wishes));
                continue;
            }
            let condemned = (record.offset, number.to_string(), !is_fault);
            match policy.on_fault {
                OnFault::Pass => {}
                OnFault::Drop => outcome.records[index] = None,
                OnFault::Quarantine => {
                    outcome.records[index] = None;
                    outcome.quarantined.push(condemned);
                }
                OnFault::Pause => {
                    outcome.halt = Some(condemned);
                    end = index;
                    break;
                }
            }
        }
        outcome.shown.push(shown);
        for (index, original) in originals.iter().enumerate().skip(end) {
            outcome.records[index] = Some(original.clone());
        }
    }
    let is_before = |offset: i64| originals.iter().take(end).any(|record| record.offset == offset);
    outcome.quarantined.retain(|(offset, ..)| is_before(*offset));
    outcome.quarantined.sort();
    outcome
}

fn found(plain: &Plain, policies: &[Policy], fills_once: bool) -> Outcome {
    let stand_ins: Vec<StandIn> = policies.iter().map(Policy::stand_in).collect();
    let plugins = stand_ins.iter().zip(policies).enumerate();
    let plugins = plugins.map(|(number, (stand_in, policy))| {
        stand_in.plugin(&number.to_string(), policy.on_fault, policy.needed.clone())
    });
    let mut chain = plain_chain(plugins.collect());
    let mut records = plain.set();
    let place = Place { topic: &topic(), partition: 0 };
    if !fills_once {
        // Buffers that were used before change nothing.
        chain.edit(place, &plain.base, &mut plain.set());
    }
    let edited = chain.edit(place, &plain.base, &mut records);
    let condemned = |condemned: crate::plugin::chain::Condemned| {
        (condemned.offset.0, condemned.plugin, condemned.is_reject)
    };
    let now = (0..records.len()).map(|index| records.record(&plain.base, index));
    for (index, original) in plain.records.iter().enumerate() {
        assert_eq!(&PlainRecord::read(&records.original(&plain.base, index)), original);
    }
    Outcome {
        records: now.map(|now| (!now.is_dropped).then(|| PlainRecord::read(&now))).collect(),
        quarantined: edited.quarantined.into_iter().map(condemned).collect(),
        halt: edited.halt.map(condemned),
        shown: stand_ins.iter().map(|stand_in| stand_in.calls().concat()).collect(),
    }
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let names: [&[u8]; 6] = [b"", b"a", b"b", b"region", "höhe".as_bytes(), b"\xff"];
    (0..names.len()).prop_map(move |index| names[index].to_vec())
}

fn record() -> impl Strategy<Value = PlainRecord> {
    let bytes = || option::of(vec(any::<u8>(), 0..12));
    (1..4_i64, -1..9_i64, bytes(), bytes(), vec((name(), bytes()), 0..5)).prop_map(
        |(gap, timestamp_ms, key, value, headers)| PlainRecord {
            offset: gap,
            timestamp_ms,
            key,
            value,
            headers,
        },
    )
}

/// Records with rising offsets, with gaps as compaction leaves them.
fn batch() -> impl Strategy<Value = Vec<PlainRecord>> {
    vec(record(), 0..40).prop_map(|mut records| {
        let mut offset = 1_000;
        for record in &mut records {
            offset += record.offset;
            record.offset = offset;
        }
        records
    })
}

fn policy(guilty_count_max: usize) -> impl Strategy<Value = Policy> {
    let header_names = vec(prop_oneof!["a", "region", "none"], 0..3);
    let parts = any::<(bool, bool, bool, bool)>();
    let on_fault = (0..4_usize).prop_map(|number| OnFault::WORDS[number].1);
    let guilty = btree_set(1_001..1_060_i64, 0..=guilty_count_max);
    (any::<u64>(), parts, header_names, on_fault, guilty).prop_map(
        |(seed, (key, value, headers, timestamps), header_names, on_fault, guilty)| {
            let needed = Needed { key, value, headers, timestamps, header_names };
            Policy { seed, needed, on_fault, guilty }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn chains_do_what_editing_record_by_record_does(records in batch(), policies in vec(policy(0), 1..4)) {
        let expected = expected(&records, &policies);
        // A reject that pauses cuts what is shown: the call before the halt had all of them.
        let mut found = found(&Plain::of(records), &policies, true);
        for ((found, expected), policy) in found.shown.iter_mut().zip(&expected.shown).zip(&policies) {
            if policy.on_fault == OnFault::Pause {
                prop_assert!(found.starts_with(expected), "{found:?} begins with {expected:?}");
                found.truncate(expected.len());
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn faults_change_nothing_but_the_fate_of_guilty_records(
        records in batch(),
        policies in vec(policy(3), 1..4),
    ) {
        let expected = Outcome { shown: vec![], ..expected(&records, &policies) };
        let found = Outcome { shown: vec![], ..found(&Plain::of(records), &policies, false) };
        prop_assert_eq!(found, expected);
    }
}
