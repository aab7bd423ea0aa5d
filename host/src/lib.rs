//! Tidegate copies Kafka topics from cluster to cluster by whole record batches, from MirrorMaker 2's configuration
//! file, under names that WebAssembly plugins give. `ARCHITECTURE.md` is the map.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod names;
pub mod record;
pub mod status;
pub mod topic_map;

pub mod config;

pub mod cluster;
pub mod offsets;
pub mod plugin;

pub mod control;
pub mod relay;
pub mod serve;

pub mod flow;

pub mod app;
pub mod author;

pub mod cli;
pub mod demo;
