//! From what was seen to what is to be done: pure.

mod event;
mod memory;
mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub use event::Event;
pub use memory::Memory;

use crate::cluster::{ClusterView, TopicView};
use crate::config::{FlowConfig, OnFault, QuarantineSide};
use crate::control::access::AccessPlan;
use crate::control::naming::{NamedTopic, TopicAnswer};
use crate::control::observe::Observed;
use crate::control::selection::LeftOut;
use crate::control::settings::copied_settings;
use crate::names::{FlowName, SourcePartition, TopicName};
use crate::topic_map::TopicMap;

/// Something to do on the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Action {
    /// The topic that stores the flow's positions.
    CreatePositionsTopic {
        /// Its name.
        topic: String,
        /// −1: the broker's default.
        partition_count: i32,
        /// −1: the broker's default.
        replication_factor: i16,
    },
    /// The copy of a source topic.
    CreateTopic {
        /// What is copied.
        source_topic: TopicName,
        /// What is created.
        topic: TopicName,
        /// As many as the source has.
        partition_count: i32,
        /// −1: the broker's default.
        replication_factor: i16,
        /// Settings of the source topic.
        settings: Vec<(String, String)>,
    },
    /// The topic for records that a plugin can't judge.
    CreateQuarantineTopic {
        /// Its name.
        topic: TopicName,
        /// Where it is made.
        side: QuarantineSide,
        /// −1: the broker's default.
        replication_factor: i16,
    },
    /// The source topic grew.
    AddPartitions {
        /// What is copied.
        source_topic: TopicName,
        /// What grows.
        topic: TopicName,
        /// What it has.
        from_count: i32,
        /// What the source has.
        to_count: i32,
    },
}

impl Action {
    /// The target topic that it makes or grows, if it is a copy.
    pub fn topic(&self) -> Option<&TopicName> {
        match self {
            Self::CreatePositionsTopic { .. } | Self::CreateQuarantineTopic { .. } => None,
            Self::CreateTopic { topic, .. } | Self::AddPartitions { topic, .. } => Some(topic),
        }
    }
}

/// Of which kind a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The plugin's name is no topic name.
    IllegalName,
    /// The plugin's name is one of internal topics.
    InternalName,
    /// Two source topics would share one target topic.
    NameTaken,
    /// The topic came from the target: in order, the other flow's copies stay where they are.
    WouldLoop,
    /// The topic is this flow's own copy, source and target being one cluster: in order, too.
    OwnCopy,
    /// Its name stays, and enabled flows lead back to the source: it would go round for ever.
    KeptBothWays,
    /// The plugin's inverse does not lead back.
    NoInverse,
    /// The plugin refuses the topic.
    PluginRefused,
    /// The plugin failed.
    PluginFault,
    /// A pattern can't be decided on the name.
    Undecided,
    /// The target has too few brokers.
    ReplicationFactor,
    /// The source does not tell the topic's settings.
    SettingsUnknown,
    /// Source and target are one cluster and names stay: nothing of the flow can run.
    SameCluster,
}

/// Something that we will not do, with reason and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// The source topic; None: the whole flow.
    pub topic: Option<TopicName>,
    /// What, which, why, and the way out.
    pub text: String,
}

impl Refusal {
    /// False for what is in order: with flows in both directions, each sees the other's copies and leaves them alone.
    pub fn needs_attention(&self) -> bool {
        !matches!(self.kind, RefusalKind::WouldLoop | RefusalKind::OwnCopy)
    }
}

/// What is to be done, what will not be done, and what may be copied now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The flow.
    pub flow: FlowName,
    /// To do on the target.
    pub actions: Vec<Action>,
    /// Not to do.
    pub refusals: Vec<Refusal>,
    /// What changed behind our back since the last round.
    pub events: Vec<Event>,
    /// Every topic that is copied.
    #[serde(serialize_with = "render::topic_map")]
    pub topic_map: TopicMap,
    /// Source partitions whose target partition was seen, with its topic: only these may be produced to (I6).
    #[serde(serialize_with = "render::ready")]
    pub ready: BTreeMap<SourcePartition, TopicName>,
    /// Topics of either cluster of which nothing could be learnt at this moment; what was known of them still holds.
    pub unclear: Vec<TopicName>,
    /// Topics that the lists chose and a selection plugin left out.
    pub left_out: Vec<LeftOut>,
    /// A selection plugin that failed: what was copied before goes on, and nothing new is chosen.
    pub selection_fault: Option<String>,
    /// What nothing acts on yet; only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
}

/// What plugins say to things that are not copied yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Consumer groups whose offsets would be synced once offset sync exists.
    pub groups: Vec<String>,
    /// Groups that the lists chose and a selection plugin left out.
    pub groups_left_out: Vec<LeftOut>,
    /// What access rules would become.
    pub access: AccessPlan,
    /// What could not be read or decided.
    pub notes: Vec<String>,
}

impl Plan {
    /// The refusal of the whole flow, if there is one.
    pub fn flow_refusal(&self) -> Option<&Refusal> {
        self.refusals.iter().find(|refusal| refusal.topic.is_none())
    }

    /// Refusals that somebody should look at.
    pub fn attention(&self) -> impl Iterator<Item = &Refusal> {
        self.refusals.iter().filter(|refusal| refusal.needs_attention())
    }

    /// One sentence for each kind of refusal that is in order, however many topics it holds for.
    pub fn summary_lines(&self) -> Vec<String> {
        let count = |kind| self.refusals.iter().filter(|refusal| refusal.kind == kind).count();
        let target = &self.flow.target;
        let came = match count(RefusalKind::WouldLoop) {
            0 => None,
            1 => Some(format!("1 topic is a copy that came from {target} and is not sent back")),
            many => Some(format!("{many} topics are copies that came from {target} and are not sent back")),
        };
        let own = match count(RefusalKind::OwnCopy) {
            0 => None,
            1 => Some("1 topic is a copy that this flow made and is not copied again".to_owned()),
            many => Some(format!("{many} topics are copies that this flow made and are not copied again")),
        };
        let left_out = match self.left_out.len() {
            0 => None,
            1 => Some("1 topic is left out by a selection plugin".to_owned()),
            many => Some(format!("{many} topics are left out by selection plugins")),
        };
        came.into_iter().chain(own).chain(left_out).chain(self.selection_fault.clone()).collect()
    }

    /// Whether a plugin failed on some topic: asked again, it may answer.
    pub fn has_plugin_fault(&self) -> bool {
        self.selection_fault.is_some()
            || self.refusals.iter().any(|refusal| refusal.kind == RefusalKind::PluginFault)
    }
}

/// All that a plan is made from.
pub struct Situation<'a> {
    /// Both clusters.
    pub observed: &'a Observed,
    /// The naming plugin's answers for the source's topics.
    pub answers: &'a BTreeMap<TopicName, TopicAnswer>,
    /// Earlier rounds.
    pub memory: &'a Memory,
    /// The flow's settings.
    pub flow: &'a FlowConfig,
    /// The naming policy leaves names as they are.
    pub names_are_kept: bool,
    /// Some plugin puts records into quarantine.
    pub wants_quarantine: bool,
    /// The fault of a selection plugin, in words.
    pub selection_fault: Option<&'a str>,
}

/// Plans one round.
pub fn plan(situation: &Situation<'_>) -> Plan {
    let mut plan = Plan {
        flow: situation.flow.name.clone(),
        actions: Vec::new(),
        refusals: Vec::new(),
        events: Vec::new(),
        topic_map: TopicMap::default(),
        ready: BTreeMap::new(),
        unclear: Vec::new(),
        left_out: Vec::new(),
        selection_fault: situation.selection_fault.map(str::to_owned),
        preview: None,
    };
    if let Some(refusal) = same_cluster(situation) {
        plan.refusals.push(refusal);
        return plan;
    }
    plan.actions.extend(positions_topic(situation));
    plan.actions.extend(quarantine_topic(situation));
    let named = choose(situation, &mut plan);
    plan.events = event::events(situation, &plan.topic_map);
    for (topic, target) in named {
        plan_topic(situation, &topic, &target, &mut plan);
    }
    plan.unclear = unclear(situation, &plan.topic_map);
    plan
}

/// What must be looked at again soon: of the target only what the flow has there.
fn unclear(situation: &Situation<'_>, topic_map: &TopicMap) -> Vec<TopicName> {
    let Observed { source, target, .. } = situation.observed;
    let is_ours = |topic: &&TopicName| {
        topic_map.source_of(topic).is_some() || topic.as_str() == situation.flow.positions.topic
    };
    source.unclear.iter().chain(target.unclear.iter().filter(is_ours)).cloned().collect()
}

/// Source and target are the same and some name stays: the flow would copy a topic onto itself.
fn same_cluster(situation: &Situation<'_>) -> Option<Refusal> {
    let observed = situation.observed;
    if !is_one_cluster(observed) {
        return None;
    }
    let mut answers = situation.answers.iter();
    let kept = answers.find_map(|(topic, answer)| match answer {
        TopicAnswer::Copy(named) if named.target == *topic => Some(topic),
        _ => None,
    });
    if kept.is_none() && !situation.names_are_kept {
        return None;
    }
    let FlowName { source, target } = &situation.flow.name;
    let which = kept.map_or("topics".to_owned(), |topic| format!("topic \"{topic}\""));
    let id = observed.source.cluster_id.as_deref().unwrap_or_default();
    let text = format!(
        "flow {source}->{target} does not run: \"{source}\" and \"{target}\" are one cluster (id {id}) and {which} would \
         keep the name, so it would be copied onto itself; correct the bootstrap servers or use a naming policy that \
         changes names"
    );
    Some(Refusal { kind: RefusalKind::SameCluster, topic: None, text })
}

fn is_one_cluster(observed: &Observed) -> bool {
    observed.source.cluster_id.is_some() && observed.source.cluster_id == observed.target.cluster_id
}

fn positions_topic(situation: &Situation<'_>) -> Option<Action> {
    let positions = &situation.flow.positions;
    let is_there =
        TopicName::parse(&positions.topic).is_ok_and(|topic| situation.observed.target.lists(&topic));
    (!is_there).then(|| Action::CreatePositionsTopic {
        topic: positions.topic.clone(),
        partition_count: positions.partitions,
        replication_factor: positions.replication_factor,
    })
}

fn quarantine_topic(situation: &Situation<'_>) -> Option<Action> {
    let quarantine = &situation.flow.quarantine;
    let by_the_file = situation.flow.plugins.iter().any(|plugin| plugin.on_fault == OnFault::Quarantine);
    if !by_the_file && !situation.wants_quarantine {
        return None;
    }
    // Its name was parsed when the file was read.
    let topic = TopicName::parse(&quarantine.topic).ok()?;
    let cluster = match quarantine.side {
        QuarantineSide::Source => &situation.observed.source,
        QuarantineSide::Target => &situation.observed.target,
    };
    (!cluster.lists(&topic)).then_some(Action::CreateQuarantineTopic {
        topic,
        side: quarantine.side,
        replication_factor: quarantine.replication_factor,
    })
}

/// Fills the topic map and the refusals of naming. Topics that were copied before come first, so a newcomer never takes
/// a name that is in use.
fn choose(situation: &Situation<'_>, plan: &mut Plan) -> Vec<(TopicName, TopicName)> {
    let one_cluster = is_one_cluster(situation.observed);
    let was_copied = |topic: &TopicName| situation.memory.topic_map().target_of(topic).is_some();
    let (known, new): (Vec<_>, Vec<_>) = situation.answers.iter().partition(|(topic, _)| was_copied(topic));
    let mut named = Vec::new();
    for (topic, answer) in known.into_iter().chain(new) {
        match answer {
            TopicAnswer::Leave => {}
            TopicAnswer::Refuse(refusal) => plan.refusals.push(refusal.clone()),
            TopicAnswer::LeftOut(plugin) => {
                plan.left_out.push(LeftOut { name: topic.to_string(), plugin: plugin.clone() });
            }
            TopicAnswer::Copy(NamedTopic { looks_like_own_copy: true, .. }) if one_cluster => {
                plan.refusals.push(own_copy(topic, situation.flow));
            }
            TopicAnswer::Copy(NamedTopic { target, .. }) => {
                match plan.topic_map.insert(topic.clone(), target.clone()) {
                    Ok(()) => named.push((topic.clone(), target.clone())),
                    Err(taken) => plan.refusals.push(name_taken(topic, &taken.to_string(), situation.flow)),
                }
            }
        }
    }
    named.sort();
    plan.left_out.sort();
    plan.refusals.sort_by(|one, other| one.topic.cmp(&other.topic));
    named
}

fn own_copy(topic: &TopicName, flow: &FlowConfig) -> Refusal {
    let text = format!(
        "topic \"{topic}\" of cluster \"{}\" is not copied: by its name it is a copy that this flow made, source and \
         target being one cluster",
        flow.name.source
    );
    Refusal { kind: RefusalKind::OwnCopy, topic: Some(topic.clone()), text }
}

fn name_taken(topic: &TopicName, why: &str, flow: &FlowConfig) -> Refusal {
    let text = format!(
        "topic \"{topic}\" of cluster \"{}\" is not copied: {why}; change the naming plugin or its settings, or add one \
         of the two to topics.exclude",
        flow.name.source
    );
    Refusal { kind: RefusalKind::NameTaken, topic: Some(topic.clone()), text }
}

/// What one copied topic needs, and which of its partitions are ready.
fn plan_topic(situation: &Situation<'_>, topic: &TopicName, target: &TopicName, plan: &mut Plan) {
    let Some(source) = situation.observed.source.topics.get(topic) else { return };
    let Some(copy) = situation.observed.target.topics.get(target) else {
        if situation.observed.target.unclear.contains(target) {
            return;
        }
        match creation(situation, topic, target, source) {
            Ok(action) => plan.actions.push(action),
            Err(refusal) => plan.refusals.push(refusal),
        }
        return;
    };
    if copy.partition_count < source.partition_count {
        plan.actions.push(Action::AddPartitions {
            source_topic: topic.clone(),
            topic: target.clone(),
            from_count: copy.partition_count,
            to_count: source.partition_count,
        });
    }
    for partition in 0..copy.partition_count.min(source.partition_count) {
        let partition = SourcePartition { topic: topic.clone(), partition };
        plan.ready.insert(partition, target.clone());
    }
}

fn creation(
    situation: &Situation<'_>,
    topic: &TopicName,
    target: &TopicName,
    source: &TopicView,
) -> Result<Action, Refusal> {
    let flow = situation.flow;
    check_replication_factor(target, flow, &situation.observed.target).map_err(|text| Refusal {
        kind: RefusalKind::ReplicationFactor,
        topic: Some(topic.clone()),
        text,
    })?;
    Ok(Action::CreateTopic {
        source_topic: topic.clone(),
        topic: target.clone(),
        partition_count: source.partition_count,
        replication_factor: flow.replication_factor,
        settings: settings(situation, topic, target)?,
    })
}

fn check_replication_factor(
    target: &TopicName,
    flow: &FlowConfig,
    cluster: &ClusterView,
) -> Result<(), String> {
    let (wanted, broker_count) = (flow.replication_factor, cluster.broker_count);
    if usize::try_from(wanted).is_ok_and(|wanted| wanted > broker_count) {
        let brokers = if broker_count == 1 { "broker" } else { "brokers" };
        return Err(format!(
            "could not create topic \"{target}\" on target \"{}\": replication factor {wanted}, {broker_count} {brokers} \
             alive; set replication.factor = {broker_count} or add brokers",
            flow.name.target
        ));
    }
    Ok(())
}

/// A copy with the wrong settings (a compacted topic that deletes, say) loses data, so without them there is no copy.
fn settings(
    situation: &Situation<'_>,
    topic: &TopicName,
    target: &TopicName,
) -> Result<Vec<(String, String)>, Refusal> {
    let flow = situation.flow;
    let refuse = |kind, why: String, way_out: &str| {
        let text = format!(
            "could not create topic \"{target}\" on target \"{}\": {why}; {way_out}",
            flow.name.target
        );
        Refusal { kind, topic: Some(topic.clone()), text }
    };
    let unknown = |why: String| {
        let why =
            format!("source \"{}\" does not tell the settings of \"{topic}\" ({why})", flow.name.source);
        refuse(RefusalKind::SettingsUnknown, why, "allow DESCRIBE_CONFIGS on it, or create the copy by hand")
    };
    match situation.observed.source_configs.get(topic) {
        Some(Ok(entries)) => copied_settings(entries, flow).map_err(|undecided| {
            refuse(RefusalKind::Undecided, undecided.to_string(), "see config.properties.exclude")
        }),
        Some(Err(refusal)) => Err(unknown(refusal.to_string())),
        None => Err(unknown("no answer".to_owned())),
    }
}
