//! One flow: its control loop and its workers. The loop is the only one that decides; it waits for the group, for
//! rounds of looking and planning, for stored positions and for the order to stop, and hands partitions to workers.

mod book;
mod decision;
mod failure;
mod first;
mod module_files;
mod moment;
mod orders;
mod ownership;
mod patience;
mod policies;
mod quarantine;
mod reports;
mod start;
mod swap;
mod tail;
mod trial;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use self::decision::{Decision, DecisionId};
pub use self::failure::FlowFailure;
use self::module_files::{Changed, Watch};
pub use self::moment::rfc3339;
use self::ownership::{OwnedSlot, Ownership};
use self::policies::Ready;
use self::reports::Report;
use self::start::{Begun, Started};
pub use self::start::{FlowSetting, has_way_back, look_once};
use self::swap::{Made, Policies};
use self::trial::{AfterTrial, Tried};
use self::workers::Workers;
use crate::cluster::{MembershipEvent, read_positions};
use crate::control::{Event, Pace, Plan, Round};
use crate::names::{Slot, SourceOffset, SourcePartition, TopicName};
use crate::serve::orders::FlowOrder;
use crate::status::{FlowState, FlowStats};

/// Pause before stored positions are asked for again after that failed, in milliseconds.
const READ_RETRY_MS: u64 = 500;

/// How long a revoked slot may settle, in milliseconds: less than the group waits.
const REVOKE_SETTLE_MS_MAX: u64 = 15_000;

/// A topic that is no longer there is looked for again after this time, in milliseconds: a broker that starts may not know
/// it yet.
const GONE_LOOK_MS: u64 = 2_000;

/// What the loop's tasks bring.
enum Done {
    Round(Box<Round>, anyhow::Result<Box<Plan>>),
    Positions {
        slots: Vec<OwnedSlot>,
        positions: anyhow::Result<BTreeMap<SourcePartition, SourceOffset>>,
    },
    /// Told to the group, nothing more to do.
    Released,
    /// Single partitions were let go; the positions of their slots may be read again.
    LetGo {
        slots: Vec<Slot>,
    },
    /// A generation of plugins was made ready here, or can't be.
    Made(Box<Made>),
    /// A decision about plugins was written, or could not be.
    DecisionWritten {
        id: DecisionId,
        end: anyhow::Result<()>,
    },
    /// What another node decided was made ready, or can't be.
    Followed {
        decision: Box<Decision>,
        made: anyhow::Result<Box<Ready>>,
    },
    /// The workers have taken a generation.
    Taken(Box<Report>),
    /// A trial has ended.
    Tried {
        end: anyhow::Result<Tried>,
        after: AfterTrial,
    },
    /// What runs since the start is to be written down, after it could not be.
    FirstDue,
    /// Module files were looked at.
    Watched {
        watch: Watch,
        changed: Vec<Changed>,
    },
    /// Whoever waited was answered.
    Nothing,
}

struct FlowLoop {
    setting: FlowSetting,
    stats: Arc<FlowStats>,
    started: Started,
    ownership: Ownership,
    workers: Workers,
    tasks: JoinSet<Done>,
    /// The round, while it does not run.
    round: Option<Box<Round>>,
    round_due: Option<Instant>,
    pace: Pace,
    reading: Vec<OwnedSlot>,
    /// Slots of which partitions are being let go: their positions still move.
    settling: Vec<Slot>,
    /// Refusals of the last plan that need attention.
    refusals: Vec<String>,
    /// Sentences about what the last plan leaves alone.
    summary: Vec<String>,
    policies: Policies,
    orders: mpsc::Receiver<FlowOrder>,
    /// Trials that are running.
    trial_count: usize,
    /// Trials that have ended and of which something is to be asked of the round.
    tried: Vec<(Tried, AfterTrial)>,
}

/// Runs a flow until `stop` says so (Ok), or until it can't go on.
pub async fn run(setting: FlowSetting, mut stop: watch::Receiver<bool>) -> Result<(), FlowFailure> {
    let stats = setting.registry.flow(&setting.flow.name);
    stats.set_state(FlowState::Starting);
    let started = tokio::select! {
        started = start::start(&setting) => started?,
        () = stopped(&mut stop) => return Ok(()),
    };
    let mut flow = FlowLoop::new(setting, stats, started)?;
    let result = flow.run(&mut stop).await;
    flow.stats.set_state(FlowState::Stopping);
    flow.close().await;
    result
}

/// Returns when the order to stop is there.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that nobody can give the order any more; that is one, too.
    let _order = stop.wait_for(|stop| *stop).await;
}

impl FlowLoop {
    fn new(setting: FlowSetting, stats: Arc<FlowStats>, begun: Begun) -> Result<Self, FlowFailure> {
        let Begun { started, round, policies, chains, must_write } = begun;
        let ownership = Ownership::new(setting.flow.name.source.clone(), started.slot_count);
        let settings = setting.worker_settings(&started);
        let workers = Workers::spawn(&settings, &stats, chains).map_err(FlowFailure::Internal)?;
        stats.set_plugins(policies.loaded.figures(policies.decision.generation));
        let orders = setting.orders.open(&setting.flow.name);
        let mut flow = Self {
            ownership,
            workers,
            stats,
            started,
            tasks: JoinSet::new(),
            round: Some(round),
            round_due: Some(Instant::now()),
            pace: Pace::new(setting.flow.refresh_topics),
            reading: Vec::new(),
            settling: Vec::new(),
            refusals: Vec::new(),
            summary: Vec::new(),
            policies,
            orders,
            trial_count: 0,
            tried: Vec::new(),
            setting,
        };
        if must_write {
            flow.write_first();
        }
        let watch = Watch::since(&flow.policies.file);
        flow.watch_files(watch);
        Ok(flow)
    }

    async fn run(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), FlowFailure> {
        loop {
            self.start_round();
            let round_due = self.round_due;
            let report_due = self.policies.next_deadline();
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(()),
                event = self.started.events.recv() => self.take_membership(event).await?,
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => match done {
                    Ok(done) => self.take_done(done).await?,
                    Err(problem) => return Err(FlowFailure::Internal(anyhow::anyhow!("a task of the flow was lost: {problem}"))),
                },
                Some(records) = self.policies.records.recv() => self.take_log(records).await,
                Some(order) = self.orders.recv() => self.take_order(order).await,
                () = sleep_until(report_due), if report_due.is_some() => self.answer_late(),
                () = self.workers.one_ends() => {
                    return Err(FlowFailure::Internal(anyhow::anyhow!("a relay worker ended by itself")));
                }
                () = sleep_until(round_due), if round_due.is_some() && self.round.is_some() => {}
            }
        }
    }

    fn start_round(&mut self) {
        if self.round_due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        let Some(mut round) = self.round.take() else { return };
        self.round_due = None;
        let is_leader = self.ownership.is_leader();
        self.tasks.spawn(async move {
            let end = make_round(&mut round, is_leader).await;
            Done::Round(round, end.map(Box::new))
        });
    }

    async fn take_membership(&mut self, event: Option<MembershipEvent>) -> Result<(), FlowFailure> {
        match event {
            Some(MembershipEvent::Assigned(slots)) => self.assigned(&slots),
            Some(MembershipEvent::Revoked { slots, done }) => self.release(slots, Some(done)).await,
            Some(MembershipEvent::Lost(slots)) => {
                warn!(flow = %self.setting.flow.name, ?slots, "slots went to another process before they were let go");
                self.release(slots, None).await;
                if self.ownership.slots().is_empty() {
                    // Nothing is copied until the group gives slots again.
                    self.stats.set_state(FlowState::Starting);
                }
            }
            Some(MembershipEvent::MirrorMakerRunning) => {
                if !self.setting.process.wait_for_mirror_maker {
                    return Err(FlowFailure::MirrorMakerRunning { flow: self.setting.flow.name.clone() });
                }
                self.stats.set_state(FlowState::WaitingForMirrorMaker);
            }
            Some(MembershipEvent::Failed(problem)) => return Err(FlowFailure::Membership(problem)),
            Some(MembershipEvent::NotAllowed(problem)) => {
                return Err(FlowFailure::NotAllowed(anyhow::Error::msg(problem)));
            }
            None => return Err(FlowFailure::Membership("the group's client ended".to_owned())),
        }
        Ok(())
    }

    fn assigned(&mut self, slots: &[Slot]) {
        self.ownership.assigned(slots);
        self.stats.set_slots(self.ownership.slots());
        self.stats.set_state(FlowState::Running);
        // What the last round saw may be old: without slots nothing was hurried for.
        self.pace = Pace::new(self.setting.flow.refresh_topics);
        self.round_due = Some(Instant::now());
        self.read_positions(Duration::ZERO);
        self.report_slots();
    }

    /// Reads the positions of slots that are owned, not read, not being read and not moving.
    fn read_positions(&mut self, after: Duration) {
        let mut slots = self.ownership.unread();
        slots.retain(|owned| !self.reading.contains(owned) && !self.settling.contains(&owned.slot));
        if slots.is_empty() {
            return;
        }
        self.reading.extend(&slots);
        let client = self.started.target.client().clone();
        let topic = self.setting.flow.positions.topic.clone();
        let source = self.setting.flow.name.source.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(after).await;
            let numbers: Vec<Slot> = slots.iter().map(|owned| owned.slot).collect();
            let positions = read_positions(&client, &topic, &source, &numbers).await;
            Done::Positions { slots, positions }
        });
    }

    /// Lets slots go: workers settle and store, then the group is told. Slots that are lost already (nobody is to be told)
    /// are let go at once: somebody else may relay them.
    async fn release(&mut self, slots: Vec<Slot>, done: Option<oneshot::Sender<()>>) {
        self.ownership.revoked(&slots);
        self.stats.set_slots(self.ownership.slots());
        let within_ms = if done.is_some() { REVOKE_SETTLE_MS_MAX } else { 0 };
        let letting_go = self.workers.release_slots(&slots, Duration::from_millis(within_ms)).await;
        self.tasks.spawn(async move {
            letting_go.wait().await;
            if let Some(done) = done {
                let _group_gave_up = done.send(());
            }
            Done::Released
        });
    }

    async fn take_done(&mut self, done: Done) -> Result<(), FlowFailure> {
        match done {
            Done::Released => {}
            Done::LetGo { slots } => {
                self.settling.retain(|slot| !slots.contains(slot));
                self.read_positions(Duration::ZERO);
            }
            Done::Positions { slots, positions } => {
                debug!(flow = %self.setting.flow.name, slots = slots.len(), "stored positions read");
                self.reading.retain(|slot| !slots.contains(slot));
                match positions {
                    Ok(positions) => self.ownership.positions_read(&slots, &positions),
                    Err(problem) => {
                        self.problem(&format!("{problem:#}"));
                        self.read_positions(Duration::from_millis(READ_RETRY_MS));
                    }
                }
                self.hand_out().await;
            }
            Done::Round(round, end) => {
                self.round = Some(round);
                self.give_policies();
                self.take_deferred();
                self.finish_trials();
                self.take_round(end.map(|plan| *plan)).await?;
            }
            Done::Made(made) => self.take_made(*made),
            Done::DecisionWritten { id, end } => self.take_written(&id, end),
            Done::Followed { decision, made } => self.take_followed(*decision, made).await,
            Done::Taken(report) => self.take_taken(*report),
            Done::Tried { end, after } => self.take_tried(end, after),
            Done::FirstDue => self.write_first_again(),
            Done::Watched { watch, changed } => self.take_watched(watch, changed),
            Done::Nothing => {}
        }
        Ok(())
    }

    /// New plugins answer the control loop's questions from the next round on.
    fn give_policies(&mut self) {
        if let Some(round) = &mut self.round
            && let Some(hooks) = self.policies.new_hooks.take()
        {
            round.take_policies(hooks);
        }
    }

    async fn take_round(&mut self, end: anyhow::Result<Plan>) -> Result<(), FlowFailure> {
        let pause = match end {
            Err(problem) => {
                self.problem(&format!("{problem:#}"));
                Some(self.pace.next_after_error())
            }
            Ok(plan) => {
                debug!(flow = %self.setting.flow.name, actions = plan.actions.len(), ready = plan.ready.len(), "round made");
                if let Some(refusal) = plan.flow_refusal() {
                    return Err(FlowFailure::Refused(refusal.text.clone()));
                }
                self.tell_plan(&plan);
                self.take_events(&plan).await;
                // Without slots there is nothing to hurry for: an assignment brings the next round.
                let has_slots = !self.ownership.slots().is_empty();
                let pause = if has_slots { self.pace.next(&plan) } else { self.setting.flow.refresh_topics };
                let some_are_gone = self.let_go(plan.ready).await;
                self.hand_out().await;
                let look = some_are_gone.then_some(Duration::from_millis(GONE_LOOK_MS));
                pause.into_iter().chain(look).min()
            }
        };
        self.round_due = match (self.round_due, pause) {
            // Something happened while the round ran; it is not covered by it.
            (Some(due), _) => Some(due),
            (None, pause) => pause.map(|pause| Instant::now() + pause),
        };
        Ok(())
    }

    /// A topic that was made anew is copied from its first record.
    async fn take_events(&mut self, plan: &Plan) {
        let mut is_one_anew = false;
        for event in &plan.events {
            if let Event::SourceTopicRecreated { topic, .. } = event {
                self.ownership.made_anew(topic);
                is_one_anew = true;
            }
        }
        if is_one_anew {
            self.workers.refresh_source().await;
        }
    }

    /// Shows what the plan refused and what changed behind our back; each refusal is logged when it is new.
    fn tell_plan(&mut self, plan: &Plan) {
        let name = &self.setting.flow.name;
        for event in &plan.events {
            warn!(flow = %name, "{event}");
            self.stats.set_error(crate::status::now_ms(), event.to_string());
        }
        let refusals: Vec<String> = plan.attention().map(|refusal| refusal.text.clone()).collect();
        for refusal in refusals.iter().filter(|refusal| !self.refusals.contains(refusal)) {
            warn!(flow = %name, "{refusal}");
        }
        // In order, so they are told here and nobody is alarmed by a count of them.
        let summary = plan.summary_lines();
        for line in summary.iter().filter(|line| !self.summary.contains(line)) {
            info!(flow = %name, "{line}");
        }
        self.summary = summary;
        self.refusals.clone_from(&refusals);
        self.stats.set_refusals(refusals);
    }

    /// Lets partitions go that are no longer there or called otherwise; says whether there are any.
    async fn let_go(&mut self, ready: BTreeMap<SourcePartition, TopicName>) -> bool {
        let gone = self.ownership.planned(ready);
        if gone.is_empty() {
            return false;
        }
        let with_slot = |partition: SourcePartition| {
            let slot = self.ownership.slot_of(&partition);
            (partition, slot)
        };
        let gone: Vec<(SourcePartition, Slot)> = gone.into_iter().map(with_slot).collect();
        let slots: Vec<Slot> = gone.iter().map(|(_, slot)| *slot).collect();
        self.settling.extend(&slots);
        let within = Duration::from_millis(REVOKE_SETTLE_MS_MAX);
        let letting_go = self.workers.release_partitions(gone, within).await;
        self.tasks.spawn(async move {
            letting_go.wait().await;
            Done::LetGo { slots }
        });
        true
    }

    async fn hand_out(&mut self) {
        let handouts = self.ownership.hand_out();
        self.workers.add(handouts).await;
    }

    fn problem(&self, problem: &str) {
        warn!(flow = %self.setting.flow.name, problem, "control round failed, trying again");
        self.stats.set_error(crate::status::now_ms(), problem.to_owned());
    }

    /// Settles, stores, leaves the group. Revocations that run are answered once the workers have let go, not before.
    async fn close(self) {
        self.workers.close(self.setting.process.stop_timeout).await;
        self.started.membership.leave().await;
    }
}

/// Looks, plans, and, if this process leads, does what the plan says.
async fn make_round(round: &mut Round, is_leader: bool) -> anyhow::Result<Plan> {
    let plan = round.observe_and_plan().await?;
    if is_leader {
        for done in round.apply(&plan).await {
            match &done.result {
                Ok(_) => info!(flow = %plan.flow, "{}", done.action),
                Err(problem) => warn!(flow = %plan.flow, "{problem}"),
            }
        }
    }
    Ok(plan)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
