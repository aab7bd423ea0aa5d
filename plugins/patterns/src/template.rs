//! Texts with places for the groups of an expression.

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// What the group of this number matched.
    Group(usize),
}

/// A text with places for groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// `$1`, `${1}` and `${name}` are groups, `$$` is a dollar sign. `groups` are the names by number. An error is a
    /// sentence for the operator.
    pub fn parse(text: &str, groups: &[Option<&str>]) -> Result<Self, String> {
        let mut template = Self { pieces: Vec::new() };
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            template.push_text(before);
            if let Some(behind) = behind.strip_prefix('$') {
                template.push_text("$");
                rest = behind;
                continue;
            }
            let (name, behind) = group_name(text, behind)?;
            template.pieces.push(Piece::Group(group_number(text, name, groups)?));
            rest = behind;
        }
        template.push_text(rest);
        Ok(template)
    }

    /// The parts, in order; never two texts side by side.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The text, with what `group` says for each group.
    pub fn fill<'a>(&self, group: impl Fn(usize) -> &'a str) -> String {
        let mut filled = String::new();
        for piece in &self.pieces {
            filled.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(number) => group(*number),
            });
        }
        filled
    }

    fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }
}

/// The name behind a dollar sign, and what is behind that.
fn group_name<'a>(text: &str, behind: &'a str) -> Result<(&'a str, &'a str), String> {
    if let Some(inside) = behind.strip_prefix('{') {
        return inside.split_once('}').ok_or_else(|| format!("\"{text}\" has a \"${{\" without a \"}}\""));
    }
    let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    if end == 0 {
        return Err(format!(
            "\"{text}\" has a \"$\" that names no group: it is $1 or ${{name}}, and $$ for a dollar sign"
        ));
    }
    Ok(behind.split_at(end))
}

fn group_number(text: &str, name: &str, groups: &[Option<&str>]) -> Result<usize, String> {
    let number = match name.parse::<usize>() {
        Ok(number) => (number < groups.len()).then_some(number),
        Err(_) => groups.iter().position(|group| *group == Some(name)),
    };
    number.ok_or_else(|| format!("\"{text}\" names the group \"{name}\", which the expression does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [Option<&str>; 3] = [None, None, Some("team")];

    #[test]
    fn templates_are_read() {
        let check = |text: &str, pieces: &[Piece]| {
            assert_eq!(Template::parse(text, &GROUPS).unwrap().pieces(), pieces, "{text}");
        };
        let plain = |text: &str| Piece::Text(text.into());
        check("", &[]);
        check("a.b", &[plain("a.b")]);
        check("$1", &[Piece::Group(1)]);
        check(
            "a$1b${2}c${team}",
            &[plain("a"), Piece::Group(1), plain("b"), Piece::Group(2), plain("c"), Piece::Group(2)],
        );
        check("$1_x", &[Piece::Group(1), plain("_x")]);
        check("a$$1$$", &[plain("a$1$")]);
        check("$0", &[Piece::Group(0)]);
    }

    #[test]
    fn wrong_templates_are_refused_in_words() {
        let check = |text: &str, message: &str| {
            assert_eq!(Template::parse(text, &GROUPS), Err(message.to_owned()), "{text}");
        };
        check("a${team", "\"a${team\" has a \"${\" without a \"}\"");
        check(
            "$team",
            "\"$team\" has a \"$\" that names no group: it is $1 or ${name}, and $$ for a dollar sign",
        );
        check("a$", "\"a$\" has a \"$\" that names no group: it is $1 or ${name}, and $$ for a dollar sign");
        check("$3", "\"$3\" names the group \"3\", which the expression does not have");
        check("${x}", "\"${x}\" names the group \"x\", which the expression does not have");
        check(
            "$99999999999999999999",
            "\"$99999999999999999999\" names the group \"99999999999999999999\", which the expression does not have",
        );
    }
}
