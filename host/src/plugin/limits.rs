//! What a plugin may use up: time for each call, memory for each instance.

use std::time::Duration;

use wasmtime::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};

use super::ticker::TICK;

/// Elements of all function tables. Compiled Rust has a few hundred, an interpreter some ten thousand.
const TABLE_ELEMENT_COUNT_MAX: usize = 100_000;
/// A start may take at least so long, in milliseconds, whatever a question may: it comes once an instance, often on a
/// machine where everything starts, and time on the wall passes also while this process does not run (a spent quota of
/// processor time, a paused machine).
pub(super) const START_MS_MIN: u64 = 2_000;
/// Core instances, memories and tables in a component: its adapters need a handful.
const PART_COUNT_MAX: usize = 64;

/// What a plugin may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For each question. At least one millisecond; a call is cut one to two milliseconds later. Making an instance,
    /// `describe`, `init` and `self-test` have two seconds when this is less.
    pub deadline: Duration,
    /// Linear memory of one instance; it is never given back, so this is also the most that stays.
    pub memory_bytes: usize,
}

impl Default for Limits {
    /// 50 ms, a thousand times what a name needs; 64 MiB, enough for compiled languages (interpreters want more).
    fn default() -> Self {
        Self { deadline: Duration::from_millis(50), memory_bytes: 64 * 1024 * 1024 }
    }
}

impl Limits {
    /// For making an instance, `describe`, `init` and `self-test`.
    pub(super) fn at_start(self) -> Self {
        Self { deadline: self.deadline.max(Duration::from_millis(START_MS_MIN)), ..self }
    }

    /// The deadline in ticks of the epoch. The first one may come at once, so there is one more.
    pub(super) fn deadline_ticks(&self) -> u64 {
        let ticks = self.deadline.as_nanos().div_ceil(TICK.as_nanos()).max(1);
        u64::try_from(ticks).map_or(u64::MAX / 2, |ticks| ticks.min(u64::MAX / 2)) + 1
    }

    /// For sentences.
    pub(super) fn budget_ms(&self) -> u64 {
        u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX)
    }
}

/// wasmtime's limiter, a sum of what it granted, and a note of whether it said no: the guest sees a failed allocation and usually ends in a
/// bare trap, which would hide the cause.
pub(super) struct Limiter {
    limits: StoreLimits,
    pub(super) memory_denied: bool,
    memory_bytes_max: usize,
    /// What all memories of the instance have grown to.
    pub(super) memory_bytes: usize,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Self {
        let memory_bytes = limits.memory_bytes;
        let limits = StoreLimitsBuilder::new()
            .memory_size(memory_bytes)
            .table_elements(TABLE_ELEMENT_COUNT_MAX)
            .instances(PART_COUNT_MAX)
            .memories(PART_COUNT_MAX)
            .tables(PART_COUNT_MAX)
            .build();
        Self { limits, memory_denied: false, memory_bytes_max: memory_bytes, memory_bytes: 0 }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Of all memories together: wasmtime's own limit holds for each.
        let sum_bytes = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        let is_granted =
            sum_bytes <= self.memory_bytes_max && self.limits.memory_growing(current, desired, maximum)?;
        self.memory_denied |= !is_granted;
        if is_granted {
            self.memory_bytes = sum_bytes;
        }
        Ok(is_granted)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }

    fn instances(&self) -> usize {
        self.limits.instances()
    }

    fn tables(&self) -> usize {
        self.limits.tables()
    }

    fn memories(&self) -> usize {
        self.limits.memories()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_whole_ticks_and_one_more() {
        let check = |deadline: Duration, ticks: u64| {
            assert_eq!(Limits { deadline, ..Limits::default() }.deadline_ticks(), ticks, "{deadline:?}");
        };
        check(Duration::from_millis(50), 51);
        check(Duration::from_micros(1500), 3);
        check(Duration::ZERO, 2);
        check(Duration::MAX, u64::MAX / 2 + 1);
    }

    #[test]
    fn memories_of_an_instance_share_one_limit() {
        let mut limiter = Limiter::new(&Limits { memory_bytes: 100, ..Limits::default() });

        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 41, None).unwrap(), "of another memory");
        assert!(limiter.memory_denied);
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        assert_eq!(limiter.memory_bytes, 100);
    }

    #[test]
    fn a_start_has_more_time_than_a_question() {
        let check = |deadline_ms: u64, at_start_ms: u64| {
            let limits = Limits { deadline: Duration::from_millis(deadline_ms), memory_bytes: 7 };
            let expected = Limits { deadline: Duration::from_millis(at_start_ms), memory_bytes: 7 };
            assert_eq!(limits.at_start(), expected);
        };
        check(50, START_MS_MIN);
        check(60_000, 60_000);
    }
}
