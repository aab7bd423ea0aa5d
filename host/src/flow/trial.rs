//! What a wanted plugin would do to recent records of the source, beside what the present ones do. Nothing changes.

use std::collections::BTreeSet;

use super::first::blocking;
use super::policies::{Loaded, Loader, Wanted};
use super::swap::{Change, Proposal, send, unusable};
use super::{Done, FlowLoop};
use crate::cluster::ClusterAdmin;
use crate::cluster::recent::recent_records;
use crate::config::OnFault;
use crate::names::TopicName;
use crate::plugin::Chain;
use crate::plugin::trial::{TrialBatch, TrialReport, compare};
use crate::serve::orders::{Answer, NoAnswer, NoAnswerKind, SwapWish, TrialView};

/// Trials at the same time: each holds its records in memory.
const TRIALS_MAX: usize = 2;

/// More records are not tried.
const REPLAY_COUNT_MAX: usize = 100_000;

/// Records come from so many topics at most, each with its share.
const TOPICS_COUNT_MAX: usize = 50;

impl FlowLoop {
    pub(super) fn begin_trial(&mut self, wish: &SwapWish, answer: Answer<TrialView>) {
        if self.trial_count >= TRIALS_MAX {
            let error = format!("{TRIALS_MAX} trials are running");
            return send(
                answer,
                Err(NoAnswer::new(NoAnswerKind::Conflict, error, "wait for the end of one")),
            );
        }
        let proposal = match self.policies.propose(wish) {
            Ok(proposal) => proposal,
            Err(refused) => return send(answer, Err(refused)),
        };
        let Proposal { change: Change::Plugins(wanted), .. } = proposal else { return };
        self.trial_count += 1;
        let trial = Trial {
            loader: self.policies.loader.clone(),
            wanted,
            running: self.policies.loaded.clone(),
            generation: self.policies.decision.generation,
            source: self.started.source.clone(),
            topics: self.ownership.ready().keys().map(|partition| partition.topic.clone()).collect(),
            name: wish.name.clone(),
            replay: wish.replay.min(REPLAY_COUNT_MAX),
        };
        self.tasks.spawn(async move { Done::Tried { end: trial.run().await, answer } });
    }

    pub(super) fn take_tried(&mut self, end: anyhow::Result<TrialView>, answer: Answer<TrialView>) {
        self.trial_count -= 1;
        send(answer, end.map_err(|problem| unusable(&problem)));
    }
}

struct Trial {
    loader: Loader,
    wanted: Vec<Wanted>,
    running: Loaded,
    generation: u64,
    source: ClusterAdmin,
    topics: BTreeSet<TopicName>,
    name: String,
    replay: usize,
}

impl Trial {
    async fn run(self) -> anyhow::Result<TrialView> {
        let (loader, wanted) = (self.loader.clone(), self.wanted.clone());
        let (running, number) = (self.running.clone(), self.generation);
        let (new, chains) = blocking(move || {
            let new = loader.load(wanted, &running.modules)?;
            // As they would run, but that each goes on behind a bad record and says why it is one.
            let on_fault = Some(OnFault::Quarantine);
            let chains = (running.chain(number, on_fault)?, new.chain(number + 1, on_fault)?);
            Ok((new, chains))
        })
        .await?;
        let (mut old_chain, mut new_chain) = chains;
        let batches = self.records(self.applying(&old_chain, &new_chain)).await?;
        let report = blocking(move || Ok(compare(Some(&mut old_chain), &mut new_chain, &batches))).await?;
        self.view(&new, &report)
    }

    /// Topics where the old chain or the new one applies.
    fn applying(&self, old: &Chain, new: &Chain) -> Vec<TopicName> {
        let applies = |topic: &&TopicName| old.applies_to(topic) || new.applies_to(topic);
        self.topics.iter().filter(applies).take(TOPICS_COUNT_MAX).cloned().collect()
    }

    /// Their last records.
    async fn records(&self, topics: Vec<TopicName>) -> anyhow::Result<Vec<TrialBatch>> {
        let mut batches = Vec::new();
        let Some(share) = self.replay.checked_div(topics.len()) else { return Ok(batches) };
        for topic in &topics {
            batches.extend(recent_records(self.source.client(), topic, share.max(1)).await?);
        }
        Ok(batches)
    }

    fn view(&self, new: &Loaded, report: &TrialReport) -> anyhow::Result<TrialView> {
        let about = new.plugin(&self.name).map(|plugin| &plugin.about);
        let bad_count = report.new.rejected_count + report.new.faulted_count;
        Ok(TrialView {
            generation: self.generation,
            plugin: about.map(|about| format!("{} {}", about.name, about.version)).unwrap_or_default(),
            digest: about.map(|about| about.digest.clone()).unwrap_or_default(),
            text: report.to_string(),
            report: serde_json::to_value(report)?,
            fault_count: if report.is_worse() { bad_count } else { 0 },
            renames: Vec::new(),
        })
    }
}
