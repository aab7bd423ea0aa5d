//! What a piece of work costs this thread in processor time; on the wall where the system does not tell.

use std::fs;
use std::time::{Duration, Instant};

/// First field: nanoseconds on a processor.
const SCHEDULER_FIGURES: &str = "/proc/thread-self/schedstat";

/// Started; tells the time of the thread that started it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    wall: Instant,
    cpu: Option<Duration>,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elapsed {
    /// On the wall.
    pub(super) wall: Duration,
    /// Of the processor; none where the system does not tell.
    pub(super) cpu: Option<Duration>,
}

impl Stopwatch {
    /// Starts.
    pub(super) fn start() -> Self {
        Self { cpu: thread_time(), wall: Instant::now() }
    }

    /// Until now.
    pub(super) fn elapsed(self) -> Elapsed {
        let wall = self.wall.elapsed();
        let cpu = self.cpu.zip(thread_time()).map(|(begin, end)| end.saturating_sub(begin));
        Elapsed { wall, cpu }
    }
}

impl Elapsed {
    /// Processor time if it is known, else the wall's.
    pub(super) fn cost(self) -> Duration {
        self.cpu.unwrap_or(self.wall)
    }
}

fn thread_time() -> Option<Duration> {
    parse(&fs::read_to_string(SCHEDULER_FIGURES).ok()?)
}

fn parse(figures: &str) -> Option<Duration> {
    let on_processor_ns = figures.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(on_processor_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedulers_figures_are_read() {
        assert_eq!(parse("1234567890 55 7\n"), Some(Duration::from_nanos(1_234_567_890)));
        assert_eq!(parse(""), None);
        assert_eq!(parse("x 1 2"), None);
    }

    #[test]
    fn without_processor_time_the_wall_counts() {
        let elapsed = |cpu| Elapsed { wall: Duration::from_secs(2), cpu }.cost();
        assert_eq!(elapsed(Some(Duration::from_secs(1))), Duration::from_secs(1));
        assert_eq!(elapsed(None), Duration::from_secs(2));
    }
}
