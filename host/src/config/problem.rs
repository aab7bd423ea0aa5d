//! A thing that is wrong in a file, told with all the others at once: key, line, value found, what is wanted, closest
//! known key.

use std::fmt;

use super::report::Report;

/// One problem or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line where the key begins, from 1. None: the thing is missing, or comes from elsewhere (then `key` says so).
    pub line: Option<usize>,
    /// The key, an environment variable or a flag. None: the file as a whole.
    pub key: Option<String>,
    /// The value found, secrets already hidden.
    pub found: Option<String>,
    /// What is wrong, why, and the way out.
    pub text: String,
    /// The known key that was most likely meant.
    pub closest: Option<String>,
}

impl Problem {
    /// A problem of the file as a whole.
    pub fn of_file(text: impl Into<String>) -> Self {
        Self { line: None, key: None, found: None, text: text.into(), closest: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        if let Some(key) = &self.key {
            formatter.write_str(key)?;
            if let Some(found) = &self.found {
                write!(formatter, " = {found:?}")?;
            }
            formatter.write_str(": ")?;
        }
        formatter.write_str(&self.text)?;
        if let Some(closest) = &self.closest {
            write!(formatter, "; did you mean {closest:?}?")?;
        }
        Ok(())
    }
}

/// A file that can't be used. `Display` gives all problems, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The file.
    pub file: String,
    /// Everything that is wrong; never empty.
    pub problems: Vec<Problem>,
    /// What is strange, but would not stop us.
    pub warnings: Vec<Problem>,
    /// What became of each key, as far as the file could be read.
    pub report: Report,
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(formatter, "{} has {count} {noun}:", self.file)?;
        for problem in &self.problems {
            write!(formatter, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
