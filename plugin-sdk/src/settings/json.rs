//! JSON text to values, strictly as RFC 8259 says.

use super::join;

/// Deeper nesting is refused: the reader goes down by recursion, and a guest's stack is small.
const DEPTH_MAX: usize = 64;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number as it was written; its form is checked, its size is not.
    Number(String),
    /// A text without its escapes.
    String(String),
    /// A list, in order.
    List(Vec<Value>),
    /// An object's fields in the order of the text; no name stands there twice.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// What kind of value it is, with its article: `a number`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// Reads one value that fills the whole text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0, error: String::new() };
    let value = reader.value(0).and_then(|value| {
        reader.skip_blanks();
        if reader.peek().is_some() { reader.wants("the end") } else { Some(value) }
    });
    value.ok_or(reader.error)
}

/// Its functions give nothing when they failed, and `error` says why: a text in each answer would be much code.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    error: String,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Both ends are always between characters; slicing by `get` keeps the code for the panic out of the plugin.
    fn since(&self, start: usize) -> &str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `byte` if it comes next, blanks before it included.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn wants<T>(&mut self, wanted: &str) -> Option<T> {
        self.tell_wanted(wanted);
        None
    }

    #[inline(never)]
    fn tell_wanted(&mut self, wanted: &str) {
        self.error = if self.peek().is_none() {
            join(&["is not JSON: the text ends where ", wanted, " should be"])
        } else {
            join(&["is not JSON: at byte ", &self.at.to_string(), " ", wanted, " should be"])
        };
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_blanks();
        if depth > DEPTH_MAX {
            self.error = join(&["is nested deeper than 64 levels at byte ", &self.at.to_string()]);
            return None;
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Option<Value> {
        for (word, value) in
            [("null", Value::Null), ("true", Value::Boolean(true)), ("false", Value::Boolean(false))]
        {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Some(value);
            }
        }
        self.wants("a value")
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        self.at += 1;
        if self.take(b'}') {
            return Some(Value::Object(fields));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return self.wants("a field's name in double quotes");
            }
            let name = self.string()?;
            if fields.iter().any(|(field, _)| *field == name) {
                self.error = join(&["has the field \"", &name, "\" twice"]);
                return None;
            }
            if !self.take(b':') {
                return self.wants("':'");
            }
            fields.push((name, self.value(depth + 1)?));
            if self.take(b'}') {
                return Some(Value::Object(fields));
            }
            if !self.take(b',') {
                return self.wants("',' or '}'");
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        self.at += 1;
        if self.take(b']') {
            return Some(Value::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Some(Value::List(values));
            }
            if !self.take(b',') {
                return self.wants("',' or ']'");
            }
        }
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Some(Value::Number(self.since(start).to_owned()))
    }

    fn digits(&mut self) -> Option<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.wants("a digit");
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let mut unescaped = String::new();
        self.at += 1;
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            unescaped.push_str(self.since(start));
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Some(unescaped);
                }
                Some(b'\\') => unescaped.push(self.escape()?),
                _ => return self.wants("'\"' or, for a control character, an escape"),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        self.at += 1;
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.wants("one of \"\\/bfnrtu"),
        };
        self.at += 1;
        Some(character)
    }

    /// `\u` and four digits; characters beyond the first 65,536 are two of these, a surrogate pair.
    fn unicode_escape(&mut self) -> Option<char> {
        let start = self.at - 1;
        self.at += 1;
        let mut code = self.hex4()?;
        if (0xd800..0xdc00).contains(&code) && self.rest().starts_with("\\u") {
            self.at += 2;
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        let character = char::from_u32(code);
        if character.is_none() {
            self.error = join(&["is not JSON: half a surrogate pair at byte ", &start.to_string()]);
        }
        character
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let Some(digits) = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)) else {
            return self.wants("four hexadecimal digits");
        };
        let code =
            digits.iter().fold(0, |code, digit| code * 16 + char::from(*digit).to_digit(16).unwrap_or(0));
        self.at += 4;
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let check = |text: &str, value: Value| assert_eq!(parse(text), Ok(value), "{text}");
        check(" null ", Value::Null);
        check("true", Value::Boolean(true));
        check("\tfalse\r\n", Value::Boolean(false));
        check("[]", Value::List(vec![]));
        check("{ }", Value::Object(vec![]));
        for number in ["0", "-0", "12", "-1.50", "1e9", "2E-7", "3.0e+1"] {
            check(number, Value::Number(number.into()));
        }
        check(
            r#" { "a" : [ 1 , { } ] , "" : "" } "#,
            Value::Object(vec![
                ("a".into(), Value::List(vec![Value::Number("1".into()), Value::Object(vec![])])),
                (String::new(), Value::String(String::new())),
            ]),
        );
    }

    #[test]
    fn strings_lose_their_escapes() {
        let check =
            |text: &str, value: &str| assert_eq!(parse(text), Ok(Value::String(value.into())), "{text}");
        check(r#""plain é 😀""#, "plain é 😀");
        check(r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t");
        check(r#""\u002e\u00E9\u20ac""#, ".é€");
        check(r#""\ud83d\uDE00!""#, "😀!");
        check(r#""\u0000""#, "\0");
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        let check = |text: &str, message: &str| assert_eq!(parse(text), Err(message.to_owned()), "{text}");
        check("{} x", "is not JSON: at byte 3 the end should be");
        check("{\"a\":1,}", "is not JSON: at byte 7 a field's name in double quotes should be");
        check("{\"a\" 1}", "is not JSON: at byte 5 ':' should be");
        check("{\"a\":1 \"b\":2}", "is not JSON: at byte 7 ',' or '}' should be");
        check("[1 2]", "is not JSON: at byte 3 ',' or ']' should be");
        check("[1,]", "is not JSON: at byte 3 a value should be");
        check("nul", "is not JSON: at byte 0 a value should be");
        check("01", "is not JSON: at byte 1 the end should be");
        check("-", "is not JSON: the text ends where a digit should be");
        check("1.", "is not JSON: the text ends where a digit should be");
        check("+1", "is not JSON: at byte 0 a value should be");
        check(
            "\"a",
            "is not JSON: the text ends where '\"' or, for a control character, an escape should be",
        );
        check("\"a\nb\"", "is not JSON: at byte 2 '\"' or, for a control character, an escape should be");
        check(r#""\x""#, "is not JSON: at byte 2 one of \"\\/bfnrtu should be");
        check(r#""\u12"#, "is not JSON: at byte 3 four hexadecimal digits should be");
        check(r#""\u+123""#, "is not JSON: at byte 3 four hexadecimal digits should be");
        check(r#""\ud83d""#, "is not JSON: half a surrogate pair at byte 1");
        check(r#""\ud83dx""#, "is not JSON: half a surrogate pair at byte 1");
        check(r#""\ud83d\u0041""#, "is not JSON: half a surrogate pair at byte 1");
        check(r#""\ude00""#, "is not JSON: half a surrogate pair at byte 1");
        check(r#"{"a":1,"\u0061":2}"#, "has the field \"a\" twice");
        check(&"[".repeat(100_000), "is nested deeper than 64 levels at byte 65");
        check("\u{feff}{}", "is not JSON: at byte 0 a value should be");
    }
}
