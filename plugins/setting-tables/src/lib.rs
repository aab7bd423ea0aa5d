//! Reads settings that hold lists of tables. All problems are told at once, each with its JSON pointer.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use tidegate_plugin::Problem;
use tidegate_plugin::settings::{Settings, Value};

/// A JSON object of the settings. Take what you know; what nobody took is a problem.
#[derive(Debug)]
pub struct Table {
    /// The JSON pointer to it.
    at: String,
    fields: Fields,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

#[derive(Debug)]
enum Fields {
    /// Of the whole settings; it tells by itself of fields that nobody took.
    Outermost(Settings),
    Inner(Vec<(String, Value)>),
}

/// Reads all of the settings: `take` takes the fields. The problems come in the order in which they were met.
pub fn read<T>(settings: &str, take: impl FnOnce(&mut Table) -> T) -> Result<T, Vec<Problem>> {
    let fields = Fields::Outermost(Settings::parse(settings)?);
    let mut table = Table { at: String::new(), fields, known: Vec::new(), problems: Vec::new() };
    let taken = take(&mut table);
    let problems = table.close();
    if problems.is_empty() { Ok(taken) } else { Err(problems) }
}

impl Table {
    /// A field of any type; `None` if it is not there.
    pub fn value(&mut self, name: &'static str) -> Option<Value> {
        match &mut self.fields {
            Fields::Outermost(settings) => settings.value(name),
            Fields::Inner(fields) => {
                self.known.push(name);
                let index = fields.iter().position(|(field, _)| field == name)?;
                Some(fields.remove(index).1)
            }
        }
    }

    /// A text; `None` if it is not there, or is none (a problem).
    pub fn string(&mut self, name: &'static str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, "a string", &other),
        }
    }

    /// A text that must be there; `None` is a problem already.
    pub fn required_string(&mut self, name: &'static str) -> Option<String> {
        match self.value(name) {
            Some(Value::String(text)) => Some(text),
            Some(other) => self.wrong(name, "a string", &other),
            None => self.missing(name),
        }
    }

    /// A number from 0, without a fraction; `None` if it is not there, or is none (a problem).
    pub fn count(&mut self, name: &'static str) -> Option<usize> {
        match self.value(name)? {
            Value::Number(digits) => {
                let count = digits.parse().ok();
                if count.is_none() {
                    self.object_to(name, "must be a whole number from 0");
                }
                count
            }
            other => self.wrong(name, "a number", &other),
        }
    }

    /// One of these texts, or the first if it is not there or is another (a problem).
    pub fn choice(&mut self, name: &'static str, choices: &[&'static str]) -> &'static str {
        self.optional_choice(name, choices).or(choices.first().copied()).unwrap_or_default()
    }

    /// One of these texts; `None` if it is not there, or is another (a problem).
    pub fn optional_choice(&mut self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        let text = self.string(name)?;
        self.one_of(name, &text, choices)
    }

    /// One of these texts; `None` is a problem already.
    pub fn required_choice(&mut self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        let text = self.required_string(name)?;
        self.one_of(name, &text, choices)
    }

    fn one_of(&mut self, name: &str, text: &str, choices: &[&'static str]) -> Option<&'static str> {
        let found = choices.iter().find(|choice| **choice == text).copied();
        if found.is_none() {
            self.object_to(name, format!("must be one of {}, not \"{text}\"", choices.join(", ")));
        }
        found
    }

    /// A list of texts; `None` if it is not there, or is none (a problem).
    pub fn strings(&mut self, name: &'static str) -> Option<Vec<String>> {
        let Value::List(values) = self.list(name)? else { return None };
        let mut texts = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text),
                other => self.object_to(&format!("{name}/{index}"), wrong_type("a string", &other)),
            }
        }
        Some(texts)
    }

    /// A table of texts by name, in the order of the settings; empty if it is not there. Values of another type are
    /// problems.
    pub fn string_table(&mut self, name: &'static str) -> Vec<(String, String)> {
        let fields = match self.value(name) {
            None => return Vec::new(),
            Some(Value::Object(fields)) => fields,
            Some(other) => {
                self.wrong::<()>(name, "an object", &other);
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (field, value) in fields {
            match value {
                Value::String(text) => texts.push((field, text)),
                other => {
                    self.object_to(&format!("{name}/{}", escape(&field)), wrong_type("a string", &other));
                }
            }
        }
        texts
    }

    /// A list of tables, of which `take` takes the fields; what it gives `None` for is left out. `None` if there is no
    /// such list.
    pub fn tables<T>(
        &mut self,
        name: &'static str,
        mut take: impl FnMut(&mut Table) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::List(values) = self.list(name)? else { return None };
        let mut taken = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            taken.extend(self.inner(&format!("{name}/{index}"), value, &mut take));
        }
        Some(taken)
    }

    /// One table, of which `take` takes the fields; `None` if it is not there.
    pub fn table<T>(&mut self, name: &'static str, take: impl FnMut(&mut Table) -> Option<T>) -> Option<T> {
        let value = self.value(name)?;
        self.inner(name, value, take)
    }

    /// Adds a problem; `at` is the field, or the rest of a JSON pointer from this table on.
    pub fn object_to(&mut self, at: &str, message: impl Into<String>) {
        let at = if at.is_empty() { self.at.clone() } else { format!("{}/{at}", self.at) };
        self.problems.push(Problem::new(at, message));
    }

    /// A problem that this field is not there.
    pub fn missing<T>(&mut self, name: &str) -> Option<T> {
        self.object_to("", format!("lacks the field \"{name}\""));
        None
    }

    /// Fields that nobody took are no problem any more: what they should be is not known.
    pub fn forget_rest(&mut self) {
        if let Fields::Inner(fields) = &mut self.fields {
            fields.clear();
        }
    }

    fn list(&mut self, name: &'static str) -> Option<Value> {
        match self.value(name)? {
            Value::List(values) => Some(Value::List(values)),
            other => self.wrong(name, "a list", &other),
        }
    }

    fn inner<T>(
        &mut self,
        at: &str,
        value: Value,
        mut take: impl FnMut(&mut Table) -> Option<T>,
    ) -> Option<T> {
        let Value::Object(fields) = value else {
            self.object_to(at, wrong_type("an object", &value));
            return None;
        };
        let mut table = Table {
            at: format!("{}/{at}", self.at),
            fields: Fields::Inner(fields),
            known: Vec::new(),
            problems: Vec::new(),
        };
        let taken = take(&mut table);
        self.problems.extend(table.close());
        taken
    }

    fn wrong<T>(&mut self, name: &str, wanted: &str, found: &Value) -> Option<T> {
        self.object_to(name, wrong_type(wanted, found));
        None
    }

    /// All problems, those with fields that nobody took too.
    fn close(self) -> Vec<Problem> {
        let Self { at, fields, known, mut problems } = self;
        match fields {
            Fields::Outermost(settings) => problems.extend(settings.finish().err().unwrap_or_default()),
            Fields::Inner(fields) => problems.extend(fields.iter().map(|(name, _)| {
                let message = format!("unknown field; there is: {}", known.join(", "));
                Problem::new(format!("{at}/{}", escape(name)), message)
            })),
        }
        problems
    }
}

fn wrong_type(wanted: &str, found: &Value) -> String {
    let kind = match found {
        Value::Null => "null",
        Value::Boolean(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("must be {wanted}, not {kind}")
}

/// A field's name as a part of a JSON pointer.
pub fn escape(field: &str) -> String {
    field.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_tables_are_taken() {
        let settings = r#"{"rules": [{"name": "a", "count": 3}, {"name": "b"}], "list": ["x", "y"],
            "names": {"b/": "1", "a": "2"}, "one": {"mode": "hash"}}"#;
        let taken = read(settings, |table| {
            let rules =
                table.tables("rules", |rule| Some((rule.required_string("name")?, rule.count("count"))));
            let list = table.strings("list");
            let mode = table.table("one", |one| Some(one.choice("mode", &["mask", "hash"])));
            (rules, list, table.string_table("names"), mode, table.string("absent"), table.strings("none"))
        });
        assert_eq!(
            taken,
            Ok((
                Some(vec![("a".to_owned(), Some(3)), ("b".to_owned(), None)]),
                Some(vec!["x".to_owned(), "y".to_owned()]),
                vec![("b/".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())],
                Some("hash"),
                None,
                None,
            ))
        );
    }

    #[test]
    fn all_problems_are_told_with_their_place() {
        let settings = r#"{"rules": [{"nmae": "a"}, 5, {"name": 1, "count": 1.5, "mode": "x"}], "list": ["x", 1],
            "names": {"a/b": 1}, "other": [], "more": 1}"#;
        let problems = read(settings, |table| {
            table.tables("rules", |rule| {
                rule.count("count");
                rule.choice("mode", &["mask", "hash"]);
                rule.required_string("name")
            });
            table.strings("list");
            table.string_table("names");
            table.string("other");
            table.strings("more");
            table.object_to("more/0", "is odd");
        });
        let expected = [
            ("/rules/0", "lacks the field \"name\""),
            ("/rules/0/nmae", "unknown field; there is: count, mode, name"),
            ("/rules/1", "must be an object, not a number"),
            ("/rules/2/count", "must be a whole number from 0"),
            ("/rules/2/mode", "must be one of mask, hash, not \"x\""),
            ("/rules/2/name", "must be a string, not a number"),
            ("/list/1", "must be a string, not a number"),
            ("/names/a~1b", "must be a string, not a number"),
            ("/other", "must be a string, not a list"),
            ("/more", "must be a list, not a number"),
            ("/more/0", "is odd"),
        ];
        let expected: Vec<Problem> = expected.map(|(at, message)| Problem::new(at, message)).into();
        assert_eq!(problems, Err(expected));
        assert_eq!(
            read("{\"x\":1}", |_| ()),
            Err(vec![Problem::new("/x", "unknown field; there are no settings")])
        );
        assert_eq!(read("[]", |_| ()), Err(vec![Problem::new("", "must be an object, not a list")]));
    }
}
