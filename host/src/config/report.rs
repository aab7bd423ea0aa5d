//! What became of every key of a file. `tidegate check` prints it.

use std::fmt;

use serde::Serialize;

/// What we do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It does what MirrorMaker 2 does with it.
    Honoured,
    /// It does something near to it; the note says what.
    Mapped,
    /// It does nothing; the note says why.
    Ignored,
    /// It stops the start; the note says why and what to do.
    Refused,
}

impl fmt::Display for Fate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Honoured => "honoured",
            Self::Mapped => "mapped",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
        })
    }
}

/// One key of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The line where the key begins, from 1.
    pub line: usize,
    /// The key.
    pub key: String,
    /// The value, secrets hidden.
    pub value: String,
    /// What we do with it.
    pub fate: Fate,
    /// To what it is mapped, why it is ignored or refused, for which flows it is honoured.
    pub note: String,
}

/// All keys of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One row for each key; a key that stands twice has its last place.
    pub rows: Vec<Row>,
}

impl Report {
    /// How many keys have this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.rows.iter().filter(|row| row.fate == fate).count()
    }
}
