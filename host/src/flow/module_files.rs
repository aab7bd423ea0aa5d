//! Watches the module files that the configuration names: one that changes, and then stays as it is for a moment, is swapped in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::decision::{DecidedPlugin, Kind};
use super::first::blocking;
use super::policies::{Origin, Wanted};
use super::swap::{Change, Proposal};
use super::{Done, FlowLoop};
use crate::cluster::digest_of;
use crate::config::PluginModule;
use crate::plugin::read_module;
use crate::serve::orders::Who;

/// Files are looked at so often, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// What of a file shows without reading it that it has changed.
type Face = (u64, Option<SystemTime>);

/// Of a file that was not looked at yet.
const UNSEEN: Face = (u64::MAX, None);

/// The files, as they were seen last.
#[derive(Clone, Default)]
pub(super) struct Watch {
    seen: BTreeMap<String, Seen>,
}

#[derive(Clone)]
struct Seen {
    face: Face,
    digest: String,
    /// A digest that was seen once; it counts when it is seen again, since a file may be half written.
    candidate: Option<String>,
}

/// A module file of another content than before.
pub(super) struct Changed {
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) bytes: bytes::Bytes,
}

impl FlowLoop {
    /// Looks again in a moment. One look at a time.
    pub(super) fn watch_files(&mut self, watch: Watch) {
        if !self.setting.process.plugins_watch {
            return;
        }
        let files: Vec<(String, PathBuf)> = self
            .policies
            .loader
            .flow
            .plugins
            .iter()
            .filter_map(|plugin| match &plugin.module {
                PluginModule::File(path) => Some((plugin.name.clone(), path.clone())),
                PluginModule::Builtin(_) => None,
            })
            .collect();
        if files.is_empty() {
            return;
        }
        self.tasks.spawn(async move {
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            let (mut next, kept) = (watch.clone(), watch);
            let look = blocking(move || {
                let changed = next.look(&files);
                Ok((next, changed))
            });
            let (watch, changed) = look.await.unwrap_or((kept, Vec::new()));
            Done::Watched { watch, changed }
        });
    }

    /// One file at a time: the next look brings the next.
    pub(super) fn take_watched(&mut self, mut watch: Watch, changed: Vec<Changed>) {
        if std::mem::take(&mut self.policies.must_look_again) {
            watch.look_again();
        }
        for change in changed {
            for own in self.policies.file.iter_mut().filter(|own| own.name == change.name) {
                own.digest.clone_from(&change.digest);
            }
            let is_running =
                self.policies.decision.plugin(&change.name).is_some_and(|own| own.digest == change.digest);
            let wanted = (!is_running).then(|| self.with_module(&change)).flatten();
            let Some(wanted) = wanted else {
                watch.accept(&change);
                continue;
            };
            if self.is_making() || self.is_behind() {
                // Seen as changed again at the next look.
                continue;
            }
            watch.accept(&change);
            let proposal = Proposal {
                kind: Kind::File,
                who: Who { user: "file".to_owned(), host: "-".to_owned() },
                what: format!("the file of \"{}\" has changed", change.name),
                force: false,
                change: Change::Plugins(wanted),
            };
            self.make(proposal, None);
        }
        self.watch_files(watch);
    }

    fn with_module(&self, change: &Changed) -> Option<Vec<Wanted>> {
        let file = self.policies.loader.flow.plugins.iter().find(|plugin| plugin.name == change.name)?;
        let wanted = self.policies.loaded.plugins.iter().map(|plugin| {
            let mut config = plugin.config.clone();
            if config.name != change.name {
                return Wanted { config, origin: Origin::Loaded(Arc::clone(plugin)) };
            }
            config.module = file.module.clone();
            config.sha256.clone_from(&file.sha256);
            Wanted { config, origin: Origin::Bytes(change.bytes.clone()) }
        });
        Some(wanted.collect())
    }
}

impl Watch {
    /// From what was loaded: a file that has changed since then has changed.
    pub(super) fn since(loaded: &[DecidedPlugin]) -> Self {
        let seen = |plugin: &DecidedPlugin| {
            let seen = Seen { face: UNSEEN, digest: plugin.digest.clone(), candidate: None };
            (plugin.name.clone(), seen)
        };
        Self { seen: loaded.iter().map(seen).collect() }
    }

    /// The files that have changed and stayed so. A file that can't be read is left for the next look.
    fn look(&mut self, files: &[(String, PathBuf)]) -> Vec<Changed> {
        let mut changed = Vec::new();
        for (name, path) in files {
            let Ok(data) = std::fs::metadata(path) else { continue };
            let face = (data.len(), data.modified().ok());
            let known = self.seen.get(name);
            if known.is_some_and(|known| known.face == face && known.candidate.is_none()) {
                continue;
            }
            let Ok(bytes) = read_module(&PluginModule::File(path.clone())) else { continue };
            let digest = digest_of(&bytes);
            let Some(known) = self.seen.get_mut(name) else {
                self.seen.insert(name.clone(), Seen { face, digest, candidate: None });
                continue;
            };
            known.face = face;
            if known.digest == digest {
                known.candidate = None;
            } else if known.candidate.as_ref() == Some(&digest) {
                changed.push(Changed { name: name.clone(), digest, bytes: bytes.into_owned().into() });
            } else {
                known.candidate = Some(digest);
            }
        }
        changed
    }

    /// Takes every file for changed; those that run already are seen to.
    fn look_again(&mut self) {
        for seen in self.seen.values_mut() {
            seen.digest.clear();
            seen.candidate = Some(String::new());
        }
    }

    fn accept(&mut self, change: &Changed) {
        if let Some(seen) = self.seen.get_mut(&change.name) {
            seen.digest.clone_from(&change.digest);
            seen.candidate = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::decision::tests::plugin;

    #[test]
    fn a_file_counts_as_changed_when_it_has_stayed_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.wasm");
        let files = [("mask".to_owned(), path.clone())];
        let mut watch = Watch::default();
        let digests = |changed: Vec<Changed>| -> Vec<String> {
            changed.into_iter().map(|change| change.digest).collect()
        };
        assert!(watch.look(&files).is_empty(), "it is not there");
        std::fs::write(&path, "one").unwrap();
        assert!(watch.look(&files).is_empty(), "what is there at the start is no change");
        std::fs::write(&path, "half of").unwrap();
        assert!(watch.look(&files).is_empty());
        std::fs::write(&path, "half of two").unwrap();
        assert!(watch.look(&files).is_empty(), "it is still being written");
        let changed = watch.look(&files);
        assert_eq!(changed[0].bytes.as_ref(), b"half of two");
        watch.accept(&changed[0]);
        assert!(digests(watch.look(&files)).is_empty());
        std::fs::write(&path, "one").unwrap();
        watch.look(&files);
        let changed = watch.look(&files);
        watch.accept(&changed[0]);
        assert_eq!(digests(changed), [digest_of(b"one")]);
        assert!(watch.look(&files).is_empty());
        watch.look_again();
        watch.look(&files);
        assert_eq!(
            digests(watch.look(&files)),
            [digest_of(b"one")],
            "a change that was overtaken comes again"
        );
    }

    #[test]
    fn a_file_that_changes_between_start_and_first_look_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.wasm");
        let files = [("mask".to_owned(), path.clone())];
        std::fs::write(&path, "one").unwrap();
        let mut same = Watch::since(&[plugin("mask", &digest_of(b"one"))]);
        let mut other = Watch::since(&[plugin("mask", &digest_of(b"zero"))]);
        for watch in [&mut same, &mut other] {
            assert!(watch.look(&files).is_empty(), "once seen is not enough");
        }
        assert!(same.look(&files).is_empty());
        assert_eq!(other.look(&files)[0].digest, digest_of(b"one"));
    }
}
