//! A small strict reader of settings: scalars, lists, tables and objects within objects. serde_json would make a small
//! plugin more than twice as large; with the feature `serde` `from_json` reads settings into types all the same.
//!
//! ```
//! use tidegate_plugin::Problem;
//! use tidegate_plugin::settings::Settings;
//!
//! struct Rule {
//!     topic: String,
//!     keep: Vec<String>,
//! }
//!
//! fn read(text: &str) -> Result<(Vec<(String, String)>, Vec<Rule>), Vec<Problem>> {
//!     let mut settings = Settings::parse(text)?;
//!     let table = settings.string_map("table").unwrap_or_default();
//!     let rules = settings.objects("rules", |rule| Rule {
//!         topic: rule.required_string("topic"),
//!         keep: rule.strings("keep").unwrap_or_default(),
//!     });
//!     settings.finish()?;
//!     Ok((table, rules.unwrap_or_default()))
//! }
//!
//! let (table, rules) = read(r#"{"table": {"a": "b"}, "rules": [{"topic": "orders", "keep": ["x"]}]}"#)?;
//! assert_eq!(table, [("a".to_owned(), "b".to_owned())]);
//! assert_eq!((rules[0].topic.as_str(), rules[0].keep.len()), ("orders", 1));
//!
//! let problems = read(r#"{"rules": [{"topic": "orders", "kep": []}, {"keep": "x"}]}"#).err().unwrap();
//! assert_eq!(
//!     problems,
//!     [
//!         Problem::new("/rules/0/kep", "unknown field; there is: topic, keep"),
//!         Problem::new("/rules/1/topic", "is missing; it must be a string"),
//!         Problem::new("/rules/1/keep", "must be a list of strings, not a string"),
//!     ]
//! );
//! # Ok::<(), Vec<Problem>>(())
//! ```

mod json;
#[cfg(feature = "serde")]
mod typed;

pub use json::Value;
#[cfg(feature = "serde")]
pub use typed::from_json;

use crate::Problem;

/// The fields of one object of the settings. Take what you know, then [`finish`](Self::finish): that tells of all
/// problems at once, those with fields of a wrong type and those with fields that nobody took.
#[derive(Debug)]
pub struct Settings {
    /// JSON pointer to this object.
    at: String,
    /// A value that was taken is null here.
    fields: Vec<(String, Value)>,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl Settings {
    /// Reads one JSON object (RFC 8259, nothing looser; a field that stands there twice is an error).
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        match json::parse(text) {
            Ok(Value::Object(fields)) => Ok(Self::new(String::new(), fields)),
            Ok(other) => Err(of_all(not_but("an object", &other))),
            Err(error) => Err(of_all(error)),
        }
    }

    fn new(at: String, fields: Vec<(String, Value)>) -> Self {
        Self { at, fields, known: Vec::new(), problems: Vec::new() }
    }

    /// A field of any type; `None` if it is not there. Each field can be taken once.
    pub fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let (_, value) = self.fields.iter_mut().find(|(field, _)| field == name)?;
        Some(std::mem::replace(value, Value::Null))
    }

    /// A text; `None` if it is not there, or is none (then `finish` says so).
    pub fn string(&mut self, name: &'static str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            other => self.wrong_type(name, "a string", &other),
        }
    }

    /// A text that must be there; empty if it is not, or is none (then `finish` says so).
    pub fn required_string(&mut self, name: &'static str) -> String {
        match self.value(name) {
            Some(Value::String(text)) => return text,
            Some(other) => self.wrong_type(name, "a string", &other).unwrap_or_default(),
            None => self.problem(&[name], "is missing; it must be a string".to_owned()),
        }
        String::new()
    }

    /// `true` or `false`; `None` if it is not there, or is neither (then `finish` says so).
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.value(name)? {
            Value::Boolean(value) => Some(value),
            other => self.wrong_type(name, "true or false", &other),
        }
    }

    /// A whole number from 0 to 2^64 - 1, written without fraction and exponent; `None` if it is not there, or is none
    /// (then `finish` says so).
    pub fn whole_number(&mut self, name: &'static str) -> Option<u64> {
        match self.value(name)? {
            Value::Number(text) => text.parse().ok().or_else(|| {
                self.problem(&[name], join(&["must be a whole number, not ", &text]));
                None
            }),
            other => self.wrong_type(name, "a whole number", &other),
        }
    }

    /// A list of values of any types; `None` if it is not there, or is none (then `finish` says so).
    pub fn list(&mut self, name: &'static str) -> Option<Vec<Value>> {
        match self.value(name)? {
            Value::List(values) => Some(values),
            other => self.wrong_type(name, "a list", &other),
        }
    }

    /// A list of texts; `None` if it is not there, or is none (then `finish` says so). Members that are no texts are
    /// left out and told.
    pub fn strings(&mut self, name: &'static str) -> Option<Vec<String>> {
        let values = match self.value(name)? {
            Value::List(values) => values,
            other => return self.wrong_type(name, "a list of strings", &other),
        };
        let mut texts = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text),
                other => self.problem(&[name, &index.to_string()], not_but("a string", &other)),
            }
        }
        Some(texts)
    }

    /// A table: an object whose fields are all texts, in the order of the text; no name stands there twice. `None` if
    /// it is not there, or is no object (then `finish` says so). Fields that are no texts are left out and told.
    pub fn string_map(&mut self, name: &'static str) -> Option<Vec<(String, String)>> {
        let fields = match self.value(name)? {
            Value::Object(fields) => fields,
            other => return self.wrong_type(name, "an object of strings", &other),
        };
        let mut table = Vec::new();
        for (field, value) in fields {
            match value {
                Value::String(text) => table.push((field, text)),
                other => self.problem(&[name, &field], not_but("a string", &other)),
            }
        }
        Some(table)
    }

    /// An object within this one: `read` takes its fields, and what it leaves is an unknown field. `None` if it is not
    /// there, or is none (then `finish` says so).
    pub fn object<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Settings) -> T) -> Option<T> {
        let value = self.value(name)?;
        self.inner(&[name], value, read)
    }

    /// A list of objects, each as in [`object`](Self::object). Members that are no objects are left out and told.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Settings) -> T,
    ) -> Option<Vec<T>> {
        let values = match self.value(name)? {
            Value::List(values) => values,
            other => return self.wrong_type(name, "a list of objects", &other),
        };
        let mut read_ones = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            read_ones.extend(self.inner(&[name, &index.to_string()], value, &mut read));
        }
        Some(read_ones)
    }

    /// Adds what the plugin itself objects to; `at` is a JSON pointer from this object on, such as `/prefix`.
    pub fn object_to(&mut self, at: &str, message: impl Into<String>) {
        self.problems.push(Problem { at: join(&[&self.at, at]), message: message.into() });
    }

    /// All problems, or none.
    pub fn finish(mut self) -> Result<(), Vec<Problem>> {
        self.tell_unknown_fields();
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    fn inner<T>(&mut self, place: &[&str], value: Value, read: impl FnOnce(&mut Settings) -> T) -> Option<T> {
        let fields = match value {
            Value::Object(fields) => fields,
            other => {
                self.problem(place, not_but("an object", &other));
                return None;
            }
        };
        let mut inner = Self::new(self.pointer(place), fields);
        let read_one = read(&mut inner);
        inner.tell_unknown_fields();
        self.problems.append(&mut inner.problems);
        Some(read_one)
    }

    fn tell_unknown_fields(&mut self) {
        for (name, _) in std::mem::take(&mut self.fields) {
            if !self.known.contains(&name.as_str()) {
                self.problem(&[&name], unknown_field(&self.known));
            }
        }
    }

    fn wrong_type<T>(&mut self, name: &str, wanted: &str, found: &Value) -> Option<T> {
        self.problem(&[name], not_but(wanted, found));
        None
    }

    #[inline(never)]
    fn problem(&mut self, place: &[&str], message: String) {
        let at = self.pointer(place);
        self.problems.push(Problem { at, message });
    }

    /// The JSON pointer to a place from this object on.
    fn pointer(&self, place: &[&str]) -> String {
        let mut pointer = self.at.clone();
        for name in place {
            pointer.push('/');
            for character in name.chars() {
                let mut buffer = [0; 4];
                pointer.push_str(match character {
                    '~' => "~0",
                    '/' => "~1",
                    _ => character.encode_utf8(&mut buffer),
                });
            }
        }
        pointer
    }
}

/// `format!` and `concat` would bring more code into the plugin.
fn join(texts: &[&str]) -> String {
    let mut joined = String::new();
    for text in texts {
        joined.push_str(text);
    }
    joined
}

fn of_all(message: String) -> Vec<Problem> {
    vec![Problem { at: String::new(), message }]
}

fn not_but(wanted: &str, found: &Value) -> String {
    join(&["must be ", wanted, ", not ", found.kind()])
}

fn unknown_field(known: &[&str]) -> String {
    let mut message = String::from("unknown field; there ");
    for (index, name) in known.iter().enumerate() {
        message.push_str(if index == 0 { "is: " } else { ", " });
        message.push_str(name);
    }
    if known.is_empty() {
        message.push_str("are no settings");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_by_type() {
        let mut settings = Settings::parse(r#"{"separator": ".", "strict": true, "rules": [1]}"#).unwrap();

        assert_eq!(settings.string("separator").as_deref(), Some("."));
        assert_eq!(settings.boolean("strict"), Some(true));
        assert_eq!(settings.value("rules"), Some(Value::List(vec![Value::Number("1".into())])));
        assert_eq!(settings.string("absent"), None);
        assert_eq!(settings.finish(), Ok(()));
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut settings = Settings::parse(r#"{"separator": 1, "strict": null, "a/b~": {}}"#).unwrap();
        settings.string("separator");
        settings.boolean("strict");
        settings.object_to("/separator", "must not be \"-\"");

        assert_eq!(
            settings.finish(),
            Err(vec![
                Problem::new("/separator", "must be a string, not a number"),
                Problem::new("/strict", "must be true or false, not null"),
                Problem::new("/separator", "must not be \"-\""),
                Problem::new("/a~1b~0", "unknown field; there is: separator, strict"),
            ])
        );
        assert_eq!(
            Settings::parse(r#"{"x": 1}"#).unwrap().finish(),
            Err(vec![Problem::new("/x", "unknown field; there are no settings")])
        );
    }

    #[test]
    fn problems_within_lists_and_tables_have_their_place() {
        let text = r#"{"limit": 18446744073709551615, "low": -1, "names": ["a", 1], "table": {"x/y": null, "b": "c"},
            "rules": [{"topic": "t", "inner": {"z": 1}}, 7], "nest": [], "many": {}}"#;
        let mut settings = Settings::parse(text).unwrap();

        assert_eq!(settings.whole_number("limit"), Some(u64::MAX));
        assert_eq!(settings.whole_number("low"), None);
        assert_eq!(settings.strings("names"), Some(vec!["a".to_owned()]));
        assert_eq!(settings.string_map("table"), Some(vec![("b".to_owned(), "c".to_owned())]));
        let topics = settings.objects("rules", |rule| {
            rule.object("inner", |inner| inner.object_to("/deep", "is odd"));
            rule.object_to("/topic", "is taken");
            rule.string("topic")
        });
        assert_eq!(topics, Some(vec![Some("t".to_owned())]));
        assert_eq!(settings.object("nest", |nest| nest.boolean("x")), None);
        assert_eq!(settings.list("many"), None);
        assert_eq!(settings.required_string("gone"), "");

        assert_eq!(
            settings.finish(),
            Err(vec![
                Problem::new("/low", "must be a whole number, not -1"),
                Problem::new("/names/1", "must be a string, not a number"),
                Problem::new("/table/x~1y", "must be a string, not null"),
                Problem::new("/rules/0/inner/deep", "is odd"),
                Problem::new("/rules/0/inner/z", "unknown field; there are no settings"),
                Problem::new("/rules/0/topic", "is taken"),
                Problem::new("/rules/1", "must be an object, not a number"),
                Problem::new("/nest", "must be an object, not a list"),
                Problem::new("/many", "must be a list, not an object"),
                Problem::new("/gone", "is missing; it must be a string"),
            ])
        );
    }

    #[test]
    fn settings_that_are_no_object_are_refused() {
        let check = |text: &str, message: &str| {
            assert_eq!(Settings::parse(text).unwrap_err(), [Problem::new("", message)], "{text}");
        };
        check("[]", "must be an object, not a list");
        check("\"separator\"", "must be an object, not a string");
        check("", "is not JSON: the text ends where a value should be");
        check("{'a': 1}", "is not JSON: at byte 1 a field's name in double quotes should be");
    }
}
