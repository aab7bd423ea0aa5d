//! Chains of plain Rust plugins: against a model that edits one record after another, and with every kind of fault.

mod bad_answers;
mod faults;
mod model;
mod modules;
mod stand_in;

use super::question::{CALL_DATA_BYTES_MAX, CALL_RECORD_COUNT_MAX};
use super::*;
use crate::config::OnFault;
use crate::plugin::records::Needed;
use stand_in::{Plain, StandIn, Wish, numbered, plain_chain};

fn topic() -> TopicName {
    TopicName::parse("orders").unwrap()
}

#[test]
fn calls_are_cut_by_records_and_by_bytes() {
    let check = |value_bytes: usize, count: usize, needed: Needed, expected: &[usize]| {
        let plain = Plain::of((0..count).map(|number| numbered(number, &vec![b'x'; value_bytes])).collect());
        let stand_in = StandIn::wishing(|_| vec![]);
        let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Pause, needed)]);
        let mut records = plain.set();
        let edited = chain.edit(Place { topic: &topic(), partition: 3 }, &plain.base, &mut records);
        assert_eq!(edited, Edited::default());
        assert!(!records.is_changed());
        assert_eq!(stand_in.call_sizes(), expected, "{count} values of {value_bytes} bytes");
    };
    let values = Needed { value: true, ..Needed::default() };
    check(10, 1_200, values.clone(), &[CALL_RECORD_COUNT_MAX, CALL_RECORD_COUNT_MAX, 200]);
    check(100 * 1024, 5, values.clone(), &[2, 2, 1]);
    check(2 * CALL_DATA_BYTES_MAX, 2, values, &[1, 1]);
    check(100 * 1024, 5, Needed::default(), &[5]);
    check(10, 0, Needed::default(), &[]);
}

#[test]
fn dropped_records_are_not_shown_to_the_next_plugin() {
    let plain = Plain::of((0..10).map(|number| numbered(number, b"v")).collect());
    let odd = StandIn::wishing(|shown| if shown.offset % 2 == 1 { vec![Wish::Drop] } else { vec![] });
    let all = StandIn::wishing(|_| vec![Wish::Drop]);
    let none = StandIn::wishing(|_| vec![]);
    let plugins = [("odd", &odd), ("all", &all), ("none", &none)];
    let plugins = plugins.map(|(name, stand_in)| stand_in.plugin(name, OnFault::Pause, Needed::default()));
    let mut records = plain.set();
    let edited =
        plain_chain(plugins.into()).edit(Place { topic: &topic(), partition: 0 }, &plain.base, &mut records);
    assert_eq!(edited, Edited::default());
    assert_eq!(all.call_sizes(), [5]);
    assert!(none.call_sizes().is_empty());
    assert_eq!((records.kept_count(), records.is_changed()), (0, true));
    assert_eq!(odd.totals(), (1, 10, 5, 0, 0, 0));
}

#[test]
fn a_plugin_applies_where_its_lists_say() {
    let plain = Plain::of(vec![numbered(0, b"v")]);
    let stand_in = StandIn::wishing(|_| vec![Wish::Drop]);
    let mut plugin = stand_in.plugin("a", OnFault::Pause, Needed::default());
    plugin.topics = stand_in::topics(&["pay.*"]);
    let mut chain = plain_chain(vec![plugin]);
    let payments = TopicName::parse("payments").unwrap();
    assert!(chain.applies_to(&payments));
    assert!(!chain.applies_to(&topic()));
    let mut records = plain.set();
    chain.edit(Place { topic: &topic(), partition: 0 }, &plain.base, &mut records);
    assert_eq!(records.kept_count(), 1);
    chain.edit(Place { topic: &payments, partition: 0 }, &plain.base, &mut records);
    assert_eq!(records.kept_count(), 0);
}

#[test]
fn an_instance_that_outgrew_half_its_limit_is_replaced_between_batches() {
    let plain = Plain::of(vec![numbered(0, b"v")]);
    let check = |grown_bytes: usize, starts: usize| {
        let stand_in = StandIn::wishing(|_| vec![]).growing_to(grown_bytes);
        let mut chain = plain_chain(vec![stand_in.plugin("a", OnFault::Pause, Needed::default())]);
        for _ in 0..3 {
            chain.edit(Place { topic: &topic(), partition: 0 }, &plain.base, &mut plain.set());
        }
        assert_eq!(stand_in.start_count(), starts, "{grown_bytes} of {} bytes", stand_in::MEMORY_BYTES);
    };
    let fresh = stand_in::FRESH_BYTES;
    let half_bytes = fresh + (stand_in::MEMORY_BYTES - fresh) / 2;
    check(half_bytes, 1);
    check(half_bytes + 1, 3);
}
