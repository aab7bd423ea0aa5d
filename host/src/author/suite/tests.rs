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
