//! This process's identity across restarts.
//!
//! A member of the group that was killed lives on at the broker until its session times out (45 s by default in the new
//! protocol), and its slots rest so long. A process that starts again in its place can do better: whoever holds the lock
//! file of an identity knows that its former holder is dead, because the kernel lets go of the lock with the process,
//! and may send the dead member away.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::names::FlowName;

/// So many processes can share one cache folder.
pub const NODES_COUNT_MAX: usize = 256;

/// More of a lock file is not read.
const LOCK_FILE_BYTES_MAX: u64 = 4096;

/// An identity that nobody else on this host has while this value lives.
#[derive(Debug)]
pub struct NodeIdentity {
    id: String,
    path: PathBuf,
    /// Held for its lock.
    _lock: File,
}

impl NodeIdentity {
    /// Takes the first free identity of `cache_dir/nodes`, the same as before after a restart.
    pub fn acquire(cache_dir: &Path) -> anyhow::Result<Self> {
        let folder = cache_dir.join("nodes");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("could not create folder {}", folder.display()))?;
        for number in 0..NODES_COUNT_MAX {
            let path = folder.join(format!("node-{number}.lock"));
            if let Some(identity) = Self::try_path(path)? {
                return Ok(identity);
            }
        }
        anyhow::bail!(
            "all {NODES_COUNT_MAX} identities in {} are in use; give this process another tidegate.cache.dir",
            folder.display()
        )
    }

    /// None when another process has it.
    fn try_path(path: PathBuf) -> anyhow::Result<Option<Self>> {
        let context = || format!("could not use lock file {}", path.display());
        let Some(mut file) = lock(&path).with_context(context)? else { return Ok(None) };
        let host = host_name();
        let id = match read_id(&mut file, &host).with_context(context)? {
            Some(id) => id,
            None => write_id(&mut file, &host).with_context(context)?,
        };
        Ok(Some(Self { id, path, _lock: file }))
    }

    /// Identities of this folder whose processes are dead. They can't come back to life while the answer lives.
    pub fn dead_siblings(&self) -> Vec<NodeIdentity> {
        let Some(folder) = self.path.parent() else { return Vec::new() };
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let host = host_name();
        let dead = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.ok()?.path();
            // Locks belong to open files, so our own would be taken from us by nobody; still, it is not dead.
            if path == self.path || path.extension()? != "lock" {
                return None;
            }
            let mut file = lock(&path).ok()??;
            let id = read_id(&mut file, &host).ok()??;
            Some(NodeIdentity { id, path, _lock: file })
        };
        entries.take(NODES_COUNT_MAX).filter_map(dead).collect()
    }

    /// The identity, 16 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The client id of this node's member in a flow's group. It is nobody else's: not another node's, and not another
    /// flow's that may share the group.
    pub fn client_id(&self, flow: &FlowName) -> String {
        format!("tidegate-{}|{flow}", self.id)
    }
}

/// None when another process has the lock.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The id that the file holds. A file that was copied to another host (in an image, say) would make two living
/// processes one; so it names its host, and on another one it counts for nothing.
fn read_id(file: &mut File, host: &str) -> std::io::Result<Option<String>> {
    let mut text = Vec::new();
    Read::by_ref(file).take(LOCK_FILE_BYTES_MAX).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let known = text.trim_end().split_once(' ');
    Ok(known.filter(|(id, known_host)| is_id(id) && *known_host == host).map(|(id, _)| id.to_owned()))
}

fn write_id(file: &mut File, host: &str) -> std::io::Result<String> {
    let id = random_id();
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{id} {host}")?;
    file.sync_all()?;
    Ok(id)
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The standard library's hash keys are random, its only source of randomness. They differ by one between two values of
/// one thread, so time and process go in too.
fn random_id() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    hasher.write_u128(now.map_or(0, |since| since.as_nanos()));
    format!("{:016x}", hasher.finish())
}

fn host_name() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname")).unwrap_or_default();
    let name = name.split_whitespace().next().unwrap_or("-");
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ClusterAlias;

    #[test]
    fn an_identity_survives_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = NodeIdentity::acquire(folder.path()).unwrap();
        let id = first.id().to_owned();
        let flow = FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") };
        assert_eq!(first.client_id(&flow), format!("tidegate-{id}|A->B"));
        drop(first);
        assert_eq!(NodeIdentity::acquire(folder.path()).unwrap().id(), id);
    }

    #[test]
    fn two_at_once_are_two() {
        let folder = tempfile::tempdir().unwrap();
        let first = NodeIdentity::acquire(folder.path()).unwrap();
        let second = NodeIdentity::acquire(folder.path()).unwrap();
        assert_ne!(first.id(), second.id());
        assert!(first.path().ends_with("nodes/node-0.lock") && second.path().ends_with("nodes/node-1.lock"));
    }

    #[test]
    fn the_dead_are_told_from_the_living() {
        let folder = tempfile::tempdir().unwrap();
        let nodes: Vec<_> = (0..3).map(|_| NodeIdentity::acquire(folder.path()).unwrap()).collect();
        let [first, second, _third] = <[NodeIdentity; 3]>::try_from(nodes).unwrap();
        assert_eq!(first.dead_siblings().len(), 0);
        let dead_id = second.id().to_owned();
        drop(second);
        let dead = first.dead_siblings();
        assert_eq!(dead.iter().map(NodeIdentity::id).collect::<Vec<_>>(), [dead_id]);
        // Its identity rests while we hold it.
        assert!(NodeIdentity::acquire(folder.path()).unwrap().path().ends_with("nodes/node-3.lock"));
    }

    #[test]
    fn a_file_from_another_host_or_without_sense_makes_a_new_identity() {
        let folder = tempfile::tempdir().unwrap();
        let id = NodeIdentity::acquire(folder.path()).unwrap().id().to_owned();
        let path = folder.path().join("nodes/node-0.lock");
        let check = |content: String, same: bool| {
            std::fs::write(&path, content).unwrap();
            assert_eq!(NodeIdentity::acquire(folder.path()).unwrap().id() == id, same);
        };
        check(format!("{id} {}\n", host_name()), true);
        check(format!("{id} elsewhere.example\n"), false);
        check(String::new(), false);
        check("x".repeat(100_000), false);
    }

    #[test]
    fn a_folder_that_cannot_be_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = NodeIdentity::acquire(&file).unwrap_err();
        assert_eq!(error.to_string(), format!("could not create folder {}/nodes", file.display()));
    }
}
