//! The way back from what a pattern makes: proven when the plugin starts, or refused.
//!
//! A pattern turns `text (group) text (group)` into a template of the same groups. The way back is to take the new name
//! apart into the template's pieces and to fill the pattern's parts with them. That gives the one old name if there is
//! but one way to take the new name apart, and no part of the old name is lost.

use tidegate_patterns::Piece;

use crate::extent::{Alphabet, Extent, Part, parts};

/// Gives back what a pattern was filled from.
#[derive(Debug)]
pub(crate) struct Inverse {
    parts: Vec<Part>,
    pieces: Vec<Place>,
    /// The piece that takes what the others leave.
    free: usize,
}

/// A piece of the new name.
#[derive(Clone, Debug)]
enum Place {
    Text(String),
    Group { number: usize, extent: Extent },
}

impl Inverse {
    /// An error is a sentence for the operator.
    pub(crate) fn prove(expression: &str, to: &str, template: &[Piece]) -> Result<Self, String> {
        let parts = parts(expression)?;
        let pieces = places(to, template, &parts)?;
        check_nothing_is_lost(expression, to, &parts, &pieces)?;
        let free = free_piece(to, &pieces)?;
        Ok(Self { parts, pieces, free })
    }

    /// The only name that can have become `name`; whether it does is to be tried.
    pub(crate) fn candidate(&self, name: &str) -> Option<String> {
        if !name.is_ascii() {
            return None;
        }
        let mut groups: Vec<(usize, &str)> = Vec::new();
        let mut rest = name;
        for piece in self.pieces.get(..self.free)? {
            let length = piece.length_at_front(rest)?;
            let (taken, behind) = rest.split_at_checked(length)?;
            piece.note(taken, &mut groups);
            rest = behind;
        }
        for piece in self.pieces.get(self.free + 1..).unwrap_or_default().iter().rev() {
            let length = piece.length_at_end(rest)?;
            let (before, taken) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
            piece.note(taken, &mut groups);
            rest = before;
        }
        match self.pieces.get(self.free) {
            Some(Place::Text(text)) if text != rest => return None,
            None if !rest.is_empty() => return None,
            Some(piece) => piece.note(rest, &mut groups),
            None => {}
        }
        Some(self.fill(&groups))
    }

    fn fill(&self, groups: &[(usize, &str)]) -> String {
        let mut name = String::new();
        let mut number = 0;
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Group(extent) => {
                    number += 1;
                    let found = groups.iter().find(|(group, _)| *group == number);
                    name.push_str(found.map_or(extent.only.as_deref().unwrap_or_default(), |(_, text)| text));
                }
            }
        }
        name
    }
}

fn places(to: &str, template: &[Piece], parts: &[Part]) -> Result<Vec<Place>, String> {
    let groups: Vec<&Extent> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Group(extent) => Some(extent),
            Part::Text(_) => None,
        })
        .collect();
    let place = |piece: &Piece| match piece {
        Piece::Text(text) => Ok(Place::Text(text.clone())),
        Piece::Group(0) => {
            Err(format!("\"{to}\" names group 0, the whole name: put the pattern into a group"))
        }
        Piece::Group(number) => match groups.get(number - 1) {
            Some(extent) => Ok(Place::Group { number: *number, extent: (*extent).clone() }),
            None => Err(format!("\"{to}\" names the group {number}, which is not there")),
        },
    };
    template.iter().map(place).collect()
}

fn check_nothing_is_lost(expression: &str, to: &str, parts: &[Part], pieces: &[Place]) -> Result<(), String> {
    let mut number = 0;
    for part in parts {
        let Part::Group(extent) = part else { continue };
        number += 1;
        let is_named = pieces
            .iter()
            .any(|piece| matches!(piece, Place::Group { number: named, .. } if *named == number));
        if !is_named && extent.only.is_none() {
            return Err(format!(
                "\"{to}\" does not name group {number} of \"{expression}\", so two topics could get one name"
            ));
        }
    }
    Ok(())
}

/// From both ends, as long as it is certain where a piece ends; one piece may lie between, and takes the rest.
fn free_piece(to: &str, pieces: &[Place]) -> Result<usize, String> {
    let is_certain_from_front = |index: usize| {
        pieces.get(index).is_some_and(|piece| piece.ends_before(pieces.get(index + 1), Place::first))
    };
    let is_certain_from_end = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| pieces.get(before));
        pieces.get(index).is_some_and(|piece| piece.ends_before(before, Place::last))
    };
    let free = (0..pieces.len())
        .find(|index| !is_certain_from_front(*index))
        .unwrap_or(pieces.len().saturating_sub(1));
    match (free + 1..pieces.len()).rev().find(|index| !is_certain_from_end(*index)) {
        None => Ok(free),
        Some(unclear) => Err(format!(
            "\"{to}\" can't be taken apart again: where {} ends and {} begins is not certain; put a text between \
             them that they can't hold, or narrow the groups (such as [^.]* for .*)",
            pieces.get(free).map(Place::label).unwrap_or_default(),
            pieces.get(unclear).map(Place::label).unwrap_or_default(),
        )),
    }
}

impl Place {
    fn label(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{text}\""),
            Self::Group { number, .. } => format!("group {number}"),
        }
    }

    /// Whether it is certain where this piece ends on the side of its neighbour: it has one length, or the neighbour
    /// stops it.
    fn ends_before(&self, neighbour: Option<&Self>, edge: fn(&Self) -> Option<Alphabet>) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Group { extent, .. } => {
                extent.is_of_one_length()
                    || neighbour.and_then(edge).is_some_and(|edge| edge.is_disjoint(extent.alphabet))
            }
        }
    }

    /// The characters of which the first must be one; `None` if the piece may be empty.
    fn first(&self) -> Option<Alphabet> {
        match self {
            Self::Text(text) => text.chars().next().map(Alphabet::of),
            Self::Group { extent, .. } => (extent.min > 0).then_some(extent.alphabet),
        }
    }

    fn last(&self) -> Option<Alphabet> {
        match self {
            Self::Text(text) => text.chars().next_back().map(Alphabet::of),
            Self::Group { extent, .. } => (extent.min > 0).then_some(extent.alphabet),
        }
    }

    fn length_at_front(&self, text: &str) -> Option<usize> {
        match self {
            Self::Text(piece) => text.starts_with(piece.as_str()).then_some(piece.len()),
            Self::Group { extent, .. } if extent.is_of_one_length() => Some(extent.min),
            Self::Group { extent, .. } => Some(text.chars().take_while(|c| extent.alphabet.has(*c)).count()),
        }
    }

    fn length_at_end(&self, text: &str) -> Option<usize> {
        match self {
            Self::Text(piece) => text.ends_with(piece.as_str()).then_some(piece.len()),
            Self::Group { extent, .. } if extent.is_of_one_length() => Some(extent.min),
            Self::Group { extent, .. } => {
                Some(text.chars().rev().take_while(|c| extent.alphabet.has(*c)).count())
            }
        }
    }

    fn note<'a>(&self, taken: &'a str, groups: &mut Vec<(usize, &'a str)>) {
        if let Self::Group { number, .. } = self {
            groups.push((*number, taken));
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_patterns::{Rewrite, WholeMatch};

    use super::*;

    fn prove(expression: &str, to: &str) -> Result<(Rewrite, Inverse), String> {
        let rewrite = Rewrite::new(WholeMatch::new(expression).unwrap(), to).unwrap();
        let inverse = Inverse::prove(expression, to, rewrite.template().pieces())?;
        Ok((rewrite, inverse))
    }

    #[test]
    fn names_lead_back() {
        let check = |expression: &str, to: &str, names: &[(&str, &str)]| {
            let (rewrite, inverse) = prove(expression, to).unwrap();
            for (old, new) in names {
                assert_eq!(rewrite.apply(old).as_deref(), Some(*new), "{expression} {old}");
                assert_eq!(inverse.candidate(new).as_deref(), Some(*old), "{expression} {new}");
            }
        };
        check("(.*)", "eu.$1", &[("orders", "eu.orders"), ("", "eu.")]);
        check("(.*)", "$1.copy", &[("orders", "orders.copy")]);
        check(r"eu\.(.*)", "$1", &[("eu.orders", "orders"), ("eu.eu.x", "eu.x")]);
        check(r"([^.]+)\.(.*)", "$2.$1", &[("shop.a.b", "a.b.shop"), ("shop.", ".shop")]);
        check(r"(.*)\.([^.]+)", "$2.$1", &[("a.b.shop", "shop.a.b")]);
        check(
            r"(?<team>\w+)-(?<name>.*)-v(\d+)",
            "v$3.${name}.${team}",
            &[("shop-a.b-c-v12", "v12.a.b-c.shop")],
        );
        check(r"(\d+)([a-z]+)", "$2$1", &[("12ab", "ab12")]);
        check("([a-z]{2})(.*)", "$2$1", &[("euorders", "orderseu")]);
        check("(eu)-(.*)", "$2", &[("eu-orders", "orders")]);
        check("orders", "bestellungen", &[("orders", "bestellungen")]);
        check("(a+)", "$1-$1", &[("aa", "aa-aa")]);
        check("x([a-z]+)-", "x$1-", &[("xyx-", "xyx-")]);
    }

    #[test]
    fn names_of_another_form_have_no_candidate() {
        let check = |expression: &str, to: &str, names: &[&str]| {
            let (_, inverse) = prove(expression, to).unwrap();
            for name in names {
                assert_eq!(inverse.candidate(name), None, "{name}");
            }
        };
        check("(.*)", "eu.$1.x", &["orders", "eu.x", "eu.", "us.orders.x", "", "eu.größe.x"]);
        check("orders", "bestellungen", &["bestellungen2", "orders", ""]);
        check("([a-z]{2})(.*)", "$2$1", &["", "a"]);
    }

    #[test]
    fn what_can_not_be_taken_apart_is_refused_in_words() {
        let check = |expression: &str, to: &str, message: &str| {
            assert_eq!(prove(expression, to).map(|_| ()), Err(message.to_owned()));
        };
        let way_out =
            "put a text between them that they can't hold, or narrow the groups (such as [^.]* for .*)";
        check(
            "(.*)-(.*)",
            "$1.$2",
            &format!(
                "\"$1.$2\" can't be taken apart again: where group 1 ends and group 2 begins is not certain; {way_out}"
            ),
        );
        check(
            r"([a-z]*)\.([a-z]*)",
            "$1$2",
            &format!(
                "\"$1$2\" can't be taken apart again: where group 1 ends and group 2 begins is not certain; {way_out}"
            ),
        );
        check(
            "(.*)",
            "$1.$1",
            &format!(
                "\"$1.$1\" can't be taken apart again: where group 1 ends and group 1 begins is not certain; {way_out}"
            ),
        );
        check(
            r"([^.]+)\.(.*)",
            "$1",
            "\"$1\" does not name group 2 of \"([^.]+)\\.(.*)\", so two topics could get one name",
        );
        check("(.*)", "$0", "\"$0\" names group 0, the whole name: put the pattern into a group");
        check("(a+)", "all", "\"all\" does not name group 1 of \"(a+)\", so two topics could get one name");
    }
}
