//! A translated pattern decides as Java decides; what is refused is refused in words.

use super::*;
use crate::config::filter::NameList;
use crate::config::java_oracle::{self, Dice, hex_utf16};

fn refusal(pattern: &str) -> String {
    let refused = translate(pattern).unwrap_err();
    format!("{} at {}", refused.reason, refused.at)
}

#[test]
fn what_java_can_and_we_cannot_is_named() {
    for (pattern, expected) in [
        (r"[a-z&&[^b]]", "&& in a class is not supported; write \\& for the sign at 4"),
        (r"[[:alpha:]]", "a class within a class is not supported; write \\[ for the sign at 1"),
        (r"\p{javaLowerCase}", "the property \"javaLowerCase\" is not supported at 16"),
        (r"\p{InGreek}", "the property \"InGreek\" is not supported at 10"),
        (r"(?i)\p{Lower}", "\\p{Lower} under (?i) differs between Java versions at 12"),
        (r"a\X", "\\X is not supported at 2"),
        (r"\R", "\\R is not supported at 1"),
        (r"\b{g}", "\\b{…} is not supported at 1"),
        (r"(?x)a b", "the flag (?x) is not supported at 2"),
        (r"(?m)^a", "the flag (?m) is not supported at 2"),
        (r"(?i)(a)\1", "a back-reference under (?i) compares ASCII letters only in Java at 8"),
        (r"(a\1)", "group 1 is not closed before this place at 3"),
        (r"a{2000}", "more than 1000 repetitions at 5"),
        (r"^*", "'*' repeats an anchor; write \\* for the sign at 1"),
    ] {
        assert_eq!(refusal(pattern), expected, "{pattern}");
    }
}

#[test]
fn what_java_refuses_is_refused() {
    for (pattern, expected) in [
        ("*.orders", "'*' repeats the start of the pattern; write \\* for the sign at 0"),
        ("a|*", "'*' repeats the start of an alternative; write \\* for the sign at 2"),
        ("a**", "'*' repeats a repetition; write \\* for the sign at 2"),
        ("(a", "a group is not closed at 1"),
        ("a)", "a ')' closes nothing; write \\) for the sign at 1"),
        ("[a", "a '[' is not closed; write \\[ for the sign at 1"),
        ("[]", "a '[' is not closed; write \\[ for the sign at 1"),
        ("[b-a]", "the range b-a ends below its start at 3"),
        (r"[a-\d]", "a range ends in a set of characters at 4"),
        ("a{", "a '{' needs a number behind it; write \\{ for the sign at 1"),
        ("a{,3}", "a '{' needs a number behind it; write \\{ for the sign at 1"),
        ("a{3,2}", "{3,2} ends below its start at 4"),
        ("a{1", "a '{' is not closed at 2"),
        ("(?<a>x)(?<a>y)", "the group name \"a\" is used twice at 11"),
        ("(?<a_b>x)", "a group name is letters and digits, and begins with a letter at 4"),
        (r"\k<x>", "there is no group \"x\" before this place at 4"),
        ("(?P<n>a)", "this kind of group is unknown to Java at 2"),
        (r"\y", "\\y is unknown to Java; write y for the letter at 1"),
        (r"\E", "\\E is unknown to Java; write E for the letter at 1"),
        (r"\x4", "\\x needs 2 hexadecimal digits at 2"),
        (r"\x{}", "\\x{…} names no character at 3"),
        (r"\x{110000}", "\\x{…} names no character at 8"),
        (r"\u12", "\\u needs 4 hexadecimal digits at 3"),
        (r"\ud83dx", "\\u names half of a surrogate pair at 5"),
        (r"\08", "\\0 needs octal digits behind it at 1"),
        ("a\\", "a backslash stands before nothing at 1"),
        ("(?<=a*)b", "a look-behind must have a longest length at 5"),
    ] {
        assert_eq!(refusal(pattern), expected, "{pattern}");
    }
}

#[test]
fn nesting_has_a_bound() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(NameList::parse(&[nested(NESTING_MAX)]).is_ok());
    assert_eq!(refusal(&nested(NESTING_MAX + 1)), "groups are nested more than 50 deep at 50");
}

/// Each must be translated, and decide as Java does.
const TRANSLATED: [&str; 74] = [
    ".*",
    "",
    "orders",
    r".*[\-\.]internal",
    r".*\.replica",
    "__.*",
    r"\Qa.b\E.*",
    r"\Q[x\E",
    r"a\Qb*\E+",
    r"\Qa",
    "[a-z]+",
    "[^a-z]",
    "[]a]",
    "[^]a]",
    "[a^]",
    "[-a]",
    "[a-]",
    "[--a]",
    "[a-c-e]",
    r"[\w-]+",
    r"[\d.]+",
    r"[\]\[]",
    "[a&]",
    "[.*+?]+",
    r"[\Q]-^\E]+",
    r"[\W]",
    r"[^\W\d]+",
    r"\h+",
    r"\H",
    r"\v",
    r"\V+",
    r"\w+",
    r"\W",
    r"\d+",
    r"\D",
    r"\s",
    r"\S+",
    "(?i)orders",
    "(?i)[a-c]+",
    "(?i)[X-c]",
    "a(?i)b|c",
    "a(?i:b)c",
    "(?i)a(?-i)b",
    "(?:(?i)a)b",
    "(?s).",
    "(?d).",
    ".",
    "(?d)a$",
    "a$",
    "^a",
    r"\Aa\z",
    r"a\Z",
    r"\ba\b.*",
    r"a\Bb",
    "(a|b)+c?",
    "(?>a+)ab|a+c",
    "a*+b",
    "a++a",
    "a?+a",
    "a{2}",
    "a{1,}b",
    "a{1,2}+a",
    "a*?b",
    r"(a)\1",
    r"(a)\10",
    r"(?<x1>a|b)\k<x1>",
    "(?!__).*",
    "(?!.*test).*",
    ".*(?<!-dlq)",
    "(?<=a)b|ab",
    r"\p{Alpha}+|\P{Punct}",
    r"\pL+",
    r"\x41\x{42}\u0043\0104",
    r"\cA|\t|\a|\e|\.|\-|\_|\é|}|]|\ud83d\ude00",
];

const TEXTS: [&str; 70] = [
    "",
    "a",
    "b",
    "c",
    "A",
    "B",
    "C",
    "ab",
    "ba",
    "aa",
    "aaa",
    "aab",
    "aaab",
    "aac",
    "abc",
    "aBC",
    "abb",
    "a0",
    "ac",
    "orders",
    "ORDERS",
    "orderS",
    "order\u{17f}",
    "orders-dlq",
    "orders.replica",
    "x.internal",
    "x-internal",
    "xinternal",
    "__x",
    "a_b",
    "a.b",
    "a.bc",
    "aXb",
    "[x",
    "]",
    "[",
    "^",
    "-",
    "--",
    "d-",
    "e",
    "X",
    "x",
    "Z",
    "\u{e9}",
    "\u{212a}",
    "k",
    "K",
    "_",
    "&",
    ".",
    "*+",
    "0",
    "09",
    "\u{669}",
    " ",
    "\t",
    "\u{a0}",
    "\n",
    "\r",
    "\u{85}",
    "\u{2028}",
    "a\n",
    "test-x",
    "ABCD",
    "\u{1}",
    "\u{1b}",
    "}",
    "\u{1f600}",
    "a&b",
];

/// A random pattern of pieces that look like Java's syntax.
fn random_pattern(dice: &mut Dice) -> String {
    const PIECES: [&str; 64] = [
        "a",
        "b",
        "A",
        "x",
        ".",
        "_",
        "-",
        "0",
        "1",
        "*",
        "+",
        "?",
        "{2}",
        "{1,}",
        "{0,2}",
        "{",
        "}",
        "(",
        ")",
        "(?:",
        "(?i)",
        "(?i:",
        "(?-i)",
        "(?s)",
        "(?=",
        "(?!",
        "(?<=",
        "(?<!",
        "(?>",
        "(?<n>",
        r"\k<n>",
        "|",
        "[",
        "]",
        "[^",
        "^",
        "$",
        "&",
        "&&",
        "-",
        r"\1",
        r"\2",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\h",
        r"\b",
        r"\.",
        r"\-",
        r"\Q",
        r"\E",
        r"\x61",
        r"\u0062",
        r"\0101",
        r"\p{Alpha}",
        r"\p{Lu}",
        r"\P{Digit}",
        r"\A",
        r"\z",
        r"\Z",
        "#",
        " ",
        r"\y",
    ];
    let count = 1 + dice.below(9);
    (0..count).map(|_| *dice.pick(&PIECES)).collect()
}

fn question(pattern: &str) -> String {
    std::iter::once(&pattern).chain(&TEXTS).map(|text| hex_utf16(text)).collect::<Vec<_>>().join(" ")
}

/// Compares; what we decide must be what Java decides. Returns whether anything was decided.
fn agrees(pattern: &str, answer: &str, seed: u64) -> bool {
    let Ok(list) = NameList::parse(&[pattern]) else { return false };
    assert_ne!(answer, "error", "seed {seed}: Java refuses {pattern:?}, we read it as {list:?}");
    for (text, java) in TEXTS.iter().zip(answer.chars()) {
        match list.matches(text) {
            Ok(ours) => assert_eq!(ours, java == '1', "seed {seed}: {pattern:?} on {text:?}, ours {list:?}"),
            Err(undecided) => assert!(
                crate::names::TopicName::parse(text).is_err(),
                "seed {seed}: undecided on a legal name: {undecided}"
            ),
        }
    }
    true
}

#[test]
fn patterns_decide_as_java_decides() {
    for pattern in TRANSLATED {
        NameList::parse(&[pattern]).unwrap_or_else(|reason| panic!("{pattern:?}: {reason}"));
    }
    let questions: Vec<String> = TRANSLATED.iter().map(|pattern| question(pattern)).collect();
    let Some(answers) = java_oracle::ask("regex", &questions) else { return };
    for (pattern, answer) in TRANSLATED.iter().zip(&answers) {
        agrees(pattern, answer, 0);
    }
}

#[test]
fn random_patterns_decide_as_java_decides_or_are_refused() {
    const SEED: u64 = 20_260_918;
    let mut dice = Dice::new(SEED);
    let patterns: Vec<String> = (0..10_000).map(|_| random_pattern(&mut dice)).collect();
    let questions: Vec<String> = patterns.iter().map(|pattern| question(pattern)).collect();
    let Some(answers) = java_oracle::ask("regex", &questions) else { return };
    let decided =
        patterns.iter().zip(&answers).filter(|(pattern, answer)| agrees(pattern, answer, SEED)).count();
    let java_reads = answers.iter().filter(|answer| *answer != "error").count();
    assert!(
        decided * 4 > java_reads * 3,
        "seed {SEED}: only {decided} of the {java_reads} that Java reads are translated"
    );
}
