//! What the loop does with orders that come over HTTP: answers at once what it knows, begins what takes time.

use crate::names::{SourcePartition, TopicName};
use crate::serve::orders::{
    Answer, FlowOrder, HistoryLine, NoAnswer, NoAnswerKind, PartitionName, PluginView, PluginsView,
    ResumeView, ResumeWish,
};

use super::decision::DecidedPlugin;
use super::moment::rfc3339;
use super::swap::{Policies, send};
use super::trial::AfterTrial;
use super::{Done, FlowLoop};

impl FlowLoop {
    /// Follows an order.
    pub(super) async fn take_order(&mut self, order: FlowOrder) {
        match order {
            FlowOrder::List(answer) => send(answer, Ok(self.policies.view())),
            FlowOrder::History(answer) => send(answer, Ok(self.policies.history())),
            FlowOrder::Swap(wish, answer) => self.begin_swap(wish, answer),
            FlowOrder::Rollback(wish, answer) => self.begin_rollback(&wish, answer),
            FlowOrder::Resume(wish, answer) => self.resume(wish, answer).await,
            FlowOrder::Trial(wish, answer) => self.begin_trial(&wish, AfterTrial::Show(answer)),
            FlowOrder::Quarantine(wish, with_content, answer) => {
                self.show_quarantine(wish, with_content, answer)
            }
            FlowOrder::Replay(wish, answer) => self.replay_quarantine(wish, answer),
        }
    }

    async fn resume(&mut self, wish: ResumeWish, answer: Answer<ResumeView>) {
        let partitions = match wish.partition.map(|name| parse(&name)).transpose() {
            Ok(partition) => partition.map(|partition| vec![partition]),
            Err(refused) => return send(answer, Err(refused)),
        };
        let answers = self.workers.resume(partitions).await;
        self.tasks.spawn(async move {
            let mut resumed = Vec::new();
            for worker in answers {
                // A worker that has ended has nothing to resume.
                resumed.extend(worker.await.unwrap_or_default());
            }
            resumed.sort();
            let name = |partition: SourcePartition| PartitionName {
                topic: partition.topic.to_string(),
                partition: partition.partition,
            };
            send(answer, Ok(ResumeView { resumed: resumed.into_iter().map(name).collect() }));
            Done::Nothing
        });
    }
}

fn parse(name: &PartitionName) -> Result<SourcePartition, NoAnswer> {
    let topic = TopicName::parse(&name.topic).map_err(|problem| {
        NoAnswer::new(NoAnswerKind::BadRequest, problem.to_string(), "name a topic of the source")
    })?;
    Ok(SourcePartition { topic, partition: name.partition })
}

impl Policies {
    fn view(&self) -> PluginsView {
        let view = |plugin: &DecidedPlugin| {
            let hooks =
                self.loaded.plugin(&plugin.name).map(|loaded| loaded.hooks.words()).unwrap_or_default();
            PluginView {
                name: plugin.name.clone(),
                module: plugin.module.clone(),
                plugin: plugin.plugin.clone(),
                version: plugin.version.clone(),
                digest: plugin.digest.clone(),
                size_bytes: plugin.size_bytes,
                hooks: hooks.into_iter().map(str::to_owned).collect(),
                topics: plugin.topics.clone(),
                topics_exclude: plugin.topics_exclude.clone(),
                on_fault: plugin.on_fault.clone(),
            }
        };
        PluginsView {
            flow: self.decision.flow.clone(),
            generation: self.decision.generation,
            kind: self.decision.kind.word().to_owned(),
            plugins: self.decision.plugins.iter().map(view).collect(),
        }
    }

    /// The newest first.
    fn history(&self) -> Vec<HistoryLine> {
        let current = &self.decision;
        let unwritten = self.book.decision(current.generation).is_none().then_some(current);
        let all = unwritten.into_iter().chain(self.book.decisions().rev());
        all.map(|decision| HistoryLine {
            generation: decision.generation,
            kind: decision.kind.word().to_owned(),
            is_current: decision.id() == current.id(),
            at: rfc3339(decision.at_ms),
            who: decision.who.clone(),
            what: decision.what.clone(),
            nodes: self.book.reports(decision.generation).nodes(),
        })
        .collect()
    }
}
