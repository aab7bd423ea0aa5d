//! The clock behind deadlines: moves wasmtime's epoch on while a plugin is being asked, and sleeps when none is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;

/// How exact deadlines are. Each tick is one atomic addition, and a wake-up of this thread.
pub(super) const TICK: Duration = Duration::from_millis(1);

struct Shared {
    /// Calls that run now.
    running_count: AtomicUsize,
    stop: AtomicBool,
}

/// Owns the thread; ends it when dropped.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(engine: wasmtime::Engine) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared { running_count: AtomicUsize::new(0), stop: AtomicBool::new(false) });
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("plugin-ticker".to_owned())
                .spawn(move || tick(&shared, &engine))
                .context("could not start the thread that watches the deadlines of plugins")?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The epoch moves until what this returns is dropped.
    pub(super) fn run(&self) -> Running<'_> {
        let was_idle = self.shared.running_count.fetch_add(1, Ordering::SeqCst) == 0;
        if was_idle {
            self.wake();
        }
        Running(&self.shared)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It holds no lock and can't panic; an error here could not be acted on.
            let _ = thread.join();
        }
    }
}

/// A call that runs.
pub(super) struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running_count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A wake-up that comes between the look at the count and `park` is not lost: `park` then returns at once.
fn tick(shared: &Shared, engine: &wasmtime::Engine) {
    while !shared.stop.load(Ordering::SeqCst) {
        if shared.running_count.load(Ordering::SeqCst) == 0 {
            thread::park();
            continue;
        }
        thread::sleep(TICK);
        engine.increment_epoch();
    }
}
