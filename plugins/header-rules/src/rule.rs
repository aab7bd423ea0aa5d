//! The rules, in the form in which they are applied: names that rules touch have numbers, so that a record's headers are
//! walked once whatever the number of rules.

use tidegate_plugin::Needs;
use tidegate_plugin::records::{Edit, Record};

use crate::template::{Facts, Template};

/// The number of a name that some rule touches.
type Touched = usize;

#[derive(Debug)]
enum Rule {
    Set {
        name: Touched,
        value: Value,
    },
    Add {
        name: Touched,
        value: Value,
    },
    Rename {
        old: Touched,
        new: Touched,
    },
    /// Those that are listed go.
    Remove(Names),
    /// Those that are not listed go.
    KeepOnly(Names),
}

/// A header's value, as far as it is known before the record.
#[derive(Debug)]
enum Value {
    Null,
    /// The same for all records of a batch; filled when one begins.
    OfBatch(Template, Vec<u8>),
    OfRecord(Template),
}

/// Names, and beginnings of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    whole: Vec<String>,
    beginnings: Vec<String>,
}

impl Names {
    /// `trace-*` is every name that begins so. An error is a sentence for the operator.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), String> {
        let (list, name) = match text.strip_suffix('*') {
            Some(beginning) => (&mut self.beginnings, beginning),
            None => (&mut self.whole, text),
        };
        if name.contains('*') {
            return Err(format!("\"{text}\" has a \"*\" that is not its end"));
        }
        list.push(name.to_owned());
        Ok(())
    }

    fn holds(&self, name: &str) -> bool {
        self.whole.iter().any(|whole| whole == name)
            || self.beginnings.iter().any(|beginning| name.starts_with(beginning.as_str()))
    }
}

/// All rules of a plugin, in order.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    touched: Vec<String>,
    /// For each touched name, whether the record has it at the rule that is applied; kept from record to record.
    present: Vec<bool>,
    value: Vec<u8>,
}

impl Rules {
    pub(crate) fn set(&mut self, name: String, value: Option<Template>) {
        let name = self.touch(name);
        self.rules.push(Rule::Set { name, value: Value::new(value) });
    }

    pub(crate) fn add(&mut self, name: String, value: Option<Template>) {
        let name = self.touch(name);
        self.rules.push(Rule::Add { name, value: Value::new(value) });
    }

    pub(crate) fn rename(&mut self, old: String, new: String) {
        let (old, new) = (self.touch(old), self.touch(new));
        self.rules.push(Rule::Rename { old, new });
    }

    pub(crate) fn remove(&mut self, names: Names) {
        for name in names.whole.clone() {
            self.touch(name);
        }
        self.rules.push(Rule::Remove(names));
    }

    pub(crate) fn keep_only(&mut self, names: Names) {
        self.rules.push(Rule::KeepOnly(names));
    }

    fn touch(&mut self, name: String) -> Touched {
        let known = self.touched.iter().position(|touched| *touched == name);
        known.unwrap_or_else(|| {
            self.touched.push(name);
            self.present.push(false);
            self.touched.len() - 1
        })
    }

    /// What is set or added needs nothing; what may be there or not needs a look.
    pub(crate) fn needs(&self) -> Needs {
        let mut needs = Needs::nothing();
        for rule in &self.rules {
            needs = match rule {
                Rule::Set { value, .. } | Rule::Add { value, .. } if value.has_timestamp() => {
                    needs.timestamps()
                }
                Rule::Set { .. } | Rule::Add { .. } => needs,
                Rule::Rename { old, .. } => needs.header(self.name(*old)),
                Rule::Remove(names) if names.beginnings.is_empty() => {
                    names.whole.iter().fold(needs, |needs, name| needs.header(name))
                }
                Rule::Remove(_) | Rule::KeepOnly(_) => needs.headers(),
            };
        }
        needs
    }

    pub(crate) fn begin(&mut self, topic: &str, partition: i32) {
        let facts = Facts { topic, partition, offset: 0, timestamp_ms: None };
        for rule in &mut self.rules {
            if let Rule::Set { value: Value::OfBatch(template, filled), .. }
            | Rule::Add { value: Value::OfBatch(template, filled), .. } = rule
            {
                template.fill(facts, filled);
            }
        }
    }

    /// Writes an edit only where something changes, so that a record that has nothing to remove stays as it is.
    pub(crate) fn apply(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) {
        let Self { rules, touched, present, value: scratch } = self;
        present.fill(false);
        for (name, _) in record.headers() {
            if let Some(number) = touched.iter().position(|touched| touched == name) {
                set(present, number, true);
            }
        }
        let name_of = |number: &Touched| touched.get(*number).map_or("", String::as_str);
        for rule in rules {
            match rule {
                Rule::Set { name, value } => {
                    edit.set_header(name_of(name), value.of(record, scratch));
                    set(present, *name, true);
                }
                Rule::Add { name, value } => {
                    edit.add_header(name_of(name), value.of(record, scratch));
                    set(present, *name, true);
                }
                Rule::Rename { old, new } => {
                    if old != new && present.get(*old) == Some(&true) {
                        edit.rename_header(name_of(old), name_of(new));
                        set(present, *old, false);
                        set(present, *new, true);
                    }
                }
                Rule::Remove(names) => remove(touched, present, record, edit, |name| names.holds(name)),
                Rule::KeepOnly(names) => remove(touched, present, record, edit, |name| !names.holds(name)),
            }
        }
    }

    fn name(&self, number: Touched) -> &str {
        self.touched.get(number).map_or("", String::as_str)
    }
}

fn set(present: &mut [bool], number: Touched, is_present: bool) {
    if let Some(place) = present.get_mut(number) {
        *place = is_present;
    }
}

/// Touched names as the rules before left them, all others as the record came.
fn remove(
    touched: &[String],
    present: &mut [bool],
    record: &Record<'_>,
    edit: &mut Edit<'_>,
    goes: impl Fn(&str) -> bool,
) {
    for (name, present) in touched.iter().zip(present) {
        if *present && goes(name) {
            edit.remove_header(name);
            *present = false;
        }
    }
    for (name, _) in record.headers() {
        if goes(name) && !touched.iter().any(|touched| touched == name) {
            edit.remove_header(name);
        }
    }
}

impl Value {
    fn new(template: Option<Template>) -> Self {
        match template {
            None => Self::Null,
            Some(template) if template.is_of_batch() => Self::OfBatch(template, Vec::new()),
            Some(template) => Self::OfRecord(template),
        }
    }

    fn has_timestamp(&self) -> bool {
        matches!(self, Self::OfRecord(template) if template.has_timestamp())
    }

    fn of<'a>(&'a self, record: &Record<'_>, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::OfBatch(_, filled) => Some(filled),
            Self::OfRecord(template) => {
                let facts = Facts {
                    topic: record.topic(),
                    partition: record.partition(),
                    offset: record.offset(),
                    timestamp_ms: record.timestamp_ms(),
                };
                template.fill(facts, scratch);
                Some(scratch)
            }
        }
    }
}
