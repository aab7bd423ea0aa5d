//! What Java reads, we read: hand-picked files, and generated ones against the real Java.

use std::collections::BTreeMap;

use super::*;
use crate::config::java_oracle::{self, Dice};

fn pairs(bytes: &[u8]) -> Vec<(String, String, usize)> {
    parse(bytes).pairs.into_iter().map(|pair| (pair.key, pair.value, pair.line)).collect()
}

fn check(text: &str, expected: &[(&str, &str, usize)]) {
    let expected: Vec<_> =
        expected.iter().map(|(k, v, line)| ((*k).to_owned(), (*v).to_owned(), *line)).collect();
    assert_eq!(pairs(text.as_bytes()), expected, "{text:?}");
}

#[test]
fn separators_and_blanks_are_read_as_java_reads_them() {
    check("a=b", &[("a", "b", 1)]);
    check("a = b ", &[("a", "b ", 1)]);
    check("a:b\na b2", &[("a", "b2", 2)]);
    check("a\t\x0c=\x0c =b", &[("a", "=b", 1)]);
    check("a  b = c", &[("a", "b = c", 1)]);
    check("a", &[("a", "", 1)]);
    check("= b", &[("", "b", 1)]);
    check("A->B.topics=x", &[("A->B.topics", "x", 1)]);
    check(r"a\ b\=c\:d=e", &[("a b=c:d", "e", 1)]);
}

#[test]
fn comments_begin_lines_only() {
    check("# a=b\r\n  ! c=d\rx=y # z", &[("x", "y # z", 3)]);
    check("\\\n# still a comment\na=b", &[("a", "b", 3)]);
    check("a=b\\\n#c", &[("a", "b#c", 1)]);
}

#[test]
fn continuations_join_lines_and_keep_the_first_ones_number() {
    check("\n\ntopics = a, \\\r\n    b,\\\n\tc\nd=e", &[("topics", "a, b,c", 3), ("d", "e", 6)]);
    check("a=b\\\\\nc=d", &[("a", "b\\", 1), ("c", "d", 2)]);
    check("a=b\\\n\nc=d", &[("a", "b", 1), ("c", "d", 3)]);
}

#[test]
fn a_backslash_at_the_end_of_the_file_is_dropped() {
    check("a=b\\", &[("a", "b", 1)]);
    check("a=b\\\n", &[("a", "b", 1)]);
    check("\\", &[("", "", 1)]);
}

#[test]
fn escapes_are_resolved() {
    check(r"a=.*[\\-\\.]internal", &[("a", r".*[\-\.]internal", 1)]);
    check(r"a=\.\q\t\n\r\f\\", &[("a", ".q\t\n\r\u{c}\\", 1)]);
    check(r"a=\u00e9\uD83D\uDE00", &[("a", "\u{e9}\u{1f600}", 1)]);
    assert_eq!(pairs(b"a=\xe9\x80"), [("a".to_owned(), "\u{e9}\u{80}".to_owned(), 1)]);
}

#[test]
fn what_is_strange_is_said() {
    let said = |bytes: &[u8]| -> Vec<String> {
        let read = parse(bytes);
        read.problems.iter().chain(&read.warnings).map(ToString::to_string).collect()
    };
    assert_eq!(
        said(b"a=\\u12\nb=\\u12g4\nc\\u=1"),
        [
            "line 1: a: malformed \\uxxxx encoding: four hexadecimal digits must follow \\u; write \\\\u for a backslash",
            "line 2: b: malformed \\uxxxx encoding: four hexadecimal digits must follow \\u; write \\\\u for a backslash",
            "line 3: malformed \\uxxxx encoding: four hexadecimal digits must follow \\u; write \\\\u for a backslash",
        ]
    );
    assert_eq!(
        said(b"a=1\nb=2\na=3\na=4"),
        [
            "line 3: a: stands on line 1 already; the last one wins, remove the other",
            "line 4: a: stands on line 3 already; the last one wins, remove the other",
        ]
    );
    assert_eq!(
        said(b"a=\\ud83d"),
        [
            "line 1: a: half of a surrogate pair stands alone and is read as U+FFFD; write both halves, as in \\ud83d\\ude00"
        ]
    );
    assert_eq!(
        said("a=\u{e9}".as_bytes()),
        [
            "line 1: a: the line holds UTF-8, but Java reads this file as ISO-8859-1; write such characters as \\uXXXX"
        ]
    );
    assert_eq!(pairs(b"a=x\\ud83dy"), [("a".to_owned(), "x\u{fffd}y".to_owned(), 1)]);
}

/// What we read, as the oracle's answer is understood by [`java_pairs`].
fn our_pairs(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let read = parse(bytes);
    let pairs = read.pairs.into_iter().map(|pair| (pair.key, pair.value));
    read.problems.is_empty().then(|| pairs.collect())
}

/// Java's strings hold lone halves of surrogate pairs; ours have U+FFFD there.
fn java_pairs(answer: &str) -> Option<BTreeMap<String, String>> {
    let pairs = answer.split(' ').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap();
        (java_oracle::from_hex_utf16_lossy(key), java_oracle::from_hex_utf16_lossy(value))
    });
    (answer != "error").then(|| pairs.collect())
}

fn nasty_file(dice: &mut Dice) -> Vec<u8> {
    const PIECES: [&[u8]; 40] = [
        b"a",
        b"b",
        b"key",
        b"A->B.topics",
        b"=",
        b":",
        b" ",
        b"\t",
        b"\x0c",
        b"\n",
        b"\r",
        b"\r\n",
        b"\\",
        b"\\\\",
        b"\\\n",
        b"\\\r",
        b"\\\r\n",
        b"#",
        b"!",
        b"\n#",
        b"\n!",
        b"\\u0041",
        b"\\u00e9",
        b"\\ud83d\\ude00",
        b"\\uD83",
        b"\\u12G4",
        b"\\t",
        b"\\n",
        b"\\f",
        b"\\r",
        b"\\=",
        b"\\:",
        b"\\ ",
        b"\\#",
        b"\xe9",
        b"\xc3\xa9",
        b"\x80",
        b"\x00",
        b"\x85",
        b"value",
    ];
    let count = 1 + dice.below(24);
    let mut file = Vec::new();
    for _ in 0..count {
        // The malformed ones end a whole file: take them seldom.
        let piece = dice.pick(&PIECES);
        if (piece == b"\\uD83" || piece == b"\\u12G4") && dice.below(8) != 0 {
            continue;
        }
        file.extend_from_slice(piece);
    }
    file
}

#[test]
fn generated_files_are_read_as_java_reads_them() {
    const SEED: u64 = 20_260_917;
    let mut dice = Dice::new(SEED);
    let mut files: Vec<Vec<u8>> = (0..10_000).map(|_| nasty_file(&mut dice)).collect();
    files.extend(
        [&b""[..], b"\\", b"\\\n", b"\\\r\n", b"\\\r", b"a\\", b"a=\\\n\\\n\\\n", b" \\\n \\\n#x\ny"]
            .map(Vec::from),
    );
    let questions: Vec<String> =
        files.iter().map(|file| file.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    let Some(answers) = java_oracle::ask("properties", &questions) else { return };
    for (file, answer) in files.iter().zip(answers) {
        assert_eq!(
            our_pairs(file),
            java_pairs(&answer),
            "seed {SEED}, file {:?}",
            String::from_utf8_lossy(file)
        );
    }
}
