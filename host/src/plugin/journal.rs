//! What a plugin tells of itself, bounded: lines to the log, and counters, which are kept but not shown as
//! metrics yet. One journal a plugin and flow; it outlives the instances.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::contract::host::Level;

/// Longer lines are cut; the contract says so.
pub(super) const LINE_BYTES_MAX: usize = 4096;
/// Lines above this are dropped and counted: a plugin must not fill the disk.
const LINE_COUNT_MAX_PER_SECOND: u32 = 20;
/// The contract's bound.
const COUNTER_COUNT_MAX: usize = 64;
/// A counter's name becomes a label's value.
const COUNTER_NAME_BYTES_MAX: usize = 100;

pub(super) struct Journal {
    flow: String,
    inner: Mutex<Inner>,
}

struct Inner {
    /// As it describes itself; the module's name until it has.
    plugin: String,
    pace: Pace,
    counters: Counters,
}

impl Journal {
    pub(super) fn new(plugin: &str, flow: &str) -> Self {
        let inner = Inner {
            plugin: plugin.to_owned(),
            pace: Pace::new(Instant::now()),
            counters: Counters::default(),
        };
        Self { flow: flow.to_owned(), inner: Mutex::new(inner) }
    }

    pub(super) fn rename(&self, plugin: &str) {
        plugin.clone_into(&mut self.lock().plugin);
    }

    /// `line` is one line already.
    pub(super) fn log(&self, level: Level, line: &str) {
        let (plugin, dropped_count) = {
            let mut inner = self.lock();
            let Some(dropped_count) = inner.pace.admit(Instant::now()) else { return };
            (inner.plugin.clone(), dropped_count)
        };
        let flow = &self.flow;
        if dropped_count > 0 {
            tracing::warn!(%plugin, %flow, dropped_count, "plugin logs too fast, lines dropped");
        }
        match level {
            Level::Debug => tracing::debug!(%plugin, %flow, %line, "plugin says"),
            Level::Info => tracing::info!(%plugin, %flow, %line, "plugin says"),
            Level::Warn => tracing::warn!(%plugin, %flow, %line, "plugin says"),
            Level::Error => tracing::error!(%plugin, %flow, %line, "plugin says"),
        }
    }

    pub(super) fn count(&self, name: &str, by: u64) {
        let plugin = {
            let mut inner = self.lock();
            if inner.counters.add(name, by) {
                return;
            }
            inner.plugin.clone()
        };
        let flow = &self.flow;
        tracing::warn!(
            %plugin, %flow, COUNTER_COUNT_MAX, COUNTER_NAME_BYTES_MAX,
            "plugin counts under too many names, or too long ones; the others are dropped"
        );
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        self.lock().counters.sums.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A second's worth of lines, then none until the next second.
struct Pace {
    second_began: Instant,
    line_count: u32,
    dropped_count: u64,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { second_began: now, line_count: 0, dropped_count: 0 }
    }

    /// `None`: drop the line. Otherwise how many were dropped since this was last told.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.second_began) >= Duration::from_secs(1) {
            self.second_began = now;
            self.line_count = 0;
        }
        if self.line_count == LINE_COUNT_MAX_PER_SECOND {
            self.dropped_count += 1;
            return None;
        }
        self.line_count += 1;
        Some(std::mem::take(&mut self.dropped_count))
    }
}

#[derive(Default)]
struct Counters {
    sums: BTreeMap<String, u64>,
    /// That names were refused is worth one line, not one a call.
    has_complained: bool,
}

impl Counters {
    /// False the first time that a name can't be taken.
    fn add(&mut self, name: &str, by: u64) -> bool {
        if let Some(sum) = self.sums.get_mut(name) {
            *sum = sum.saturating_add(by);
            return true;
        }
        if self.sums.len() < COUNTER_COUNT_MAX && name.len() <= COUNTER_NAME_BYTES_MAX {
            self.sums.insert(name.to_owned(), by);
            return true;
        }
        std::mem::replace(&mut self.has_complained, true)
    }
}

/// Text of a plugin as one line of bounded length: it must not be able to forge lines of the log.
pub(super) fn one_line(text: &str) -> String {
    let end = text.floor_char_boundary(LINE_BYTES_MAX);
    let mut line: String = text[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if end < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_bounded_length_and_no_breaks() {
        assert_eq!(one_line("panicked at lib.rs:\nboom\u{1b}[31m"), "panicked at lib.rs: boom [31m");
        assert_eq!(one_line(&"é".repeat(3000)), format!("{}…", "é".repeat(2048)));
        assert_eq!(one_line(&"x".repeat(4096)), "x".repeat(4096));
    }

    #[test]
    fn lines_above_the_pace_are_dropped_and_told_of() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let at = |ms: u64| start + Duration::from_millis(ms);

        let admitted = (0..30).filter(|ms| pace.admit(at(*ms)) == Some(0)).count();
        assert_eq!(admitted, 20);
        assert_eq!(pace.admit(at(999)), None);
        assert_eq!(pace.admit(at(1000)), Some(11));
        assert_eq!(pace.admit(at(1001)), Some(0));
    }

    #[test]
    fn counters_have_a_bound_of_names() {
        let mut counters = Counters::default();
        for index in 0..COUNTER_COUNT_MAX {
            assert!(counters.add(&format!("name-{index}"), 1));
        }
        assert!(counters.add("name-7", u64::MAX), "a known name is always taken");
        assert!(!counters.add("one-more", 1), "told once");
        assert!(counters.add("one-more", 1), "told once");
        assert_eq!(counters.sums.len(), COUNTER_COUNT_MAX);
        assert_eq!(counters.sums.get("name-7"), Some(&u64::MAX));
    }

    #[test]
    fn long_counter_names_are_not_taken() {
        let mut counters = Counters::default();
        assert!(!counters.add(&"x".repeat(101), 1));
        assert!(counters.add(&"x".repeat(100), 1));
        assert_eq!(counters.sums.len(), 1);
    }
}
