//! Makes a project for a new plugin out of the files that the binary carries. Asks no network.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::bundle::{SDK, SDK_MANIFEST, TEMPLATES};

/// Longer names help nobody.
const NAME_BYTES_MAX: usize = 64;
/// Taken by Rust, by cargo, by operating systems (as names of files), or by Tidegate itself.
const RESERVED: [&str; 20] = [
    "alloc",
    "aux",
    "build",
    "con",
    "core",
    "deps",
    "examples",
    "incremental",
    "naming",
    "nul",
    "prn",
    "proc-macro",
    "proc_macro",
    "std",
    "test",
    "tidegate-plugin",
    "tidegate_plugin",
    "vendor",
    "wasm",
    "wit",
];
/// Rust's own words, which name no crate.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// What the examples in plugins/examples are called, and where they find the contract.
const EXAMPLE_NAME: &str = "region-only";
const EXAMPLE_CONTRACT: &str = "../../../plugin-sdk/wit/0.1.0";

/// What their build commands name besides: a capability, and Python's module.
const EXAMPLE_WORLD: &str = "record-transform";
const EXAMPLE_MODULE: &str = "region-only.wasm filter";

/// What a new plugin does, to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names topics.
    Rename,
    /// Keeps or drops records.
    Filter,
    /// Changes headers.
    Headers,
    /// Maps access rules.
    Acl,
}

/// What it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, with the SDK.
    Rust,
    /// C.
    C,
    /// JavaScript.
    JavaScript,
    /// Python.
    Python,
}

/// The name of a plugin that can be a crate's, a folder's and a file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginName(String);

/// Why a project was not made.
#[derive(Debug, thiserror::Error)]
pub enum NewProjectError {
    /// The name can't be used.
    #[error("{name:?} can't be the name of a plugin: {reason}; take something like \"region-filter\"")]
    Name {
        /// As given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is something where the project would be.
    #[error("{} is there already; nothing was written: choose another name or --path", .0.display())]
    Exists(PathBuf),
    /// The file system.
    #[error("could not write {}: {message}", path.display())]
    Write {
        /// Which file or folder.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rename => "rename",
            Self::Filter => "filter",
            Self::Headers => "headers",
            Self::Acl => "acl",
        })
    }
}

impl Kind {
    /// Its world in the contract.
    fn world(self) -> &'static str {
        match self {
            Self::Rename => "topic-namer",
            Self::Filter | Self::Headers => "record-transform",
            Self::Acl => "acl-mapper",
        }
    }

    /// How a build in C tells `tidegate.c` of it; records are what it takes for granted.
    fn definition(self) -> &'static str {
        match self {
            Self::Rename => "-DTIDEGATE_TOPIC_NAMING ",
            Self::Filter | Self::Headers => "",
            Self::Acl => "-DTIDEGATE_ACL_MAPPING ",
        }
    }
}

impl Language {
    /// Its folder among the templates.
    fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::JavaScript => "javascript",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        })
    }
}

impl PluginName {
    /// Takes what cargo takes for a crate, in lower case, and no path.
    pub fn parse(name: &str) -> Result<Self, NewProjectError> {
        match flaw(name) {
            None => Ok(Self(name.to_owned())),
            Some(reason) => Err(NewProjectError::Name { name: name.to_owned(), reason }),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As Rust and file names of components spell it.
    pub fn crate_name(&self) -> String {
        self.0.replace('-', "_")
    }
}

fn flaw(name: &str) -> Option<&'static str> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return Some("it is longer than 64 characters");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("it does not begin with a letter from a to z");
    }
    if !name.chars().all(is_fit) {
        return Some("it holds more than the letters a to z, digits, '-' and '_'");
    }
    if KEYWORDS.contains(&name) {
        return Some("it is a word of the Rust language");
    }
    RESERVED.contains(&name).then_some("it is taken")
}

/// Makes the folder `parent/name` with everything in it and gives its path. What exists already is never touched.
pub fn new_project(
    parent: &Path,
    name: &PluginName,
    kind: Kind,
    language: Language,
) -> Result<PathBuf, NewProjectError> {
    let files = files(name, kind, language);
    let folder = parent.join(name.as_str());
    if folder.symlink_metadata().is_ok() {
        return Err(NewProjectError::Exists(folder));
    }
    fs::create_dir_all(parent).map_err(|error| write_error(parent, &error))?;
    // Fails where somebody was quicker.
    fs::create_dir(&folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => NewProjectError::Exists(folder.clone()),
        _ => write_error(&folder, &error),
    })?;
    for (path, content) in &files {
        write(&folder.join(path), content)?;
    }
    Ok(folder)
}

fn write(path: &Path, content: &[u8]) -> Result<(), NewProjectError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
    }
    fs::write(path, content).map_err(|error| write_error(path, &error))
}

fn write_error(path: &Path, error: &std::io::Error) -> NewProjectError {
    NewProjectError::Write { path: path.to_owned(), message: error.to_string() }
}

/// The project's files: path below its folder, content.
fn files(name: &PluginName, kind: Kind, language: Language) -> Vec<(PathBuf, Vec<u8>)> {
    let own = language.folder();
    let mut folders = vec![format!("{own}/all/"), format!("{own}/{kind}/"), format!("every/{kind}/")];
    if language != Language::Rust {
        folders.extend(["other/all/".to_owned(), format!("other/{kind}/")]);
        if matches!(kind, Kind::Filter | Kind::Headers) {
            folders.push(format!("{own}/records/"));
        }
    }
    let mut files: Vec<(PathBuf, Vec<u8>)> = TEMPLATES
        .iter()
        .filter_map(|(path, content)| {
            let path = folders.iter().find_map(|folder| path.strip_prefix(folder.as_str()))?;
            let content = match path {
                "build.sh" => &of_kind(content, kind),
                _ => *content,
            };
            Some((path.trim_end_matches(".tmpl").into(), filled(content, name, kind)))
        })
        .collect();
    files.extend(contract(language));
    debug_assert!(files.iter().all(|(path, _)| stays_below(path)));
    files
}

/// The build command of an example, which is a filter's, for another kind.
fn of_kind(build: &[u8], kind: Kind) -> Vec<u8> {
    String::from_utf8_lossy(build)
        .replace(EXAMPLE_WORLD, kind.world())
        .replace(" filter.c", &format!(" {}{kind}.c", kind.definition()))
        .replace(" filter.js", &format!(" {kind}.js"))
        .replace(EXAMPLE_MODULE, &format!("{EXAMPLE_NAME}.wasm {kind}"))
        .into_bytes()
}

/// What a plugin is compiled against: the SDK for Rust, the bare contract for others.
fn contract(language: Language) -> Vec<(PathBuf, Vec<u8>)> {
    if language == Language::Rust {
        let root = Path::new("vendor/tidegate-plugin");
        let sources = SDK.iter().map(|(path, content)| (root.join(path), content.to_vec()));
        let manifest = (root.join("Cargo.toml"), SDK_MANIFEST.as_bytes().to_vec());
        return sources.chain([manifest]).collect();
    }
    // Versions are folders; the newest is the last.
    let newest = SDK.iter().rev().find(|(path, _)| path.starts_with("wit/") && path.ends_with(".wit"));
    newest.map(|(_, content)| (PathBuf::from("wit/plugin.wit"), content.to_vec())).into_iter().collect()
}

fn filled(content: &[u8], name: &PluginName, kind: Kind) -> Vec<u8> {
    match std::str::from_utf8(content) {
        Err(_) => content.to_vec(),
        Ok(text) => text
            .replace("{{name}}", name.as_str())
            .replace("{{crate}}", &name.crate_name())
            .replace("{{kind}}", &kind.to_string())
            .replace(EXAMPLE_NAME, name.as_str())
            .replace(EXAMPLE_CONTRACT, "wit")
            .into_bytes(),
    }
}

fn stays_below(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_crate_names_and_no_paths() {
        let check = |name: &str, reason: Option<&str>| {
            let expected = reason.map(|reason| {
                format!(
                    "{name:?} can't be the name of a plugin: {reason}; take something like \"region-filter\""
                )
            });
            assert_eq!(PluginName::parse(name).err().map(|error| error.to_string()), expected, "{name}");
        };
        check("my-filter_2", None);
        check("", Some("it is empty"));
        check("2nd", Some("it does not begin with a letter from a to z"));
        check("-x", Some("it does not begin with a letter from a to z"));
        check("..", Some("it does not begin with a letter from a to z"));
        check("/etc", Some("it does not begin with a letter from a to z"));
        check("a/b", Some("it holds more than the letters a to z, digits, '-' and '_'"));
        check("a\\b", Some("it holds more than the letters a to z, digits, '-' and '_'"));
        check("Filter", Some("it does not begin with a letter from a to z"));
        check("ümlaut", Some("it does not begin with a letter from a to z"));
        check("match", Some("it is a word of the Rust language"));
        check("std", Some("it is taken"));
        check("naming", Some("it is taken"));
        check(&"x".repeat(64), None);
        check(&"x".repeat(65), Some("it is longer than 64 characters"));
    }

    #[test]
    fn a_project_holds_everything_and_no_placeholder() {
        let parent = tempfile::tempdir().unwrap();
        for kind in [Kind::Rename, Kind::Filter, Kind::Headers, Kind::Acl] {
            let name = PluginName::parse(&format!("a-{kind}")).unwrap();
            let folder = new_project(parent.path(), &name, kind, Language::Rust).unwrap();
            for file in [
                "Cargo.toml",
                ".cargo/config.toml",
                ".gitignore",
                "README.md",
                "src/lib.rs",
                "fixtures/basic.yaml",
                "vendor/tidegate-plugin/Cargo.toml",
                "vendor/tidegate-plugin/src/lib.rs",
                "vendor/tidegate-plugin/wit/0.1.0/plugin.wit",
            ] {
                let text = fs::read_to_string(folder.join(file)).unwrap();
                for placeholder in ["{{name}}", "{{crate}}", "{{kind}}"] {
                    assert!(!text.contains(placeholder), "{kind}: {file} holds {placeholder}");
                }
            }
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("name = \"a-{kind}\"")), "{manifest}");
        }
    }

    #[test]
    fn other_languages_have_every_kind() {
        let parent = tempfile::tempdir().unwrap();
        let languages = [(Language::C, "c"), (Language::JavaScript, "js"), (Language::Python, "py")];
        for (language, extension) in languages {
            for kind in [Kind::Rename, Kind::Filter, Kind::Headers, Kind::Acl] {
                let name = PluginName::parse(&format!("mine-{}-{kind}", language.folder())).unwrap();
                let folder = new_project(parent.path(), &name, kind, language).unwrap();
                let source = format!("{kind}.{extension}");
                let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
                let files =
                    [&source, "build.sh", "README.md", ".gitignore", "fixtures/basic.yaml", "wit/plugin.wit"];
                for file in files {
                    for foreign in ["{{name}}", "{{kind}}", EXAMPLE_NAME, "plugin-sdk/wit"] {
                        assert!(!text(file).contains(foreign), "{language}, {kind}: {file} holds {foreign}");
                    }
                }
                assert!(text(&source).contains(name.as_str()), "{language}, {kind}");
                let build = text("build.sh");
                let own = if language == Language::Python { format!(".wasm {kind}\n") } else { source };
                assert!(build.contains(&own) && build.contains(kind.world()), "{language}, {kind}: {build}");
                // What a plugin has no use for stays away.
                let is_records = kind.world() == EXAMPLE_WORLD;
                assert_eq!(build.contains(EXAMPLE_WORLD), is_records, "{language}, {kind}: {build}");
                let filter = folder.join(format!("filter.{extension}"));
                assert_eq!(filter.exists(), kind == Kind::Filter, "{language}, {kind}");
                let glue = folder.join(format!("tidegate.{extension}"));
                assert_eq!(glue.exists(), is_records || language == Language::C, "{language}, {kind}");
                assert!(!folder.join("node_modules").exists());
            }
        }
    }

    #[test]
    fn builds_in_c_say_which_capability_they_have() {
        let build = |kind| {
            let files = files(&PluginName::parse("mine").unwrap(), kind, Language::C);
            let (_, content) = files.iter().find(|(path, _)| path == Path::new("build.sh")).unwrap();
            String::from_utf8(content.clone()).unwrap()
        };
        assert!(build(Kind::Rename).contains(" -DTIDEGATE_TOPIC_NAMING rename.c tidegate.c\n"));
        assert!(build(Kind::Acl).contains(" -DTIDEGATE_ACL_MAPPING acl.c tidegate.c\n"));
        assert!(build(Kind::Headers).contains(" headers.c tidegate.c\n"));
        assert!(!build(Kind::Filter).contains("TIDEGATE_"));
    }

    #[test]
    fn the_sdk_comes_along_free_of_the_workspace() {
        assert!(!SDK_MANIFEST.contains("workspace"), "{SDK_MANIFEST}");
        assert!(SDK_MANIFEST.contains("edition = \"2024\""), "{SDK_MANIFEST}");
        assert!(SDK_MANIFEST.contains("wit-bindgen = { version = "), "{SDK_MANIFEST}");
    }

    #[test]
    fn what_exists_is_never_touched() {
        let parent = tempfile::tempdir().unwrap();
        let name = PluginName::parse("taken").unwrap();
        let place = parent.path().join("taken");
        fs::write(&place, "precious").unwrap();

        let error = new_project(parent.path(), &name, Kind::Filter, Language::Rust).unwrap_err();

        assert_eq!(
            error.to_string(),
            format!(
                "{} is there already; nothing was written: choose another name or --path",
                place.display()
            )
        );
        assert_eq!(fs::read_to_string(&place).unwrap(), "precious");
    }
}
