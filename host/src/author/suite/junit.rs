//! Results as JUnit's XML, which build servers show.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{CaseResult, FileResult};

/// The report's text: a suite for each file.
pub fn junit(results: &[FileResult]) -> Result<String, String> {
    let mut report = Report::new("tidegate plugin test");
    report.set_time(results.iter().map(total).sum());
    report.add_test_suites(results.iter().map(suite));
    report.to_string().map_err(|error| format!("could not write the report: {error}"))
}

fn total(result: &FileResult) -> Duration {
    result.cases.iter().map(|case| case.elapsed).sum()
}

fn suite(result: &FileResult) -> TestSuite {
    let name = result.file.display().to_string();
    let mut suite = TestSuite::new(&name);
    suite.set_time(total(result));
    if let Some(problem) = &result.problem {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(problem);
        let mut case = TestCase::new("the file can be read", status);
        case.set_classname(&name);
        suite.add_test_case(case);
    }
    suite.add_test_cases(result.cases.iter().map(|case| test_case(&name, case)));
    suite
}

fn test_case(file: &str, result: &CaseResult) -> TestCase {
    let status = match result.failures.first() {
        None => TestCaseStatus::success(),
        Some(first) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(first.lines().next().unwrap_or_default());
            status.set_description(format!("{file}:{}\n{}", result.line, result.failures.join("\n")));
            status
        }
    };
    let mut case = TestCase::new(&result.name, status);
    case.set_classname(file).set_time(result.elapsed);
    case
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_server_sees_what_failed_and_where() {
        let case = |name: &str, failures: &[&str]| CaseResult {
            name: name.into(),
            line: 7,
            elapsed: Duration::from_millis(2),
            failures: failures.iter().map(|failure| (*failure).to_owned()).collect(),
        };
        let cases = vec![case("good", &[]), case("bad", &["expected <drop>\n  - x", "more"])];
        let run = FileResult { file: "fixtures/a.yaml".into(), problem: None, cases };
        let broken = FileResult { file: "b.yaml".into(), problem: Some("line 1: no".into()), cases: vec![] };

        let xml = junit(&[run, broken]).unwrap();

        for part in [
            "tests=\"3\"",
            "failures=\"1\"",
            "errors=\"1\"",
            "<testcase name=\"good\" classname=\"fixtures/a.yaml\" time=\"0.002\"",
            "<failure message=\"expected &lt;drop&gt;\"",
            "fixtures/a.yaml:7\nexpected &lt;drop&gt;\n  - x\nmore",
            "<error message=\"line 1: no\"",
        ] {
            assert!(xml.contains(part), "no {part} in {xml}");
        }
    }
}
