//! Plugins: WebAssembly components that answer the replicator's questions. The only user of wasmtime.
//!
//! ```text
//! PluginConfig ──load──▶ LoadedPlugin ──naming, selection, acl_mapping──▶ answers, or a Fault
//!                        (one a flow)                  (each with its own instance, replaced after a fault)
//!                              └──────start_records──▶ RecordsInstance, one a worker, of which the chain is made
//! ```
//!
//! The contract is plugin-sdk/wit. A plugin reaches the log and its counters, nothing else; each call has a
//! deadline and each instance a memory limit. Whether a name is legal, free and leads back is for the caller.

mod acl;
mod acl_width;
mod anatomy;
mod builtin;
mod cache;
mod chain;
mod contract;
mod edits;
mod engine;
mod fault;
mod generation;
mod inspect;
mod instance;
mod journal;
mod limits;
mod load;
mod loaded;
mod naming;
mod recipe;
mod records;
mod records_instance;
mod schema;
mod seat;
mod selection;
mod stats;
mod ticker;
pub mod trial;

pub use acl::{AclPlugin, AclRule, Pattern, Permission, ResourceKind};
pub use acl_width::{Widening, is_never_wider, widenings};
pub use anatomy::{Anatomy, describe};
pub use builtin::names as builtin_names;
pub use chain::{
    Chain, ChainPlugin, Condemned, Edited, FAULTED_CALL_COUNT_MAX, FAULTED_CALL_COUNT_MIN, Place,
};
pub use engine::Engine;
pub use fault::{Fault, FaultKind};
pub use generation::Generation;
pub use instance::Link;
pub use limits::Limits;
pub use load::{CompiledModule, LoadError, ModuleSource, SettingsProblem, digest, read_module};
pub use loaded::{About, Hooks, LoadedPlugin};
pub use naming::NamingPlugin;
pub use records::{
    Answer, BatchWords, CallFigures, EDIT_WORDS, HEADER_WORDS, NONE_LENGTH, Needed, RECORD_WORDS,
    RecordsCall, RecordsSource,
};
pub use records_instance::RecordsInstance;
pub use selection::{SelectionPlugin, SelectionTopic};
pub use stats::{CALL_TIME_BOUNDS_NS, CALL_TIME_BUCKET_COUNT, PluginStats, RecordCounts, StatsSnapshot};

#[cfg(test)]
mod component_build;
#[cfg(test)]
mod tests;
