//! Modules that are built for tests alone: each is built once, as its author would build it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::component_build;

#[path = "../../host/src/plugin/tests/hand_made.rs"]
mod hand_made;

const PACKAGES: [&str; 4] =
    ["tidegate-rename-guest", "tidegate-unruly-guest", "tidegate-rogue-guest", "tidegate-foreign-guest"];

static GUESTS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target_folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let build = component_build::ComponentBuild { workspace, target_folder };
    build.run(&PACKAGES).unwrap_or_else(|problem| panic!("{problem}"))
});

/// Names topics by a prefix.
pub(super) fn rename() -> Vec<u8> {
    fs::read(&GUESTS[0]).unwrap()
}

/// Misbehaves on request while it names topics.
pub(super) fn unruly() -> Vec<u8> {
    fs::read(&GUESTS[1]).unwrap()
}

/// Misbehaves at records, as its settings say.
pub(super) fn rogue() -> Vec<u8> {
    fs::read(&GUESTS[2]).unwrap()
}

/// Wants more than the host gives.
pub(super) fn foreign() -> Vec<u8> {
    fs::read(&GUESTS[3]).unwrap()
}

/// Wants this of the host, and can do nothing.
pub(super) fn importing(imports: &[&str]) -> Vec<u8> {
    hand_made::component(imports, &[])
}

/// Built against a later contract that this host does not know.
pub(super) fn of_a_later_contract() -> Vec<u8> {
    importing(&["tidegate:plugin/host@0.2.0"])
}
