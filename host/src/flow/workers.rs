//! The workers of one flow, as the control loop sees them: where orders go, and how they end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, info, warn};

use super::ownership::{Handout, Ownership};
use crate::names::{FlowName, Slot, SourcePartition};
use crate::plugin::Chain;
use crate::relay::{Command, LaneStart, Worker, WorkerSettings};
use crate::status::{Changeover, FlowStats, PartitionStats};

/// The flow's workers.
pub(super) struct Workers {
    flow: FlowName,
    workers: Vec<Worker>,
    ended: mpsc::Receiver<()>,
}

/// Answers of workers that let something go.
pub(super) struct LettingGo(Vec<oneshot::Receiver<()>>);

impl LettingGo {
    /// Waits until all have let go, or ended.
    pub(super) async fn wait(self) {
        for answer in self.0 {
            let _worker_may_have_ended = answer.await;
        }
    }
}

impl Workers {
    /// Starts a worker for each chain, which is the first that it is handed: without one a worker sends nothing.
    pub(super) fn spawn(
        settings: &WorkerSettings,
        stats: &Arc<FlowStats>,
        chains: Vec<Chain>,
    ) -> anyhow::Result<Self> {
        let count = chains.len();
        let (signal, ended) = mpsc::channel(count);
        let spawn = |number| {
            Worker::spawn(number, settings.clone(), Arc::clone(stats), signal.clone())
                .context("could not start a relay worker")
        };
        let workers = (0..count).map(spawn).collect::<anyhow::Result<Vec<_>>>()?;
        for (worker, chain) in workers.iter().zip(chains) {
            let (taken, _nobody_asks) = oneshot::channel();
            let order = Command::TakeChain { chain: Box::new(chain), taken };
            worker.commands.try_send(order).ok().context("a relay worker ended at once")?;
        }
        Ok(Self { flow: settings.flow.clone(), workers, ended })
    }

    /// Returns when a worker has ended by itself, which it never should.
    pub(super) async fn one_ends(&mut self) {
        if self.ended.recv().await.is_none() {
            std::future::pending().await
        }
    }

    /// Hands partitions out, each to the worker of its slot.
    pub(super) async fn add(&self, handouts: Vec<Handout>) {
        let mut by_worker: BTreeMap<usize, Vec<LaneStart>> = BTreeMap::new();
        for handout in handouts {
            let worker = Ownership::worker_of(handout.slot, self.workers.len());
            by_worker.entry(worker).or_default().push(lane_start(handout));
        }
        for (worker, starts) in by_worker {
            info!(flow = %self.flow, worker, partitions = starts.len(), "partitions handed to a worker");
            self.command(worker, Command::Add(starts)).await;
        }
    }

    /// Hands each worker its chain of a new generation.
    pub(super) async fn take_chains(
        &self,
        chains: Vec<Chain>,
    ) -> Vec<oneshot::Receiver<Vec<(SourcePartition, Changeover)>>> {
        let mut answers = Vec::new();
        for (worker, chain) in chains.into_iter().enumerate() {
            let (taken, answer) = oneshot::channel();
            self.command(worker, Command::TakeChain { chain: Box::new(chain), taken }).await;
            answers.push(answer);
        }
        answers
    }

    /// Lets partitions go on that a plugin stopped; all when none are named.
    pub(super) async fn resume(
        &self,
        partitions: Option<Vec<SourcePartition>>,
    ) -> Vec<oneshot::Receiver<Vec<SourcePartition>>> {
        let mut answers = Vec::new();
        for worker in 0..self.workers.len() {
            let (done, answer) = oneshot::channel();
            self.command(worker, Command::Resume { partitions: partitions.clone(), done }).await;
            answers.push(answer);
        }
        answers
    }

    /// Has all workers look at the source's topics again.
    pub(super) async fn refresh_source(&self) {
        for worker in 0..self.workers.len() {
            self.command(worker, Command::RefreshSource).await;
        }
    }

    /// Lets slots go: their workers settle and store `within` that time; with none, nothing more is sent or stored.
    pub(super) async fn release_slots(&self, slots: &[Slot], within: Duration) -> LettingGo {
        let mut answers = Vec::new();
        for (worker, slots) in Ownership::by_worker(slots, self.workers.len()) {
            let (done, answer) = oneshot::channel();
            if self.command(worker, Command::ReleaseSlots { slots, done, within }).await {
                answers.push(answer);
            }
        }
        LettingGo(answers)
    }

    /// Lets single partitions go, each with its slot.
    pub(super) async fn release_partitions(
        &self,
        partitions: Vec<(SourcePartition, Slot)>,
        within: Duration,
    ) -> LettingGo {
        let mut by_worker: BTreeMap<usize, Vec<SourcePartition>> = BTreeMap::new();
        for (partition, slot) in partitions {
            info!(flow = %self.flow, %partition, "partition is no longer replicated");
            by_worker.entry(Ownership::worker_of(slot, self.workers.len())).or_default().push(partition);
        }
        let mut answers = Vec::new();
        for (worker, partitions) in by_worker {
            let (done, answer) = oneshot::channel();
            if self.command(worker, Command::ReleasePartitions { partitions, done, within }).await {
                answers.push(answer);
            }
        }
        LettingGo(answers)
    }

    /// A worker takes orders within milliseconds, so its channel is never full for long.
    async fn command(&self, worker: usize, command: Command) -> bool {
        let Some(worker) = self.workers.get(worker) else { return false };
        worker.commands.send(command).await.is_ok()
    }

    /// Lets all workers settle, store and end, side by side, but waits no longer than `within`. A thread that takes longer
    /// is left behind: it must not keep the process from ending.
    pub(super) async fn close(self, within: Duration) {
        let flow = self.flow;
        let closing: Vec<_> = self.workers.into_iter().map(Worker::close).collect();
        let (end, ended) = oneshot::channel();
        let name = flow.clone();
        std::thread::spawn(move || {
            for worker in closing {
                if let Err(problem) = worker.join() {
                    error!(flow = %name, %problem, "a relay worker did not end well");
                }
            }
            let _waited_too_long = end.send(());
        });
        if tokio::time::timeout(within, ended).await.is_err() {
            warn!(%flow, "settling took too long; what is not stored will be copied again");
        }
    }
}

fn lane_start(handout: Handout) -> LaneStart {
    let stats = Arc::new(PartitionStats::new(handout.target_topic.clone(), handout.slot));
    LaneStart {
        partition: handout.partition,
        target_topic: handout.target_topic,
        slot: handout.slot,
        first: handout.first,
        is_made_anew: handout.is_made_anew,
        stats,
    }
}
