//! A folder for this demo's files (its identity in groups), removed at the end.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Names that are tried before giving up.
const NAMES_COUNT_MAX: u32 = 100;

/// Only its owner may look inside.
const MODE: u32 = 0o700;

/// Removed, with all that is in it, when the value is dropped.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Makes a new one; never takes one that is there already.
    pub(super) fn create() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        let process = std::process::id();
        for number in 0..NAMES_COUNT_MAX {
            let path = parent.join(format!("tidegate-demo-{process}-{number}"));
            match DirBuilder::new().mode(MODE).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(problem) if problem.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(problem) => {
                    let what =
                        format!("could not create folder {}; TMPDIR names another place", path.display());
                    return Err(problem).context(what);
                }
            }
        }
        anyhow::bail!("{} is full of tidegate-demo-{process}-… folders; remove them", parent.display())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(problem) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(folder = %self.path.display(), %problem, "temporary folder not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_it() {
        let folder = TemporaryFolder::create().unwrap();
        let other = TemporaryFolder::create().unwrap();
        assert_ne!(folder.path(), other.path());
        std::fs::create_dir(folder.path().join("nodes")).unwrap();
        std::fs::write(folder.path().join("nodes/node-0.lock"), "x").unwrap();
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        assert!(other.path().exists());
    }
}
