//! The conditions, run on built records.

use tidegate_plugin::testing::{self, Batch, Judged, OwnedRecord};

use super::*;

fn plugin(conditions: &str, rest: &str) -> RegionFilter {
    testing::start(&format!("{{\"conditions\": {conditions}{rest}}}")).unwrap()
}

fn judged(plugin: &mut RegionFilter, record: impl Fn(OwnedRecord) -> OwnedRecord) -> Judged {
    testing::run(plugin, &Batch::new("eu.orders", 0).record(record)).records.remove(0)
}

fn is_kept(conditions: &str, record: impl Fn(OwnedRecord) -> OwnedRecord) -> bool {
    is_kept_with(conditions, "", record)
}

fn is_kept_with(conditions: &str, rest: &str, record: impl Fn(OwnedRecord) -> OwnedRecord) -> bool {
    match judged(&mut plugin(conditions, rest), record) {
        Judged::Kept(_) => true,
        Judged::Dropped => false,
        Judged::Rejected(reason) => panic!("{reason}"),
    }
}

#[test]
fn a_header_lets_through() {
    let eu = r#"[{"by":"header","name":"region","allow":["eu","eu-*"]}]"#;
    for value in ["eu", "eu-west-1"] {
        assert!(is_kept(eu, |record| record.header("region", value)), "{value}");
    }
    for value in ["", "us", "EU", "eu ", "euro"] {
        assert!(!is_kept(eu, |record| record.header("region", value)), "{value}");
    }
    assert!(!is_kept(eu, |record| record), "missing");
    assert!(!is_kept(eu, |record| record.header("Region", "eu")), "another name");
    assert!(!is_kept(eu, |record| record.null_header("region")), "null");
    assert!(!is_kept(eu, |record| record.header("region", b"\xff\xfe")), "no UTF-8");
}

#[test]
fn all_of_several_headers_must_be_allowed() {
    let eu = r#"[{"by":"header","name":"region","allow":["eu"]}]"#;
    assert!(is_kept(eu, |record| record.header("region", "eu").header("region", "eu")));
    assert!(!is_kept(eu, |record| record.header("region", "eu").header("region", "us")));
    assert!(!is_kept(eu, |record| record.header("region", "us").header("region", "eu")));
    assert!(!is_kept(eu, |record| record.header("region", "eu").null_header("region")));
    assert!(!is_kept(eu, |record| record.null_header("region").header("region", "eu")));
}

#[test]
fn a_key_lets_through() {
    let eu = r#"[{"by":"key","allow":["eu-*"]}]"#;
    assert!(is_kept(eu, |record| record.key("eu-1")));
    assert!(!is_kept(eu, |record| record.key("us-1")));
    assert!(!is_kept(eu, |record| record.key("")));
    assert!(!is_kept(eu, |record| record));
}

#[test]
fn a_topic_lets_through() {
    assert!(is_kept(r#"[{"by":"topic","allow":["eu.*"]}]"#, |record| record));
    assert!(!is_kept(r#"[{"by":"topic","allow":["us.*"]}]"#, |record| record));
    assert!(!is_kept(r#"[{"by":"topic","deny":["eu.orders"]}]"#, |record| record));
}

#[test]
fn a_field_lets_through() {
    let eu = r#"[{"by":"field","path":"customer.region","allow":["eu","7","true"]}]"#;
    let kept = [
        r#"{"customer":{"region":"eu"}}"#,
        r#" { "x" : 1, "customer" : { "region" : "\u0065u" } } "#,
        r#"{"customer":{"region":7}}"#,
        r#"{"customer":{"region":true}}"#,
        r#"{"customer":[{"region":"eu"},{"region":"eu"}]}"#,
        r#"{"customer":{"region":"eu","r\u0065gion":"eu"}}"#,
    ];
    for value in kept {
        assert!(is_kept(eu, |record| record.value(value)), "{value}");
    }
    let dropped = [
        r#"{"customer":{"region":"us"}}"#,
        r#"{"customer":{"region":null}}"#,
        r#"{"customer":{"region":["eu"]}}"#,
        r#"{"customer":{"region":{"eu":"eu"}}}"#,
        r#"{"customer":{}}"#,
        r#"{"region":"eu"}"#,
        r#"{"customer":{"region":"eu","region":"us"}}"#,
        r#"{"customer":{"region":"us","region":"eu"}}"#,
        r#"{"customer":{"region":"eu","region":null}}"#,
        r#"{"customer":[{"region":"eu"},{"region":"us"}]}"#,
        r#"{"customer":{"region":"eu"}} {"customer":{"region":"us"}}"#,
        r#"{"customer":{"region":"eu"}"#,
        "\u{feff}{\"customer\":{\"region\":\"eu\"}}",
        "eu",
        "",
    ];
    for value in dropped {
        assert!(!is_kept(eu, |record| record.value(value)), "{value}");
    }
    assert!(
        !is_kept(eu, |record| record.value(b"{\"customer\":{\"region\":\"eu\"},\"x\":\"\xff\"}")),
        "no UTF-8"
    );
    assert!(!is_kept(eu, |record| record.key("eu")), "tombstone");
}

#[test]
fn a_list_of_what_may_not_leave_lets_nothing_through_that_can_not_be_read() {
    let not_us = r#"[{"by":"header","name":"region","deny":["us","us-*"]}]"#;
    assert!(is_kept(not_us, |record| record.header("region", "eu")));
    assert!(!is_kept(not_us, |record| record.header("region", "us-1")));
    assert!(!is_kept(not_us, |record| record.header("region", "eu").header("region", "us")));
    assert!(!is_kept(not_us, |record| record));
    let both = r#"[{"by":"key","allow":["eu-*"],"deny":["eu-uk*"]}]"#;
    assert!(is_kept(both, |record| record.key("eu-de")));
    assert!(!is_kept(both, |record| record.key("eu-uk-1")));
    assert!(!is_kept(both, |record| record.key("us")));
}

#[test]
fn an_empty_list_lets_nothing_through() {
    assert!(!is_kept(r#"[{"by":"key","allow":[]}]"#, |record| record.key("")));
    assert!(!is_kept(r#"[{"by":"key","allow":[],"deny":[]}]"#, |record| record.key("")));
    let refused = testing::start::<RegionFilter>(r#"{"conditions":[{"by":"key","deny":[]}]}"#).unwrap_err();
    let told = refused.iter().map(|problem| (problem.at.as_str(), problem.message.as_str()));
    assert!(
        told.into_iter().any(|told| told == ("/conditions/0/deny", "denies nothing, and there is no \"allow\" beside it"))
    );
}

#[test]
fn all_conditions_or_any() {
    let both = r#"[{"by":"header","name":"region","allow":["eu"]},{"by":"key","allow":["eu-*"]}]"#;
    let any = r#","match":"any""#;
    let eu_header = |record: OwnedRecord| record.header("region", "eu");
    let us_header = |record: OwnedRecord| record.header("region", "us");
    assert!(is_kept(both, |record| eu_header(record).key("eu-1")));
    assert!(!is_kept(both, |record| eu_header(record).key("us-1")));
    assert!(!is_kept(both, |record| us_header(record).key("eu-1")));
    assert!(!is_kept(both, eu_header));
    assert!(is_kept_with(both, any, |record| eu_header(record).key("us-1")));
    assert!(is_kept_with(both, any, |record| us_header(record).key("eu-1")));
    assert!(is_kept_with(both, any, eu_header));
    assert!(!is_kept_with(both, any, |record| us_header(record).key("us-1")));
    assert!(!is_kept_with(both, any, |record| record));
}

#[test]
fn tombstones_pass_conditions_on_fields_if_wanted() {
    let field = r#"[{"by":"field","path":"region","allow":["eu"]}]"#;
    let keep = r#","tombstones":"keep""#;
    assert!(is_kept_with(field, keep, |record| record.key("k")));
    assert!(is_kept_with(field, &format!("{keep},\"match\":\"any\""), |record| record.key("k")));
    assert!(!is_kept_with(field, keep, |record| record.value("")));
    let and_key = r#"[{"by":"field","path":"region","allow":["eu"]},{"by":"key","allow":["eu-*"]}]"#;
    assert!(is_kept_with(and_key, keep, |record| record.key("eu-1")));
    assert!(!is_kept_with(and_key, keep, |record| record.key("us-1")));
}

#[test]
fn what_can_not_be_read_is_rejected_if_wanted_and_says_nothing_of_the_content() {
    let reject = r#","unreadable":"reject""#;
    let check = |condition: &str, record: fn(OwnedRecord) -> OwnedRecord, reason: &str| {
        let judged = judged(&mut plugin(&format!("[{condition}]"), reject), record);
        assert_eq!(judged, Judged::Rejected(reason.to_owned()));
    };
    let header = r#"{"by":"header","name":"region","allow":["eu"]}"#;
    let field = r#"{"by":"field","path":"a.b","allow":["eu"]}"#;
    check(header, |record| record, "header \"region\" is missing");
    check(header, |record| record.null_header("region"), "header \"region\" is null");
    check(r#"{"by":"key","allow":["eu"]}"#, |record| record, "the key is missing");
    check(field, |record| record, "field \"a.b\": the record has no value");
    check(field, |record| record.value("secret"), "field \"a.b\": the value is not JSON at byte 0");
    check(field, |record| record.value("{\"a\":\"secret\"}"), "field \"a.b\" is missing");
    check(
        field,
        |record| record.value("{\"a\":{\"b\":[]}}"),
        "field \"a.b\" is neither text nor number nor boolean",
    );
    check(field, |record| record.value("[".repeat(200)), "field \"a.b\": the value is nested too deep");

    let refused =
        judged(&mut plugin(&format!("[{field},{header}]"), reject), |record| record.header("region", "us"));
    assert_eq!(refused, Judged::Dropped, "it would not leave anyway");
}

#[test]
fn only_what_is_used_is_asked_for() {
    let check =
        |conditions: &str, needs: Needs| assert_eq!(plugin(conditions, "").needs(), needs, "{conditions}");
    check(r#"[{"by":"topic","allow":[]}]"#, Needs::nothing());
    check(r#"[{"by":"key","allow":[]}]"#, Needs::nothing().key());
    check(r#"[{"by":"field","path":"a","allow":[]}]"#, Needs::nothing().value());
    check(
        r#"[{"by":"header","name":"a","allow":[]},{"by":"header","name":"b","deny":["us"]}]"#,
        Needs::nothing().header("a").header("b"),
    );
}

#[test]
fn settings_are_checked() {
    let check = |settings: &str, problems: &[(&str, &str)]| {
        let problems: Vec<Problem> =
            problems.iter().map(|(at, message)| Problem::new(*at, *message)).collect();
        assert_eq!(testing::start::<RegionFilter>(settings).unwrap_err(), problems, "{settings}");
    };
    let none = ("/conditions", "must list at least one condition that is right");
    check("{}", &[none]);
    check(
        r#"{"conditions":[],"match":"some"}"#,
        &[none, ("/match", "must be one of all, any, not \"some\"")],
    );
    check(
        r#"{"conditions":[{"by":"heder"},{"by":"header","allow":["eu"]},{"by":"key"},{"by":"field","path":"a[0]","allow":[]},
            {"by":"key","allow":["*a"],"name":"x"},{"allow":["eu"]}]}"#,
        &[
            ("/conditions/0/by", "must be one of header, key, topic, field, not \"heder\""),
            ("/conditions/1", "lacks the field \"name\""),
            ("/conditions/2", "has neither \"allow\" nor \"deny\", one of them is needed"),
            (
                "/conditions/3/path",
                "\"a[0]\" has a \"[\" that is neither [*], each element, nor ['name'], a field",
            ),
            ("/conditions/4/allow/0", "\"*a\" has a \"*\" that is not its end"),
            ("/conditions/4/name", "unknown field; there is: by, allow, deny"),
            ("/conditions/5", "lacks the field \"by\""),
        ],
    );
    let many = "{\"by\":\"topic\",\"deny\":[\"us\"]},".repeat(65);
    let many = format!("{{\"conditions\":[{}]}}", many.trim_end_matches(','));
    check(&many, &[("/conditions", "has 65 conditions, at most 64 are taken")]);
}
