//! Lists the files that the binary carries for `tidegate plugin new`: the SDK's sources and the templates. Not part of
//! the library: the build script writes the list with it, so that no file can be forgotten.

use std::fs;
use std::path::{Path, PathBuf};

/// The parts of the SDK that a project needs; its manifest is written anew.
const SDK_PARTS: [&str; 3] = ["src", "wit", "README.md"];

/// The examples in other languages are where their plugins start from, too.
const EXAMPLE_LANGUAGES: [&str; 3] = ["c", "javascript", "python"];

/// What building the examples leaves beside their sources.
const BUILT: [&str; 4] = ["build", "dist", "node_modules", "__pycache__"];

/// Writes `out_folder/bundle.rs`: the constants `SDK`, `SDK_MANIFEST` and `TEMPLATES`.
pub(crate) fn write(workspace: &Path, out_folder: &Path) -> Result<(), String> {
    let sdk_folder = canonical(&workspace.join("plugin-sdk"))?;
    let mut sdk_files = Vec::new();
    for part in SDK_PARTS {
        collect(&sdk_folder.join(part), &mut sdk_files)?;
    }
    let sdk_files = below(&sdk_folder, "", sdk_files)?;
    let template_folder = canonical(&workspace.join("host/src/author/templates"))?;
    let mut template_files = Vec::new();
    collect(&template_folder, &mut template_files)?;
    let mut template_files = below(&template_folder, "", template_files)?;
    for language in EXAMPLE_LANGUAGES {
        let folder = canonical(&workspace.join("plugins/examples").join(language))?;
        let mut files = Vec::new();
        collect(&folder, &mut files)?;
        // File by file: a build in the folder must not build the host anew.
        files.iter().for_each(|file| println!("cargo::rerun-if-changed={}", file.display()));
        for (path, file) in below(&folder, "", files)? {
            template_files.push((format!("{language}/{}/{path}", example_kinds(language, &path)), file));
        }
    }
    let manifest =
        freed_manifest(&read(&sdk_folder.join("Cargo.toml"))?, &read(&workspace.join("Cargo.toml"))?)?;
    let text = format!(
        "{}{}/// The SDK's manifest, free of the workspace.\npub(super) const SDK_MANIFEST: &str = {manifest:?};\n",
        constant("SDK", "Path below the SDK's folder, content.", &sdk_files),
        constant("TEMPLATES", "Path below the templates' folder, content.", &template_files),
    );
    let file = out_folder.join("bundle.rs");
    fs::write(&file, text).map_err(|error| format!("could not write {}: {error}", file.display()))?;
    println!("cargo::rerun-if-changed={}", template_folder.display());
    println!("cargo::rerun-if-changed={}", sdk_folder.join("README.md").display());
    Ok(())
}

/// The kinds of plugins whose projects have this file of an example.
fn example_kinds(language: &str, path: &str) -> &'static str {
    match path.split_once('.') {
        Some(("filter", _)) => "filter",
        // In C it speaks for all capabilities, elsewhere for records.
        Some(("tidegate", _)) if language != "c" => "records",
        _ => "all",
    }
}

/// The name that a file gets in the list, and where it lies.
type Listed = (String, PathBuf);

fn below(root: &Path, prefix: &str, files: Vec<PathBuf>) -> Result<Vec<Listed>, String> {
    let listed = |file: PathBuf| {
        let path = file.strip_prefix(root).map_err(|error| error.to_string())?;
        let path = path.to_str().ok_or_else(|| format!("{} is not Unicode", path.display()))?;
        Ok((format!("{prefix}{path}"), file))
    };
    files.into_iter().map(listed).collect()
}

fn constant(name: &str, words: &str, files: &[Listed]) -> String {
    let mut text = format!("/// {words}\npub(super) const {name}: &[(&str, &[u8])] = &[\n");
    for (path, file) in files {
        text += &format!("    ({path:?}, include_bytes!({:?})),\n", file.display().to_string());
    }
    text + "];\n"
}

/// All files below `path`, sorted, less what a build has left.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let is_built = path.file_name().is_some_and(|name| BUILT.iter().any(|built| name == *built));
    let is_component = path.extension().is_some_and(|extension| extension == "wasm");
    if is_component || (is_built && path.is_dir()) {
        return Ok(());
    }
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let unreadable = |error: std::io::Error| format!("could not list {}: {error}", path.display());
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    paths.iter().try_for_each(|path| collect(path, files))
}

fn canonical(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("could not find {}: {error}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("could not read {}: {error}", path.display()))
}

/// The member's manifest with what it takes from the workspace written out; lints and development dependencies go.
fn freed_manifest(member: &str, workspace: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut section = "";
    for line in member.lines() {
        if line.starts_with('[') {
            section = line.trim();
        }
        if section == "[lints]" || section.ends_with("dev-dependencies]") {
            continue;
        }
        text += &match inherited(line) {
            Some((key, more)) => freed_line(key, more, section, workspace)?,
            None => line.to_owned(),
        };
        text.push('\n');
    }
    match text.contains("workspace = true") {
        true => Err("plugin-sdk/Cargo.toml takes something from the workspace in an unknown way".to_owned()),
        false => Ok(text),
    }
}

/// Splits `key.workspace = true` and `key = { workspace = true, more }`.
fn inherited(line: &str) -> Option<(&str, &str)> {
    let (left, right) = line.split_once('=')?;
    if let Some(key) = left.trim().strip_suffix(".workspace") {
        return Some((key, ""));
    }
    let more = right.trim().strip_prefix("{ workspace = true")?.strip_suffix('}')?;
    Some((left.trim(), more.trim().trim_start_matches(',').trim()))
}

fn freed_line(key: &str, more: &str, section: &str, workspace: &str) -> Result<String, String> {
    let place = if section == "[package]" { "[workspace.package]" } else { "[workspace.dependencies]" };
    let value =
        value_in(workspace, place, key).ok_or_else(|| format!("Cargo.toml has no {key} in {place}"))?;
    if more.is_empty() {
        return Ok(format!("{key} = {value}"));
    }
    // A version alone, or a table.
    let inner = match value.strip_prefix('{') {
        Some(table) => table.trim_end().trim_end_matches('}').trim().to_owned(),
        None => format!("version = {value}"),
    };
    match (inner.contains("features = ["), more.split_once("features = [")) {
        (true, Some((before, features))) => {
            // Both have a list of features: one list of all.
            let features = features.split(']').next().unwrap_or_default();
            let inner = inner.replacen("features = [", &format!("features = [{features}, "), 1);
            Ok(format!("{key} = {{ {before}{inner} }}"))
        }
        _ => Ok(format!("{key} = {{ {inner}, {more} }}")),
    }
}

/// What stands behind `key =` in a section; one line.
fn value_in<'a>(manifest: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != section).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    lines.find_map(|line| {
        let (left, right) = line.split_once('=')?;
        (left.trim() == key).then(|| right.trim())
    })
}
