//! Whole files in, whole answers out: what is read, every key's fate, and every problem in the words that people see.

use std::time::Duration;

use super::*;

fn options() -> LoadOptions {
    LoadOptions {
        environment: [("HOME".to_owned(), "/home/kafka".to_owned())].into(),
        ..LoadOptions::default()
    }
}

fn load_with(text: &str, options: &LoadOptions) -> Result<Loaded, Box<LoadError>> {
    load_bytes("mm2.properties", text.as_bytes(), Path::new("/etc/mm2"), options)
}

fn read(text: &str) -> Loaded {
    load_with(text, &options()).unwrap_or_else(|error| panic!("{error}"))
}

/// Two clusters and a flow; what a case adds begins on line 6.
const BASE: &str = "clusters=A,B\nA.bootstrap.servers=a:9092\nB.bootstrap.servers=b:9092\nA->B.enabled=true\nemit.heartbeats.enabled=false\n";

fn flow_of(extra: &str) -> FlowConfig {
    read(&format!("{BASE}{extra}")).config.flows.remove(0)
}

/// The problems that `extra` makes, without the first line.
fn problems_of(extra: &str) -> String {
    let error = load_with(&format!("{BASE}{extra}"), &options()).expect_err("the file should be refused");
    error.to_string().split_once('\n').unwrap().1.to_owned()
}

/// The rows of `extra`: fate, then note.
fn fates_of(extra: &str) -> Vec<String> {
    let report = match load_with(&format!("{BASE}{extra}"), &options()) {
        Ok(loaded) => loaded.report,
        Err(error) => error.report,
    };
    report.rows[5..]
        .iter()
        .map(|row| format!("{}: {} {}", row.key, row.fate, row.note).trim_end().to_owned())
        .collect()
}

/// Takes note of what is not there yet.
const SILENCED: &str = "emit.offset-syncs.enabled=false\nemit.checkpoints.enabled=false\nsync.topic.acls.enabled=false\n\
                        sync.topic.configs.enabled=false\n";

fn warnings_of(extra: &str) -> Vec<String> {
    read(&format!("{BASE}{extra}{SILENCED}")).warnings.iter().map(ToString::to_string).collect()
}

mod fates;
mod plugins;
mod precedence;
mod problems;
mod readers;
mod realistic;
