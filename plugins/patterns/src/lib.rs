//! Regular expressions that cover whole texts, and templates that are filled from their groups.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod template;

use regex_lite::{Captures, Regex, RegexBuilder};

pub use template::{Piece, Template};

/// A larger compiled expression is refused, in bytes: settings come from outside.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// A regular expression; it matches a text as a whole or not at all.
#[derive(Debug)]
pub struct WholeMatch {
    regex: Regex,
}

impl WholeMatch {
    /// An error is a sentence for the operator.
    pub fn new(expression: &str) -> Result<Self, String> {
        let compile =
            |expression: &str| RegexBuilder::new(expression).size_limit(EXPRESSION_BYTES_MAX).build();
        // Alone first: the anchors must not help a text such as `a)|(b` to become an expression.
        let whole = compile(expression).and_then(|_| compile(&format!(r"\A(?:{expression})\z")));
        match whole {
            Ok(regex) => Ok(Self { regex }),
            Err(error) => Err(format!("\"{expression}\" is no regular expression: {error}")),
        }
    }

    /// Whether the expression covers the whole text.
    pub fn covers(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// What texts become: those that `matches` covers take the form of the template.
#[derive(Debug)]
pub struct Rewrite {
    matches: WholeMatch,
    template: Template,
}

impl Rewrite {
    /// The template may name only groups that the expression has. An error is a sentence for the operator, of the
    /// expression (`Ok(Err)`) or of the template.
    pub fn new(matches: WholeMatch, to: &str) -> Result<Self, String> {
        let template = Template::parse(to, &matches.group_names())?;
        Ok(Self { matches, template })
    }

    /// The template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The text's new form; `None` if the expression does not cover it.
    pub fn apply(&self, text: &str) -> Option<String> {
        let captures = self.matches.regex.captures(text)?;
        Some(self.template.fill(|group| captured(&captures, group)))
    }
}

impl WholeMatch {
    /// By number, the name of each group; the first, of the whole text, has none.
    fn group_names(&self) -> Vec<Option<&str>> {
        self.regex.capture_names().collect()
    }
}

/// A group that took no part is empty.
fn captured<'a>(captures: &Captures<'a>, group: usize) -> &'a str {
    captures.get(group).map_or("", |found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(matches: &str, to: &str) -> Rewrite {
        Rewrite::new(WholeMatch::new(matches).unwrap(), to).unwrap()
    }

    #[test]
    fn the_whole_text_must_match() {
        let check = |expression: &str, text: &str, is_covered: bool| {
            assert_eq!(
                WholeMatch::new(expression).unwrap().covers(text),
                is_covered,
                "{expression} {text:?}"
            );
        };
        check("a.*", "abc", true);
        check("a.*", "xabc", false);
        check("a|bc", "bc", true);
        check("a|bc", "ab", false);
        check("a", "a\n", false);
        check("(?m)a$", "a\nb", false);
        check("", "", true);
    }

    #[test]
    fn wrong_expressions_are_refused_in_words() {
        let check = |expression: &str, message: &str| {
            assert_eq!(WholeMatch::new(expression).unwrap_err(), message);
        };
        check("a(", "\"a(\" is no regular expression: found open group without closing ')'");
        check("a)|(b", "\"a)|(b\" is no regular expression: found closing ')' without matching '('");
    }

    #[test]
    fn an_expression_that_grows_too_large_is_refused() {
        assert!(WholeMatch::new("((((a{1000}){1000}){1000}){1000})").is_err());
    }

    #[test]
    fn templates_are_filled_from_groups() {
        let check = |matches: &str, to: &str, text: &str, answer: Option<&str>| {
            assert_eq!(rewrite(matches, to).apply(text).as_deref(), answer, "{text}");
        };
        check(r"User:CN=([^,]+),.*", "User:$1", "User:CN=alice,O=shop", Some("User:alice"));
        check(r"(?<team>\w+)\.(.*)", "${2}.${team}x", "shop.orders", Some("orders.shopx"));
        check(r"(a)|(b)", "[$1$2$0]", "b", Some("[bb]"));
        check("a", "x", "b", None);
    }
}
