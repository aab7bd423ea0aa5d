//! The file's pairs while they are read: who took which key, what was wrong with it. Each key must end with a fate.

use std::collections::{BTreeSet, HashMap};

use super::problem::Problem;
use super::properties::Property;
use super::report::{Fate, Row};
use super::secrets;
use super::values::list;
use crate::names::ClusterAlias;

/// A pair of the file.
pub(super) struct Entry {
    pub(super) key: String,
    /// As it stands in the file.
    pub(super) raw: String,
    /// With its variables filled in.
    pub(super) value: String,
    pub(super) line: usize,
    /// The value as it stands in the file must not be printed.
    is_secret: bool,
    mark: Mark,
}

impl Entry {
    pub(super) fn new(property: Property, value: String) -> Self {
        let Property { key, value: raw, line } = property;
        Self { key, raw, value, line, is_secret: true, mark: Mark::Untouched }
    }

    /// The value as it may be printed: as it stands in the file, never what a variable stands for.
    fn printable(&self) -> String {
        secrets::printable(self.is_secret, &self.key, &self.raw)
    }
}

enum Mark {
    Untouched,
    /// A stronger key decides, everywhere.
    Shadowed(String),
    Honoured(BTreeSet<String>),
    Judged(Fate, String),
}

/// A value that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) key: String,
    pub(super) value: String,
}

/// All pairs of a file.
pub(super) struct Settings {
    entries: Vec<Entry>,
    index: HashMap<String, usize>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Settings {
    pub(super) fn new(mut entries: Vec<Entry>) -> Self {
        let clusters = entries.iter().find(|entry| entry.key == "clusters");
        let aliases: BTreeSet<ClusterAlias> = clusters
            .map(|entry| list(&entry.value))
            .unwrap_or_default()
            .into_iter()
            .map(ClusterAlias::new)
            .collect();
        for entry in &mut entries {
            entry.is_secret = secrets::is_secret(&entry.key, &entry.raw, &aliases);
        }
        let index = entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
        Self { entries, index, problems: Vec::new(), warnings: Vec::new() }
    }

    /// A value, without a trace.
    pub(super) fn peek(&self, key: &str) -> Option<&str> {
        self.entry(key).map(|entry| entry.value.as_str())
    }

    /// Whether the value must not be printed as it stands in the file.
    pub(super) fn is_secret(&self, key: &str) -> bool {
        self.entry(key).is_some_and(|entry| entry.is_secret)
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.index.get(key).map(|&at| &self.entries[at])
    }

    fn mark(&mut self, key: &str) -> Option<&mut Mark> {
        let at = *self.index.get(key)?;
        Some(&mut self.entries[at].mark)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Pairs that nobody took: (key, value).
    pub(super) fn untouched(&self) -> Vec<(String, String)> {
        let untouched = self.entries.iter().filter(|entry| matches!(entry.mark, Mark::Untouched));
        untouched.map(|entry| (entry.key.clone(), entry.value.clone())).collect()
    }

    /// The first of `keys` that stands in the file is honoured for `reader`, the others are shadowed by it.
    pub(super) fn strongest(&mut self, keys: &[String], reader: &str) -> Option<Found> {
        let mut found: Option<Found> = None;
        for key in keys {
            let Some(&at) = self.index.get(key) else { continue };
            let entry = &mut self.entries[at];
            match (&found, &mut entry.mark) {
                (None, Mark::Honoured(readers)) => {
                    readers.insert(reader.to_owned());
                }
                (None, Mark::Untouched | Mark::Shadowed(_)) => {
                    entry.mark = Mark::Honoured(BTreeSet::from([reader.to_owned()]));
                }
                (Some(stronger), Mark::Untouched) => entry.mark = Mark::Shadowed(stronger.key.clone()),
                _ => {}
            }
            found.get_or_insert_with(|| Found { key: key.clone(), value: entry.value.clone() });
        }
        found
    }

    /// Gives a key its fate.
    pub(super) fn judge(&mut self, key: &str, fate: Fate, note: impl Into<String>) {
        if let Some(mark) = self.mark(key)
            && !matches!(mark, Mark::Judged(Fate::Refused, _))
        {
            *mark = Mark::Judged(fate, note.into());
        }
    }

    /// The key stops the start. The text must not quote the value; see [`Settings::refuse_quoting`].
    pub(super) fn refuse(&mut self, key: &str, text: impl Into<String>) {
        self.refuse_with(key, text, None);
    }

    /// As [`Settings::refuse`], with the key or value that was most likely meant.
    pub(super) fn refuse_with(&mut self, key: &str, text: impl Into<String>, closest: Option<String>) {
        let text = text.into();
        if matches!(self.mark(key), Some(Mark::Judged(Fate::Refused, _))) {
            return;
        }
        let suggestion =
            closest.as_ref().map(|closest| format!("; did you mean {closest:?}?")).unwrap_or_default();
        self.judge(key, Fate::Refused, format!("{text}{suggestion}"));
        let problem = self.problem(key, text, closest);
        self.problems.push(problem);
    }

    /// As [`Settings::refuse`], for a text that quotes the value; it is kept back when the value must not be printed.
    pub(super) fn refuse_quoting(&mut self, key: &str, text: String) {
        match self.entry(key) {
            Some(entry) if entry.raw != entry.value => {
                self.refuse(key, "can't be read once its variables are filled in; the value is not shown");
            }
            Some(entry) if entry.is_secret => self.refuse(key, "can't be read; the value is not shown"),
            _ => self.refuse(key, text),
        }
    }

    /// Something is strange with a key.
    pub(super) fn warn(&mut self, key: &str, text: impl Into<String>, closest: Option<String>) {
        let warning = self.problem(key, text.into(), closest);
        self.warnings.push(warning);
    }

    fn problem(&self, key: &str, text: String, closest: Option<String>) -> Problem {
        let entry = self.entry(key);
        Problem {
            line: entry.map(|entry| entry.line),
            key: Some(key.to_owned()),
            found: entry.map(Entry::printable),
            text,
            closest,
        }
    }

    /// The report's rows. Every key has been judged by now.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.entries.iter().map(|entry| self.row(entry)).collect()
    }

    fn row(&self, entry: &Entry) -> Row {
        let (fate, note) = match &entry.mark {
            Mark::Untouched => (Fate::Ignored, "unknown key".to_owned()),
            Mark::Shadowed(by) => {
                let line = self.entry(by).map_or(0, |stronger| stronger.line);
                (Fate::Ignored, format!("{by} on line {line} is stronger"))
            }
            Mark::Honoured(readers) => (Fate::Honoured, honoured_note(&entry.key, readers)),
            Mark::Judged(fate, note) => (*fate, note.clone()),
        };
        Row { line: entry.line, key: entry.key.clone(), value: entry.printable(), fate, note }
    }
}

/// Who reads a key, unless the key says so itself.
fn honoured_note(key: &str, readers: &BTreeSet<String>) -> String {
    let others: Vec<&str> = readers
        .iter()
        .map(String::as_str)
        .filter(|reader| !reader.is_empty() && !key.starts_with(*reader))
        .collect();
    if others.is_empty() { String::new() } else { format!("for {}", others.join(", ")) }
}
