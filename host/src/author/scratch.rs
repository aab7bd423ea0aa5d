//! A folder for this process alone, gone with its value.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;

/// Folders that are tried before giving up.
const NUMBER_COUNT_MAX: u32 = 100;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The folder.
#[derive(Debug)]
pub struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Makes it, in the system's place for such things, closed to others.
    pub fn create() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        for _ in 0..NUMBER_COUNT_MAX {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("tidegate-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // Left by an earlier process of this number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("could not make the folder {}", path.display()));
                }
            }
        }
        anyhow::bail!("{} is full of tidegate-… folders; remove them", parent.display())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What can't be removed is left to the system's own tidying.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
