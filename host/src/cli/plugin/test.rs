//! `tidegate plugin test`: the cases of fixtures, once or at each change.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use super::subject::{LimitArguments, ModuleArguments, engine, module_failure};
use super::trial::{self, TrialArguments};
use super::watch::Changes;
use crate::author::suite::{CaseResult, FileResult, Subject, fixture_files, junit, run_file};
use crate::cli::{Exit, Failure};
use crate::plugin::Engine;

#[derive(Debug, Args)]
pub(in crate::cli) struct TestArguments {
    #[command(flatten)]
    module: ModuleArguments,
    /// Where the cases are [default: fixtures in the project's folder]
    #[arg(long, value_name = "FOLDER")]
    fixtures: Option<PathBuf>,
    /// Write the results as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Run again whenever the component or a case changes, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["junit", "from_topic"])]
    watch: bool,
    #[command(flatten)]
    trial: TrialArguments,
    #[command(flatten)]
    limits: LimitArguments,
}

pub(super) fn run(arguments: &TestArguments) -> Result<(), Failure> {
    let engine = engine()?;
    if let Some(topic) = &arguments.trial.from_topic {
        return trial::run(topic, &arguments.trial, &arguments.module, &arguments.limits, &engine);
    }
    if !arguments.watch {
        return run_once(arguments, &engine);
    }
    let mut changes = Changes::default();
    loop {
        // A failure is shown, and waits for its mending.
        match run_once(arguments, &engine) {
            Ok(()) => {}
            Err(failure) => eprintln!("tidegate: {failure}"),
        }
        eprintln!("waiting for a change of the component or a case; Ctrl-C ends");
        changes.wait(|| watched(arguments));
    }
}

fn folder(arguments: &TestArguments) -> PathBuf {
    arguments.fixtures.clone().unwrap_or_else(|| arguments.module.project().join("fixtures"))
}

fn watched(arguments: &TestArguments) -> Vec<PathBuf> {
    let mut files = fixture_files(&folder(arguments)).unwrap_or_default();
    files.extend(arguments.module.file());
    files
}

fn run_once(arguments: &TestArguments, engine: &Engine) -> Result<(), Failure> {
    let module = arguments.module.module()?;
    let files = fixture_files(&folder(arguments))
        .map_err(|problem| Exit::Data.because(anyhow::anyhow!("{problem}")))?;
    let subject = Subject::read(engine, &module, arguments.limits.limits()).map_err(module_failure)?;
    let results: Vec<FileResult> = files.iter().map(|file| run_file(&subject, file)).collect();
    crate::cli::print(&text(&results));
    if let Some(file) = &arguments.junit {
        let report =
            junit(&results).map_err(|problem| Exit::Internal.because(anyhow::anyhow!("{problem}")))?;
        fs::write(file, report).map_err(|error| {
            Exit::Internal.because(anyhow::anyhow!("could not write {}: {error}", file.display()))
        })?;
    }
    match failed_count(&results) {
        0 => Ok(()),
        count => Err(Exit::Data.because(anyhow::anyhow!("{count} failed; what was expected stands above"))),
    }
}

/// Cases, and files that can't be read.
fn failed_count(results: &[FileResult]) -> usize {
    let cases = results.iter().flat_map(|result| &result.cases);
    let failed = cases.filter(|case| !case.failures.is_empty()).count();
    failed + results.iter().filter(|result| result.problem.is_some()).count()
}

fn text(results: &[FileResult]) -> String {
    let mut text = String::new();
    for result in results {
        text += &format!("{}\n", result.file.display());
        if let Some(problem) = &result.problem {
            text += &format!("  FAIL  {}\n", indented(problem));
        }
        text.extend(result.cases.iter().map(case_text));
    }
    let failed = failed_count(results);
    let passed =
        results.iter().flat_map(|result| &result.cases).filter(|case| case.failures.is_empty()).count();
    text + &format!("{passed} passed, {failed} failed\n")
}

fn case_text(case: &CaseResult) -> String {
    if case.failures.is_empty() {
        return format!("  ok    {}\n", case.name);
    }
    let failures = case.failures.iter().map(|failure| format!("        {}\n", indented(failure)));
    format!("  FAIL  {} (line {})\n{}", case.name, case.line, failures.collect::<String>())
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n        ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_failed_is_shown_with_its_line_and_counted() {
        let case = |name: &str, failures: &[&str]| CaseResult {
            name: name.into(),
            line: 9,
            elapsed: Duration::ZERO,
            failures: failures.iter().map(|failure| (*failure).to_owned()).collect(),
        };
        let cases = vec![case("good", &[]), case("bad", &["record 1: expected drop\n  - x", "more"])];
        let results = [
            FileResult { file: "a.yaml".into(), problem: None, cases },
            FileResult { file: "b.yaml".into(), problem: Some("line 1: no".into()), cases: vec![] },
        ];
        assert_eq!(
            text(&results),
            "a.yaml\n\
             \x20 ok    good\n\
             \x20 FAIL  bad (line 9)\n\
             \x20       record 1: expected drop\n\
             \x20         - x\n\
             \x20       more\n\
             b.yaml\n\
             \x20 FAIL  line 1: no\n\
             1 passed, 2 failed\n"
        );
    }
}
