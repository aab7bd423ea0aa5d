//! What is kept is loaded instead of compiled, and nothing that lies in the folder can do harm.

use std::os::unix::fs::symlink;

use super::super::engine::Engine;
use super::super::load::{CompiledModule, ModuleSource};
use super::*;

fn load(cache_dir: &Path, name: &str) -> (Engine, CompiledModule) {
    let engine = Engine::new(Some(cache_dir.to_owned())).unwrap();
    let module = CompiledModule::load(&engine, &ModuleSource::Builtin(name.to_owned())).unwrap();
    (engine, module)
}

/// Loads the smallest plugin with an engine of its own, as a new process would.
fn compile_count(cache_dir: &Path) -> u64 {
    load(cache_dir, "identity-policy").0.compile_count()
}

fn files(cache_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache_dir.join("modules")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_second_process_does_not_compile() {
    let folder = tempfile::tempdir().unwrap();
    let cache_dir = folder.path().join("new");

    assert_eq!(compile_count(&cache_dir), 1);
    let kept = files(&cache_dir);
    assert_eq!(compile_count(&cache_dir), 0);

    assert_eq!(kept.len(), 1);
    assert_eq!(files(&cache_dir), kept);
    let (_engine, module) = load(&cache_dir, "identity-policy");
    let name = kept[0].file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("{}-", module.digest())), "{name}");
    assert_eq!(fs::metadata(cache_dir.join("modules")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&kept[0]).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn what_was_cut_or_altered_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let spoil = |change: &dyn Fn(&mut Vec<u8>)| {
        let file = files(folder.path()).remove(0);
        let mut bytes = fs::read(&file).unwrap();
        change(&mut bytes);
        fs::write(&file, bytes).unwrap();
        assert_eq!(compile_count(folder.path()), 1);
        assert_eq!(files(folder.path()), [file], "the useless file is replaced");
        assert_eq!(compile_count(folder.path()), 0);
    };

    assert_eq!(compile_count(folder.path()), 1);
    spoil(&|bytes| bytes.truncate(bytes.len() / 2));
    spoil(&|bytes| bytes.clear());
    spoil(&|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
}

#[test]
fn a_whole_file_that_the_engine_does_not_take_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(compile_count(folder.path()), 1);
    let file = files(folder.path()).remove(0);
    let name = file.file_name().unwrap().to_str().unwrap();
    let prefix_end = name.rfind('-').unwrap();
    let other = format!("{}-{}.cwasm", &name[..prefix_end], hex(&Sha256::digest(b"no code")));
    fs::remove_file(&file).unwrap();
    fs::write(folder.path().join("modules").join(&other), b"no code").unwrap();

    assert_eq!(compile_count(folder.path()), 1);

    assert_eq!(files(folder.path()), [file]);
}

#[test]
fn without_a_usable_folder_everything_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(compile_count(&file), 1);
    assert_eq!(compile_count(&file), 1);

    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, folder.path().join("modules")).unwrap();
    assert_eq!(compile_count(folder.path()), 1);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "a link is not followed");
}

#[test]
fn a_folder_that_vanishes_costs_no_module() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(Some(folder.path().to_owned())).unwrap();
    fs::remove_dir(folder.path().join("modules")).unwrap();

    let source = ModuleSource::Builtin("identity-policy".to_owned());

    assert!(CompiledModule::load(&engine, &source).is_ok());
    assert_eq!(engine.compile_count(), 1);
}

#[test]
fn what_others_could_have_written_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(compile_count(folder.path()), 1);
    let modules = folder.path().join("modules");

    fs::set_permissions(&modules, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(compile_count(folder.path()), 0, "others could only read");
    assert_eq!(fs::metadata(&modules).unwrap().mode() & 0o777, 0o700);
    fs::set_permissions(&modules, Permissions::from_mode(0o770)).unwrap();
    assert_eq!(compile_count(folder.path()), 1);
    assert_eq!(fs::metadata(&modules).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_folder_is_bounded_and_the_least_recently_used_go() {
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("modules");
    assert_eq!(compile_count(folder.path()), 1);
    let used = files(folder.path()).remove(0);
    let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    for index in 0..FILE_COUNT_MAX as u64 + 5 {
        let file = File::create(modules.join(format!("old{index:03}-x-y.cwasm"))).unwrap();
        file.set_modified(at(1000 + index)).unwrap();
    }
    let left_over = modules.join("dead.1.0.new");
    File::create(&left_over).unwrap().set_modified(at(1)).unwrap();
    fs::write(modules.join("note.txt"), "not ours").unwrap();

    load(folder.path(), "default-policy");

    let kept = files(folder.path());
    assert_eq!(kept.len(), FILE_COUNT_MAX + 1, "and the note");
    assert!(kept.contains(&used) && kept.contains(&modules.join("note.txt")) && !kept.contains(&left_over));
    assert!(!kept.contains(&modules.join("old006-x-y.cwasm")));
    assert!(kept.contains(&modules.join("old007-x-y.cwasm")));
}

#[test]
fn a_folder_that_everybody_may_replace_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let cache_dir = folder.path().join("open");
    fs::create_dir(&cache_dir).unwrap();
    let open_to_all = |mode: u32| fs::set_permissions(&cache_dir, Permissions::from_mode(mode)).unwrap();
    open_to_all(0o777);

    let refused = make_private(&cache_dir.join("modules")).unwrap_err().to_string();
    let way = fs::canonicalize(&cache_dir).unwrap();
    assert_eq!(refused, format!("everybody may replace folders in {}; close it", way.display()));
    assert_eq!(compile_count(&cache_dir), 1);
    assert_eq!(compile_count(&cache_dir), 1, "nothing is kept there");

    // As in /tmp: only the owner of a folder may replace it.
    open_to_all(0o1777);
    make_private(&cache_dir.join("modules")).unwrap();
}
