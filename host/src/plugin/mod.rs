//! Plugins: WebAssembly components that answer the replicator's questions. The only user of wasmtime.
//!
//! ```text
//! ModuleSource ──load──▶ CompiledModule ──start──▶ NamingPlugin ──▶ answers, or a Fault
//!                        (one a file)              (one a flow or alias; its Instance is replaced after a fault)
//! ```
//!
//! The contract is plugin-sdk/wit. A plugin reaches the log and its counters, nothing else; each call has a
//! deadline and each instance a memory limit. Whether a name is legal, free and leads back is for the caller.

mod chain;
mod contract;
mod edits;
mod engine;
mod fault;
mod inspect;
mod instance;
mod journal;
mod limits;
mod load;
mod naming;
mod records;
mod ticker;
pub mod trial;

pub use chain::{
    Chain, ChainPlugin, Condemned, Edited, FAULTED_CALL_COUNT_MAX, FAULTED_CALL_COUNT_MIN, Place,
};
pub use engine::Engine;
pub use fault::Fault;
pub use instance::Link;
pub use limits::Limits;
pub use load::{Builtin, CompiledModule, LoadError, ModuleSource, SettingsProblem};
pub use naming::{About, NamingPlugin};
pub use records::{
    Answer, BatchWords, CallFigures, EDIT_WORDS, HEADER_WORDS, NONE_LENGTH, Needed, RECORD_WORDS,
    RecordsCall, RecordsSource,
};

#[cfg(test)]
mod component_build;
#[cfg(test)]
mod tests;
