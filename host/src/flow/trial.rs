//! What a wanted plugin would do to recent records of the source, beside what the present ones do. Nothing changes.

use std::collections::BTreeSet;

use super::first::blocking;
use super::policies::{Loaded, Loader, Wanted};
use super::swap::{Change, Proposal, send, unusable};
use super::{Done, FlowLoop};
use crate::cluster::ClusterAdmin;
use crate::cluster::recent::recent_records;
use crate::config::OnFault;
use crate::control::Naming;
use crate::names::TopicName;
use crate::plugin::Chain;
use crate::plugin::trial::{TrialBatch, TrialReport, compare};
use crate::serve::orders::{Answer, NoAnswer, NoAnswerKind, SwapView, SwapWish, TrialView};

/// Trials at the same time: each holds its records in memory.
const TRIALS_MAX: usize = 2;

/// More records are not tried.
const REPLAY_COUNT_MAX: usize = 100_000;

/// Records come from so many topics at most, each with its share.
const TOPICS_COUNT_MAX: usize = 50;

/// What a trial showed, but for what the round must be asked.
pub(super) struct Tried {
    view: TrialView,
    /// The names that there would be; none when they stay.
    naming: Option<Box<Naming>>,
}

/// What comes behind a trial.
pub(super) enum AfterTrial {
    /// It is shown.
    Show(Answer<TrialView>),
    /// The swap, unless the trial had faults.
    Swap(Box<SwapWish>, Answer<SwapView>),
}

impl AfterTrial {
    fn refuse(self, refused: NoAnswer) {
        match self {
            Self::Show(answer) => send(answer, Err(refused)),
            Self::Swap(_, answer) => send(answer, Err(refused)),
        }
    }
}

impl FlowLoop {
    pub(super) fn begin_trial(&mut self, wish: &SwapWish, after: AfterTrial) {
        if self.trial_count >= TRIALS_MAX {
            let error = format!("{TRIALS_MAX} trials are running");
            let refused = NoAnswer::new(NoAnswerKind::Conflict, error, "wait for the end of one");
            return after.refuse(refused);
        }
        let proposal = match self.policies.propose(wish) {
            Ok(proposal) => proposal,
            Err(refused) => return after.refuse(refused),
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
        self.tasks.spawn(async move { Done::Tried { end: trial.run().await, after } });
    }

    pub(super) fn take_tried(&mut self, end: anyhow::Result<Tried>, after: AfterTrial) {
        self.trial_count -= 1;
        match end {
            Ok(tried) => {
                self.tried.push((tried, after));
                self.finish_trials();
            }
            Err(problem) => after.refuse(unusable(&problem)),
        }
    }

    /// Goes on behind trials; those that are about names wait for the round, which knows them.
    pub(super) fn finish_trials(&mut self) {
        for (mut tried, after) in std::mem::take(&mut self.tried) {
            match (&mut tried.naming, self.round.is_some()) {
                (Some(_), false) => self.tried.push((tried, after)),
                (Some(naming), true) => {
                    tried.view.renames = self.renamed_by(naming);
                    self.finish_trial(tried.view, after);
                }
                (None, _) => self.finish_trial(tried.view, after),
            }
        }
    }

    fn finish_trial(&mut self, view: TrialView, after: AfterTrial) {
        match after {
            AfterTrial::Show(answer) => send(answer, Ok(view)),
            AfterTrial::Swap(wish, answer) if view.fault_count > 0 && !wish.force => {
                let error = format!(
                    "the new plugin failed on {} of the records that it was tried on",
                    view.fault_count
                );
                let remedy = "nothing has changed: mend it, or swap with force";
                send(answer, Err(NoAnswer::new(NoAnswerKind::Plugin, error, remedy)));
            }
            AfterTrial::Swap(wish, answer) => {
                let wish = SwapWish { replay: 0, seen_generation: Some(view.generation), ..*wish };
                self.begin_swap(wish, answer);
            }
        }
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
    async fn run(self) -> anyhow::Result<Tried> {
        let (loader, wanted) = (self.loader.clone(), self.wanted.clone());
        let (running, number) = (self.running.clone(), self.generation);
        let (new, naming, chains) = blocking(move || {
            let new = loader.load(wanted, &running.modules)?;
            // As they would run, but that each goes on behind a bad record and says why it is one.
            let on_fault = Some(OnFault::Quarantine);
            let chains = (running.chain(number, on_fault)?, new.chain(number + 1, on_fault)?);
            // Also a naming that can't be used shows now, not with the swap.
            let naming = loader.naming(&new)?;
            let naming = (!new.names_as(&running)).then(|| Box::new(naming));
            Ok((new, naming, chains))
        })
        .await?;
        let (mut old_chain, mut new_chain) = chains;
        let batches = self.records(self.applying(&old_chain, &new_chain)).await?;
        let report = blocking(move || Ok(compare(Some(&mut old_chain), &mut new_chain, &batches))).await?;
        Ok(Tried { view: self.view(&new, &report)?, naming })
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
