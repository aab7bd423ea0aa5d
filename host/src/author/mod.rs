//! What authors of plugins need: new projects, their build, cases that check a plugin, and its cost. The commands of
//! `tidegate plugin` show what is decided here.

pub mod bench;
mod bundle;
pub mod chain;
mod cpu_time;
pub mod fixture;
pub mod project;
pub mod scratch;
pub mod suite;
pub mod toolchain;
