//! Keeps the flows of a process running. A flow that ends by an error starts again as long as that may help and as long
//! as the process has something else to do; how a flow is run is the caller's.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{error, warn};

use crate::flow::FlowFailure;
use crate::names::FlowName;
use crate::status::{FlowState, FlowStats, Registry, now_ms};

/// Pause before a flow that ended by an error starts again, in milliseconds.
pub(super) const RESTART_MS: u64 = 5_000;

/// One flow of the process.
struct Kept<S> {
    setting: S,
    stats: Arc<FlowStats>,
    /// Its first attempt goes on.
    is_starting: bool,
}

impl<S> Kept<S> {
    /// It runs, is on the way to run again, or may come to run for the first time.
    fn is_alive(&self) -> bool {
        self.is_starting || self.stats.has_run()
    }
}

/// The flows, and the attempts to run them.
pub(super) struct Flows<S, R> {
    flows: Vec<Kept<S>>,
    run: R,
    stop: watch::Receiver<bool>,
    attempts: JoinSet<Result<(), FlowFailure>>,
    /// Which flow an attempt is of.
    indexes: HashMap<Id, usize>,
    /// First failures of flows that had not run yet, in the order of failing.
    failures: Vec<(usize, FlowFailure)>,
}

impl<S, R, F> Flows<S, R>
where
    S: Clone,
    R: Fn(S) -> F,
    F: Future<Output = Result<(), FlowFailure>> + Send + 'static,
{
    /// `run` runs a flow until the order to stop (Ok) or an error, and says to `registry` when it runs.
    pub(super) fn new(
        flows: Vec<(FlowName, S)>,
        registry: &Registry,
        stop: watch::Receiver<bool>,
        run: R,
    ) -> Self {
        let kept = |(name, setting): (FlowName, S)| {
            let stats = registry.flow(&name);
            stats.set_state(FlowState::Starting);
            Kept { setting, stats, is_starting: true }
        };
        let flows = flows.into_iter().map(kept).collect();
        let (attempts, indexes) = (JoinSet::new(), HashMap::new());
        Self { flows, run, stop, attempts, indexes, failures: Vec::new() }
    }

    /// Runs the flows until the order to stop. A flow that has run before starts again after whatever ended it. One that
    /// has not is tried again, if its failure may pass, while another flow is alive. When none is, the first failure is
    /// the process's.
    pub(super) async fn keep(mut self) -> Result<(), FlowFailure> {
        for index in 0..self.flows.len() {
            self.start(index, Duration::ZERO);
        }
        while let Some(ended) = self.attempts.join_next_with_id().await {
            let (id, result) = with_id(ended);
            let Some(index) = self.indexes.remove(&id) else { continue };
            self.flows[index].is_starting = false;
            if let Err(failure) = result {
                self.take_failure(index, failure);
                if !self.flows.iter().any(Kept::is_alive) {
                    break;
                }
            }
        }
        // A stop that was ordered is no failure; what did not run was told when it failed.
        let is_ordered = *self.stop.borrow();
        let first = self.failures.into_iter().next();
        first.filter(|_| !is_ordered).map_or(Ok(()), |(_, failure)| Err(failure))
    }

    fn start(&mut self, index: usize, after: Duration) {
        let attempt = (self.run)(self.flows[index].setting.clone());
        let mut stop = self.stop.clone();
        let handle = self.attempts.spawn(async move {
            let is_stopped = tokio::select! {
                () = tokio::time::sleep(after) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if is_stopped { Ok(()) } else { attempt.await }
        });
        self.indexes.insert(handle.id(), index);
    }

    fn take_failure(&mut self, index: usize, failure: FlowFailure) {
        let stats = Arc::clone(&self.flows[index].stats);
        let name = &stats.name;
        stats.set_error(now_ms(), failure.to_string());
        stats.set_state(FlowState::Failed);
        let restart = Duration::from_millis(RESTART_MS);
        if stats.has_run() {
            warn!(flow = %name, %failure, restart_ms = RESTART_MS, "flow ended by an error and starts again");
            self.start(index, restart);
            return;
        }
        if failure.may_pass() {
            warn!(flow = %name, %failure, restart_ms = RESTART_MS, "flow can't start; tried again while another flow runs");
            self.start(index, restart);
        } else {
            error!(flow = %name, %failure, "flow can't start, and trying again would not help");
        }
        if !self.failures.iter().any(|(failed, _)| *failed == index) {
            self.failures.push((index, failure));
        }
    }
}

fn with_id(ended: Result<(Id, Result<(), FlowFailure>), JoinError>) -> (Id, Result<(), FlowFailure>) {
    ended.unwrap_or_else(|problem| {
        let words = anyhow::anyhow!("a flow's task was lost: {problem}");
        (problem.id(), Err(FlowFailure::Internal(words)))
    })
}

#[cfg(test)]
mod tests;
