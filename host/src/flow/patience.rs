//! How long a start tries again what a cluster does not answer.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::failure::{FlowFailure, Setback};
use crate::names::FlowName;

/// Pause between attempts, in milliseconds.
pub(super) const RETRY_MS: u64 = 250;

/// The time that a start has for its questions (`tidegate.start.timeout.ms`). What was begun is not cut.
pub(super) struct Patience {
    flow: FlowName,
    within: Duration,
    deadline: Instant,
}

impl Patience {
    /// From now on.
    pub(super) fn new(flow: &FlowName, within: Duration) -> Self {
        Self { flow: flow.clone(), within, deadline: Instant::now() + within }
    }

    /// Returns when it is time for another attempt; an error when there will be none.
    pub(super) async fn again(&self, setback: impl Into<Setback>) -> Result<(), FlowFailure> {
        let problem = match setback.into() {
            Setback::Again(problem) => problem,
            Setback::Final(failure) => return Err(failure),
        };
        if Instant::now() + Duration::from_millis(RETRY_MS) >= self.deadline {
            let waited_s = self.within.as_secs();
            return Err(FlowFailure::Unavailable { flow: self.flow.clone(), waited_s, problem });
        }
        warn!(flow = %self.flow, problem = format!("{problem:#}"), "a cluster does not answer, trying again");
        tokio::time::sleep(Duration::from_millis(RETRY_MS)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tidegate_wire::error::WireError;

    use super::*;
    use crate::names::ClusterAlias;

    fn patience() -> Patience {
        let flow = FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") };
        Patience::new(&flow, Duration::from_secs(30))
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_until_the_time_is_over() {
        let start = Instant::now();
        let patience = patience();
        let mut attempt_count = 0;
        let failure = loop {
            attempt_count += 1;
            let problem = anyhow::Error::new(WireError::NoBroker { tried: "b:1".to_owned() });
            if let Err(failure) = patience.again(problem.context("could not list the topics")).await {
                break failure;
            }
        };
        assert_eq!(attempt_count, 120);
        assert_eq!(start.elapsed(), Duration::from_millis(29_750));
        assert_eq!(
            failure.to_string(),
            "flow A->B: could not list the topics: no broker of the cluster answered; tried b:1; it was tried for 30 s \
             (tidegate.start.timeout.ms sets how long to wait)"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_stays_is_told_at_once() {
        let start = Instant::now();
        let failure = patience().again(anyhow::anyhow!("no sense in it")).await.unwrap_err();
        assert!(matches!(failure, FlowFailure::Internal(_)), "{failure}");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
