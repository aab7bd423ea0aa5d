//! Redaction, run on built records.

use proptest::prelude::*;
use serde_json::Value;
use tidegate_plugin::testing::{self, Batch, Judged, OwnedRecord};

use super::*;
use crate::hash::Hash;

const SALT: &str = "0123456789abcdef";

fn judged(settings: &str, record: impl Fn(OwnedRecord) -> OwnedRecord) -> Judged {
    let mut plugin: Redact = testing::start(settings).unwrap();
    testing::run(&mut plugin, &Batch::new("orders", 0).record(record)).records.remove(0)
}

fn redacted(fields: &str, value: &str) -> String {
    let settings = format!("{{\"salt\":\"{SALT}\",\"fields\":{fields}}}");
    match judged(&settings, |record| record.value(value)) {
        Judged::Kept(record) => String::from_utf8(record.value.unwrap()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn hex(hash: &Hash, text: &str) -> String {
    let mut digits = Vec::new();
    hash.write_hex(text.as_bytes(), &mut digits);
    String::from_utf8(digits).unwrap()
}

#[test]
fn a_mask_replaces_the_whole_value() {
    let check = |value: &str, expected: &str| {
        assert_eq!(redacted(r#"[{"paths":["a.b"],"action":"mask"}]"#, value), expected, "{value}");
    };
    check(r#"{"a":{"b":"secret"}}"#, r#"{"a":{"b":"***"}}"#);
    check(r#"{"a":{"b":12.5e3,"c":1}}"#, r#"{"a":{"b":"***","c":1}}"#);
    check(r#"{"a":{"b":{"c":["x"]}}}"#, r#"{"a":{"b":"***"}}"#);
    check(r#"{"a":{"b":null}}"#, r#"{"a":{"b":"***"}}"#);
    check(r#"{"a":[{"b":1},{"b":2}]}"#, r#"{"a":[{"b":"***"},{"b":"***"}]}"#);
    check(r#"{"b":"not this"}"#, r#"{"b":"not this"}"#);
    check("5", "5");
}

#[test]
fn bytes_outside_of_the_fields_stay() {
    let value = " {\r\n\t\"n\" : 1.0e+00, \"a\":{ \"b\" :\t\"x\" , \"\\u0063\":\"\\/é\" }, \"n\":-0 } ";
    assert_eq!(
        redacted(r#"[{"paths":["a.b"],"action":"mask"}]"#, value),
        " {\r\n\t\"n\" : 1.0e+00, \"a\":{ \"b\" :\t\"***\" , \"\\u0063\":\"\\/é\" }, \"n\":-0 } "
    );
}

#[test]
fn a_field_can_not_hide() {
    let check = |value: &str, expected: &str| {
        assert_eq!(redacted(r#"[{"paths":["email"],"action":"mask"}]"#, value), expected, "{value}");
    };
    check(r#"{"\u0065mail":"a@b"}"#, r#"{"\u0065mail":"***"}"#);
    check(r#"{"email":"a@b","email":"c@d"}"#, r#"{"email":"***","email":"***"}"#);
    check(r#"{"email":["a@b",{"email":"c@d"}]}"#, r#"{"email":"***"}"#);
    check(r#"[[{"email":"a@b"}]]"#, r#"[[{"email":"***"}]]"#);
    check(r#"{"x":"\"email\":1","email":"a\"b"}"#, r#"{"x":"\"email\":1","email":"***"}"#);
}

#[test]
fn last_characters_are_kept_of_texts_and_numbers() {
    let check = |value: &str, expected: &str| {
        assert_eq!(
            redacted(r#"[{"paths":["a"],"action":"mask","with":"x-","keep_last":4}]"#, value),
            expected
        );
    };
    check(r#"{"a":"4111111111111234"}"#, r#"{"a":"x-1234"}"#);
    check(r#"{"a":4111111111111234}"#, r#"{"a":"x-1234"}"#);
    check(r#"{"a":"12\u0022\\\n345"}"#, r#"{"a":"x-\u000a345"}"#);
    check(r#"{"a":"1"}"#, r#"{"a":"x-"}"#);
    check(r#"{"a":["4111111111111234"]}"#, r#"{"a":"x-"}"#);
    check(r#"{"a":{"b":"4111111111111234"}}"#, r#"{"a":"x-"}"#);
    check(r#"{"a":false}"#, r#"{"a":"x-"}"#);
}

#[test]
fn a_mask_is_written_as_json() {
    assert_eq!(
        redacted(r#"[{"paths":["a"],"action":"mask","with":"\"\\\n"}]"#, r#"{"a":1}"#),
        r#"{"a":"\"\\\u000a"}"#
    );
}

#[test]
fn a_hash_is_of_the_text_without_escapes() {
    let salted = hex(&Hash::salted(SALT.as_bytes()), "a@b");
    let fields = r#"[{"paths":["a"],"action":"hash"}]"#;
    assert_eq!(redacted(fields, r#"{"a":"a@b"}"#), format!("{{\"a\":\"{salted}\"}}"));
    assert_eq!(redacted(fields, r#"{"a":"\u0061@b"}"#), format!("{{\"a\":\"{salted}\"}}"));
    let number = hex(&Hash::salted(SALT.as_bytes()), "1.50");
    assert_eq!(redacted(fields, r#"{"a":1.50}"#), format!("{{\"a\":\"{number}\"}}"));
    let mac = hex(&Hash::hmac(SALT.as_bytes()), "a@b");
    assert_eq!(
        redacted(r#"[{"paths":["a"],"action":"hmac"}]"#, r#"{"a":"a@b"}"#),
        format!("{{\"a\":\"{mac}\"}}")
    );
    assert_ne!(salted, mac);
}

#[test]
fn what_is_removed_goes_with_its_name_and_a_comma() {
    let check = |paths: &str, value: &str, expected: &str| {
        let fields = format!("[{{\"paths\":{paths},\"action\":\"remove\"}}]");
        assert_eq!(redacted(&fields, value), expected, "{value}");
    };
    check(r#"["a"]"#, r#"{"a":1, "b":2}"#, r#"{ "b":2}"#);
    check(r#"["b"]"#, r#"{"a":1, "b":2}"#, r#"{"a":1}"#);
    check(r#"["a","b"]"#, r#"{"a":1,"b":2}"#, "{}");
    check(r#"["t[*]"]"#, r#"{"t":[1,2,3]}"#, r#"{"t":[]}"#);
    check(r#"["[*]"]"#, " 5 ", " null ");
    check(r#"["[*]"]"#, "[5]", "[]");
}

#[test]
fn actions_stand_side_by_side() {
    let fields = r#"[{"paths":["a"],"action":"remove"},{"paths":["**.b"],"action":"mask"},{"paths":["c"],"action":"mask","keep_last":1}]"#;
    assert_eq!(
        redacted(fields, r#"{"a":1,"b":2,"a":3,"x":{"b":4},"c":"567","a":8}"#),
        r#"{"b":"***","x":{"b":"***"},"c":"***7"}"#
    );
}

#[test]
fn what_is_not_json_is_rejected_unless_the_settings_say_otherwise() {
    let check = |policy: &str, value: &[u8], expected: Judged| {
        let settings = format!("{{\"fields\":[{{\"paths\":[\"email\"],\"action\":\"mask\"}}]{policy}}}");
        assert_eq!(judged(&settings, |record| record.value(value)), expected, "{value:?}");
    };
    let rejected = |at: usize| Judged::Rejected(format!("the value is not JSON at byte {at}"));
    let kept = |value: &[u8]| Judged::Kept(OwnedRecord::default().value(value));
    let documents: [(&[u8], usize); 6] = [
        (b"", 0),
        (b"secret", 0),
        (b"{\"email\":1}{\"email\":2}", 11),
        (b"\xef\xbb\xbf{\"email\":1}", 0),
        (b"{\"email\":\"\xff\"}", 10),
        (b"{\"email\":1", 10),
    ];
    for (value, at) in documents {
        check("", value, rejected(at));
        check(r#","not_json":"reject""#, value, rejected(at));
        check(r#","not_json":"pass""#, value, kept(value));
        check(r#","not_json":"drop""#, value, Judged::Dropped);
    }
    let deep = "[".repeat(300);
    let too_deep = Judged::Rejected("the value is nested too deep to be redacted".to_owned());
    check("", deep.as_bytes(), too_deep.clone());
    check(r#","not_json":"pass""#, deep.as_bytes(), too_deep);
    check(r#","not_json":"drop""#, deep.as_bytes(), Judged::Dropped);
}

#[test]
fn tombstones_pass() {
    let settings = r#"{"fields":[{"paths":["email"],"action":"mask"}]}"#;
    assert_eq!(judged(settings, |record| record.key("k")), Judged::Kept(OwnedRecord::default().key("k")));
}

#[test]
fn headers_are_redacted() {
    let check = |headers: &str, record: fn(OwnedRecord) -> OwnedRecord, expected: OwnedRecord| {
        let settings = format!("{{\"salt\":\"{SALT}\",\"headers\":{headers}}}");
        assert_eq!(judged(&settings, record), Judged::Kept(expected), "{headers}");
    };
    let plain = OwnedRecord::default;
    let mask = r#"[{"names":["user","mail"],"action":"mask","keep_last":2}]"#;
    check(
        mask,
        |record| record.header("user", "alice").header("x", "1"),
        plain().header("user", "***ce").header("x", "1"),
    );
    check(mask, |record| record.header("user", b"\xff\xfe\xfd\xfc"), plain().header("user", "***"));
    check(mask, |record| record.null_header("user"), plain().null_header("user"));
    check(
        mask,
        |record| record.null_header("mail").header("mail", "a@bc").header("mail", "d@e"),
        plain().header("mail", "***bc"),
    );
    check(mask, |record| record.value("not JSON"), plain().value("not JSON"));
    let remove = r#"[{"names":["user"],"action":"remove"}]"#;
    check(
        remove,
        |record| record.header("user", "a").header("x", "1").null_header("user"),
        plain().header("x", "1"),
    );
    let digits = hex(&Hash::hmac(SALT.as_bytes()), "alice");
    let mac = r#"[{"names":["user"],"action":"hmac"}]"#;
    check(mac, |record| record.header("user", "alice"), plain().header("user", digits));
}

#[test]
fn a_key_is_hashed() {
    let settings = format!("{{\"salt\":\"{SALT}\",\"key\":{{\"action\":\"hash\"}}}}");
    let digits = hex(&Hash::salted(SALT.as_bytes()), "alice");
    assert_eq!(
        judged(&settings, |record| record.key("alice")),
        Judged::Kept(OwnedRecord::default().key(digits))
    );
    assert_eq!(
        judged(&settings, |record| record.value("x")),
        Judged::Kept(OwnedRecord::default().value("x"))
    );
}

#[test]
fn only_what_is_used_is_asked_for() {
    let check = |settings: &str, needs: Needs| {
        assert_eq!(testing::start::<Redact>(settings).unwrap().needs(), needs);
    };
    check(r#"{"fields":[{"paths":["a"],"action":"mask"}]}"#, Needs::nothing().value());
    check(r#"{"headers":[{"names":["a"],"action":"mask"}]}"#, Needs::nothing().header("a"));
    check(r#"{"salt":"0123456789","key":{"action":"hmac"}}"#, Needs::nothing().key());
}

#[test]
fn settings_are_checked() {
    let check = |settings: &str, problems: &[(&str, &str)]| {
        let problems: Vec<Problem> =
            problems.iter().map(|(at, message)| Problem::new(*at, *message)).collect();
        assert_eq!(testing::start::<Redact>(settings).unwrap_err(), problems, "{settings}");
    };
    let nothing = ("", "names nothing that is right to redact: needed is one of fields, headers, key");
    check("{}", &[nothing]);
    check(
        r#"{"fields":[{"paths":["a"],"action":"hash"},{"paths":[],"action":"mask"},{"paths":["a[0]"],"action":"remove"},
            {"paths":["a"],"action":"hide"},{"action":"mask","keep_last":-1},{"paths":["a"],"action":"remove","with":"x"}],
            "headers":[{"action":"mask"}],"key":{"action":"mask"},"not_json":"keep"}"#,
        &[
            ("/fields/0/action", "needs the setting \"salt\" beside \"fields\""),
            ("/fields/1/paths", "must list at least one"),
            (
                "/fields/2/paths/0",
                "\"a[0]\" has a \"[\" that is neither [*], each element, nor ['name'], a field",
            ),
            ("/fields/3/action", "must be one of mask, hash, hmac, remove, not \"hide\""),
            ("/fields/4/paths", "must list at least one"),
            ("/fields/4/keep_last", "must be a whole number, not -1"),
            ("/fields/5/with", "unknown field; there is: paths, action"),
            ("/headers/0/names", "must list at least one"),
            ("/key/action", "must be one of hash, hmac, not \"mask\""),
            ("/not_json", "must be one of reject, pass, drop, not \"keep\""),
        ],
    );
    check(
        r#"{"salt":"pepper","fields":[{"paths":["a"],"action":"hash"}]}"#,
        &[("/salt", "must have at least 8 bytes, better 32 that are random"), nothing],
    );
}

/// Any JSON whose names are often those that are redacted.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let name = prop_oneof![
            Just("email".to_owned()),
            Just("card".to_owned()),
            Just("gone".to_owned()),
            "[a-c\"\\\\é]{0,3}"
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((name, inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// What redaction does, on a tree: the slow way.
fn redact_tree(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(redact_tree).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "gone")
            .map(|(name, value)| match name.as_str() {
                "email" | "card" => (name.clone(), Value::from("***")),
                _ => (name.clone(), redact_tree(value)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

const TREE_FIELDS: &str =
    r#"[{"paths":["**.email","**.card"],"action":"mask"},{"paths":["**.gone"],"action":"remove"}]"#;

proptest! {
    #[test]
    fn redaction_is_that_of_the_tree(value in any_json(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let redacted: Value = serde_json::from_str(&redacted(TREE_FIELDS, &text.unwrap())).unwrap();
        prop_assert_eq!(redacted, redact_tree(&value));
    }

    /// Fields with no escapes of names within, so that the places can be told without a parser.
    #[test]
    fn every_byte_outside_of_a_field_stays(
        before in "[ \t\r\n]{0,3}", secret in "[^\"\\\\\u{0}-\u{1f}]{0,20}", number in "-?[1-9][0-9]{0,8}(\\.[0-9]{1,5})?(e[+-]?[0-9])?",
        blank in "[ \t\r\n]{0,3}", other in "[^\"\\\\\u{0}-\u{1f}]{0,20}",
    ) {
        let value = |field: &str| {
            format!("{before}{{{blank}\"x\"{blank}:{number},\"email\":{blank}{field}{blank},\"{other}z\":[\"{other}\",{number}]}}{blank}")
        };
        let fields = r#"[{"paths":["email"],"action":"mask"}]"#;
        prop_assert_eq!(redacted(fields, &value(&format!("\"{secret}\""))), value("\"***\""));
        prop_assert_eq!(redacted(fields, &value(&number)), value("\"***\""));
    }

    #[test]
    fn no_bytes_end_the_plugin(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let settings = format!("{{\"fields\":{TREE_FIELDS}}}");
        judged(&settings, |record| record.value(&bytes));
    }
}
