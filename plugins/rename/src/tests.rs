//! Both directions of naming.

use std::collections::HashMap;

use proptest::prelude::*;
use tidegate_plugin::testing;

use super::*;

fn rename(settings: &str) -> Rename {
    testing::start(settings).unwrap_or_else(|problems| panic!("{settings}: {problems:?}"))
}

/// Both ways.
fn check(settings: &str, names: &[(&str, &str)]) {
    let rename = rename(settings);
    for (old, new) in names {
        assert_eq!(rename.to_target(old).as_deref(), Ok(*new), "{settings} {old}");
        assert_eq!(rename.to_source(new).as_deref(), Some(*old), "{settings} {new}");
    }
}

fn check_refused(settings: &str, topic: &str, message: &str) {
    assert_eq!(rename(settings).to_target(topic), Err(message.to_owned()), "{settings} {topic}");
}

#[test]
fn a_table_names_topics() {
    check(
        r#"{"topics":{"orders":"bestellungen","same":"same"}}"#,
        &[
            ("orders", "bestellungen"),
            ("same", "same"),
            ("other", "east.other"),
            ("heartbeats", "east.heartbeats"),
        ],
    );
    check(
        r#"{"topics":{"a":"b","b":"c","c":"a"},"otherwise":"keep"}"#,
        &[("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")],
    );
}

#[test]
fn patterns_name_topics_after_the_table_and_in_order() {
    let settings = r#"{"topics":{"shop.special":"special"},
        "patterns":[{"match":"shop\\.(.*)","to":"eu-shop.$1"},{"match":"(?<team>[^.]+)\\.(.*)","to":"$2.of.${team}"}],
        "otherwise":"keep"}"#;
    check(
        settings,
        &[
            ("shop.special", "special"),
            ("shop.orders", "eu-shop.orders"),
            ("bank.orders.x", "orders.x.of.bank"),
            ("plain", "plain"),
        ],
    );
}

#[test]
fn what_nothing_matches_follows_otherwise() {
    check("{}", &[("orders", "east.orders"), ("east.orders", "east.east.orders")]);
    check(r#"{"separator":"_"}"#, &[("orders", "east_orders")]);
    check(
        r#"{"otherwise":"keep"}"#,
        &[("orders", "orders"), ("heartbeats", "east.heartbeats"), ("heartbeats.x", "heartbeats.x")],
    );
    check_refused(
        r#"{"topics":{"a":"b"},"otherwise":"refuse"}"#,
        "c",
        "has no name on the target: neither the table nor a pattern is for it, and \"otherwise\" is \"refuse\"",
    );
    assert_eq!(rename(r#"{"topics":{"a":"b"},"otherwise":"refuse"}"#).to_source("c"), None);
    assert_eq!(rename("{}").to_source("west.orders"), None);
    assert_eq!(rename("{}").to_source("east."), None);
    assert_eq!(rename(r#"{"otherwise":"keep"}"#).to_source("west.heartbeats"), None);
}

#[test]
fn a_name_that_another_topic_has_is_refused_in_words() {
    check_refused(
        r#"{"topics":{"orders":"bills"},"otherwise":"keep"}"#,
        "bills",
        "can't keep its name: \"bills\" is what \"orders\" is called by the table; give one of them another name",
    );
    check_refused(
        r#"{"patterns":[{"match":"(.*)-old","to":"$1"}],"otherwise":"keep"}"#,
        "orders",
        "can't keep its name: \"orders\" is what \"orders-old\" is called by pattern 1; give one of them another name",
    );
    check_refused(
        r#"{"topics":{"a":"east.b"}}"#,
        "b",
        "would be called so too: \"east.b\" is what \"a\" is called by the table; give one of them another name",
    );
    check_refused(
        r#"{"patterns":[{"match":"a-(.*)","to":"$1"},{"match":"b-(.*)","to":"$1"}]}"#,
        "b-x",
        "would be called so too: \"x\" is what \"a-x\" is called by pattern 1; give one of them another name",
    );
    let one_wins = rename(r#"{"topics":{"orders":"bills"},"otherwise":"keep"}"#);
    assert_eq!(one_wins.to_target("orders").as_deref(), Ok("bills"));
    assert_eq!(one_wins.to_source("bills").as_deref(), Some("orders"));
    assert_eq!(one_wins.to_source("orders"), None);
}

#[test]
fn a_name_that_is_free_because_its_topic_is_renamed_is_given() {
    check(
        r#"{"topics":{"orders":"bills","bills":"invoices"},"otherwise":"keep"}"#,
        &[("orders", "bills"), ("bills", "invoices")],
    );
    check(
        r#"{"topics":{"orders":"b-1"},"patterns":[{"match":"b-(.*)","to":"c-$1"}],"otherwise":"keep"}"#,
        &[("orders", "b-1"), ("b-1", "c-1")],
    );
}

#[test]
fn names_that_kafka_would_not_take_are_refused() {
    check_refused(r#"{"patterns":[{"match":"x-(.*)","to":"$1"}]}"#, "x-", "a topic's name can't be empty");
    check_refused(
        r#"{"patterns":[{"match":"(.*)","to":"$1/x"}]}"#,
        "a",
        "\"a/x\" holds '/'; Kafka takes ASCII letters, digits, '.', '_' and '-'",
    );
}

#[test]
fn settings_are_checked() {
    let check = |settings: &str, problems: &[(&str, &str)]| {
        let problems: Vec<Problem> =
            problems.iter().map(|(at, message)| Problem::new(*at, *message)).collect();
        assert_eq!(testing::start::<Rename>(settings).unwrap_err(), problems, "{settings}");
    };
    check(
        r#"{"topics":{"a":"x","b":"x","c":"no/","d/e":"d","f":5},"patterns":[{"match":"(","to":"a"},
            {"match":"(.*)-(.*)","to":"$1"},{"match":"(.*)","to":"$2"},{"match":"a"},{"match":"a.b","to":"c"}],
            "otherwise":"drop","more":1}"#,
        &[
            ("/topics/f", "must be a string, not a number"),
            ("/topics/b", "\"a\" is called \"x\" already; each needs a name of its own"),
            ("/topics/c", "\"no/\" holds '/'; Kafka takes ASCII letters, digits, '.', '_' and '-'"),
            ("/topics/d~1e", "\"d/e\" holds '/'; Kafka takes ASCII letters, digits, '.', '_' and '-'"),
            ("/patterns/0/match", "\"(\" is no regular expression: found open group without closing ')'"),
            (
                "/patterns/1",
                "\"$1\" does not name group 2 of \"(.*)-(.*)\", so two topics could get one name",
            ),
            ("/patterns/2", "\"$2\" names the group \"2\", which the expression does not have"),
            ("/patterns/3", "lacks the field \"to\""),
            (
                "/patterns/4",
                "\"a.b\" has \".\" outside of its groups, so what it matched would be lost: put it into a group that \
                 \"to\" names",
            ),
            ("/otherwise", "must be one of prefix, keep, refuse, not \"drop\""),
            ("/more", "unknown field; there is: topics, patterns, separator, otherwise"),
        ],
    );
}

/// Patterns over few letters, so that names often collide.
fn any_pattern() -> impl Strategy<Value = (String, String)> {
    let group = prop_oneof![
        Just("(.*)"),
        Just("(a+)"),
        Just("([^-]*)"),
        Just("([ab]{2})"),
        Just("(a|bb)"),
        Just("(b?)"),
        Just("([^.]+?)"),
        Just("(ab)"),
        Just("([a-b.]*)"),
    ];
    let text = prop_oneof![Just(""), Just("-"), Just(r"\."), Just("a"), Just("b-")];
    let place = prop_oneof![Just("$1"), Just("$2"), Just("-"), Just("."), Just("a"), Just("")];
    (text.clone(), group.clone(), text.clone(), group, text, proptest::collection::vec(place, 1..6))
        .prop_map(|(a, first, b, second, c, to)| ([a, first, b, second, c].concat(), to.concat()))
}

proptest! {
    /// Whatever is not refused at the start: no two topics get one name, and each name leads back.
    #[test]
    fn no_two_topics_get_one_name(
        patterns in proptest::collection::vec(any_pattern(), 1..4),
        table in proptest::collection::btree_map("[ab.-]{1,3}", "[ab.-]{1,3}", 0..3),
        otherwise in prop_oneof![Just("keep"), Just("prefix"), Just("refuse")],
        topics in proptest::collection::vec("[ab.-]{1,6}", 30),
        names in proptest::collection::vec("[ab.-]{1,7}", 30),
    ) {
        let proven: Vec<String> = patterns
            .iter()
            .map(|(expression, to)| format!("{{\"match\":{expression:?},\"to\":\"{to}\"}}"))
            .filter(|pattern| testing::start::<Rename>(&format!("{{\"patterns\":[{pattern}]}}")).is_ok())
            .collect();
        let table: Vec<String> = table.iter().map(|(old, new)| format!("{old:?}:{new:?}")).collect();
        let settings = format!(
            "{{\"topics\":{{{}}},\"patterns\":[{}],\"otherwise\":\"{otherwise}\"}}", table.join(","), proven.join(",")
        );
        let Ok(rename) = testing::start::<Rename>(&settings) else { return Ok(()) };
        let mut owners: HashMap<String, String> = HashMap::new();
        for topic in topics.iter().chain(&names) {
            if let Ok(name) = rename.to_target(topic) {
                prop_assert_eq!(rename.to_source(&name), Some(topic.clone()), "{} {}", &settings, &name);
                let owner = owners.insert(name.clone(), topic.clone());
                prop_assert!(owner.is_none_or(|owner| owner == *topic), "{} {}", &settings, &name);
            }
            if let Some(source) = rename.to_source(topic) {
                prop_assert_eq!(rename.to_target(&source), Ok(topic.clone()), "{} {}", &settings, &source);
            }
        }
    }

    /// A proven pattern alone refuses nothing but names that Kafka would not take.
    #[test]
    fn a_proven_pattern_gives_no_name_twice(
        (expression, to) in any_pattern(), topics in proptest::collection::vec("[ab.-]{1,6}", 40),
    ) {
        let settings = format!("{{\"patterns\":[{{\"match\":{expression:?},\"to\":\"{to}\"}}],\"otherwise\":\"refuse\"}}");
        let Ok(rename) = testing::start::<Rename>(&settings) else { return Ok(()) };
        let matches = WholeMatch::new(&expression).unwrap();
        for topic in topics.iter().filter(|topic| matches.covers(topic)) {
            match rename.to_target(topic) {
                Ok(name) => prop_assert_eq!(rename.to_source(&name), Some(topic.clone())),
                Err(message) => prop_assert!(!message.contains("called so too") && !message.contains("leads back"), "{}", message),
            }
        }
    }
}
