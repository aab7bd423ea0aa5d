//! The engine that all plugins of a process share: wasmtime's settings, what a plugin may import, the ticker, and
//! the modules that were compiled in this process and are still in use (nothing is kept on disk).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Context;
use wasmtime::Config;
use wasmtime::component::{HasSelf, Linker};

use super::contract::host;
use super::instance::State;
use super::load::Compiled;
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
    /// By digest. Weak: a module goes when its last plugin goes.
    compiled: Mutex<HashMap<String, Weak<Compiled>>>,
}

impl Engine {
    /// Starts the engine and its ticker.
    ///
    /// `cache_dir` is meant for compiled modules. It is not used yet: wasmtime loads compiled code by an `unsafe`
    /// function only, so modules are compiled at each start (tens of milliseconds for small ones).
    pub fn new(_cache_dir: Option<PathBuf>) -> anyhow::Result<Self> {
        let wasmtime = wasmtime::Engine::new(&config())
            .map_err(anyhow::Error::from)
            .context("could not start the WebAssembly engine")?;
        let mut linker = Linker::new(&wasmtime);
        host::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)
            .map_err(anyhow::Error::from)
            .context("could not offer the host's functions to plugins")?;
        let ticker = Ticker::start(wasmtime.clone())?;
        Ok(Self { shared: Arc::new(Shared { wasmtime, linker, ticker, compiled: Mutex::default() }) })
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

    pub(super) fn compiled(&self, digest: &str) -> Option<Arc<Compiled>> {
        self.shared.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(digest)?.upgrade()
    }

    /// Keeps `compiled` for as long as someone uses it. If another thread was quicker with the same bytes, gives that
    /// one's, so that there is one.
    pub(super) fn keep_compiled(&self, digest: &str, compiled: Compiled) -> Arc<Compiled> {
        let mut modules = self.shared.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = modules.get(digest).and_then(Weak::upgrade) {
            return earlier;
        }
        let compiled = Arc::new(compiled);
        modules.retain(|_, module| module.strong_count() > 0);
        modules.insert(digest.to_owned(), Arc::downgrade(&compiled));
        compiled
    }
}

/// What is not set here stays off by the features that wasmtime is built with: WASI, threads, garbage collection.
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
