//! Scenarios that need what this machine lacks: skipped loudly, and failed where nothing may be skipped.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::jars;
use crate::kafka::KafkaVersion;

/// Says on the terminal that the running test is skipped, and why.
///
/// # Panics
/// With `CI=true` in the environment: there, a scenario that did not run is a failure.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {why}\n", thread.name().unwrap_or("a test"));
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{line}with CI=true nothing may be skipped");
    // Not `eprintln`: the test runner would keep that to itself for a test that passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Why clusters of this version can't be started on this machine, or `None` if they can.
pub fn why_not(version: KafkaVersion) -> Option<String> {
    if !runs("java", &["-version"]) {
        return Some(
            "there is no Java on this machine; apt-get install openjdk-17-jdk-headless maven".to_owned(),
        );
    }
    jars::fetch(version).err().map(|error| format!("{error:#}"))
}

/// Whether a program is there and answers.
pub fn runs(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
