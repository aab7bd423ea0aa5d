//! The hook that selects topics and consumer groups, out of those that the configuration's lists chose.

use super::contract::selection::Topic;
use super::fault::Fault;
use super::instance::{Instance, Question};
use super::loaded::About;
use super::seat::Seat;

/// A call asks about so many at most: each string of a list costs some 80 ns, and a call has 50 ms.
const QUESTION_COUNT_MAX: usize = 500;

/// A topic of the source, as a plugin that selects is shown it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionTopic {
    /// Its name on the source.
    pub name: String,
    /// How many partitions it has.
    pub partition_count: u32,
    /// Whether Kafka calls it internal.
    pub is_internal: bool,
    /// Its settings that differ from the cluster's defaults.
    pub settings: Vec<(String, String)>,
}

/// A started plugin that selects. A fault answers nothing, and least of all "yes": the caller selects nothing new then.
pub struct SelectionPlugin {
    pub(super) about: About,
    pub(super) seat: Seat,
}

impl SelectionPlugin {
    /// What it says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// For each topic, in order, whether it may be replicated. That the plugin itself declines to answer is a fault.
    pub fn topics(&mut self, topics: &[SelectionTopic]) -> Result<Vec<bool>, Fault> {
        self.in_pieces(topics, Instance::select_topics)
    }

    /// For each consumer group, in order, whether its offsets may be replicated.
    pub fn groups(&mut self, groups: &[String]) -> Result<Vec<bool>, Fault> {
        self.in_pieces(groups, Instance::select_groups)
    }

    fn in_pieces<T>(
        &mut self,
        questions: &[T],
        ask: impl Fn(&mut Instance, &[T]) -> Result<Vec<bool>, Fault>,
    ) -> Result<Vec<bool>, Fault> {
        let mut answers = Vec::with_capacity(questions.len());
        for piece in questions.chunks(QUESTION_COUNT_MAX) {
            answers.extend(self.seat.ask(|instance| ask(instance, piece))?);
        }
        Ok(answers)
    }
}

impl Instance {
    fn select_topics(&mut self, topics: &[SelectionTopic]) -> Result<Vec<bool>, Fault> {
        let settings: Vec<Vec<(&str, &str)>> = topics.iter().map(borrowed_settings).collect();
        let asked: Vec<Topic<'_>> = topics
            .iter()
            .zip(&settings)
            .map(|(topic, settings)| Topic {
                name: &topic.name,
                partitions: topic.partition_count,
                internal: topic.is_internal,
                config: settings,
            })
            .collect();
        let question = Question::Topics(topics.len());
        let answer = self.ask(question, |exports, store| exports.selection()?.call_topics(store, &asked))?;
        self.checked_choice(question, topics.len(), answer)
    }

    fn select_groups(&mut self, groups: &[String]) -> Result<Vec<bool>, Fault> {
        let asked: Vec<&str> = groups.iter().map(String::as_str).collect();
        let question = Question::Groups(groups.len());
        let answer = self.ask(question, |exports, store| exports.selection()?.call_groups(store, &asked))?;
        self.checked_choice(question, groups.len(), answer)
    }

    fn checked_choice(
        &self,
        question: Question<'_>,
        count: usize,
        answer: Result<Vec<bool>, String>,
    ) -> Result<Vec<bool>, Fault> {
        match answer {
            Ok(chosen) if chosen.len() == count => Ok(chosen),
            Ok(chosen) => Err(self.bad_answer(question, format!("{} answers", chosen.len()))),
            Err(message) => Err(self.declined(question, &message)),
        }
    }
}

fn borrowed_settings(topic: &SelectionTopic) -> Vec<(&str, &str)> {
    topic.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}
