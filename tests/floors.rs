//! The house has floors, and an arrow never points up or sideways: read from the sources themselves.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up. A module uses only modules of floors below its own (and itself).
const FLOORS: &[&[&str]] = &[
    &["names"],
    &["config"],
    &["record", "topic_map", "status"],
    &["tidegate_wire", "offsets"],
    &["cluster", "plugin"],
    &["relay", "control", "serve"],
    &["flow"],
    &["app"],
    &["author", "demo"],
    &["cli"],
    &["main"],
];

/// Crates that one module alone may use.
const ONLY_USERS: &[(&str, &str)] = &[
    ("rdkafka", "cluster"),
    ("wasmtime", "plugin"),
    ("tidegate_compiled", "plugin"),
    ("tidegate_embedded", "demo"),
];

/// What tidegate-wire must not know: the crates of flows and plugins.
const UNKNOWN_TO_WIRE: &[&str] = &["tidegate", "tidegate_plugin", "tidegate_embedded", "wasmtime", "rdkafka"];

/// A source file: its path below `src`, and its text.
struct Source {
    path: PathBuf,
    text: String,
}

#[test]
fn no_arrow_points_up_or_sideways() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let sources = sources_below(&host.join("src"));
    assert!(sources.len() > 10, "found {} source files below {}", sources.len(), host.display());
    assert_eq!(host_violations(&sources), Vec::<String>::new());
    let wire = sources_below(&host.join("wire/src"));
    assert!(wire.len() > 5, "found {} source files of tidegate-wire", wire.len());
    assert_eq!(wire_violations(&wire), Vec::<String>::new());
}

#[test]
fn bad_arrows_are_found() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let source = Source { path: path.into(), text: text.into() };
        assert_eq!(host_violations(&[source]), expected, "in {path}: {text}");
    };
    check("names.rs", "use crate::config::Config;", &["names.rs: names uses config, which is not below it"]);
    check(
        "relay/lane.rs",
        "use crate::control::Plan;",
        &["relay/lane.rs: relay uses control, which is not below it"],
    );
    check(
        "relay/lane.rs",
        "use crate::{names::Slot, flow::Flow};",
        &["relay/lane.rs: relay uses flow, which is not below it"],
    );
    check(
        "control/mod.rs",
        "fn f() { crate::app::run() }",
        &["control/mod.rs: control uses app, which is not below it"],
    );
    check(
        "relay/lane.rs",
        "use super::super::flow::Flow;",
        &["relay/lane.rs: a path climbs to the crate by super::super"],
    );
    check(
        "relay/lane.rs",
        "use rdkafka::ClientConfig;",
        &["relay/lane.rs: relay uses rdkafka, only cluster may"],
    );
    check(
        "flow.rs",
        "let e = wasmtime::Engine::default();",
        &["flow.rs: flow uses wasmtime, only plugin may"],
    );
    check(
        "flow.rs",
        "let c = tidegate_compiled::load(&engine, path);",
        &["flow.rs: flow uses tidegate_compiled, only plugin may"],
    );
    check(
        "offsets/mod.rs",
        "use tidegate_wire::batch;",
        &["offsets/mod.rs: offsets uses tidegate_wire, which is not below it"],
    );
    check("cellar/mod.rs", "", &["cellar/mod.rs: cellar has no floor; add it to tests/floors.rs"]);
    check(
        "relay/lane.rs",
        "use crate::cellar::Wine;",
        &["relay/lane.rs: relay uses cellar, which is not below it"],
    );
}

#[test]
fn good_arrows_are_let_pass() {
    let check = |path: &str, text: &str| {
        let source = Source { path: path.into(), text: text.into() };
        assert_eq!(host_violations(&[source]), Vec::<String>::new(), "in {path}: {text}");
    };
    check(
        "relay/lane.rs",
        "use crate::relay::tier::Tier;\nuse crate::names::Slot;\nuse tidegate_wire::batch::Batch;",
    );
    check("relay/lane.rs", "// as crate::flow does\n//! crate::app\nuse super::tier;");
    check("cluster/group.rs", "use rdkafka::ClientConfig;");
    check("flow.rs", "use crate::{names::{FlowName, Slot}, relay::Worker, control};");
    check("names.rs", "#[cfg(test)]\nmod tests {\n    use crate::flow::Flow;\n}");
    check("relay/lane/tests.rs", "use crate::control::Plan;");
    check("main.rs", "use tidegate::cli;");
}

#[test]
fn wire_that_knows_too_much_is_found() {
    let source = |text: &str| Source { path: "client.rs".into(), text: text.into() };
    assert_eq!(
        wire_violations(&[source("use tidegate::flow::Flow;")]),
        ["client.rs: tidegate-wire uses tidegate"]
    );
    assert_eq!(
        wire_violations(&[source("use tidegate_wire::batch; // tidegate::flow")]),
        Vec::<String>::new()
    );
}

fn sources_below(directory: &Path) -> Vec<Source> {
    fn walk(root: &Path, directory: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source { path: path.strip_prefix(root).unwrap().to_owned(), text });
            }
        }
    }
    let mut found = Vec::new();
    walk(directory, directory, &mut found);
    found.sort_by(|left, right| left.path.cmp(&right.path));
    found
}

fn host_violations(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| !is_test(&source.path)).flat_map(file_violations).collect()
}

fn file_violations(source: &Source) -> Vec<String> {
    let path = source.path.display();
    let module = module_of(&source.path);
    if module == "lib" {
        return Vec::new();
    }
    let Some(own_floor) = floor_of(&module) else {
        return vec![format!("{path}: {module} has no floor; add it to tests/floors.rs")];
    };
    let code = shipped_code(&source.text);
    let mut violations = Vec::new();
    let root = if module == "main" { "tidegate" } else { "crate" };
    let mut used = names_behind(&code, root);
    used.extend(uses_crate(&code, "tidegate_wire").then(|| "tidegate_wire".to_owned()));
    used.sort();
    used.dedup();
    for name in used.iter().filter(|name| **name != module) {
        if floor_of(name).is_none_or(|floor| floor >= own_floor) {
            violations.push(format!("{path}: {module} uses {name}, which is not below it"));
        }
    }
    let depth = source.path.components().count() - usize::from(source.path.ends_with("mod.rs"));
    let climb = vec!["super"; depth.max(1)].join("::");
    if code.contains(&format!("{climb}::")) {
        violations.push(format!("{path}: a path climbs to the crate by {climb}"));
    }
    for (name, user) in ONLY_USERS {
        if module != *user && uses_crate(&code, name) {
            violations.push(format!("{path}: {module} uses {name}, only {user} may"));
        }
    }
    violations
}

fn wire_violations(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        let code = shipped_code(&source.text);
        for name in UNKNOWN_TO_WIRE.iter().filter(|name| uses_crate(&code, name)) {
            violations.push(format!("{}: tidegate-wire uses {name}", source.path.display()));
        }
    }
    violations
}

/// Tests may reach across floors.
fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// The module at the crate's root that a file belongs to.
fn module_of(path: &Path) -> String {
    let first = path.components().next().expect("a file has a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The code without comments and without test modules: one in a file of its own is a line, one that is written out ends
/// its file.
fn shipped_code(text: &str) -> String {
    let mut lines = text.lines().map(|line| line.find("//").map_or(line, |place| &line[..place]));
    let mut shipped = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim_start() != "#[cfg(test)]" {
            shipped.push(line);
        } else if lines.next().is_some_and(|item| item.starts_with("mod ") && item.ends_with('{')) {
            break;
        }
    }
    shipped.join("\n")
}

/// Whether a path begins with this crate's name.
fn uses_crate(code: &str, name: &str) -> bool {
    places_of(code, name).next().is_some()
}

/// Places right behind `name::` where `name` is a whole word that begins a path.
fn places_of<'a>(code: &'a str, name: &str) -> impl Iterator<Item = usize> + 'a {
    let needle = format!("{name}::");
    let length = needle.len();
    let places: Vec<usize> = code.match_indices(&needle).map(|(place, _)| place).collect();
    places.into_iter().filter_map(move |place| {
        let before = code[..place].chars().next_back();
        let inside = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':');
        (!inside).then_some(place + length)
    })
}

/// First names behind `root::`, also of groups: `crate::{a::b, c}` gives `a` and `c`.
fn names_behind(code: &str, root: &str) -> Vec<String> {
    let mut names = Vec::new();
    for place in places_of(code, root) {
        match code[place..].strip_prefix('{') {
            None => names.push(word_at(&code[place..])),
            Some(group) => names.extend(first_words_of_group(group)),
        }
    }
    names
}

fn first_words_of_group(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut at_start = true;
    let mut words = Vec::new();
    for (place, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            _ if at_start && !letter.is_whitespace() => {
                words.push(word_at(&group[place..]));
                at_start = false;
            }
            _ => {}
        }
    }
    words
}

fn word_at(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}
