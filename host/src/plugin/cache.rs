//! Compiled modules on disk, `<cache.dir>/modules`, so that a module is compiled once on this machine: 1 ms a KB saved,
//! which is 15 s for an interpreter.
//!
//! What lies there becomes machine code of this process, so the folder is this user's alone (0700), and a folder that was
//! open to others is emptied first. A file's name says for which module and which engine it is, and what its own content
//! hashes to: one rename makes it whole, and one that was cut or altered is thrown away. Whatever goes wrong here costs a
//! compilation, nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use super::load::hex;

/// More files than flows have plugins; the least recently used go first.
const FILE_COUNT_MAX: usize = 64;
const FOLDER_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// A file that is being written is not older, unless its writer died.
const WRITING_AGE_MAX: Duration = Duration::from_secs(3600);
const EXTENSION: &str = "cwasm";
const WRITING_EXTENSION: &str = "new";
const PIECE_BYTES: usize = 64 * 1024;

/// The folder, usable and private.
pub(super) struct ModuleCache {
    folder: PathBuf,
    /// What distinguishes this engine's code from that of others: versions, settings, processor.
    engine_hash: String,
    written_count: AtomicU64,
}

impl ModuleCache {
    /// Makes the folder if need be. None after a warning: everything works without, only slower.
    pub(super) fn open(engine: &wasmtime::Engine, cache_dir: &Path) -> Option<Self> {
        let folder = cache_dir.join("modules");
        match make_private(&folder) {
            Ok(()) => {
                Some(Self { folder, engine_hash: engine_hash(engine), written_count: AtomicU64::new(0) })
            }
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "compiled modules can't be kept, they are compiled at each start");
                None
            }
        }
    }

    /// The module with this digest, if it lies here whole and made by an engine like this one.
    pub(super) fn load(&self, engine: &wasmtime::Engine, digest: &str) -> Option<Component> {
        let prefix = self.prefix(digest);
        self.entries().into_iter().filter(|entry| entry.name.starts_with(&prefix)).find_map(|entry| {
            match load_whole(engine, &entry) {
                Ok(component) => {
                    touch(&entry.path);
                    Some(component)
                }
                Err(reason) => {
                    let file = entry.path.display();
                    tracing::debug!(%file, %reason, "compiled module is of no use, it is compiled anew");
                    let _ = fs::remove_file(&entry.path);
                    None
                }
            }
        })
    }

    /// Keeps what the engine compiled, and gives it back as it will be loaded from now on.
    pub(super) fn keep(&self, engine: &wasmtime::Engine, digest: &str, code: &[u8]) -> io::Result<Component> {
        let content_hash = hex(&Sha256::digest(code));
        let path = self.folder.join(format!("{}{content_hash}.{EXTENSION}", self.prefix(digest)));
        let number = self.written_count.fetch_add(1, Ordering::Relaxed);
        let writing =
            self.folder.join(format!("{digest}.{}.{number}.{WRITING_EXTENSION}", std::process::id()));
        let written = write_through(&writing, code).and_then(|()| fs::rename(&writing, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&writing);
            return Err(error);
        }
        self.make_room(&path);
        tidegate_compiled::load(engine, &path).map_err(io::Error::other)
    }

    /// Of the file's name, before its content's hash.
    fn prefix(&self, digest: &str) -> String {
        format!("{digest}-{}-", self.engine_hash)
    }

    fn entries(&self) -> Vec<Entry> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        entries.filter_map(Result::ok).filter_map(|entry| Entry::read(&entry)).collect()
    }

    /// A file that a process has mapped stays readable for it after its removal.
    fn make_room(&self, newest: &Path) {
        let now = SystemTime::now();
        let mut entries = self.entries();
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.path == newest, entry.used_at)));
        let (mut count, mut bytes) = (0, 0);
        for entry in entries {
            let age = now.duration_since(entry.used_at).unwrap_or_default();
            let is_left_over = entry.name.ends_with(WRITING_EXTENSION) && age > WRITING_AGE_MAX;
            count += 1;
            bytes += entry.bytes;
            let is_too_much = count > FILE_COUNT_MAX || bytes > FOLDER_BYTES_MAX;
            if is_left_over || (is_too_much && entry.path != newest) {
                let _ = fs::remove_file(&entry.path);
            }
        }
    }
}

struct Entry {
    path: PathBuf,
    name: String,
    bytes: u64,
    used_at: SystemTime,
}

impl Entry {
    fn read(entry: &fs::DirEntry) -> Option<Self> {
        let metadata = entry.metadata().ok()?;
        let name = entry.file_name().into_string().ok()?;
        let is_ours = [EXTENSION, WRITING_EXTENSION].iter().any(|extension| name.ends_with(extension));
        (metadata.is_file() && is_ours).then(|| Self {
            path: entry.path(),
            name,
            bytes: metadata.len(),
            used_at: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        })
    }
}

/// Errors: the words for the log.
fn load_whole(engine: &wasmtime::Engine, entry: &Entry) -> Result<Component, String> {
    let hash = hash_of_file(&entry.path).map_err(|error| error.to_string())?;
    if !entry.name.ends_with(&format!("-{hash}.{EXTENSION}")) {
        return Err("its content is not what was written".to_owned());
    }
    tidegate_compiled::load(engine, &entry.path).map_err(|error| error.to_string())
}

fn hash_of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hasher.finalize())),
            length => hasher.update(&piece[..length]),
        }
    }
}

/// The time of its last use decides which file goes first; that it can't be noted does no harm.
fn touch(path: &Path) {
    let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Errors are for the log. Ends with a folder of this user, closed to others, in which a file can be written.
fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check_ways(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::other("it is no folder"));
    }
    let probe = folder.join(format!("probe.{}.{WRITING_EXTENSION}", std::process::id()));
    let _ = fs::remove_file(&probe);
    write_through(&probe, b"")?;
    let own_user = fs::metadata(&probe)?.uid();
    fs::remove_file(&probe)?;
    if metadata.uid() != own_user {
        return Err(io::Error::other("it belongs to another user, who could put code into this process"));
    }
    if metadata.mode() & 0o077 != 0 {
        close(folder, metadata.mode() & 0o022 != 0)?;
    }
    Ok(())
}

/// Who may rename in a folder on the way can put another folder in this one's place, whatever its own mode is: everybody, where
/// it is open to all and not sticky.
fn check_ways(folder: &Path) -> io::Result<()> {
    for way in fs::canonicalize(folder)?.ancestors().skip(1) {
        if fs::metadata(way)?.mode() & 0o1002 == 0o0002 {
            let way = way.display();
            return Err(io::Error::other(format!("everybody may replace folders in {way}; close it")));
        }
    }
    Ok(())
}

/// What others could write is not trusted.
fn close(folder: &Path, could_others_write: bool) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    if !could_others_write {
        return Ok(());
    }
    let shown = folder.display();
    tracing::warn!(folder = %shown, "others could write where compiled modules are kept; closed and emptied");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The same for every start of the same binary on the same processor, unlike what the standard library's hasher promises.
fn engine_hash(engine: &wasmtime::Engine) -> String {
    struct Sink(Sha256);
    impl Hasher for Sink {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        fn finish(&self) -> u64 {
            0
        }
    }
    let mut sink = Sink(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut sink);
    hex(&sink.0.finalize()[..8])
}

#[cfg(test)]
mod tests;
