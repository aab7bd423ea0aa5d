//! Whole suites on the plugins that the binary carries.

use super::*;

fn subject(builtin: &str) -> Subject {
    let engine = Engine::new(None).unwrap();
    Subject::read(&engine, &PluginModule::Builtin(builtin.to_owned()), Limits::default()).unwrap()
}

fn run(builtin: &str, fixture: &str) -> FileResult {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.yaml");
    fs::write(&file, fixture).unwrap();
    run_file(&subject(builtin), &file)
}

#[test]
fn names_are_checked_there_and_back() {
    let result = run(
        "default-policy",
        "cases:
  - name: good
    flow: eu->us
    names:
      - {source: orders, target: eu.orders}
      - {target: orders, source: null}
  - name: bad
    names:
      - {source: orders, target: orders}
      - {source: orders, refused: no}
      - {target: east.orders, source: null}
  - name: another hook
    groups: [{name: g, expect: true}]
  - name: settings
    settings: {separator: 5}
    refused: /separator
  - name: not refused
    refused: anything
",
    );
    assert_eq!(result.problem, None);
    let failures: Vec<_> = result.cases.iter().map(|case| (case.line, case.failures.as_slice())).collect();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        failures,
        [
            (2, words(&[]).as_slice()),
            (
                7,
                &words(&[
                    "\"orders\": expected \"orders\", found \"east.orders\"",
                    "\"orders\": expected to be refused, found \"east.orders\"",
                    "the way back: \"east.orders\" should stand for no topic, the plugin says \"orders\"",
                ])
            ),
            (12, &words(&["the case asks for selection, but the plugin has only: topic-naming"])),
            (14, &words(&[])),
            (17, &words(&["the plugin starts, but should be refused: anything"])),
        ]
    );
    assert!(!result.has_passed());
}

#[test]
fn a_file_that_is_no_fixture_fails() {
    let result = run("default-policy", "case: []");
    assert!(result.problem.as_ref().is_some_and(|problem| problem.contains("line 1")), "{result:?}");
    assert!(!result.has_passed());
}

#[test]
fn a_folder_without_cases_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        fixture_files(folder.path()).unwrap_err(),
        format!("{} holds no *.yaml; without cases nothing is tested", folder.path().display())
    );
}

/// The cases beside each plugin that the binary carries are its examples, too: they must stay true.
#[test]
fn the_shipped_plugins_pass_their_own_cases() {
    // Cases start a plugin each; it is compiled once. Generous, for machines that have other things to do.
    let cache = tempfile::tempdir().unwrap();
    let engine = Engine::new(Some(cache.path().to_owned())).unwrap();
    let limits = Limits { deadline: Duration::from_secs(10), ..Limits::default() };
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut tested = Vec::new();
    for name in crate::plugin::builtin_names() {
        let Ok(files) = fixture_files(&plugins.join(name).join("fixtures")) else { continue };
        let subject = Subject::read(&engine, &PluginModule::Builtin(name.to_owned()), limits).unwrap();
        for file in files {
            let result = run_file(&subject, &file);
            assert!(result.has_passed() && !result.cases.is_empty(), "{result:#?}");
        }
        tested.push(name);
    }
    assert_eq!(tested, ["acl-map", "header-rules", "redact", "region-filter", "rename"]);
}

#[test]
fn a_file_without_cases_does_not_pass() {
    let result = run("redact", "cases: []\n");
    assert_eq!(result.problem.as_deref(), Some("holds no cases; without cases nothing is tested"));
    assert!(!result.has_passed());
}
