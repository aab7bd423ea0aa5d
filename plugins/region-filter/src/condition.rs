//! One condition: what of a record it looks at, and which values it lets through.

use tidegate_json_fields::{Found, Kind, Paths, Scanner, Unreadable};
use tidegate_plugin::records::Record;

/// What one condition says of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every value that was found may leave.
    Allowed,
    /// A value may not leave.
    Refused,
    /// There is nothing to judge by.
    Unreadable(Missing),
}

/// Why there is nothing to judge by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// No such header, no key, no such field.
    Absent,
    /// A header without a value, a field that is null or no scalar.
    NoText,
    /// The record's value.
    Json(Unreadable),
    /// There is no value at all.
    Tombstone,
}

/// What a condition looks at.
#[derive(Debug)]
pub(crate) enum Place {
    Header(String),
    Key,
    Topic,
    Field { path: String, paths: Paths },
}

/// A value that is listed, or the beginning of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Whole(Vec<u8>),
    Beginning(Vec<u8>),
}

impl Listed {
    /// `eu` is that value, `eu-*` all that begin so. An error is a sentence for the operator.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (beginning, has_star) = match text.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (text, false),
        };
        if beginning.contains('*') {
            return Err(format!("\"{text}\" has a \"*\" that is not its end"));
        }
        let bytes = beginning.as_bytes().to_vec();
        Ok(if has_star { Self::Beginning(bytes) } else { Self::Whole(bytes) })
    }

    fn holds(&self, value: &[u8]) -> bool {
        match self {
            Self::Whole(whole) => whole == value,
            Self::Beginning(beginning) => value.starts_with(beginning),
        }
    }
}

/// Which values may leave: those of `allow` that are not of `deny`.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) place: Place,
    /// `None`: all but those of `deny`.
    pub(crate) allow: Option<Vec<Listed>>,
    pub(crate) deny: Vec<Listed>,
}

/// What judging keeps from record to record.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    scanner: Scanner,
    text: Vec<u8>,
}

impl Condition {
    /// A header or a field may stand there several times, and nobody knows which one a reader takes: all of them must
    /// be allowed.
    pub(crate) fn judge(&self, record: &Record<'_>, scratch: &mut Scratch) -> Verdict {
        match &self.place {
            Place::Topic => self.judge_value(record.topic().as_bytes()),
            Place::Key => {
                record.key().map_or(Verdict::Unreadable(Missing::Absent), |key| self.judge_value(key))
            }
            Place::Header(name) => self.judge_header(name, record),
            Place::Field { paths, .. } => match record.value() {
                None => Verdict::Unreadable(Missing::Tombstone),
                Some(value) => self.judge_field(paths, value, scratch),
            },
        }
    }

    fn judge_value(&self, value: &[u8]) -> Verdict {
        let is_allowed =
            self.allow.as_ref().is_none_or(|allow| allow.iter().any(|listed| listed.holds(value)));
        if is_allowed && !self.deny.iter().any(|listed| listed.holds(value)) {
            return Verdict::Allowed;
        }
        Verdict::Refused
    }

    fn judge_header(&self, name: &str, record: &Record<'_>) -> Verdict {
        let mut verdict = Verdict::Unreadable(Missing::Absent);
        for (_, value) in record.headers().filter(|(found, _)| *found == name) {
            let of_this = value.map_or(Verdict::Unreadable(Missing::NoText), |value| self.judge_value(value));
            match of_this {
                Verdict::Allowed if verdict == Verdict::Unreadable(Missing::Absent) => {
                    verdict = Verdict::Allowed
                }
                Verdict::Allowed => {}
                Verdict::Refused => return Verdict::Refused,
                Verdict::Unreadable(_) => verdict = of_this,
            }
        }
        verdict
    }

    fn judge_field(&self, paths: &Paths, value: &[u8], scratch: &mut Scratch) -> Verdict {
        let found = match scratch.scanner.scan(paths, value) {
            Ok(found) => found,
            Err(unreadable) => return Verdict::Unreadable(Missing::Json(unreadable)),
        };
        if found.is_empty() {
            return Verdict::Unreadable(Missing::Absent);
        }
        let mut verdict = Verdict::Allowed;
        for field in found {
            if !is_text(field) {
                verdict = Verdict::Unreadable(Missing::NoText);
            } else if self.judge_value(field.text(value, &mut scratch.text)) == Verdict::Refused {
                return Verdict::Refused;
            }
        }
        verdict
    }

    /// Why it can't judge, for the operator; nothing of the record's content is in it.
    pub(crate) fn reason(&self, missing: Missing) -> String {
        let subject = match &self.place {
            Place::Header(name) => format!("header \"{name}\""),
            Place::Key => "the key".to_owned(),
            Place::Topic => "the topic".to_owned(),
            Place::Field { path, .. } => format!("field \"{path}\""),
        };
        match missing {
            Missing::Absent => format!("{subject} is missing"),
            Missing::NoText if matches!(self.place, Place::Header(_)) => format!("{subject} is null"),
            Missing::NoText => format!("{subject} is neither text nor number nor boolean"),
            Missing::Json(Unreadable::NotJson { at }) => {
                format!("{subject}: the value is not JSON at byte {at}")
            }
            Missing::Json(Unreadable::TooDeep) => format!("{subject}: the value is nested too deep"),
            Missing::Tombstone => format!("{subject}: the record has no value"),
        }
    }
}

fn is_text(field: &Found) -> bool {
    matches!(field.kind, Kind::String | Kind::Number | Kind::Boolean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_listed_whole_or_by_their_beginning() {
        let check = |listed: &str, value: &str, holds: bool| {
            assert_eq!(Listed::parse(listed).unwrap().holds(value.as_bytes()), holds, "{listed} {value}");
        };
        check("eu", "eu", true);
        check("eu", "eu-1", false);
        check("eu", "EU", false);
        check("eu-*", "eu-", true);
        check("eu-*", "eu-1", true);
        check("eu-*", "eu", false);
        check("*", "", true);
        check("", "", true);
        check("", "x", false);
        for wrong in ["*eu", "e*u", "eu**"] {
            assert_eq!(Listed::parse(wrong), Err(format!("\"{wrong}\" has a \"*\" that is not its end")));
        }
    }
}
