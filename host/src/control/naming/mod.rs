//! Which topics of the source are copied, and under which names. The naming plugin is asked once for each topic; its
//! answers are checked, because everything else trusts them.

mod loops;
mod plugin;
mod renames;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use renames::{NewName, Rename, renames};

use crate::config::{FlowConfig, InternalTopics, TopicFilter};
use crate::control::plan::{Refusal, RefusalKind};
use crate::names::{ClusterAlias, FlowName, TopicName};

/// The name that MirrorMaker 2 gives to heartbeats on the cluster where they begin.
const HEARTBEATS: &str = "heartbeats";

/// What names topics: the naming plugin, or a stand-in in tests. Answers must depend on nothing but the topic.
pub trait TopicNaming: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// What a source topic is called on the target. The inner error is the plugin's own refusal, the outer one a fault.
    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String>;
    /// The inverse; none for names that `to_target` never gives. The error is a fault.
    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String>;
}

/// What becomes of a source topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicAnswer {
    /// It is copied.
    Copy(NamedTopic),
    /// It is none of ours: internal, or not among the topics of the flow.
    Leave,
    /// It should be copied and can't be.
    Refuse(Refusal),
    /// The lists chose it and this selection plugin leaves it out.
    LeftOut(String),
}

/// A checked answer of the naming plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTopic {
    /// The name on the target.
    pub target: TopicName,
    /// The plugin reads the topic's own name as that of a copy made by this very flow. It matters only when both ends
    /// are one cluster.
    pub looks_like_own_copy: bool,
}

/// Answers for the topics of one flow.
pub struct Naming {
    flow: FlowName,
    topics: TopicFilter,
    internal_topics: InternalTopics,
    heartbeats_replication: bool,
    /// Enabled flows lead back from the target to the source, so a name that stays the same would go round for ever.
    reverse_is_enabled: bool,
    own: Box<dyn TopicNaming>,
    /// The same policy as it would name topics of each other cluster of the file.
    others: BTreeMap<ClusterAlias, Box<dyn TopicNaming>>,
    answers: BTreeMap<TopicName, TopicAnswer>,
    /// None until the plugin was asked and answered.
    names_are_kept: Option<bool>,
}

impl Naming {
    /// `own` names this flow's topics, `others` those of the file's other clusters (used backwards only, to find
    /// cycles). `reverse_is_enabled`: enabled flows lead from this one's target back to its source, over however many
    /// clusters, here or in other processes.
    pub fn new(
        flow: &FlowConfig,
        own: Box<dyn TopicNaming>,
        others: BTreeMap<ClusterAlias, Box<dyn TopicNaming>>,
        reverse_is_enabled: bool,
    ) -> Self {
        Self {
            flow: flow.name.clone(),
            topics: flow.topics.clone(),
            internal_topics: flow.internal_topics.clone(),
            heartbeats_replication: flow.heartbeats_replication,
            reverse_is_enabled,
            own,
            others,
            answers: BTreeMap::new(),
            names_are_kept: None,
        }
    }

    /// One answer for each topic. An answer is kept as long as the topic is there; a fault is not kept.
    pub fn answer_all<'a>(
        &mut self,
        topics: impl Iterator<Item = &'a TopicName>,
    ) -> BTreeMap<TopicName, TopicAnswer> {
        let mut answers = BTreeMap::new();
        for topic in topics {
            let answer = match self.answers.remove(topic) {
                Some(known) if !is_fault(&known) => known,
                _ => self.ask(topic),
            };
            answers.insert(topic.clone(), answer);
        }
        self.answers.clone_from(&answers);
        answers
    }

    /// Whether the policy leaves names as they are, judged by an ordinary one. No while the plugin fails; it is asked
    /// again next time.
    pub fn keeps_names(&mut self) -> bool {
        const ORDINARY: &str = "orders";
        if self.names_are_kept.is_none() {
            let answer = self.own.to_target(ORDINARY).ok();
            self.names_are_kept = answer.map(|answer| answer.is_ok_and(|name| name == ORDINARY));
        }
        self.names_are_kept.unwrap_or(false)
    }

    /// The answer for one topic; a known one, if there is one that is no fault.
    fn answer(&mut self, topic: &TopicName) -> TopicAnswer {
        match self.answers.get(topic) {
            Some(known) if !is_fault(known) => known.clone(),
            _ => self.ask(topic),
        }
    }

    fn ask(&mut self, topic: &TopicName) -> TopicAnswer {
        match self.try_ask(topic) {
            Ok(answer) => answer,
            Err(problem) => TopicAnswer::Refuse(self.refusal(topic, problem)),
        }
    }

    fn try_ask(&mut self, topic: &TopicName) -> Result<TopicAnswer, Problem> {
        if is_internal_topic(topic.as_str(), &self.internal_topics) || !self.is_wanted(topic)? {
            return Ok(TopicAnswer::Leave);
        }
        if let Some(origin) = self.loop_origin(topic.as_str()).map_err(Problem::Fault)? {
            return Err(Problem::Loop(origin));
        }
        let name = self.own.to_target(topic.as_str()).map_err(Problem::Fault)?.map_err(Problem::Refused)?;
        let target = TopicName::parse(&name).map_err(|error| Problem::Illegal(error.to_string()))?;
        if is_internal_topic(&name, &self.internal_topics) {
            return Err(Problem::Internal(name));
        }
        let back = self.own.to_source(&name).map_err(Problem::Fault)?;
        if back.as_deref() != Some(topic.as_str()) {
            return Err(Problem::NoInverse { name, back });
        }
        if self.reverse_is_enabled && target == *topic {
            return Err(Problem::KeptBothWays);
        }
        let before = self.own.to_source(topic.as_str()).map_err(Problem::Fault)?;
        let looks_like_own_copy = before.is_some_and(|before| before != topic.as_str());
        Ok(TopicAnswer::Copy(NamedTopic { target, looks_like_own_copy }))
    }

    /// The lists of the file decide; heartbeats of other clusters pass them (KIP-1089).
    fn is_wanted(&mut self, topic: &TopicName) -> Result<bool, Problem> {
        let accepted =
            self.topics.accepts(topic.as_str()).map_err(|error| Problem::Undecided(error.to_string()))?;
        if accepted || !self.heartbeats_replication || !topic.as_str().ends_with(HEARTBEATS) {
            return Ok(accepted);
        }
        self.is_heartbeats(topic.as_str()).map_err(Problem::Fault)
    }

    fn refusal(&self, topic: &TopicName, problem: Problem) -> Refusal {
        let (kind, why) = problem.words(self.own.name(), &self.flow);
        let text = format!("topic \"{topic}\" of cluster \"{}\" is not copied: {why}", self.flow.source);
        Refusal { kind, topic: Some(topic.clone()), text }
    }
}

/// As MirrorMaker 2 knows internal topics, its own ones among them.
pub fn is_internal_topic(topic: &str, internal_topics: &InternalTopics) -> bool {
    topic.starts_with("__")
        || topic.starts_with('.')
        || topic.ends_with("-internal")
        || topic.ends_with(".internal")
        || topic.strip_suffix("internal").is_some_and(|rest| rest.ends_with(&internal_topics.separator))
}

fn is_fault(answer: &TopicAnswer) -> bool {
    matches!(answer, TopicAnswer::Refuse(refusal) if refusal.kind == RefusalKind::PluginFault)
}

/// Why a wanted topic can't be copied.
enum Problem {
    Undecided(String),
    Fault(String),
    Refused(String),
    Illegal(String),
    Internal(String),
    NoInverse { name: String, back: Option<String> },
    Loop(ClusterAlias),
    KeptBothWays,
}

impl Problem {
    fn words(self, plugin: &str, flow: &FlowName) -> (RefusalKind, String) {
        const WAY_OUT: &str = "change the plugin or its settings, or add the topic to topics.exclude";
        match self {
            Self::Undecided(why) => (RefusalKind::Undecided, why),
            Self::Fault(fault) => (
                RefusalKind::PluginFault,
                format!("naming plugin \"{plugin}\" failed: {fault}; it is asked again soon"),
            ),
            Self::Refused(reason) => (
                RefusalKind::PluginRefused,
                format!("naming plugin \"{plugin}\" refuses it: {reason}; {WAY_OUT}"),
            ),
            Self::Illegal(why) => (
                RefusalKind::IllegalName,
                format!("naming plugin \"{plugin}\" gives it no legal name ({why}); {WAY_OUT}"),
            ),
            Self::Internal(name) => (
                RefusalKind::InternalName,
                format!(
                    "naming plugin \"{plugin}\" calls it \"{name}\" on \"{}\", and names like that are for internal \
                     topics; {WAY_OUT}",
                    flow.target
                ),
            ),
            Self::NoInverse { name, back } => {
                let back = back.map_or("of no topic".to_owned(), |back| format!("of \"{back}\""));
                let why = format!(
                    "naming plugin \"{plugin}\" calls it \"{name}\" on \"{}\", but says of \"{name}\" that it is the \
                     copy {back}; to-source must undo to-target",
                    flow.target
                );
                (RefusalKind::NoInverse, why)
            }
            Self::Loop(origin) => (
                RefusalKind::WouldLoop,
                format!(
                    "by its name it came from \"{origin}\", and back there it would loop; rename it if it did not"
                ),
            ),
            Self::KeptBothWays => (
                RefusalKind::KeptBothWays,
                format!(
                    "naming plugin \"{plugin}\" leaves its name as it is, and enabled flows lead back from \"{}\" to \
                     \"{}\", so it would loop; {WAY_OUT}",
                    flow.target, flow.source
                ),
            ),
        }
    }
}
