//! Asks the real Java, in tests: `tests/kafka/oracle/JavaOracle.java`, run from source.

use std::io::Write;
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("../../../tests/kafka/oracle/JavaOracle.java");

/// What Java answers, a line for each question; None, and a loud word on standard error, where there is no Java.
pub(super) fn ask(mode: &str, questions: &[String]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("JavaOracle.java");
    std::fs::write(&source, SOURCE).unwrap();
    let child = Command::new("java")
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
        .arg(&source)
        .arg(mode)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            skip(mode, &format!("`java` could not be started: {error}; install a JDK of 17 or later"));
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let text = questions.join("\n") + "\n";
    let writer = std::thread::spawn(move || {
        // A Java that can't start closes its end; its exit code says why.
        let _ = stdin.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && complaint.contains("jdk.compiler") {
        skip(mode, &format!("this Java can't run a source file, it is no JDK: {complaint}"));
        return None;
    }
    assert!(output.status.success(), "the oracle failed: {complaint}");
    let answers: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), questions.len(), "{complaint}");
    Some(answers)
}

/// Written past the test harness, which keeps what a passing test prints to itself: a skip must be seen. With `CI=true`
/// in the environment nothing may be skipped: there, a comparison that did not run is a failure.
fn skip(mode: &str, why: &str) {
    let line = skip_line(mode, why, std::env::var("CI").as_deref() == Ok("true"));
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn skip_line(mode: &str, why: &str, is_forbidden: bool) -> String {
    let line = format!("SKIPPED: comparison with Java ({mode}): {why}");
    assert!(!is_forbidden, "{line}; with CI=true nothing may be skipped");
    line
}

#[test]
fn a_skip_is_seen() {
    assert_eq!(skip_line("regex", "no JDK", false), "SKIPPED: comparison with Java (regex): no JDK");
}

#[test]
#[should_panic(
    expected = "SKIPPED: comparison with Java (regex): no JDK; with CI=true nothing may be skipped"
)]
fn a_skip_where_nothing_may_be_skipped_is_a_failure() {
    skip_line("regex", "no JDK", true);
}

/// `text` as the oracle wants it.
pub(super) fn hex_utf16(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("{unit:04x}")).collect()
}

/// The text of an oracle's answer; lone halves of surrogate pairs become U+FFFD.
pub(super) fn from_hex_utf16_lossy(hex: &str) -> String {
    let units: Vec<u16> = hex
        .as_bytes()
        .chunks(4)
        .map(|digits| u16::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect();
    String::from_utf16_lossy(&units)
}

/// A small seeded generator (xorshift64*): the same cases for the same seed, on every machine.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
