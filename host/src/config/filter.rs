//! Topic and property filters: MirrorMaker 2's lists of Java regular expressions.

use std::sync::Arc;

use super::java_regex::{self, Domain};

/// `topics.exclude` of MirrorMaker 2.
pub const TOPICS_EXCLUDE_DEFAULT: [&str; 3] = [r".*[\-\.]internal", r".*\.replica", "__.*"];

/// `groups.exclude` of MirrorMaker 2.
pub const GROUPS_EXCLUDE_DEFAULT: [&str; 3] = ["console-consumer-.*", "connect-.*", "__.*"];

/// `config.properties.exclude` of MirrorMaker 2.
pub const CONFIG_PROPERTIES_EXCLUDE_DEFAULT: [&str; 6] = [
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
];

/// How many steps back one name may cost before it counts as undecided. Real lists need a few dozen; a million is a few
/// milliseconds.
const BACKTRACK_STEPS_MAX: usize = 1_000_000;

/// A list of Java regular expressions, one of which must match the whole name. As in MirrorMaker 2 they are joined with
/// `|` first, so a flag in one holds for those behind it. An empty list matches nothing.
#[derive(Clone, Debug)]
pub struct NameList {
    pattern: Arc<str>,
    regex: Option<fancy_regex::Regex>,
    domain: Domain,
}

/// A name could not be decided on. Never read it as "no match".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern \"{pattern}\" can't be decided on \"{name}\": {reason}")]
pub struct Undecided {
    /// The whole pattern.
    pub pattern: String,
    /// The name that was looked at.
    pub name: String,
    /// Why, and the way out.
    pub reason: String,
}

impl NameList {
    /// Reads a list. The error says in words what can't be read, and where.
    pub fn parse<S: AsRef<str>>(expressions: &[S]) -> Result<Self, String> {
        let expressions: Vec<&str> = expressions.iter().map(AsRef::as_ref).collect();
        let pattern = expressions.join("|");
        if expressions.is_empty() {
            return Ok(Self::nothing());
        }
        let translated = java_regex::translate(&pattern).map_err(|refused| {
            format!("{}, in \"{}\" at character {}", refused.reason, pattern, refused.at + 1)
        })?;
        let whole = format!(r"\A(?:{})\z", translated.pattern);
        let regex = fancy_regex::RegexBuilder::new(&whole)
            .backtrack_limit(BACKTRACK_STEPS_MAX)
            .build()
            .map_err(|error| format!("the engine does not take \"{pattern}\": {error}"))?;
        Ok(Self { pattern: pattern.into(), regex: Some(regex), domain: translated.domain })
    }

    /// The list that matches nothing.
    pub(super) fn nothing() -> Self {
        Self { pattern: "".into(), regex: None, domain: Domain::default() }
    }

    /// The list `.*`.
    fn everything() -> Self {
        Self::parse(&[".*"]).unwrap_or_else(|_| Self::nothing())
    }

    /// The expressions, joined.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether one of the expressions matches all of `name`.
    pub fn matches(&self, name: &str) -> Result<bool, Undecided> {
        let Some(regex) = &self.regex else { return Ok(false) };
        let undecided =
            |reason: String| Undecided { pattern: self.pattern.to_string(), name: name.to_owned(), reason };
        if self.domain.without_line_ends && name.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return Err(undecided(
                "the name holds a line end, which `$` and `\\Z` read in Java's own way".into(),
            ));
        }
        if self.domain.ascii_only && !name.is_ascii() {
            return Err(undecided(
                "`\\b` and `\\p{…}` follow Java's Unicode tables on names that are not ASCII".into(),
            ));
        }
        regex.is_match(name).map_err(|error| match error {
            fancy_regex::Error::RuntimeError(fancy_regex::RuntimeError::BacktrackLimitExceeded) => {
                undecided(format!("more than {BACKTRACK_STEPS_MAX} steps back; use fewer nested repetitions"))
            }
            other => undecided(other.to_string()),
        })
    }
}

/// Two lists are the same when their expressions are.
impl PartialEq for NameList {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.regex.is_some() == other.regex.is_some()
    }
}

impl Eq for NameList {}

/// `topics` less `topics.exclude`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFilter {
    /// What goes.
    pub include: NameList,
    /// What stays, although it is included.
    pub exclude: NameList,
}

impl TopicFilter {
    /// The filter that takes every topic.
    pub fn everything() -> Self {
        Self { include: NameList::everything(), exclude: NameList::nothing() }
    }

    /// Whether the lists take the topic; exclusion is the stronger. MirrorMaker 2's own topics, cycles and heartbeats are
    /// another question.
    pub fn accepts(&self, topic: &str) -> Result<bool, Undecided> {
        Ok(self.include.matches(topic)? && !self.exclude.matches(topic)?)
    }
}

/// `groups` less `groups.exclude`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFilter {
    /// Whose offsets go.
    pub include: NameList,
    /// Whose stay, although they are included.
    pub exclude: NameList,
}

impl GroupFilter {
    /// Whether the lists take the group; exclusion is the stronger.
    pub fn accepts(&self, group: &str) -> Result<bool, Undecided> {
        Ok(self.include.matches(group)? && !self.exclude.matches(group)?)
    }
}

/// `config.properties.exclude`.
#[derive(Clone, Debug)]
pub struct PropertyFilter {
    /// What is not copied.
    pub exclude: NameList,
}

impl PropertyFilter {
    /// Whether the topic setting is copied.
    pub fn accepts(&self, property: &str) -> Result<bool, Undecided> {
        Ok(!self.exclude.matches(property)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(include: &[&str], exclude: &[&str]) -> TopicFilter {
        TopicFilter { include: NameList::parse(include).unwrap(), exclude: NameList::parse(exclude).unwrap() }
    }

    #[test]
    fn mirror_makers_defaults_leave_internal_topics_out() {
        let filter = topics(&[".*"], &TOPICS_EXCLUDE_DEFAULT);
        for (topic, expected) in [
            ("orders", true),
            ("A.orders", true),
            ("mm2-offsets.A.internal", false),
            ("connect-internal", false),
            ("orders.replica", false),
            ("__consumer_offsets", false),
            ("orders__x", true),
        ] {
            assert_eq!(filter.accepts(topic), Ok(expected), "{topic}");
        }
    }

    #[test]
    fn lists_match_whole_names_and_exclusion_is_stronger() {
        let filter = topics(&["orders", "pay.*"], &["pay-test"]);
        for (topic, expected) in
            [("orders", true), ("orders2", false), ("payments", true), ("pay-test", false)]
        {
            assert_eq!(filter.accepts(topic), Ok(expected), "{topic}");
        }
        assert_eq!(topics(&[], &[]).accepts("orders"), Ok(false));
    }

    #[test]
    fn a_flag_holds_for_the_expressions_behind_it() {
        let filter = topics(&["a", "(?i)b", "c"], &[]);
        for (topic, expected) in [("A", false), ("B", true), ("C", true), ("c", true)] {
            assert_eq!(filter.accepts(topic), Ok(expected), "{topic}");
        }
    }

    #[test]
    fn too_many_steps_back_are_an_error_and_no_answer() {
        let list = NameList::parse(&[r"(a*)*(?=b)\1c"]).unwrap();
        assert_eq!(
            list.matches(&"a".repeat(200)).unwrap_err().to_string(),
            format!(
                "the pattern \"(a*)*(?=b)\\1c\" can't be decided on \"{}\": more than 1000000 steps back; use fewer nested \
                 repetitions",
                "a".repeat(200)
            )
        );
    }

    #[test]
    fn names_outside_the_exact_range_are_undecided() {
        let undecided =
            |pattern: &str, name: &str| NameList::parse(&[pattern]).unwrap().matches(name).unwrap_err();
        assert_eq!(
            undecided("a$", "a\n").reason,
            "the name holds a line end, which `$` and `\\Z` read in Java's own way"
        );
        assert_eq!(
            undecided(r"\bx", "\u{e9}").reason,
            "`\\b` and `\\p{…}` follow Java's Unicode tables on names that are not ASCII"
        );
    }
}
