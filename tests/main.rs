//! All scenarios in one program, so that they share clusters and are linked once.
//!
//! `kafka` runs Tidegate against real brokers and beside the real MirrorMaker 2, `embedded` against brokers in memory that
//! fail as they are told to; `floors` reads the sources.

#![allow(clippy::unwrap_used)]

/// Builds guests as the built-in policies are built.
#[path = "../host/src/plugin/component_build.rs"]
mod component_build;
mod embedded;
mod floors;
mod kafka;
mod scenario;
