//! What the shipped plugins read of their settings besides what the SDK reads: choices, and tables of which a wrong one
//! is left out. All problems are told at once, each with its JSON pointer.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use tidegate_plugin::Problem;
use tidegate_plugin::settings::{Settings, Value};

/// A JSON object of the settings. Take what you know; what nobody took is a problem.
#[derive(Debug)]
pub struct Table<'a> {
    settings: &'a mut Settings,
}

/// Reads all of the settings: `take` takes the fields.
pub fn read<T>(settings: &str, take: impl FnOnce(&mut Table<'_>) -> T) -> Result<T, Vec<Problem>> {
    let mut settings = Settings::parse(settings)?;
    let taken = take(&mut Table { settings: &mut settings });
    settings.finish()?;
    Ok(taken)
}

impl Table<'_> {
    /// A field of any type; `None` if it is not there.
    pub fn value(&mut self, name: &'static str) -> Option<Value> {
        self.settings.value(name)
    }

    /// A text; `None` if it is not there, or is none (a problem).
    pub fn string(&mut self, name: &'static str) -> Option<String> {
        self.settings.string(name)
    }

    /// A text that must be there; `None` is a problem already.
    pub fn required_string(&mut self, name: &'static str) -> Option<String> {
        match self.value(name) {
            Some(Value::String(text)) => Some(text),
            Some(other) => {
                self.object_to(name, format!("must be a string, not {}", other.kind()));
                None
            }
            None => self.missing(name),
        }
    }

    /// A number from 0, without a fraction; `None` if it is not there, or is none (a problem).
    pub fn count(&mut self, name: &'static str) -> Option<usize> {
        self.settings.whole_number(name).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
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
        self.settings.strings(name)
    }

    /// A table of texts by name, in the order of the settings; empty if it is not there.
    pub fn string_table(&mut self, name: &'static str) -> Vec<(String, String)> {
        self.settings.string_map(name).unwrap_or_default()
    }

    /// A list of tables, of which `take` takes the fields; what it gives `None` for is left out. `None` if there is no
    /// such list.
    pub fn tables<T>(
        &mut self,
        name: &'static str,
        mut take: impl FnMut(&mut Table<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let taken = self.settings.objects(name, |settings| take(&mut Table { settings }))?;
        Some(taken.into_iter().flatten().collect())
    }

    /// One table, of which `take` takes the fields; `None` if it is not there.
    pub fn table<T>(
        &mut self,
        name: &'static str,
        take: impl FnOnce(&mut Table<'_>) -> Option<T>,
    ) -> Option<T> {
        self.settings.object(name, |settings| take(&mut Table { settings })).flatten()
    }

    /// Adds a problem; `at` is the field, or the rest of a JSON pointer from this table on.
    pub fn object_to(&mut self, at: &str, message: impl Into<String>) {
        let at = if at.is_empty() { String::new() } else { ["/", at].concat() };
        self.settings.object_to(&at, message);
    }

    /// A problem that this field is not there.
    pub fn missing<T>(&mut self, name: &str) -> Option<T> {
        self.object_to("", format!("lacks the field \"{name}\""));
        None
    }

    /// Fields that are no problem, whatever they hold: what they should be is not known.
    pub fn forget(&mut self, names: &[&'static str]) {
        for name in names {
            self.value(name);
        }
    }
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
            ("/rules/2/count", "must be a whole number, not 1.5"),
            ("/rules/2/mode", "must be one of mask, hash, not \"x\""),
            ("/rules/2/name", "must be a string, not a number"),
            ("/list/1", "must be a string, not a number"),
            ("/names/a~1b", "must be a string, not a number"),
            ("/other", "must be a string, not a list"),
            ("/more", "must be a list of strings, not a number"),
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
