//! The search for guilty records, its bounds, and what becomes of them.

use std::sync::atomic::{AtomicU32, Ordering};

use super::stand_in::{Plain, StandIn, Wish, answer, kept, numbered, plain_chain, read_words, trap};
use super::topic;
use crate::config::OnFault;
use crate::plugin::chain::{Chain, Condemned, Edited, FAULTED_CALL_COUNT_MAX, FAULTED_CALL_COUNT_MIN, Place};
use crate::plugin::records::Needed;
use crate::record::RecordSet;

/// Traps when one of these is shown; marks all others.
fn trapping_on(guilty: &'static [i64]) -> StandIn {
    StandIn::answering(move |batch| {
        let shown = read_words(batch);
        if shown.iter().any(|record| guilty.contains(&record.offset)) {
            return Err(trap(batch));
        }
        Ok(answer(&vec![vec![Wish::SetValue(b"seen".to_vec())]; shown.len()]))
    })
}

fn hundred() -> Plain {
    Plain::of((0..100).map(|number| numbered(number, b"read")).collect())
}

fn edit(chain: &mut Chain, plain: &Plain) -> (Edited, RecordSet) {
    let mut records = plain.set();
    let edited = chain.edit(Place { topic: &topic(), partition: 3 }, &plain.base, &mut records);
    (edited, records)
}

fn condemned(offset: i64) -> Condemned {
    Condemned {
        index: (offset - 100) as usize,
        offset: crate::names::SourceOffset(offset),
        plugin: "a".to_owned(),
        version: "1.0.0".to_owned(),
        digest: "d1".to_owned(),
        generation: 7,
        is_reject: false,
        reason: format!(
            "plugin \"a\" 1.0.0 broke down in process(orders[3] offsets {offset}..={offset}): unreachable"
        ),
    }
}

/// Offset of each kept record whose value is this.
fn offsets(records: &RecordSet, plain: &Plain, value: &[u8]) -> Vec<i64> {
    let kept = kept(records, &plain.base).into_iter();
    let mut offsets: Vec<i64> =
        kept.filter(|(_, found)| found.as_deref() == Some(value)).map(|(offset, _)| offset).collect();
    offsets.sort_unstable();
    offsets
}

#[test]
fn only_guilty_records_meet_their_fate_and_neighbours_are_edited() {
    const GUILTY: &[i64] = &[100, 131, 132, 199];
    let others: Vec<i64> = (100..200).filter(|offset| !GUILTY.contains(offset)).collect();
    let plain = hundred();
    let check = |on_fault: OnFault, quarantined: &[i64], passed: &[i64]| {
        let stand_in = trapping_on(GUILTY);
        let mut chain = plain_chain(vec![stand_in.plugin("a", on_fault, Needed::default())]);
        let (edited, records) = edit(&mut chain, &plain);
        let quarantined = quarantined.iter().map(|offset| condemned(*offset)).collect();
        assert_eq!(edited, Edited { quarantined, halt: None }, "{on_fault}");
        assert_eq!(offsets(&records, &plain, b"seen"), others, "{on_fault}");
        assert_eq!(offsets(&records, &plain, b"read"), passed, "{on_fault}");
        let lone: Vec<i64> =
            stand_in.calls().iter().filter(|call| call.len() == 1).map(|call| call[0].offset).collect();
        let is_asked_twice = |offset: &&i64| lone.iter().filter(|alone| alone == offset).count() == 2;
        assert_eq!(GUILTY.iter().filter(is_asked_twice).count(), GUILTY.len(), "{on_fault}");
    };
    check(OnFault::Pass, &[], GUILTY);
    check(OnFault::Drop, &[], &[]);
    check(OnFault::Quarantine, GUILTY, &[]);
}

#[test]
fn a_pause_stands_at_the_first_guilty_record_and_is_found_quickly() {
    let plain = hundred();
    let check = |guilty: &'static [i64], halt: i64| {
        let stand_in = trapping_on(guilty);
        let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Pause, Needed::default())]);
        let (edited, records) = edit(&mut chain, &plain);
        assert_eq!(edited, Edited { quarantined: vec![], halt: Some(condemned(halt)) });
        assert_eq!(offsets(&records, &plain, b"seen"), (100..halt).collect::<Vec<_>>());
        assert_eq!(offsets(&records, &plain, b"read"), (halt..200).collect::<Vec<_>>());
        assert!(stand_in.calls().len() <= 12, "{} calls", stand_in.calls().len());
    };
    check(&[100], 100);
    check(&[199], 199);
    check(&[150], 150);
    check(&[132, 131, 180], 131);
}

#[test]
fn a_fault_that_a_fresh_instance_does_not_have_is_nobodys_guilt() {
    let plain = hundred();
    for on_fault in [OnFault::Pause, OnFault::Quarantine] {
        let calls = AtomicU32::new(0);
        let stand_in = StandIn::answering(move |batch| match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Err(trap(batch)),
            _ => Ok(answer(&vec![vec![Wish::SetValue(b"seen".to_vec())]; batch.count as usize])),
        });
        let mut chain = plain_chain(vec![stand_in.plugin("a", on_fault, Needed::default())]);
        let (edited, records) = edit(&mut chain, &plain);
        assert_eq!(edited, Edited::default());
        assert_eq!(offsets(&records, &plain, b"seen").len(), 100);
        assert_eq!((stand_in.call_sizes(), stand_in.start_count()), (vec![100, 100], 2));
        assert_eq!(stand_in.totals(), (2, 200, 0, 100, 0, 1));
    }
}

#[test]
fn a_fault_of_many_records_together_condemns_none() {
    let plain = hundred();
    for on_fault in [OnFault::Pause, OnFault::Quarantine] {
        let stand_in = StandIn::answering(|batch| match batch.count {
            0..=30 => Ok(answer(&vec![vec![Wish::SetValue(b"seen".to_vec())]; batch.count as usize])),
            _ => Err(trap(batch)),
        });
        let mut chain = plain_chain(vec![stand_in.plugin("a", on_fault, Needed::default())]);
        let (edited, records) = edit(&mut chain, &plain);
        assert_eq!(edited, Edited::default());
        assert_eq!(offsets(&records, &plain, b"seen").len(), 100);
    }
}

#[test]
fn a_plugin_that_always_fails_is_asked_a_bounded_number_of_times() {
    let plain = Plain::of((0..1_200).map(|number| numbered(number, b"read")).collect());
    let stand_in = StandIn::answering(|batch| Err(trap(batch)));
    let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Quarantine, Needed::default())]);
    let mut calls_before = 0;
    for max in [FAULTED_CALL_COUNT_MAX, 32, 16, 8, FAULTED_CALL_COUNT_MIN, FAULTED_CALL_COUNT_MIN] {
        let (edited, records) = edit(&mut chain, &plain);
        let calls = stand_in.calls().len() as u32 - calls_before;
        calls_before += calls;
        assert!((max..=max + 1).contains(&calls), "{calls} calls of {max}");
        assert_eq!((edited.quarantined.len(), records.kept_count()), (1_200, 0));
        assert_eq!(edited.halt, None);
        assert_eq!(
            edited.quarantined.last().map(|last| last.reason.rsplit_once("; ").unwrap().1),
            Some(&*format!(
                "{calls} calls failed in this batch, so its remaining records are judged together"
            ))
        );
    }
}

#[test]
fn a_plugin_that_always_fails_pauses_at_the_first_record() {
    let plain = hundred();
    let stand_in = StandIn::answering(|batch| Err(trap(batch)));
    let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Pause, Needed::default())]);
    for _ in 0..3 {
        let (edited, records) = edit(&mut chain, &plain);
        assert_eq!(edited.halt, Some(condemned(100)));
        assert!(!records.is_changed());
    }
}

#[test]
fn without_an_instance_nothing_is_judged_whatever_on_fault_says() {
    let plain = hundred();
    for on_fault in [OnFault::Pause, OnFault::Pass, OnFault::Drop, OnFault::Quarantine] {
        let stand_in = trapping_on(&[150]).starting_at_most(3);
        let mut chain = plain_chain(vec![stand_in.plugin("a", on_fault, Needed::default())]);
        let (edited, records) = edit(&mut chain, &plain);
        let halt = edited.halt.unwrap();
        let reason = "no instance could be started: plugin \"a\" 1.0.0 failed its self-test: out of breath";
        assert_eq!(halt.reason, reason);
        assert_eq!(edited.quarantined, []);
        assert!((100..=150).contains(&halt.offset.0), "{halt:?}");
        assert_eq!(offsets(&records, &plain, b"read"), (halt.offset.0..200).collect::<Vec<_>>());
    }
    let stand_in = trapping_on(&[]).starting_at_most(0);
    assert!(Chain::of(1, vec![stand_in.plugin("a", OnFault::Pause, Needed::default())]).is_err());
}

#[test]
fn rejected_records_take_the_same_way_with_the_plugins_reason() {
    let plain = hundred();
    let check = |on_fault: OnFault, quarantined: &[i64], halt: Option<i64>, read: &[i64]| {
        let stand_in = StandIn::wishing(|shown| match shown.offset {
            120 | 130 => vec![Wish::SetKey(b"k".to_vec()), Wish::Reject("no\nregion".to_owned()), Wish::Drop],
            _ => vec![Wish::SetValue(b"seen".to_vec())],
        });
        let mut chain = plain_chain(vec![stand_in.plugin("a", on_fault, Needed::default())]);
        let (edited, records) = edit(&mut chain, &plain);
        let rejected =
            |offset: i64| Condemned { is_reject: true, reason: "no region".to_owned(), ..condemned(offset) };
        let quarantined = quarantined.iter().map(|offset| rejected(*offset)).collect();
        assert_eq!(edited, Edited { quarantined, halt: halt.map(rejected) }, "{on_fault}");
        assert_eq!(offsets(&records, &plain, b"read"), read, "{on_fault}");
        assert_eq!(stand_in.totals(), (1, 100, 0, 98, 2, 0));
    };
    check(OnFault::Pause, &[], Some(120), &(120..200).collect::<Vec<_>>());
    check(OnFault::Pass, &[], None, &[120, 130]);
    check(OnFault::Drop, &[], None, &[]);
    check(OnFault::Quarantine, &[120, 130], None, &[]);
}

#[test]
fn a_halt_takes_back_what_earlier_plugins_did_behind_it() {
    let plain = hundred();
    let first = StandIn::wishing(|shown| match shown.offset {
        110 | 160 => vec![Wish::Reject("odd".to_owned())],
        150.. => vec![Wish::Drop],
        _ => vec![Wish::SetValue(b"first".to_vec())],
    });
    let second = trapping_on(&[140]);
    let third = StandIn::wishing(|_| vec![]);
    let mut chain = plain_chain(vec![
        first.plugin("first", OnFault::Quarantine, Needed::default()),
        second.plugin("a", OnFault::Pause, Needed::default()),
        third.plugin("third", OnFault::Pause, Needed::default()),
    ]);
    let (edited, records) = edit(&mut chain, &plain);
    assert_eq!(edited.quarantined.iter().map(|record| record.offset.0).collect::<Vec<_>>(), [110]);
    assert_eq!(edited.halt, Some(condemned(140)));
    assert_eq!(offsets(&records, &plain, b"read"), (140..200).collect::<Vec<_>>());
    assert_eq!(records.kept_count(), 99);
    assert_eq!(third.call_sizes(), [39]);
}

#[test]
fn what_on_fault_lets_go_is_told_once_a_while() {
    let plain = hundred();
    let check = |on_fault: OnFault, what: &str| {
        let log = crate::plugin::tests::Log::default();
        let subscriber =
            tracing_subscriber::fmt().with_writer(log.clone()).without_time().with_ansi(false).finish();
        let stand_in = trapping_on(&[131, 132]);
        let mut chain = plain_chain(vec![stand_in.plugin("a", on_fault, Needed::default())]);
        tracing::subscriber::with_default(subscriber, || {
            edit(&mut chain, &plain);
            edit(&mut chain, &plain);
        });
        let reason = condemned(131).reason;
        let place = "plugin=a topic=orders partition=3 offset=131";
        let line = format!("{what} that a plugin failed on or rejected {place} reason={reason:?} records=2");
        let lines = log.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].ends_with(&line), "{} does not end with {line}", lines[0]);
    };
    check(OnFault::Pass, "records passed unchanged");
    check(OnFault::Drop, "records dropped");
}

#[test]
fn neighbours_are_edited_again_soon_after_a_plugin_failed_always() {
    let plain = hundred();
    let is_broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let breaks = std::sync::Arc::clone(&is_broken);
    let stand_in = StandIn::answering(move |batch| {
        let shown = read_words(batch);
        if breaks.load(Ordering::Relaxed) || shown.iter().any(|record| record.offset == 131) {
            return Err(trap(batch));
        }
        Ok(answer(&vec![vec![]; shown.len()]))
    });
    let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Quarantine, Needed::default())]);
    let mut quarantined = || edit(&mut chain, &plain).0.quarantined.len();
    for _ in 0..6 {
        assert_eq!(quarantined(), 100);
    }
    is_broken.store(false, Ordering::Relaxed);
    let counts: Vec<usize> = (0..6).map(|_| quarantined()).collect();
    assert!(counts[0] > 1, "the bound is low at first: {counts:?}");
    assert_eq!(counts[3..], [1, 1, 1], "{counts:?}");
}
