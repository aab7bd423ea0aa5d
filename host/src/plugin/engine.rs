//! The engine that all plugins of a process share: wasmtime's settings, what a plugin may import, the ticker, and the
//! compiled modules: those that are in use, and behind them the folder of the cache.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use anyhow::Context;
use wasmtime::Config;
use wasmtime::component::{Component, HasSelf, Linker};

use super::cache::ModuleCache;
use super::contract::host;
use super::instance::State;
use super::load::{Compiled, LoadError};
use super::ticker::{Running, Ticker};

/// Makes instances of plugins. Clones share everything; the last one to go ends the ticker's thread.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    wasmtime: wasmtime::Engine,
    linker: Linker<State>,
    ticker: Ticker,
    /// By digest. Weak: a module goes when its last plugin goes. Each has a lock of its own, so that two flows that want
    /// the same module wait for one compilation, and those that want another don't.
    compiled: Mutex<HashMap<String, Arc<Mutex<Weak<Compiled>>>>>,
    cache: Option<ModuleCache>,
    compile_count: AtomicU64,
}

impl Engine {
    /// Starts the engine and its ticker. Compiled modules are kept in `<cache_dir>/modules`; without one, or when it can't
    /// be used (which is logged), modules are compiled at each start: 1 ms a KB.
    pub fn new(cache_dir: Option<PathBuf>) -> anyhow::Result<Self> {
        let wasmtime = wasmtime::Engine::new(&config())
            .map_err(anyhow::Error::from)
            .context("could not start the WebAssembly engine")?;
        let mut linker = Linker::new(&wasmtime);
        host::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)
            .map_err(anyhow::Error::from)
            .context("could not offer the host's functions to plugins")?;
        let ticker = Ticker::start(wasmtime.clone())?;
        let cache = cache_dir.and_then(|folder| ModuleCache::open(&wasmtime, &folder));
        let shared = Shared {
            wasmtime,
            linker,
            ticker,
            compiled: Mutex::default(),
            cache,
            compile_count: AtomicU64::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How many modules were compiled, not loaded from the cache, since the engine started.
    pub fn compile_count(&self) -> u64 {
        self.shared.compile_count.load(Ordering::Relaxed)
    }

    pub(super) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.shared.wasmtime
    }

    pub(super) fn linker(&self) -> &Linker<State> {
        &self.shared.linker
    }

    /// Deadlines pass while this is held.
    pub(super) fn run_clock(&self) -> Running<'_> {
        self.shared.ticker.run()
    }

    /// The module in use with this digest, or what `make` makes, kept for as long as someone uses it.
    pub(super) fn compiled(
        &self,
        digest: &str,
        make: impl FnOnce() -> Result<Compiled, LoadError>,
    ) -> Result<Arc<Compiled>, LoadError> {
        let slot = self.slot(digest);
        let mut kept = lock(&slot);
        if let Some(compiled) = kept.upgrade() {
            return Ok(compiled);
        }
        let compiled = Arc::new(make()?);
        *kept = Arc::downgrade(&compiled);
        Ok(compiled)
    }

    /// From the cache, else compiled on this thread and put there.
    pub(super) fn component(&self, digest: &str, bytes: &[u8]) -> wasmtime::Result<Component> {
        let engine = &self.shared.wasmtime;
        let Some(cache) = &self.shared.cache else { return self.compile(bytes) };
        if let Some(component) = cache.load(engine, digest) {
            return Ok(component);
        }
        let code = engine.precompile_component(bytes)?;
        match cache.keep(engine, digest, &code) {
            Ok(component) => {
                self.shared.compile_count.fetch_add(1, Ordering::Relaxed);
                Ok(component)
            }
            Err(error) => {
                tracing::warn!(digest, %error, "a compiled module can't be kept, it is compiled at each start");
                self.compile(bytes)
            }
        }
    }

    fn compile(&self, bytes: &[u8]) -> wasmtime::Result<Component> {
        self.shared.compile_count.fetch_add(1, Ordering::Relaxed);
        Component::new(&self.shared.wasmtime, bytes)
    }

    /// Modules that nobody uses and nobody is about to make leave the table.
    fn slot(&self, digest: &str) -> Arc<Mutex<Weak<Compiled>>> {
        let mut slots = lock(&self.shared.compiled);
        slots.retain(|kept, slot| {
            kept == digest || Arc::strong_count(slot) > 1 || lock(slot).strong_count() > 0
        });
        Arc::clone(slots.entry(digest.to_owned()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is not set here stays off by the features that wasmtime is built with: WASI, threads, garbage collection, and
/// compiling on several threads, which would take processors from the workers at a swap.
fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    // The same answer on every processor.
    config.wasm_relaxed_simd(false);
    config.cranelift_nan_canonicalization(true);
    // A fault's text carries the plugin's own last words; addresses in it would help nobody.
    config.wasm_backtrace_max_frames(None);
    config
}
