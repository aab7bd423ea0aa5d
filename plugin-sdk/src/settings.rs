//! A small strict reader of settings, for plugins that need a few fields: serde_json would make a small plugin
//! four times as large. A plugin with rich settings takes serde_json and its own types instead.

mod json;

pub use json::Value;

use crate::Problem;

/// The fields of the settings. Take what you know, then [`finish`](Self::finish): that tells of all problems at
/// once, those with fields of a wrong type and those with fields that nobody took.
#[derive(Debug)]
pub struct Settings {
    fields: Vec<(String, Value)>,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl Settings {
    /// Reads one JSON object (RFC 8259, nothing looser; a field that stands there twice is an error).
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        match json::parse(text) {
            Ok(Value::Object(fields)) => Ok(Self { fields, known: Vec::new(), problems: Vec::new() }),
            Ok(other) => Err(vec![Problem::new("", format!("must be an object, not {}", other.kind()))]),
            Err(error) => Err(vec![Problem::new("", error)]),
        }
    }

    /// A field of any type; `None` if it is not there.
    pub fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let index = self.fields.iter().position(|(field, _)| field == name)?;
        Some(self.fields.remove(index).1)
    }

    /// A text; `None` if it is not there, or is none (then `finish` says so).
    pub fn string(&mut self, name: &'static str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            other => self.wrong_type(name, "a string", &other),
        }
    }

    /// `true` or `false`; `None` if it is not there, or is neither (then `finish` says so).
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.value(name)? {
            Value::Boolean(value) => Some(value),
            other => self.wrong_type(name, "true or false", &other),
        }
    }

    /// Adds what the plugin itself objects to; `at` is a JSON pointer such as `/prefix`.
    pub fn object_to(&mut self, at: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(at, message));
    }

    /// All problems, or none.
    pub fn finish(mut self) -> Result<(), Vec<Problem>> {
        for (name, _) in &self.fields {
            self.problems.push(Problem::new(pointer(name), unknown_field(&self.known)));
        }
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    fn wrong_type<T>(&mut self, name: &str, wanted: &str, found: &Value) -> Option<T> {
        let message = format!("must be {wanted}, not {}", found.kind());
        self.problems.push(Problem::new(pointer(name), message));
        None
    }
}

fn unknown_field(known: &[&str]) -> String {
    if known.is_empty() {
        return "unknown field; there are no settings".to_owned();
    }
    format!("unknown field; there is: {}", known.join(", "))
}

/// The JSON pointer to a field of the outermost object.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace('~', "~0").replace('/', "~1"))
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
