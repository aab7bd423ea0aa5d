//! What a plugin can reach of the host: its log and its counters. There is nothing else: no clock, no random
//! numbers, no files, no network.
//!
//! Natively, lines and counts are kept for the thread that made them, so that a test can look at them with
//! `recorded` (which does not exist on WebAssembly).

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the plugin's author.
    Debug,
    /// Something that an operator will look for.
    Info,
    /// Something was wrong, the plugin went on.
    Warn,
    /// Someone must come.
    Error,
}

/// Writes a line to the host's log, which adds plugin and flow by itself. The host cuts long lines (4 KiB) and
/// drops lines that come too fast.
pub fn log(level: Level, message: &str) {
    sink::log(level, message);
}

/// Adds to one of the plugin's counters, which the host shows as metrics of this plugin. At most 64 names are taken.
pub fn count(name: &str, by: u64) {
    sink::count(name, by);
}

#[cfg(not(target_arch = "wasm32"))]
pub use sink::{Recorded, recorded};

#[cfg(target_arch = "wasm32")]
mod sink {
    use super::Level;
    use crate::component::host;

    pub(super) fn log(level: Level, message: &str) {
        let level = match level {
            Level::Debug => host::Level::Debug,
            Level::Info => host::Level::Info,
            Level::Warn => host::Level::Warn,
            Level::Error => host::Level::Error,
        };
        host::log(level, message);
    }

    pub(super) fn count(name: &str, by: u64) {
        host::count(name, by);
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod sink {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::Level;

    /// More lines than this are not kept: a native test that logs in a loop must not eat the memory.
    const LINE_COUNT_MAX: usize = 1000;

    thread_local! {
        static RECORDED: RefCell<Recorded> = RefCell::default();
    }

    /// What this thread logged and counted.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Recorded {
        /// The first 1000 lines.
        pub lines: Vec<(Level, String)>,
        /// Sums by name.
        pub counts: BTreeMap<String, u64>,
    }

    /// Takes what this thread logged and counted since the last call. Native tests only.
    pub fn recorded() -> Recorded {
        RECORDED.take()
    }

    pub(super) fn log(level: Level, message: &str) {
        RECORDED.with_borrow_mut(|recorded| {
            if recorded.lines.len() < LINE_COUNT_MAX {
                recorded.lines.push((level, message.to_owned()));
            }
        });
    }

    pub(super) fn count(name: &str, by: u64) {
        RECORDED.with_borrow_mut(|recorded| {
            let sum = recorded.counts.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(by);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_counts_can_be_looked_at_natively() {
        log(Level::Warn, "slow");
        count("seen", 2);
        count("seen", 3);

        let recorded = recorded();

        assert_eq!(recorded.lines, [(Level::Warn, "slow".to_owned())]);
        assert_eq!(recorded.counts.into_iter().collect::<Vec<_>>(), [("seen".to_owned(), 5)]);
        assert_eq!(super::recorded(), Recorded::default());
    }
}
