//! Waits until one of some files changes, by looking at them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// What the files were like when they were looked at last: time and length, none while a file is away.
#[derive(Debug, Default)]
pub(super) struct Changes {
    known: Option<BTreeMap<PathBuf, Option<(SystemTime, u64)>>>,
}

impl Changes {
    /// Looks, and says whether something is other than at the last look. The first look says no.
    pub(super) fn look(&mut self, files: Vec<PathBuf>) -> bool {
        let state = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        let now: BTreeMap<_, _> = files.into_iter().map(|path| (path.clone(), state(&path))).collect();
        let has_changed = self.known.as_ref().is_some_and(|known| *known != now);
        self.known = Some(now);
        has_changed
    }

    /// Blocks until something changes. The files are listed anew at each look.
    pub(super) fn wait(&mut self, files: impl Fn() -> Vec<PathBuf>) {
        while !self.look(files()) {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_new_and_lost_files_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let mut changes = Changes::default();
        let mut look = |files: &[&PathBuf]| changes.look(files.iter().map(|path| (*path).clone()).collect());

        std::fs::write(&one, "a").unwrap();
        assert!(!look(&[&one]), "nothing was known before");
        assert!(!look(&[&one]));
        std::fs::write(&one, "longer").unwrap();
        assert!(look(&[&one]));
        assert!(look(&[&one, &two]), "a file more");
        assert!(!look(&[&one, &two]));
        std::fs::write(&two, "").unwrap();
        assert!(look(&[&one, &two]), "it is there now");
        std::fs::remove_file(&one).unwrap();
        assert!(look(&[&one, &two]));
        assert!(!look(&[&one, &two]));
    }
}
