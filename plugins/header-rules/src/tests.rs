//! The rules, run on built records.

use tidegate_plugin::testing::{self, Batch, Judged, OwnedRecord};

use super::*;

fn plugin(rules: &str) -> HeaderRules {
    testing::start(&format!("{{\"rules\": {rules}}}")).unwrap()
}

/// The headers of one record after the rules, written `name=value`; null is `name`.
fn headers(rules: &str, record: fn(OwnedRecord) -> OwnedRecord) -> Vec<String> {
    let batch = Batch::new("orders", 3).base_offset(100).record(record);
    let outcome = testing::run(&mut plugin(rules), &batch);
    let [Judged::Kept(record)] = outcome.records.as_slice() else { panic!("{outcome:?}") };
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let written = |(name, value): &(String, Option<Vec<u8>>)| match value {
        Some(value) => format!("{name}={}", text(value)),
        None => name.clone(),
    };
    record.headers.iter().map(written).collect()
}

fn some(record: OwnedRecord) -> OwnedRecord {
    record.timestamp_ms(5).header("a", "1").header("b", "2").header("a", "3").null_header("trace-id")
}

#[test]
fn each_action_does_what_it_says() {
    let check = |rules: &str, expected: &[&str]| assert_eq!(headers(rules, some), expected, "{rules}");
    check(r#"[{"action":"set","name":"a","value":"x"}]"#, &["a=x", "b=2", "trace-id"]);
    check(r#"[{"action":"set","name":"c","value":"x"}]"#, &["a=1", "b=2", "a=3", "trace-id", "c=x"]);
    check(r#"[{"action":"set","name":"b","value":null}]"#, &["a=1", "b", "a=3", "trace-id"]);
    check(r#"[{"action":"add","name":"a","value":""}]"#, &["a=1", "b=2", "a=3", "trace-id", "a="]);
    check(r#"[{"action":"add","name":"a","value":null}]"#, &["a=1", "b=2", "a=3", "trace-id", "a"]);
    check(r#"[{"action":"rename","name":"a","to":"c"}]"#, &["c=1", "b=2", "c=3", "trace-id"]);
    check(r#"[{"action":"rename","name":"a","to":"a"}]"#, &["a=1", "b=2", "a=3", "trace-id"]);
    check(r#"[{"action":"remove","names":["a"]}]"#, &["b=2", "trace-id"]);
    check(r#"[{"action":"remove","names":["trace-*","b"]}]"#, &["a=1", "a=3"]);
    check(r#"[{"action":"remove","names":["*"]}]"#, &[]);
    check(r#"[{"action":"keep-only","names":["a"]}]"#, &["a=1", "a=3"]);
    check(r#"[{"action":"keep-only","names":["trace-*"]}]"#, &["trace-id"]);
    check(r#"[{"action":"keep-only","names":[]}]"#, &[]);
}

#[test]
fn values_are_filled() {
    let value = "{topic}-{partition}@{offset} {timestamp} {flow} {source_cluster} {target_cluster} {{x}}";
    let rules = format!(r#"[{{"action":"set","name":"from","value":"{value}"}}]"#);
    assert_eq!(
        headers(&rules, |record| record.timestamp_ms(5)),
        ["from=orders-3@100 5 east->west east west {x}"]
    );
    assert_eq!(headers(r#"[{"action":"add","name":"t","value":"{timestamp}"}]"#, |record| record), ["t=-1"]);
}

#[test]
fn each_rule_sees_what_the_one_before_left() {
    let check = |rules: &str, expected: &[&str]| assert_eq!(headers(rules, some), expected, "{rules}");
    let set = r#"{"action":"set","name":"new","value":"x"}"#;
    let add = r#"{"action":"add","name":"late","value":"x"}"#;
    let keep = r#"{"action":"keep-only","names":["b","c","l*"]}"#;
    let rename = r#"{"action":"rename","name":"a","to":"c"}"#;
    let remove = r#"{"action":"remove","names":["c","new"]}"#;
    check(&format!("[{set},{keep}]"), &["b=2"]);
    check(&format!("[{keep},{set}]"), &["b=2", "new=x"]);
    check(&format!("[{rename},{keep},{add}]"), &["c=1", "b=2", "c=3", "late=x"]);
    check(&format!("[{keep},{rename}]"), &["b=2"]);
    check(&format!("[{set},{rename},{remove}]"), &["b=2", "trace-id"]);
    check(&format!("[{add},{keep},{keep}]"), &["b=2", "late=x"]);
    let back = r#"{"action":"rename","name":"c","to":"a"}"#;
    check(&format!("[{rename},{back}]"), &["a=1", "b=2", "a=3", "trace-id"]);
}

#[test]
fn a_record_that_no_rule_touches_has_no_edit() {
    let rules = r#"[{"action":"remove","names":["x","y-*"]},{"action":"rename","name":"z","to":"a"},
        {"action":"keep-only","names":["a","b","trace-*"]}]"#;
    let mut plugin = plugin(rules);
    let batch = Batch::new("orders", 0).record(some);
    let kept = testing::run(&mut plugin, &batch);
    assert_eq!(kept.kept()[0], &some(OwnedRecord::default()));
}

#[test]
fn values_of_a_batch_are_not_those_of_the_batch_before() {
    let mut plugin = plugin(r#"[{"action":"set","name":"from","value":"{topic}"}]"#);
    for topic in ["orders", "bills"] {
        let outcome =
            testing::run(&mut plugin, &Batch::new(topic, 0).record(|record| record).record(|record| record));
        for record in outcome.kept() {
            assert_eq!(record.headers, [("from".to_owned(), Some(topic.as_bytes().to_vec()))]);
        }
    }
}

#[test]
fn only_what_is_used_is_asked_for() {
    let check = |rules: &str, needs: Needs| assert_eq!(plugin(rules).needs(), needs, "{rules}");
    check(r#"[{"action":"set","name":"a","value":"{topic}{offset}"}]"#, Needs::nothing());
    check(r#"[{"action":"add","name":"a","value":null}]"#, Needs::nothing());
    check(r#"[{"action":"add","name":"a","value":"{timestamp}"}]"#, Needs::nothing().timestamps());
    check(r#"[{"action":"remove","names":["a","b"]}]"#, Needs::nothing().header("a").header("b"));
    check(r#"[{"action":"rename","name":"a","to":"b"}]"#, Needs::nothing().header("a"));
    check(r#"[{"action":"remove","names":["a-*"]}]"#, Needs::nothing().headers());
    check(r#"[{"action":"keep-only","names":["a"]}]"#, Needs::nothing().headers());
}

#[test]
fn settings_are_checked() {
    let check = |settings: &str, problems: &[(&str, &str)]| {
        let problems: Vec<Problem> =
            problems.iter().map(|(at, message)| Problem::new(*at, *message)).collect();
        assert_eq!(testing::start::<HeaderRules>(settings).unwrap_err(), problems, "{settings}");
    };
    check("{}", &[("/rules", "must list at least one rule")]);
    check(r#"{"rules":[]}"#, &[("/rules", "must list at least one rule")]);
    check(
        r#"{"rules":[{"action":"set","name":"a"},{"action":"st"},{"name":"x"},{"action":"set","name":5,"value":5},
            {"action":"set","name":"a","value":"{x"},{"action":"rename","name":"a"},{"action":"remove","name":"a"},
            {"action":"keep-only","names":["a*b"]}],"more":1}"#,
        &[
            ("/rules/0", "lacks the field \"value\""),
            ("/rules/1/action", "must be one of set, add, rename, remove, keep-only, not \"st\""),
            ("/rules/2", "lacks the field \"action\""),
            ("/rules/3/name", "must be a string, not a number"),
            ("/rules/3/value", "must be a string or null"),
            ("/rules/4/value", "\"{x\" has a lone brace; {{ and }} stand for braces"),
            ("/rules/5", "lacks the field \"to\""),
            ("/rules/6/names", "must list the names"),
            ("/rules/6/name", "unknown field; there is: action, names"),
            ("/rules/7/names/0", "\"a*b\" has a \"*\" that is not its end"),
            ("/more", "unknown field; there is: rules"),
        ],
    );
    let many = "{\"action\":\"remove\",\"names\":[]},".repeat(257);
    let many = format!("{{\"rules\":[{}]}}", many.trim_end_matches(','));
    check(&many, &[("/rules", "has 257 rules, at most 256 are taken")]);
}
