//! Loads compiled modules from a folder that only this host writes to. The one place in the workspace with `unsafe`,
//! kept in a crate of its own so that every other one can forbid it.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Engine, Result};

/// Maps a compiled module into memory: some 50 µs where compiling takes 50 ms or, for interpreters, 15 s.
///
/// The file's content becomes machine code of this process. The caller vouches that it was written by this host
/// ([`Engine::precompile_component`]) into a folder that nobody else may write to, and that it is whole; who can write
/// there could as well replace the binary. wasmtime itself refuses files of another version or with other settings.
///
/// Errors: the file can't be read, or was made by another wasmtime, for another processor or with other settings.
#[allow(unsafe_code, reason = "deserialize_file has no safe counterpart; see above for who vouches")]
pub fn load(engine: &Engine, path: &Path) -> Result<Component> {
    // SAFETY: the caller vouches for the file's origin, as the documentation above asks.
    unsafe { Component::deserialize_file(engine, path) }
}
