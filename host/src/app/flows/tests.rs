//! Flows that do as a script says, on paused time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use tokio::time::Instant;

use super::*;
use crate::names::ClusterAlias;

/// What an attempt does.
enum Attempt {
    /// Fails so many milliseconds after its start, without having run.
    FailsToStart(u64, FlowFailure),
    /// Runs at once, and fails after so many milliseconds.
    RunsAndFails(u64, FlowFailure),
    /// Runs at once, until the order to stop.
    Runs,
    /// Neither runs nor fails, until the order to stop.
    Waits,
    /// Its task dies.
    Panics,
}
use Attempt::{FailsToStart, Panics, Runs, RunsAndFails, Waits};

/// What the flows' attempts do, one after another, and when each began.
struct Stage {
    registry: Arc<Registry>,
    start: Instant,
    scripts: Mutex<BTreeMap<FlowName, VecDeque<Attempt>>>,
    attempts: Mutex<Vec<(String, u64)>>,
}

fn name(text: &str) -> FlowName {
    let (source, target) = text.split_once("->").unwrap();
    FlowName { source: ClusterAlias::new(source), target: ClusterAlias::new(target) }
}

impl Stage {
    fn new(scripts: Vec<(&str, Vec<Attempt>)>) -> Arc<Self> {
        let scripts = scripts.into_iter().map(|(flow, attempts)| (name(flow), attempts.into())).collect();
        let registry = Arc::new(Registry::default());
        Arc::new(Self {
            registry,
            start: Instant::now(),
            scripts: Mutex::new(scripts),
            attempts: Mutex::default(),
        })
    }

    /// Runs the scripts; the order to stop comes after so many milliseconds.
    async fn play(self: &Arc<Self>, stop_after_ms: u64) -> Result<(), FlowFailure> {
        let flows: Vec<_> =
            self.scripts.lock().unwrap().keys().map(|flow| (flow.clone(), flow.clone())).collect();
        let (order, stop) = watch::channel(false);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(stop_after_ms)).await;
            order.send_replace(true);
            order.closed().await;
        });
        let run = {
            let (stage, stop) = (Arc::clone(self), stop.clone());
            move |flow: FlowName| Arc::clone(&stage).attempt(flow, stop.clone())
        };
        Flows::new(flows, &self.registry, stop, run).keep().await
    }

    async fn attempt(
        self: Arc<Self>,
        flow: FlowName,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), FlowFailure> {
        let began_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap();
        self.attempts.lock().unwrap().push((flow.to_string(), began_ms));
        let attempt = self.scripts.lock().unwrap().get_mut(&flow).unwrap().pop_front().unwrap();
        let stats = self.registry.flow(&flow);
        if matches!(attempt, Runs | RunsAndFails(..)) {
            stats.set_state(FlowState::Running);
        }
        match attempt {
            FailsToStart(after_ms, failure) | RunsAndFails(after_ms, failure) => {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
                Err(failure)
            }
            Runs | Waits => {
                stop.wait_for(|stop| *stop).await.unwrap();
                Ok(())
            }
            Panics => panic!("as the script says"),
        }
    }

    /// When each attempt of a flow began, in milliseconds; the runtime's clock may add one.
    fn began_s(&self, flow: &str) -> Vec<u64> {
        let attempts = self.attempts.lock().unwrap();
        attempts.iter().filter(|(name, _)| name == flow).map(|(_, at_ms)| at_ms / 1_000).collect()
    }
}

fn unreachable() -> FlowFailure {
    FlowFailure::Membership("nobody is there".to_owned())
}

fn refused() -> FlowFailure {
    FlowFailure::Refused("we will not".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_cannot_start_is_tried_again_while_another_runs() {
    let stage = Stage::new(vec![
        ("A->B", vec![Runs]),
        ("A->C", vec![FailsToStart(0, unreachable()), FailsToStart(1_000, unreachable()), Runs]),
    ]);
    let playing = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { stage.play(60_000).await }
    });
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let snapshot = stage.registry.flow(&name("A->C")).snapshot();
    assert_eq!(snapshot.state, FlowState::Failed);
    assert_eq!(snapshot.last_error.unwrap().message, "nobody is there");
    playing.await.unwrap().unwrap();
    assert_eq!(stage.began_s("A->B"), [0]);
    assert_eq!(stage.began_s("A->C"), [0, 5, 11]);
}

#[tokio::test(start_paused = true)]
async fn a_flow_is_tried_again_while_another_is_at_its_first_attempt() {
    let stage = Stage::new(vec![("A->B", vec![Waits]), ("A->C", vec![FailsToStart(0, unreachable()), Runs])]);
    stage.play(20_000).await.unwrap();
    assert_eq!(stage.began_s("A->C"), [0, 5]);
}

#[tokio::test(start_paused = true)]
async fn the_process_ends_with_the_first_failure_when_no_flow_is_alive() {
    let stage = Stage::new(vec![
        ("A->B", vec![FailsToStart(30_000, refused())]),
        (
            "A->C",
            vec![
                FailsToStart(2_000, unreachable()),
                FailsToStart(10_000, unreachable()),
                FailsToStart(60_000, unreachable()),
            ],
        ),
    ]);
    let failure = stage.play(600_000).await.unwrap_err();
    assert_eq!(failure.to_string(), "nobody is there");
    assert_eq!(stage.start.elapsed().as_secs(), 30);
    assert_eq!(stage.began_s("A->C"), [0, 7, 22]);
}

#[tokio::test(start_paused = true)]
async fn a_lone_flow_that_cannot_start_ends_the_process_at_once() {
    for failure in [unreachable(), refused(), FlowFailure::Internal(anyhow::anyhow!("odd"))] {
        let words = failure.to_string();
        let stage = Stage::new(vec![("A->B", vec![FailsToStart(1_000, failure)])]);
        assert_eq!(stage.play(600_000).await.unwrap_err().to_string(), words);
        assert_eq!(stage.start.elapsed().as_secs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_stays_is_not_tried_again_and_ends_no_other_flow() {
    let plugin = || FlowFailure::Plugin(anyhow::anyhow!("no plugin"));
    let not_allowed = || FlowFailure::NotAllowed(anyhow::anyhow!("not for us"));
    let stage = Stage::new(vec![
        ("A->B", vec![Runs]),
        ("A->C", vec![FailsToStart(0, refused())]),
        ("A->D", vec![FailsToStart(0, plugin())]),
        ("A->E", vec![FailsToStart(0, not_allowed())]),
    ]);
    // A stop that was ordered is no failure.
    stage.play(60_000).await.unwrap();
    for flow in ["A->B", "A->C", "A->D", "A->E"] {
        assert_eq!(stage.began_s(flow), [0], "{flow}");
    }
    assert_eq!(stage.registry.flow(&name("A->C")).snapshot().state, FlowState::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_has_run_starts_again_after_whatever_ended_it() {
    let stage = Stage::new(vec![(
        "A->B",
        vec![
            RunsAndFails(1_000, unreachable()),
            FailsToStart(0, refused()),
            RunsAndFails(0, refused()),
            Runs,
        ],
    )]);
    stage.play(60_000).await.unwrap();
    assert_eq!(stage.began_s("A->B"), [0, 6, 11, 16]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_dies_is_a_failure_like_others() {
    let stage = Stage::new(vec![("A->B", vec![Runs]), ("A->C", vec![Panics, Runs])]);
    stage.play(20_000).await.unwrap();
    assert_eq!(stage.began_s("A->C"), [0, 5]);
    let stage = Stage::new(vec![("A->C", vec![Panics])]);
    let failure = stage.play(20_000).await.unwrap_err();
    assert!(failure.to_string().starts_with("a flow's task was lost: "), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_the_next_attempt() {
    let stage = Stage::new(vec![("A->B", vec![Runs]), ("A->C", vec![FailsToStart(0, unreachable())])]);
    stage.play(2_000).await.unwrap();
    assert_eq!(stage.start.elapsed().as_secs(), 2);
}
