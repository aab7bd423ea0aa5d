//! Membership in the group that shares the slots of a flow.
//!
//! The group is a consumer group on the target that subscribes to the positions topic; its partitions are the slots.
//! Membership only ever answers "which slots are mine": it reads no data and commits no offsets.
//!
//! Where the target serves KIP-848's protocol, members use it (no initial delay, no stop of the whole group), else the
//! classic one with cooperative assignment. MirrorMaker 2 uses the same group in Kafka Connect's protocol, so the brokers
//! keep the two programs apart: while one runs, the other can't join.

mod attempt;
mod consumer;
mod verdict;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_wire::client::Client;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::cluster::NodeIdentity;
use crate::config::GroupConfig;
use crate::names::{FlowName, Slot, TopicName};
use attempt::{Attempt, AttemptEnd};

/// Events wait here while the control loop is busy; when it is full, the group waits with us.
pub const EVENTS_COUNT_MAX: usize = 16;

/// Looks whether MirrorMaker 2 is still in the group, in milliseconds.
const MIRROR_MAKER_LOOK_MS: u64 = 1_000;

/// Attempts to join that end without slots are made so many times in a row.
const ATTEMPTS_COUNT_MAX: u32 = 8;

/// The pause behind the first such attempt; it doubles up to [`ATTEMPT_PAUSE_MS_MAX`].
const ATTEMPT_PAUSE_MS: u64 = 250;

/// The longest pause between attempts.
const ATTEMPT_PAUSE_MS_MAX: u64 = 5_000;

/// Leaving takes at most so long; after that the process goes on and the broker finds out by the session timeout.
const LEAVE_WAIT_MS_MAX: u64 = 5_000;

/// What the group tells a flow. Slots come and go in any grouping, but one that is assigned was not held before, and one
/// that is revoked or lost was.
#[derive(Debug)]
pub enum MembershipEvent {
    /// These slots are ours from now on.
    Assigned(Vec<Slot>),
    /// These must be let go: stop fetching, settle, store positions, then answer `done`. The group waits, but not
    /// longer than [`MembershipOptions::revoke_wait_max`].
    Revoked {
        /// The slots.
        slots: Vec<Slot>,
        /// Answered (or dropped) when they are free for others.
        done: oneshot::Sender<()>,
    },
    /// These are somebody else's already (a session timed out): stop at once and store nothing.
    Lost(Vec<Slot>),
    /// MirrorMaker 2 runs this flow. Told once; after it comes either the end of events or, with
    /// [`MembershipOptions::wait_for_mirror_maker`], in time an assignment.
    MirrorMakerRunning,
    /// Membership has ended, in words; no event follows.
    Failed(String),
    /// The same, because the target does not let us.
    NotAllowed(String),
}

/// How to be a member.
#[derive(Clone, Debug)]
pub struct MembershipOptions {
    /// The target's servers.
    pub bootstrap_servers: Vec<String>,
    /// The flow.
    pub flow: FlowName,
    /// Who we are: members that a dead process of this identity left behind are sent away before joining.
    pub node: Arc<NodeIdentity>,
    /// The group's settings.
    pub group: GroupConfig,
    /// Whose partitions are the slots.
    pub positions_topic: TopicName,
    /// Wait for MirrorMaker 2's end instead of leaving.
    pub wait_for_mirror_maker: bool,
}

impl MembershipOptions {
    /// How long a revocation waits for `done`: two thirds of the rebalance timeout, so that the broker still hears of
    /// it in time.
    pub fn revoke_wait_max(&self) -> Duration {
        self.rebalance_timeout() * 2 / 3
    }

    /// `max.poll.interval.ms` may not be below the session timeout.
    fn rebalance_timeout(&self) -> Duration {
        self.group.rebalance_timeout.max(self.group.session_timeout)
    }
}

/// Set once, seen by the async side and by the consumer's thread.
#[derive(Debug, Default)]
struct Leaving {
    flag: AtomicBool,
    notify: Notify,
}

impl Leaving {
    fn set(&self) {
        self.flag.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    async fn wait(&self) {
        let notified = self.notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.is_set() {
            notified.await;
        }
    }
}

/// A running membership; dropping it leaves the group as well, without waiting.
#[derive(Debug)]
pub struct Membership {
    leaving: Arc<Leaving>,
    driver: Option<JoinHandle<()>>,
}

impl Membership {
    /// Begins to join. `target` is a control client of the target. Needs a tokio runtime.
    pub fn start(options: MembershipOptions, target: Client) -> (Self, mpsc::Receiver<MembershipEvent>) {
        let (events, receiver) = mpsc::channel(EVENTS_COUNT_MAX);
        let leaving = Arc::new(Leaving::default());
        let driver = Driver { options, target, events, leaving: Arc::clone(&leaving) };
        let driver = tokio::spawn(driver.run());
        (Self { leaving, driver: Some(driver) }, receiver)
    }

    /// Leaves the group. Call it when everything is settled and stored: slots are given back without a
    /// [`MembershipEvent::Revoked`]. Returns when the broker knows, or after five seconds.
    pub async fn leave(mut self) {
        self.leaving.set();
        let Some(driver) = self.driver.take() else { return };
        let wait = Duration::from_millis(LEAVE_WAIT_MS_MAX);
        if tokio::time::timeout(wait, driver).await.is_err() {
            warn!(wait_ms = LEAVE_WAIT_MS_MAX, "leaving the group took too long; its session will time out");
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.leaving.set();
    }
}

struct Driver {
    options: MembershipOptions,
    target: Client,
    events: mpsc::Sender<MembershipEvent>,
    leaving: Arc<Leaving>,
}

impl Driver {
    async fn run(self) {
        if let Err(end) = self.keep_joined().await {
            // Nobody may listen any more.
            let _ = self.events.send(end).await;
        }
    }

    /// Joins, and joins again after an end that a new member can mend. The error is the last event.
    async fn keep_joined(&self) -> Result<(), MembershipEvent> {
        let mut fruitless_count = 0;
        let mut mirror_maker_told = false;
        let mut prefer_classic = false;
        loop {
            let attempt = Attempt {
                options: &self.options,
                target: &self.target,
                events: &self.events,
                leaving: &self.leaving,
                prefer_classic,
            };
            let reason = match attempt.run().await {
                AttemptEnd::Left => return Ok(()),
                AttemptEnd::MirrorMaker => {
                    if !mirror_maker_told {
                        mirror_maker_told = true;
                        info!(group = self.options.group.id, "MirrorMaker 2 is still running this flow");
                        let _ = self.events.send(MembershipEvent::MirrorMakerRunning).await;
                    }
                    if !self.options.wait_for_mirror_maker {
                        return Ok(());
                    }
                    self.pause(Duration::from_millis(MIRROR_MAKER_LOOK_MS)).await;
                    continue;
                }
                AttemptEnd::Hopeless(reason) => return Err(MembershipEvent::Failed(reason)),
                AttemptEnd::NotAllowed(reason) => return Err(MembershipEvent::NotAllowed(reason)),
                AttemptEnd::Ended { reason, had_slots, was_consumer_protocol } => {
                    if had_slots {
                        fruitless_count = 0;
                    }
                    // Served but not working (a preview, a proxy in between): the old way works everywhere.
                    prefer_classic |= was_consumer_protocol && !had_slots && fruitless_count > 0;
                    reason
                }
            };
            fruitless_count += 1;
            if fruitless_count == ATTEMPTS_COUNT_MAX {
                let problem = format!("{reason}; gave up after {ATTEMPTS_COUNT_MAX} attempts");
                return Err(MembershipEvent::Failed(problem));
            }
            warn!(group = self.options.group.id, reason, "membership ended, joining again");
            let pause = (ATTEMPT_PAUSE_MS << (fruitless_count - 1)).min(ATTEMPT_PAUSE_MS_MAX);
            self.pause(Duration::from_millis(pause)).await;
        }
    }

    async fn pause(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.leaving.wait() => {}
        }
    }
}
