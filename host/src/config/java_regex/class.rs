//! `[…]`, as `Pattern.clazz` reads it. Classes within classes and `&&` are refused: their meaning changed between Java
//! versions, and one class says it as well.

use super::escape::{self, Escape, push_member};
use super::{Refused, Token, Translator, push_literal};

/// Reads a class; its `[` is taken.
pub(super) fn translate(translator: &mut Translator) -> Result<String, Refused> {
    let mut class = String::from("[");
    if translator.take_if('^') {
        class.push('^');
    }
    let mut is_empty = true;
    loop {
        let Some(token) = translator.take() else {
            return Err(translator.refusal("a '[' is not closed; write \\[ for the sign"));
        };
        match token {
            Token { character: ']', quoted: false, .. } if !is_empty => break,
            Token { character: '[', quoted: false, .. } => {
                return Err(
                    translator.refusal("a class within a class is not supported; write \\[ for the sign")
                );
            }
            Token { character: '&', quoted: false, .. } if translator.peek() == Some('&') => {
                return Err(translator.refusal("&& in a class is not supported; write \\& for the sign"));
            }
            token => member(translator, token, &mut class)?,
        }
        is_empty = false;
    }
    class.push(']');
    Ok(class)
}

fn member(translator: &mut Translator, token: Token, class: &mut String) -> Result<(), Refused> {
    let first = match one(translator, token)? {
        One::Set(members) => {
            class.push_str(&members);
            return Ok(());
        }
        One::Character(character) => character,
    };
    let ignore_case = translator.flags.ignore_case;
    let behind_dash = translator.tokens.get(translator.next + 1).copied();
    let is_range = translator.peek() == Some('-')
        && behind_dash.is_some_and(|token| token.quoted || !matches!(token.character, ']' | '['));
    if !is_range {
        push_member(class, first, ignore_case);
        return Ok(());
    }
    translator.next += 1;
    let last = match translator.take() {
        Some(token) => one(translator, token)?,
        None => return Err(translator.refusal("a '[' is not closed; write \\[ for the sign")),
    };
    match last {
        One::Character(last) if last >= first => push_range(class, first, last, ignore_case),
        One::Character(last) => {
            return Err(translator.refusal(format!("the range {first}-{last} ends below its start")));
        }
        One::Set(_) => return Err(translator.refusal("a range ends in a set of characters")),
    }
    Ok(())
}

enum One {
    Character(char),
    Set(String),
}

fn one(translator: &mut Translator, token: Token) -> Result<One, Refused> {
    if token.quoted || token.character != '\\' {
        return Ok(One::Character(token.character));
    }
    match escape::read(translator)? {
        Escape::Character(character) => Ok(One::Character(character)),
        Escape::Set(set) => Ok(One::Set(set.as_member())),
        Escape::Anchor(_) | Escape::Group(_) => {
            Err(translator.refusal("an anchor or a group stands in a class"))
        }
    }
}

/// A range; under `(?i)` also the other case of each ASCII letter in it.
fn push_range(class: &mut String, first: char, last: char, ignore_case: bool) {
    push_literal(class, first);
    class.push('-');
    push_literal(class, last);
    if ignore_case {
        let is_in = |character: &char| (first..=last).contains(character);
        class.extend(('a'..='z').filter(is_in).map(|letter| letter.to_ascii_uppercase()));
        class.extend(('A'..='Z').filter(is_in).map(|letter| letter.to_ascii_lowercase()));
    }
}
