//! Masks, hashes and removes fields of JSON records, and touches no other byte.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod action;
mod hash;
mod settings;

#[cfg(test)]
mod tests;

use tidegate_json_fields::{Found, Kind, Paths, Scanner, Unreadable, write_string};
use tidegate_plugin::records::{Edit, Needs, Record};
use tidegate_plugin::{Link, Plugin, Problem, Records, plugin};

use action::Action;

/// Redacts what its settings name.
#[derive(Debug)]
pub struct Redact {
    paths: Paths,
    /// By path: what becomes of what it finds.
    fields: Vec<Action>,
    /// By path: what is written, for actions that always write the same.
    constants: Vec<Vec<u8>>,
    headers: Vec<(String, Action)>,
    key: Option<Action>,
    not_json: NotJson,
    scanner: Scanner,
    scratch: Scratch,
}

/// What becomes of a record whose value is not JSON, if fields are to be redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotJson {
    /// The operator's `on.fault` decides.
    Reject,
    /// It goes as it is.
    Pass,
    Drop,
}

/// Kept from record to record.
#[derive(Debug, Default)]
struct Scratch {
    text: Vec<u8>,
    plain: Vec<u8>,
    written: Vec<u8>,
}

impl Plugin for Redact {
    const NAME: Option<&'static str> = Some("redact");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(include_str!("../schema.json"));

    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        settings::read_settings(settings)
    }
}

impl Records for Redact {
    fn needs(&self) -> Needs {
        let needs =
            self.headers.iter().fold(Needs::nothing(), |needs, (name, _)| needs.header(name.as_str()));
        let needs = if self.key.is_some() { needs.key() } else { needs };
        if self.paths.is_empty() { needs } else { needs.value() }
    }

    /// The value first: a record that is dropped or rejected for it needs no more.
    fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
        self.redact_value(record, edit)?;
        self.redact_headers(record, edit);
        if let (Some(action), Some(key)) = (&self.key, record.key()) {
            self.scratch.plain.clear();
            action.replace(key, &mut self.scratch.plain);
            edit.set_key(&self.scratch.plain);
        }
        Ok(())
    }
}

impl Redact {
    fn redact_value(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
        let Some(value) = record.value().filter(|_| !self.paths.is_empty()) else { return Ok(()) };
        let found = match self.scanner.scan(&self.paths, value) {
            Ok(found) => found,
            Err(unreadable) => return on_unreadable(self.not_json, unreadable, edit),
        };
        for field in found {
            let (Some(action), Some(constant)) =
                (self.fields.get(field.path), self.constants.get(field.path))
            else {
                return Err("a path without an action was found".to_owned());
            };
            if action.is_constant() {
                let nothing_is_left = field.is_outermost && constant.is_empty();
                edit.splice_value(field.cut.clone(), if nothing_is_left { b"null" } else { constant });
            } else {
                write_replacement(action, field, value, &mut self.scratch);
                edit.splice_value(field.cut.clone(), &self.scratch.written);
            }
        }
        Ok(())
    }

    /// Of several headers of a name one is left, made of the first that has a value: a header without one hides
    /// nothing.
    fn redact_headers(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) {
        for (name, action) in &self.headers {
            if matches!(action, Action::Remove) {
                if record.has_header(name) {
                    edit.remove_header(name);
                }
                continue;
            }
            let value = record.headers().filter(|(found, _)| found == name).find_map(|(_, value)| value);
            if let Some(value) = value {
                self.scratch.plain.clear();
                action.replace(value, &mut self.scratch.plain);
                edit.set_header(name, Some(&self.scratch.plain));
            }
        }
    }
}

/// What is too deep may be JSON that holds the fields, so it never passes.
fn on_unreadable(policy: NotJson, unreadable: Unreadable, edit: &mut Edit<'_>) -> Result<(), String> {
    match (policy, unreadable) {
        (NotJson::Drop, _) => {
            edit.drop();
            Ok(())
        }
        (NotJson::Pass, Unreadable::NotJson { .. }) => Ok(()),
        (NotJson::Reject, Unreadable::NotJson { at }) => Err(format!("the value is not JSON at byte {at}")),
        (NotJson::Reject | NotJson::Pass, Unreadable::TooDeep) => {
            Err("the value is nested too deep to be redacted".to_owned())
        }
    }
}

/// A JSON string, into `scratch.written`. A list or an object shows no last characters: what they would be is chance.
fn write_replacement(action: &Action, field: &Found, value: &[u8], scratch: &mut Scratch) {
    let text = field.text(value, &mut scratch.text);
    let text = match (action, field.kind) {
        (Action::Mask { .. }, Kind::List | Kind::Object | Kind::Boolean | Kind::Null) => b"",
        _ => text,
    };
    scratch.plain.clear();
    action.replace(text, &mut scratch.plain);
    scratch.written.clear();
    write_string(&scratch.plain, &mut scratch.written);
}

plugin!(Redact: records);
