//! What is found, and what counts as JSON; serde_json is the judge of the latter.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn paths(list: &[&str]) -> Paths {
    let mut paths = Paths::new();
    for path in list {
        paths.add(path, false).unwrap();
    }
    paths
}

/// The texts of what was found, in order.
fn found<'a>(list: &[&str], json: &'a str) -> Result<Vec<&'a str>, Unreadable> {
    let mut scanner = Scanner::default();
    let found = scanner.scan(&paths(list), json.as_bytes())?;
    Ok(found.iter().map(|found| &json[found.value.clone()]).collect())
}

/// The text without what was found.
fn without(list: &[&str], json: &str) -> String {
    let mut paths = Paths::new();
    for path in list {
        paths.add(path, true).unwrap();
    }
    let mut scanner = Scanner::default();
    let mut left = json.to_owned();
    for found in scanner.scan(&paths, json.as_bytes()).unwrap().iter().rev() {
        left.replace_range(found.cut.clone(), "");
    }
    left
}

#[test]
fn fields_are_found_by_path() {
    let check = |list: &[&str], json: &str, values: &[&str]| {
        assert_eq!(found(list, json).unwrap(), values, "{list:?} in {json}")
    };
    check(&["a"], r#"{"a":1}"#, &["1"]);
    check(&["a"], r#" { "b" : 2 , "a" : "x" } "#, &[r#""x""#]);
    check(&["a.b"], r#"{"a":{"b":[1, 2]},"b":3}"#, &["[1, 2]"]);
    check(&["a"], r#"{"b":{"a":1},"A":2,"aa":3,"":4}"#, &[]);
    check(&["['']", "['a.b']"], r#"{"":4,"a":{"b":1},"a.b":2}"#, &["4", "2"]);
    check(&["a", "b"], r#"{"b":true,"a":null}"#, &["true", "null"]);
    check(&["*"], r#"{"b":-0.5e+7,"a":{}}"#, &["-0.5e+7", "{}"]);
    check(&["a.*"], r#"{"a":{"x":1,"y":{"z":2}}}"#, &["1", r#"{"z":2}"#]);
    check(&["**.a"], r#"{"a":1,"b":{"a":2,"c":[{"a":3}]}}"#, &["1", "2", "3"]);
    check(&["b.**.a"], r#"{"a":1,"b":{"a":2,"c":{"d":{"a":3}}}}"#, &["2", "3"]);
    check(&["a"], "5", &[]);
    check(&[], r#"{"a":1}"#, &[]);
}

#[test]
fn a_field_that_stands_there_twice_is_found_twice() {
    assert_eq!(found(&["a.b"], r#"{"a":{"b":1,"b":2},"a":{"b":3}}"#).unwrap(), ["1", "2", "3"]);
}

#[test]
fn names_are_compared_without_their_escapes() {
    assert_eq!(found(&["email"], r#"{"\u0065mail":1,"e\u006Dail":2,"email\u0000":3}"#).unwrap(), ["1", "2"]);
    assert_eq!(found(&["a\"b"], r#"{"a\"b":1}"#).unwrap(), ["1"]);
    assert_eq!(found(&["😀"], r#"{"\ud83d\ude00":1}"#).unwrap(), ["1"]);
}

#[test]
fn lists_are_looked_through() {
    let check = |list: &[&str], json: &str, values: &[&str]| {
        assert_eq!(found(list, json).unwrap(), values, "{list:?} in {json}")
    };
    check(&["a[*].b"], r#"{"a":[{"b":1},{"b":2}]}"#, &["1", "2"]);
    check(&["a.b"], r#"{"a":[{"b":1},[{"b":2}]]}"#, &["1", "2"]);
    check(&["a[*].b"], r#"{"a":{"b":1}}"#, &["1"]);
    check(&["a[*]"], r#"{"a":[1,[2],{}]}"#, &["1", "[2]", "{}"]);
    check(&["a[*]"], r#"{"a":7}"#, &["7"]);
    check(&["a"], r#"[{"a":1},{"a":2}]"#, &["1", "2"]);
    check(&["[*]"], "[1,2]", &["1", "2"]);
    check(&["[*]"], "3", &["3"]);
    check(&["a[*][*]"], r#"{"a":[[1,2],3]}"#, &["1", "2", "3"]);
}

#[test]
fn the_first_path_has_a_value_and_the_outer_value_comes_whole() {
    let mut scanner = Scanner::default();
    let found = scanner.scan(&paths(&["*", "a", "a.b"]), br#"{"a":{"b":1}}"#).unwrap();
    assert_eq!(found, [Found { path: 0, kind: Kind::Object, value: 5..12, cut: 5..12, is_outermost: false }]);
}

#[test]
fn the_outermost_value_is_marked() {
    let mut scanner = Scanner::default();
    let found = scanner.scan(&paths(&["[*]"]), b" \"x\" ").unwrap();
    assert_eq!(found, [Found { path: 0, kind: Kind::String, value: 1..4, cut: 1..4, is_outermost: true }]);
}

#[test]
fn cuts_leave_json() {
    let check =
        |list: &[&str], json: &str, left: &str| assert_eq!(without(list, json), left, "{list:?} of {json}");
    check(&["a"], r#"{"a":1}"#, "{}");
    check(&["a"], r#"{ "a" : 1 }"#, "{  }");
    check(&["a"], r#"{"a":1,"b":2}"#, r#"{"b":2}"#);
    check(&["b"], r#"{"a":1 , "b":2}"#, r#"{"a":1 }"#);
    check(&["a", "b"], r#"{"a":1,"b":2,"c":3}"#, r#"{"c":3}"#);
    check(&["b", "c"], r#"{"a":1,"b":2,"c":3}"#, r#"{"a":1}"#);
    check(&["a", "c"], r#"{"a":1,"b":2,"c":3}"#, r#"{"b":2}"#);
    check(&["*"], r#"{"a":1,"b":2,"c":3}"#, "{}");
    check(&["a"], r#"{"a":1,"a":{"a":2},"b":3,"a":4}"#, r#"{"b":3}"#);
    check(&["[*]"], "[1, 2]", "[ ]");
    check(&["[*].a"], r#"[{"a":1},{"a":2,"b":3}]"#, r#"[{},{"b":3}]"#);
}

#[test]
fn what_is_not_json_is_told_with_its_place() {
    let check = |json: &[u8], at: usize| {
        let mut scanner = Scanner::default();
        let answer = scanner.scan(&paths(&["a"]), json).map(<[Found]>::to_vec);
        assert_eq!(answer, Err(Unreadable::NotJson { at }), "{:?}", String::from_utf8_lossy(json));
    };
    check(b"", 0);
    check(b"  ", 2);
    check(b"plain text", 0);
    check(b"{\"a\":1} {\"a\":2}", 8);
    check(b"{\"a\":1}\0", 7);
    check(b"{\"a\":1,}", 7);
    check(b"{\"a\":1", 6);
    check(b"{\"a\" 1}", 5);
    check(b"{\"a\":}", 5);
    check(b"{a:1}", 1);
    check(b"{'a':1}", 1);
    check(b"{,}", 1);
    check(b"[1 2]", 3);
    check(b"[1,]", 3);
    check(b"[", 1);
    check(b"nul", 0);
    check(b"nulL", 0);
    check(b"True", 0);
    check(b"NaN", 0);
    check(b"01", 1);
    check(b"-", 1);
    check(b"1.", 2);
    check(b"1e", 2);
    check(b"1e+", 3);
    check(b"+1", 0);
    check(b".5", 0);
    check(b"\"a", 2);
    check(b"\"a\nb\"", 2);
    check(b"\"\\x\"", 2);
    check(b"\"\\u12g4\"", 5);
    check(b"\"\\", 2);
    check(b"// c\n1", 0);
    check(b"\xef\xbb\xbf{\"a\":1}", 0);
    check(b"{\"a\":\"\xff\"}", 6);
    check(b"{\"a\":\"\xc3\"}", 6);
    check(b"{\"a\":\"\xed\xa0\x80\"}", 6);
    check(b"\x00\x01", 0);
    check("{\"a\":\u{a0}1}".as_bytes(), 5);
}

#[test]
fn half_a_surrogate_pair_is_taken() {
    assert_eq!(found(&["a"], r#"{"a":"\ud800","\ud800":1}"#).unwrap(), [r#""\ud800""#]);
}

#[test]
fn depth_is_obeyed_and_exceeded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(found(&["a"], &nested(DEPTH_MAX)), Ok(vec![]));
    assert_eq!(found(&["a"], &nested(DEPTH_MAX + 1)), Err(Unreadable::TooDeep));
    assert_eq!(found(&["**.b"], &"{\"a\":[".repeat(1_000_000)), Err(Unreadable::TooDeep));
}

#[test]
fn texts_of_values_lose_quotes_and_escapes() {
    let check = |json: &str, text: &str| {
        let mut scanner = Scanner::default();
        let found = scanner.scan(&paths(&["[*]"]), json.as_bytes()).unwrap();
        assert_eq!(found[0].text(json.as_bytes(), &mut Vec::new()), text.as_bytes(), "{json}");
    };
    check(r#""plain""#, "plain");
    check(r#""\u0041\n""#, "A\n");
    check(r#""""#, "");
    check("1.50", "1.50");
    check("{ }", "{ }");
}

#[test]
fn many_stars_stay_cheap() {
    let list = ["**.*.**.*.**.x", "**.a.**.a.**.y"];
    let json = "{\"a\":".repeat(100) + "1" + &"}".repeat(100);
    assert_eq!(found(&list, &json).unwrap(), Vec::<&str>::new());
}

proptest! {
    #[test]
    fn json_is_what_serde_json_takes(json in r#"[\[\]{}:,"\\\-+.0-9eEutrfalsn ]{0,24}"#) {
        let ours = found(&[], &json).is_ok();
        match serde_json::from_str::<serde::de::IgnoredAny>(&json) {
            Ok(_) => prop_assert!(ours, "{json}"),
            // The one thing that it does not take and we do.
            Err(_) if json.contains("\\u") => {}
            Err(_) => prop_assert!(!ours, "{json}"),
        }
    }

    #[test]
    fn bytes_never_end_a_walk_by_panic(json in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut scanner = Scanner::default();
        let ours = scanner.scan(&paths(&["a", "**.b", "[*]"]), &json).is_ok();
        prop_assert_eq!(ours, serde_json::from_slice::<Value>(&json).is_ok());
    }
}
