//! The plugins that the binary carries, built from plugins/ by the build script: `builtin:NAME`.

// `BUILTINS`: name and component of each whose crate exists, sorted by name.
include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// The names behind `builtin:`, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

pub(super) fn bytes(name: &str) -> Option<&'static [u8]> {
    BUILTINS.iter().find(|(carried, _)| *carried == name).map(|(_, bytes)| *bytes)
}

/// For sentences.
pub(super) fn list() -> String {
    names().map(|name| format!("builtin:{name}")).collect::<Vec<_>>().join(", ")
}
