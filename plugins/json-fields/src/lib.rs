//! Finds fields of JSON texts by path, and where they lie. Nothing is built: a text is walked once, every byte of it
//! is checked, and the places of what was found come back.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod path;
mod scan;
mod text;

#[cfg(test)]
mod tests;

pub use path::Paths;
pub use scan::{DEPTH_MAX, Found, Kind, Scanner, Unreadable};
pub use text::{unescape, write_string};
