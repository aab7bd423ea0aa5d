//! The policy against Kafka's `DefaultReplicationPolicy`, written down here as its Java code works.

use super::*;

fn policy(source: &str, settings: &str) -> Result<DefaultPolicy, Vec<Problem>> {
    let link = Link {
        name: format!("{source}->west"),
        source_cluster: source.to_owned(),
        target_cluster: "west".to_owned(),
    };
    DefaultPolicy::init(link, settings)
}

/// `Pattern.quote(separator).split(topic)`: trailing empty pieces fall off, an empty separator splits between all
/// characters, and a text without the separator is one piece.
fn java_split<'a>(separator: &str, topic: &'a str) -> Vec<&'a str> {
    let mut pieces: Vec<&str> = match separator {
        "" => topic.split("").filter(|piece| !piece.is_empty()).collect(),
        _ => topic.split(separator).collect(),
    };
    if pieces.len() > 1 {
        while pieces.last().is_some_and(|piece| piece.is_empty()) {
            pieces.pop();
        }
    }
    pieces
}

/// `DefaultReplicationPolicy.topicSource` and `upstreamTopic`.
fn java_upstream<'a>(separator: &str, topic: &'a str) -> Option<(&'a str, &'a str)> {
    let pieces = java_split(separator, topic);
    if pieces.len() < 2 {
        return None;
    }
    Some((pieces[0], &topic[pieces[0].len() + separator.len()..]))
}

#[test]
fn the_oracle_splits_as_java_does() {
    let check = |separator: &str, topic: &str, upstream: Option<(&str, &str)>| {
        assert_eq!(java_upstream(separator, topic), upstream, "{topic:?} by {separator:?}");
    };
    check(".", "orders", None);
    check(".", "foo.", None);
    check(".", "foo..", None);
    check(".", ".", None);
    check(".", "", None);
    check(".", ".foo", Some(("", "foo")));
    check(".", "a..b", Some(("a", ".b")));
    check(".", "a.b.", Some(("a", "b.")));
    check("--", "a---b", Some(("a", "-b")));
    check("", "a", None);
    check("", "abc", Some(("a", "bc")));
}

#[test]
fn names_get_alias_and_separator() {
    let check = |source: &str, settings: &str, topic: &str, target: &str| {
        let policy = policy(source, settings).unwrap();
        assert_eq!(policy.to_target(topic).unwrap(), target);
        assert_eq!(policy.to_source(target).as_deref(), Some(topic), "inverse of {target:?}");
    };
    check("east", "{}", "orders", "east.orders");
    check("east", r#"{"separator":"."}"#, "west.orders", "east.west.orders");
    check("east", r#"{"separator":"_"}"#, "orders", "east_orders");
    check("east", r#"{"separator":"--"}"#, "-orders", "east---orders");
    check("east", r#"{"separator":"\u002d"}"#, "orders", "east-orders");
    check("east", "{}", ".orders.", "east..orders.");
    check("east", "{}", "heartbeats", "east.heartbeats");
    // Kafka's class makes these too, but does not find the way back.
    check("east", r#"{"separator":""}"#, "orders", "eastorders");
    check("us_east", r#"{"separator":"_"}"#, "orders", "us_east_orders");
    check("east", r#"{"separator":"-"}"#, "-", "east--");
}

#[test]
fn the_inverse_is_javas_wherever_java_has_one() {
    for separator in [".", "_", "-", "--"] {
        let settings = format!("{{\"separator\":\"{separator}\"}}");
        let mut found_count = 0;
        for source in ["east", "a", "e"] {
            let policy = policy(source, &settings).unwrap();
            for name in ["east", "a", "e", "", "b", "orders", "east.orders", "a..b", "a.east.b"] {
                for topic in ["orders", "a.b", ".b", "b.", "_", "", ".", "heartbeats", "east.a.b"] {
                    let name = format!("{name}{separator}{topic}");
                    let upstream = java_upstream(separator, &name).filter(|(alias, _)| *alias == source);
                    match upstream {
                        Some((_, upstream)) => assert_eq!(policy.to_source(&name).as_deref(), Some(upstream)),
                        // Only separators behind the alias: the one kind of these names where Java has none.
                        None => assert!(
                            policy.to_source(&name).is_none_or(|rest| rest.replace(separator, "").is_empty()),
                            "{name:?} of {source:?}"
                        ),
                    }
                    found_count += usize::from(upstream.is_some());
                }
            }
        }
        assert!(found_count > 20, "{found_count} names with an inverse under {separator:?}");
    }
}

#[test]
fn names_of_other_clusters_have_no_inverse() {
    let policy = policy("east", "{}").unwrap();
    for name in ["orders", "west.orders", "east", "east.", "eastorders", ".east.orders", "East.orders", ""] {
        assert_eq!(policy.to_source(name), None, "{name:?}");
    }
}

#[test]
fn settings_are_checked() {
    let check = |settings: &str, problems: &[Problem]| {
        assert_eq!(policy("east", settings).unwrap_err(), problems);
    };
    check(r#"{"separator":5}"#, &[Problem::new("/separator", "must be a string, not a number")]);
    check(r#"{"seperator":"."}"#, &[Problem::new("/seperator", "unknown field; there is: separator")]);
    check("[]", &[Problem::new("", "must be an object, not a list")]);
}
