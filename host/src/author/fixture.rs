//! Cases that check a plugin, as YAML: what it is given, and what it must answer. Unknown keys are errors, with their
//! line. plugin-sdk/README.md explains the format to authors.

mod expectation;
mod part;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

pub use expectation::{Change, Expectation};
pub use part::Part;

/// Larger files are not read.
pub const FIXTURE_BYTES_MAX: u64 = 16 << 20;
/// The flow that a case plays in, unless it says another.
const FLOW_DEFAULT: &str = "east->west";

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// `source->target`, for the cases that don't say.
    #[serde(default)]
    pub flow: Option<String>,
    /// The settings, for the cases that don't say.
    #[serde(default)]
    pub settings: Option<JsonObject>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// Settings are one JSON object.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// One case: a fresh plugin, some questions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it promises.
    pub name: Spanned<String>,
    /// `source->target`.
    #[serde(default)]
    pub flow: Option<String>,
    /// Instead of the file's, whole.
    #[serde(default)]
    pub settings: Option<JsonObject>,
    /// The plugin must not start, and the sentence that says why must hold this text.
    #[serde(default)]
    pub refused: Option<String>,
    /// Where the records lie; `orders` when not said.
    #[serde(default)]
    pub topic: Option<String>,
    /// Where the records lie.
    #[serde(default)]
    pub partition: i32,
    /// Records, and what becomes of each.
    #[serde(default)]
    pub records: Vec<RecordCase>,
    /// Names of topics, there and back.
    #[serde(default)]
    pub names: Vec<NameCase>,
    /// Topics that may or may not go.
    #[serde(default)]
    pub topics: Vec<TopicCase>,
    /// Groups that may or may not go.
    #[serde(default)]
    pub groups: Vec<GroupCase>,
    /// Access rules, and what they become.
    #[serde(default)]
    pub acls: Vec<AclCase>,
}

/// A record, and what becomes of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordCase {
    /// Null when not said.
    #[serde(default)]
    pub key: Part,
    /// Null when not said.
    #[serde(default)]
    pub value: Part,
    /// Pairs of name and value.
    #[serde(default)]
    pub headers: Vec<(String, Part)>,
    /// In milliseconds; 0 when not said.
    #[serde(default)]
    pub timestamp: i64,
    /// Behind the record before when not said, 0 for the first.
    #[serde(default)]
    pub offset: Option<i64>,
    /// What becomes of it.
    pub expect: Expectation,
}

/// A name on the source with its name on the target, or either alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameCase {
    /// `null`: `target` stands for no topic of the source.
    #[serde(default, deserialize_with = "said")]
    pub source: Said<String>,
    /// Its name over there.
    #[serde(default)]
    pub target: Option<String>,
    /// The plugin refuses the topic, and its words hold this text.
    #[serde(default)]
    pub refused: Option<String>,
}

/// Not said, or said to be something, or null.
pub type Said<T> = Option<Option<T>>;

/// A topic that may or may not go.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicCase {
    /// Its name on the source.
    pub name: String,
    /// How many partitions.
    #[serde(default = "one")]
    pub partitions: u32,
    /// Whether it is Kafka's own.
    #[serde(default)]
    pub internal: bool,
    /// Settings that differ from the cluster's.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Whether it goes.
    pub expect: bool,
}

/// A group that may or may not go.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupCase {
    /// Its name.
    pub name: String,
    /// Whether it goes.
    pub expect: bool,
}

/// An access rule, and what it becomes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AclCase {
    /// On the source.
    pub rule: Rule,
    /// On the target, in order.
    pub becomes: Vec<Rule>,
}

/// An access rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it is about.
    #[serde(default)]
    pub kind: RuleKind,
    /// The resource's name.
    pub name: String,
    /// How the name is meant.
    #[serde(default)]
    pub pattern: RulePattern,
    /// Who.
    pub principal: String,
    /// From where.
    #[serde(default = "any_host")]
    pub host: String,
    /// Kafka's word, such as READ.
    pub operation: String,
    /// What it does.
    #[serde(default)]
    pub permission: RulePermission,
}

/// What an access rule is about.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// A topic.
    #[default]
    Topic,
    /// A consumer group.
    Group,
    /// A transactional id.
    TransactionalId,
    /// The cluster.
    Cluster,
    /// A delegation token.
    DelegationToken,
    /// A user.
    User,
}

/// How an access rule's name is meant.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RulePattern {
    /// That name.
    #[default]
    Literal,
    /// Names that begin so.
    Prefixed,
}

/// What an access rule does.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RulePermission {
    /// It lets in.
    #[default]
    Allow,
    /// It keeps out.
    Deny,
}

fn one() -> u32 {
    1
}

fn any_host() -> String {
    "*".to_owned()
}

fn said<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Said<T>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Fixture {
    /// Reads a file's text. The error names line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fixture: Self = serde_saphyr::from_str(text).map_err(|error| located(&error))?;
        match fixture.cases.iter().find_map(Case::flaw) {
            Some(flaw) => Err(flaw),
            None => Ok(fixture),
        }
    }
}

fn located(error: &serde_saphyr::Error) -> String {
    let words = error.without_snippet().to_string();
    // The words may name the place themselves.
    match error.location() {
        Some(place) if !words.contains(&format!("line {}", place.line())) => {
            format!("line {}, column {}: {words}", place.line(), place.column())
        }
        _ => words,
    }
}

impl Case {
    /// Where it stands in its file.
    pub fn line(&self) -> u64 {
        self.name.referenced.line()
    }

    /// What the YAML alone can't forbid.
    fn flaw(&self) -> Option<String> {
        let questions =
            self.records.len() + self.names.len() + self.topics.len() + self.groups.len() + self.acls.len();
        let place = format!("line {}: case {:?}", self.line(), self.name.value);
        if questions == 0 && self.refused.is_none() {
            let ways = "records, names, topics, groups, acls or refused";
            return Some(format!("{place} checks nothing; it needs {ways}"));
        }
        if questions > 0 && self.refused.is_some() {
            return Some(format!("{place} expects that the plugin does not start, and asks it something"));
        }
        if let Some(offset) = self.falling_offset() {
            return Some(format!("{place}: offset {offset} is not above the one before"));
        }
        let unclear = self.names.iter().find(|name| !name.is_clear())?;
        Some(format!(
            "{place}: {unclear:?} is unclear; there are {{source, target}}, {{source, refused}} and {{target, source: null}}"
        ))
    }

    /// The offsets of its records.
    pub fn offsets(&self) -> impl Iterator<Item = i64> {
        self.records.iter().scan(0, |next, record| {
            let offset = record.offset.unwrap_or(*next);
            *next = offset.saturating_add(1);
            Some(offset)
        })
    }

    fn falling_offset(&self) -> Option<i64> {
        let offsets: Vec<i64> = self.offsets().collect();
        if let Some(negative) = offsets.iter().find(|offset| **offset < 0) {
            return Some(*negative);
        }
        offsets.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| pair[1])
    }

    /// Source and target of the flow it plays in.
    pub fn flow(&self, fixture: &Fixture) -> Result<(String, String), String> {
        let flow = self.flow.as_deref().or(fixture.flow.as_deref()).unwrap_or(FLOW_DEFAULT);
        match flow.split_once("->") {
            Some((source, target)) if !source.is_empty() && !target.is_empty() => {
                Ok((source.to_owned(), target.to_owned()))
            }
            _ => Err(format!("{flow:?} is no flow; it looks like {FLOW_DEFAULT}")),
        }
    }

    /// The settings that the plugin gets.
    pub fn settings_json(&self, fixture: &Fixture) -> String {
        let settings = self.settings.as_ref().or(fixture.settings.as_ref());
        settings.map_or("{}".to_owned(), |settings| serde_json::Value::Object(settings.clone()).to_string())
    }
}

impl NameCase {
    fn is_clear(&self) -> bool {
        matches!(
            (&self.source, &self.target, &self.refused),
            (Some(Some(_)), Some(_), None) | (Some(Some(_)), None, Some(_)) | (Some(None), Some(_), None)
        )
    }
}

#[cfg(test)]
mod tests;
