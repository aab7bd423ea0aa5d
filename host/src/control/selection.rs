//! What the selection plugins leave of the topics and groups that the file's lists chose. They are asked once about a topic
//! and again when its number of partitions changes; a fault is no answer and closes: nothing new is chosen.

use std::collections::BTreeMap;

use serde::Serialize;

use super::naming::TopicAnswer;
use super::plan::{Refusal, RefusalKind};
use super::policies::Selecting;
use crate::cluster::admin::TopicConfigs;
use crate::cluster::{ClusterView, ConfigOrigin};
use crate::names::{ClusterAlias, TopicName};
use crate::plugin::SelectionTopic;
use crate::topic_map::TopicMap;

/// Something that the lists chose and a plugin left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// The topic or group.
    pub name: String,
    /// The plugin, by its name in the file.
    pub plugin: String,
}

/// A plugin's say on one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Say {
    Take,
    LeaveOut { plugin: String },
}

/// A plugin that failed, and its fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectionFault {
    plugin: String,
    fault: String,
}

/// Asks the selection plugins of a flow and keeps their answers.
#[derive(Default)]
pub(super) struct Selector {
    plugins: Vec<Box<dyn Selecting>>,
    /// With the number of partitions that the plugins were shown.
    says: BTreeMap<TopicName, (i32, Say)>,
}

impl Selector {
    pub(super) fn add(&mut self, plugin: Box<dyn Selecting>) {
        self.plugins.push(plugin);
        self.says.clear();
    }

    /// The topics, of those that would be copied, that the plugins must be asked about.
    pub(super) fn unasked(
        &self,
        answers: &BTreeMap<TopicName, TopicAnswer>,
        source: &ClusterView,
    ) -> Vec<TopicName> {
        if self.plugins.is_empty() {
            return Vec::new();
        }
        let copied = answers.iter().filter(|(_, answer)| matches!(answer, TopicAnswer::Copy(_)));
        let is_unasked = |topic: &&TopicName| {
            let partition_count = source.topics.get(*topic).map(|view| view.partition_count);
            self.says.get(*topic).map(|(shown, _)| *shown) != partition_count
        };
        copied.map(|(topic, _)| topic).filter(is_unasked).cloned().collect()
    }

    /// Asks about `topics`, whose settings are `configs`. After a fault what was not answered stays unasked.
    pub(super) fn ask(
        &mut self,
        topics: &[TopicName],
        source: &ClusterView,
        configs: &TopicConfigs,
    ) -> Option<SelectionFault> {
        self.says.retain(|topic, _| source.topics.contains_key(topic));
        let mut shown: Vec<(TopicName, SelectionTopic)> = topics
            .iter()
            .filter_map(|topic| Some((topic.clone(), shown_topic(topic, source, configs)?)))
            .collect();
        for plugin in &mut self.plugins {
            if shown.is_empty() {
                return None;
            }
            let asked: Vec<SelectionTopic> = shown.iter().map(|(_, topic)| topic.clone()).collect();
            let name = plugin.name().to_owned();
            let chosen = match plugin.topics(&asked) {
                Ok(chosen) => chosen,
                Err(fault) => return Some(SelectionFault { plugin: name, fault }),
            };
            // An answer that is missing is a no.
            let mut chosen = chosen.into_iter().chain(std::iter::repeat(false));
            shown.retain(|(topic, view)| {
                let is_taken = chosen.next() == Some(true);
                if !is_taken {
                    let say = Say::LeaveOut { plugin: name.clone() };
                    self.says.insert(topic.clone(), (partition_count(view), say));
                }
                is_taken
            });
        }
        let taken = shown.into_iter().map(|(topic, view)| (topic, (partition_count(&view), Say::Take)));
        self.says.extend(taken);
        None
    }

    /// Puts the plugins' say into the answers. What is unanswered goes on if it was copied before and stays if not.
    pub(super) fn narrow(
        &self,
        answers: &mut BTreeMap<TopicName, TopicAnswer>,
        unanswered: &[TopicName],
        fault: Option<&SelectionFault>,
        copied: &TopicMap,
        source: &ClusterAlias,
    ) {
        for (topic, answer) in answers.iter_mut() {
            if !matches!(answer, TopicAnswer::Copy(_)) {
                continue;
            }
            if let Some(fault) = fault
                && unanswered.contains(topic)
                && !matches!(self.says.get(topic), Some((_, Say::LeaveOut { .. })))
            {
                if copied.target_of(topic).is_none() {
                    *answer = TopicAnswer::Refuse(fault.refusal(topic, source));
                }
                continue;
            }
            if let Some((_, Say::LeaveOut { plugin })) = self.says.get(topic) {
                *answer = TopicAnswer::LeftOut(plugin.clone());
            }
        }
    }

    /// The groups that may go, and those that a plugin left out. A fault leaves none.
    pub(super) fn groups(&mut self, groups: Vec<String>) -> Result<(Vec<String>, Vec<LeftOut>), String> {
        let mut groups = groups;
        let mut left_out = Vec::new();
        for plugin in &mut self.plugins {
            if groups.is_empty() {
                break;
            }
            let name = plugin.name().to_owned();
            let chosen = plugin.groups(&groups).map_err(|fault| {
                format!("no group is chosen: selection plugin \"{name}\" failed: {fault}")
            })?;
            let mut chosen = chosen.into_iter().chain(std::iter::repeat(false));
            groups.retain(|group| {
                let is_taken = chosen.next() == Some(true);
                if !is_taken {
                    left_out.push(LeftOut { name: group.clone(), plugin: name.clone() });
                }
                is_taken
            });
        }
        left_out.sort();
        Ok((groups, left_out))
    }
}

impl SelectionFault {
    fn refusal(&self, topic: &TopicName, source: &ClusterAlias) -> Refusal {
        let text = format!(
            "topic \"{topic}\" of cluster \"{source}\" is not copied: selection plugin \"{}\" failed: {}; it is asked again \
             soon",
            self.plugin, self.fault
        );
        Refusal { kind: RefusalKind::PluginFault, topic: Some(topic.clone()), text }
    }

    /// One sentence for the plan.
    pub(super) fn sentence(&self) -> String {
        format!(
            "selection plugin \"{}\" failed: {}; what was copied before goes on, and nothing new is chosen until it answers",
            self.plugin, self.fault
        )
    }
}

fn partition_count(topic: &SelectionTopic) -> i32 {
    i32::try_from(topic.partition_count).unwrap_or(i32::MAX)
}

fn shown_topic(topic: &TopicName, source: &ClusterView, configs: &TopicConfigs) -> Option<SelectionTopic> {
    let view = source.topics.get(topic)?;
    let own =
        |entry: &&crate::cluster::ConfigEntry| entry.origin == ConfigOrigin::Topic && !entry.is_sensitive;
    let settings = match configs.get(topic) {
        Some(Ok(entries)) => entries
            .iter()
            .filter(own)
            .filter_map(|entry| Some((entry.name.clone(), entry.value.clone()?)))
            .collect(),
        // A plugin that asks for a setting does not find it, and takes nothing for granted.
        _ => Vec::new(),
    };
    Some(SelectionTopic {
        name: topic.to_string(),
        partition_count: u32::try_from(view.partition_count).unwrap_or(0),
        is_internal: view.is_internal,
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::fixture::{cluster, flow, prefix_naming, topic};

    /// Takes what holds this text; without one it fails.
    struct Holding(&'static str, Option<&'static str>);

    impl Selecting for Holding {
        fn name(&self) -> &str {
            self.0
        }

        fn topics(&mut self, topics: &[SelectionTopic]) -> Result<Vec<bool>, String> {
            let text = self.1.ok_or("it trapped")?;
            Ok(topics.iter().map(|topic| topic.name.contains(text)).collect())
        }

        fn groups(&mut self, groups: &[String]) -> Result<Vec<bool>, String> {
            let text = self.1.ok_or("it trapped")?;
            Ok(groups.iter().map(|group| group.contains(text)).collect())
        }
    }

    fn selector(plugins: Vec<Holding>) -> Selector {
        let mut selector = Selector::default();
        plugins.into_iter().for_each(|plugin| selector.add(Box::new(plugin)));
        selector
    }

    /// What becomes of each topic: `=` copied, `-` left out and by whom, else the refusal.
    fn narrowed(selector: &mut Selector, topics: &[(&str, i32, u8)], copied: &TopicMap) -> Vec<String> {
        let source = cluster("a", topics);
        let mut answers = prefix_naming(&flow("")).answer_all(source.topics.keys());
        let unasked = selector.unasked(&answers, &source);
        let fault = selector.ask(&unasked, &source, &TopicConfigs::new());
        selector.narrow(&mut answers, &unasked, fault.as_ref(), copied, &ClusterAlias::new("A"));
        let word = |(topic, answer): (&TopicName, &TopicAnswer)| match answer {
            TopicAnswer::Copy(_) => format!("{topic} ="),
            TopicAnswer::LeftOut(plugin) => format!("{topic} - {plugin}"),
            TopicAnswer::Refuse(refusal) => refusal.text.clone(),
            TopicAnswer::Leave => format!("{topic} left"),
        };
        answers.iter().map(word).collect()
    }

    #[test]
    fn each_plugin_narrows_what_the_one_before_left() {
        let mut selector = selector(vec![Holding("first", Some("r")), Holding("second", Some("s"))]);
        let topics = [("bills", 1, 1), ("orders", 1, 2), ("rates", 1, 3), ("rum", 1, 4)];
        assert_eq!(
            narrowed(&mut selector, &topics, &TopicMap::default()),
            ["bills - first", "orders =", "rates =", "rum - second"]
        );
        // Asked once; again for one that grew, and no more for one that is gone.
        let source = cluster("a", &[("bills", 1, 1), ("orders", 2, 2)]);
        let answers = prefix_naming(&flow("")).answer_all(source.topics.keys());
        assert_eq!(selector.unasked(&answers, &source), [topic("orders")]);
        selector.ask(&[], &source, &TopicConfigs::new());
        assert_eq!(selector.says.len(), 2);
    }

    #[test]
    fn after_a_fault_nothing_new_goes_and_what_was_copied_goes_on() {
        let mut selector = selector(vec![Holding("first", Some("s")), Holding("second", None)]);
        let mut copied = TopicMap::default();
        copied.insert(topic("orders"), topic("A.orders")).unwrap();
        let topics = [("bills", 1, 1), ("orders", 1, 2), ("rum", 1, 3)];
        let expected = [
            "topic \"bills\" of cluster \"A\" is not copied: selection plugin \"second\" failed: it trapped; it is asked again soon",
            "orders =",
            "rum - first",
        ];
        assert_eq!(narrowed(&mut selector, &topics, &copied), expected);
        // It is asked again, since nothing was answered.
        assert_eq!(narrowed(&mut selector, &topics, &copied), expected);
    }

    #[test]
    fn groups_are_narrowed_and_a_fault_leaves_none() {
        let groups = || vec!["pay".to_owned(), "play".to_owned(), "rent".to_owned()];
        let (chosen, left_out) = selector(vec![Holding("first", Some("ay"))]).groups(groups()).unwrap();
        assert_eq!(chosen, ["pay", "play"]);
        assert_eq!(left_out, [LeftOut { name: "rent".to_owned(), plugin: "first".to_owned() }]);
        assert_eq!(
            selector(vec![Holding("broken", None)]).groups(groups()).unwrap_err(),
            "no group is chosen: selection plugin \"broken\" failed: it trapped"
        );
    }
}
