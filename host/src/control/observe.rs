//! What a flow looks at before it plans: both clusters' topics, and the settings of those source topics that are about
//! to be created on the target.

use std::collections::BTreeMap;

use crate::cluster::admin::TopicConfigs;
use crate::cluster::{ClusterAdmin, ClusterView};
use crate::control::naming::TopicAnswer;
use crate::control::policies::Policies;
use crate::names::TopicName;
use crate::topic_map::TopicMap;

/// Both clusters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The source.
    pub source: ClusterView,
    /// The target.
    pub target: ClusterView,
    /// Settings of source topics whose copy is missing: a copy is created with them, whether or not settings are
    /// kept alike later (`sync.topic.configs.enabled`), as MirrorMaker 2 does it.
    pub source_configs: TopicConfigs,
}

/// What was seen, and what the plugins say to it.
pub struct Observation {
    /// Both clusters.
    pub observed: Observed,
    /// What becomes of each topic of the source.
    pub answers: BTreeMap<TopicName, TopicAnswer>,
    /// The fault of a selection plugin, in words.
    pub selection_fault: Option<String>,
}

/// Looks at both clusters. Asks the source only for settings that are needed: a settled flow costs two metadata
/// requests. What is unclear at this moment is as it was in `earlier`; `copied` is what was copied before.
pub async fn observe(
    source: &ClusterAdmin,
    target: &ClusterAdmin,
    policies: &mut Policies,
    earlier: &Observed,
    copied: &TopicMap,
) -> anyhow::Result<Observation> {
    let (mut source_view, mut target_view) = tokio::try_join!(source.view(), target.view())?;
    source_view.fill_unclear(&earlier.source);
    target_view.fill_unclear(&earlier.target);
    let mut answers = policies.naming.answer_all(source_view.topics.keys());
    let selection_fault = select(source, policies, &source_view, &mut answers, copied).await?;
    let missing = missing_topics(&answers, &target_view);
    let source_configs = source.topic_configs(&missing).await?;
    let observed = Observed { source: source_view, target: target_view, source_configs };
    Ok(Observation { observed, answers, selection_fault })
}

/// Lets the selection plugins narrow `answers`; `copied` is what was copied before.
async fn select(
    source: &ClusterAdmin,
    policies: &mut Policies,
    view: &ClusterView,
    answers: &mut BTreeMap<TopicName, TopicAnswer>,
    copied: &TopicMap,
) -> anyhow::Result<Option<String>> {
    let selector = &mut policies.selector;
    let unasked = selector.unasked(answers, view);
    let configs = source.topic_configs(&unasked).await?;
    let fault = selector.ask(&unasked, view, &configs);
    selector.narrow(answers, &unasked, fault.as_ref(), copied, source.alias());
    Ok(fault.map(|fault| fault.sentence()))
}

fn missing_topics(answers: &BTreeMap<TopicName, TopicAnswer>, target: &ClusterView) -> Vec<TopicName> {
    let is_missing = |(topic, answer): (&TopicName, &TopicAnswer)| match answer {
        TopicAnswer::Copy(named) if !target.lists(&named.target) => Some(topic.clone()),
        _ => None,
    };
    answers.iter().filter_map(is_missing).collect()
}
