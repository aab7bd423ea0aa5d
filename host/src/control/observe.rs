//! What a flow looks at before it plans: both clusters' topics, and the settings of those source topics that are about
//! to be created on the target.

use std::collections::BTreeMap;

use crate::cluster::admin::TopicConfigs;
use crate::cluster::{ClusterAdmin, ClusterView};
use crate::control::naming::{Naming, TopicAnswer};
use crate::names::TopicName;

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

/// Observed, and what the naming plugin says to it.
pub type Observation = (Observed, BTreeMap<TopicName, TopicAnswer>);

/// Looks at both clusters. Asks the source only for settings that are needed: a settled flow costs two metadata
/// requests.
pub async fn observe(
    source: &ClusterAdmin,
    target: &ClusterAdmin,
    naming: &mut Naming,
) -> anyhow::Result<Observation> {
    let (source_view, target_view) = tokio::try_join!(source.view(), target.view())?;
    let answers = naming.answer_all(source_view.topics.keys());
    let missing = missing_topics(&answers, &target_view);
    let source_configs = source.topic_configs(&missing).await?;
    Ok((Observed { source: source_view, target: target_view, source_configs }, answers))
}

fn missing_topics(answers: &BTreeMap<TopicName, TopicAnswer>, target: &ClusterView) -> Vec<TopicName> {
    let is_missing = |(topic, answer): (&TopicName, &TopicAnswer)| match answer {
        TopicAnswer::Copy(named) if !target.topics.contains_key(&named.target) => Some(topic.clone()),
        _ => None,
    };
    answers.iter().filter_map(is_missing).collect()
}
