//! `tidegate check FILE`: what becomes of every key, and all problems at once.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::{CheckArguments, Exit, Failure, Output, ProcessArguments};
use crate::config::{Fate, Problem, Report};

/// What was found, for people and programs.
#[derive(Serialize)]
struct Findings<'a> {
    file: String,
    is_usable: bool,
    keys: &'a Report,
    problems: Vec<String>,
    warnings: Vec<String>,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let options = arguments.file.options(&ProcessArguments::default());
    let file = arguments.file.file.display().to_string();
    let (report, problems, warnings) = match crate::config::load(&arguments.file.file, &options) {
        Ok(loaded) => (loaded.report, Vec::new(), loaded.warnings),
        Err(error) => (error.report, error.problems, error.warnings),
    };
    let words = |problems: &[Problem]| problems.iter().map(ToString::to_string).collect();
    let findings = Findings {
        file,
        is_usable: problems.is_empty(),
        keys: &report,
        problems: words(&problems),
        warnings: words(&warnings),
    };
    match arguments.output {
        Output::Json => {
            let json =
                serde_json::to_string_pretty(&findings).map_err(|error| Exit::Internal.because(error))?;
            super::print(&format!(
                "{json}
"
            ));
        }
        Output::Table => print_table(&findings),
    }
    if findings.is_usable {
        return Ok(());
    }
    let count = findings.problems.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    Err(Exit::Configuration.because(anyhow::anyhow!("{} can't be used: {count} {noun}", findings.file)))
}

fn print_table(findings: &Findings<'_>) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["LINE", "KEY", "VALUE", "FATE", "NOTE"]);
    for row in &findings.keys.rows {
        table.add_row([
            row.line.to_string(),
            row.key.clone(),
            shortened(&row.value),
            row.fate.to_string(),
            row.note.clone(),
        ]);
    }
    super::print(&format!(
        "{table}
"
    ));
    let count = |fate| findings.keys.count(fate);
    super::print(&format!(
        "\n{}: {} honoured, {} mapped, {} ignored, {} refused\n",
        findings.file,
        count(Fate::Honoured),
        count(Fate::Mapped),
        count(Fate::Ignored),
        count(Fate::Refused)
    ));
    print_list("warning", &findings.warnings);
    print_list("problem", &findings.problems);
}

fn print_list(noun: &str, lines: &[String]) {
    for line in lines {
        super::print(&format!("{noun}: {line}\n"));
    }
}

/// The most characters of a value that the table shows.
const VALUE_CHARACTERS_MAX: usize = 200;

/// A value as the table shows it; JSON has it whole.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARACTERS_MAX) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &value[..end], value.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened_in_the_table() {
        assert_eq!(shortened("a, b"), "a, b");
        assert_eq!(shortened(&"é".repeat(500)), format!("{}… (500 characters)", "é".repeat(200)));
    }
}
