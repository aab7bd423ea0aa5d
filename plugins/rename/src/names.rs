//! The rules of naming, and the way back through them.

use std::collections::BTreeMap;

use tidegate_patterns::Rewrite;

use crate::inverse::Inverse;

/// Kafka's limit for a topic name, in bytes.
const NAME_BYTES_MAX: usize = 249;

/// A pattern whose inverse was proven.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) rewrite: Rewrite,
    pub(crate) inverse: Inverse,
}

/// What a topic is called that neither the table nor a pattern names.
#[derive(Debug)]
pub(crate) enum Otherwise {
    /// Its own name, but heartbeats get the prefix: those of several clusters would fall into one topic.
    Keep {
        heartbeats_prefix: String,
    },
    Prefix(String),
    Refuse,
}

/// All rules. The first that applies to a topic names it: the table, the patterns in order, then `otherwise`.
#[derive(Debug)]
pub(crate) struct Names {
    table: BTreeMap<String, String>,
    table_inverse: BTreeMap<String, String>,
    patterns: Vec<Pattern>,
    otherwise: Otherwise,
}

/// Which rule names a topic; the lesser goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Table,
    Pattern(usize),
    Otherwise,
}

impl Names {
    /// The table's new names differ from each other; it was checked where it was read.
    pub(crate) fn new(table: BTreeMap<String, String>, patterns: Vec<Pattern>, otherwise: Otherwise) -> Self {
        let table_inverse = table.iter().map(|(old, new)| (new.clone(), old.clone())).collect();
        Self { table, table_inverse, patterns, otherwise }
    }

    /// The new name. A topic whose name another topic has by an earlier rule is refused: each rule alone gives no name
    /// twice, so that is all that can collide, and no two topics ever get one name.
    pub(crate) fn to_target(&self, topic: &str) -> Result<String, String> {
        let Some((rule, name)) = self.apply(topic) else {
            return Err(
                "has no name on the target: neither the table nor a pattern is for it, and \"otherwise\" is \
                        \"refuse\""
                    .to_owned(),
            );
        };
        check_name(&name)?;
        match self.owner(&name) {
            Some((_, owner)) if owner == topic => Ok(name),
            Some((owners_rule, owner)) => Err(self.collision(&name, rule, &owner, owners_rule)),
            None => Err(format!("would be called \"{name}\", from which no rule leads back")),
        }
    }

    /// The topic that has this name, if any.
    pub(crate) fn to_source(&self, name: &str) -> Option<String> {
        check_name(name).ok()?;
        self.owner(name).map(|(_, topic)| topic)
    }

    fn apply(&self, topic: &str) -> Option<(Rule, String)> {
        if let Some(name) = self.table.get(topic) {
            return Some((Rule::Table, name.clone()));
        }
        for (index, pattern) in self.patterns.iter().enumerate() {
            if let Some(name) = pattern.rewrite.apply(topic) {
                return Some((Rule::Pattern(index), name));
            }
        }
        Some((Rule::Otherwise, self.otherwise.apply(topic)?))
    }

    /// The topic with that name by the earliest rule. Each rule has at most one candidate; that it really gets the
    /// name, and by that rule, is tried.
    fn owner(&self, name: &str) -> Option<(Rule, String)> {
        let in_table = self.table_inverse.get(name).cloned().map(|topic| (Rule::Table, topic));
        let by_pattern =
            self.patterns.iter().enumerate().filter_map(|(index, pattern)| {
                Some((Rule::Pattern(index), pattern.inverse.candidate(name)?))
            });
        let otherwise = self.otherwise.candidate(name).map(|topic| (Rule::Otherwise, topic));
        in_table.into_iter().chain(by_pattern).chain(otherwise).find(|(rule, topic)| {
            self.apply(topic).is_some_and(|(applied, given)| applied == *rule && given == name)
        })
    }

    fn collision(&self, name: &str, rule: Rule, owner: &str, owners_rule: Rule) -> String {
        let would_be = match rule {
            Rule::Otherwise if matches!(self.otherwise, Otherwise::Keep { .. }) => "can't keep its name",
            _ => "would be called so too",
        };
        let by = match owners_rule {
            Rule::Table => "the table".to_owned(),
            Rule::Pattern(index) => format!("pattern {}", index + 1),
            Rule::Otherwise => "\"otherwise\"".to_owned(),
        };
        format!("{would_be}: \"{name}\" is what \"{owner}\" is called by {by}; give one of them another name")
    }
}

impl Otherwise {
    fn apply(&self, topic: &str) -> Option<String> {
        match self {
            Self::Prefix(prefix) => Some(format!("{prefix}{topic}")),
            Self::Keep { heartbeats_prefix } if is_like_heartbeats(topic) => {
                Some(format!("{heartbeats_prefix}{topic}"))
            }
            Self::Keep { .. } => Some(topic.to_owned()),
            Self::Refuse => None,
        }
    }

    fn candidate(&self, name: &str) -> Option<String> {
        let topic = match self {
            Self::Prefix(prefix) => name.strip_prefix(prefix)?,
            Self::Keep { heartbeats_prefix } if is_like_heartbeats(name) => {
                name.strip_prefix(heartbeats_prefix)?
            }
            Self::Keep { .. } => name,
            Self::Refuse => return None,
        };
        (!topic.is_empty()).then(|| topic.to_owned())
    }
}

/// As MirrorMaker 2's identity policy looks at it: the end of the name decides.
fn is_like_heartbeats(topic: &str) -> bool {
    topic.ends_with("heartbeats")
}

/// As a broker checks it. An error is a sentence for the operator.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() {
        return Err("a topic's name can't be empty".to_owned());
    }
    if name == "." || name == ".." {
        return Err(format!("a topic can't be called \"{name}\""));
    }
    if let Some(character) = name.chars().find(|c| !is_legal(*c)) {
        return Err(format!(
            "\"{name}\" holds '{character}'; Kafka takes ASCII letters, digits, '.', '_' and '-'"
        ));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "\"{name}\" has {} characters, Kafka takes at most {NAME_BYTES_MAX}",
            name.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_a_broker_does() {
        let check = |name: &str, message: &str| assert_eq!(check_name(name), Err(message.to_owned()));
        check("", "a topic's name can't be empty");
        check(".", "a topic can't be called \".\"");
        check("..", "a topic can't be called \"..\"");
        check("a/b", "\"a/b\" holds '/'; Kafka takes ASCII letters, digits, '.', '_' and '-'");
        check("é", "\"é\" holds 'é'; Kafka takes ASCII letters, digits, '.', '_' and '-'");
        let long = "x".repeat(250);
        check(&long, &format!("\"{long}\" has 250 characters, Kafka takes at most 249"));
        for name in ["a", "...", "A-z_0.9", &long[..249]] {
            assert_eq!(check_name(name), Ok(()));
        }
    }
}
