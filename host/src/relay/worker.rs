//! The loop of a worker: take orders and answers, fetch, send, store positions, sleep until the next of them.
//!
//! One thread, one owner: nothing in here is shared, so there are no locks. What may take time (a fetch, an
//! acknowledgement, metadata) is a task on the same thread whose end is an [`Event`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tidegate_wire::batch::BatchBuilder;
use tidegate_wire::client::{Client, ClientOptions};
use tidegate_wire::error::WireError;
use tidegate_wire::fetch::FetchAnswer;
use tidegate_wire::metadata::{ClusterMetadata, TopicSelection};
use tidegate_wire::produce::{CallId, Lane, Producer, ProducerIdentity, ProducerOptions, init_producer_id};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::warn;

use super::budget::Budget;
use super::intake::Fetches;
use super::lane::{Condition, RelayLane};
use super::leaders::{Refresh, leader_of};
use super::ledger::Ledger;
use super::transform::Transform;
use super::{Command, LaneStart, WorkerSettings};
use crate::names::{Slot, SourceOffset, SourcePartition};
use crate::status::{FlowStats, now_ms};

/// Produce requests that may be on their way to one broker: more than five would break Kafka's duplicate detection.
const PRODUCE_IN_FLIGHT_MAX: usize = 5;

/// Pause between attempts to reach a cluster at the start of a worker, in milliseconds.
const CONNECT_RETRY_MS: u64 = 500;

/// New partitions have their first positions stored this soon, in milliseconds: a process that is killed again and again
/// before the ordinary interval has passed would else start from the same place each time.
const FIRST_COMMIT_MS: u64 = 500;

/// How long a worker that ends by itself (its orders have ended) may settle, in milliseconds.
const CLOSE_SETTLE_MS_MAX: u64 = 20_000;

/// What a task of the worker brought.
#[derive(Debug)]
pub(super) enum Event {
    Fetched {
        fetch: u64,
        answer: Result<FetchAnswer, WireError>,
    },
    Produced {
        call: CallId,
        answer: Result<Bytes, WireError>,
    },
    SourceMetadata(Result<Arc<ClusterMetadata>, WireError>),
    TargetMetadata(Result<Arc<ClusterMetadata>, WireError>),
    Identity(Result<ProducerIdentity, WireError>),
    /// First and end offset of a partition's log, as far as they could be learnt.
    Located {
        lane: Lane,
        bounds: Result<Bounds, String>,
    },
}

/// The offsets that a source partition holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) earliest: SourceOffset,
    pub(super) latest: SourceOffset,
}

/// What a lane of the producer carries.
#[derive(Debug)]
pub(super) enum Occupant {
    Relay(RelayLane),
    Positions(Ledger),
}

/// Connections to the source. A fetch that waits for data blocks its connection, so fetches have their own.
pub(super) struct SourceSide {
    pub(super) control: Client,
    pub(super) fetchers: [Client; super::intake::FETCHES_PER_BROKER_MAX],
    pub(super) metadata: Arc<ClusterMetadata>,
    pub(super) refresh: Refresh,
}

/// Connections to the target.
pub(super) struct TargetSide {
    pub(super) control: Client,
    pub(super) data: Client,
    pub(super) metadata: Arc<ClusterMetadata>,
    pub(super) refresh: Refresh,
}

/// Partitions that are being let go.
#[derive(Debug)]
struct Release {
    lanes: BTreeSet<usize>,
    /// Slots that go with them; empty when only single partitions go.
    slots: Vec<Slot>,
    done: Option<tokio::sync::oneshot::Sender<()>>,
    deadline: Instant,
}

pub(super) struct WorkerState {
    pub(super) settings: WorkerSettings,
    pub(super) flow: Arc<FlowStats>,
    pub(super) source: SourceSide,
    pub(super) target: TargetSide,
    pub(super) producer: Producer,
    /// By lane number.
    pub(super) occupants: HashMap<Lane, Occupant>,
    pub(super) by_source: HashMap<SourcePartition, Lane>,
    pub(super) ledgers: BTreeMap<Slot, Lane>,
    pub(super) transform: Transform,
    pub(super) position_builder: BatchBuilder,
    pub(super) budget: Budget,
    pub(super) fetches: Fetches,
    pub(super) tasks: JoinSet<Event>,
    releases: Vec<Release>,
    /// Partitions that were given back to this worker while it was still letting them go.
    postponed: Vec<LaneStart>,
    commit_due: Instant,
    /// The earliest moment at which a paused or quiet partition goes on.
    pub(super) lane_wake: Option<Instant>,
}

/// Entry of the worker's thread.
pub(super) fn run_thread(
    settings: WorkerSettings,
    flow: Arc<FlowStats>,
    inbox: mpsc::Receiver<Command>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the worker's runtime")?;
    runtime.block_on(run(settings, flow, inbox))
}

async fn run(
    settings: WorkerSettings,
    flow: Arc<FlowStats>,
    mut inbox: mpsc::Receiver<Command>,
) -> anyhow::Result<()> {
    let Some(mut worker) = connect(settings, flow, &mut inbox).await? else { return Ok(()) };
    let mut open = true;
    loop {
        let now = Instant::now();
        worker.turn(now);
        if !open && worker.releases.is_empty() && worker.occupants.is_empty() {
            return Ok(());
        }
        if !open && worker.is_past_every_deadline(now) {
            warn!(flow = %worker.settings.flow, "worker ended with unsettled records; they will be copied again");
            return Ok(());
        }
        let wake = worker.next_wake(now);
        tokio::select! {
            biased;
            command = inbox.recv(), if open => match command {
                Some(command) => worker.obey(command, Instant::now()),
                None => {
                    open = false;
                    worker.release_everything(Instant::now());
                }
            },
            Some(event) = worker.tasks.join_next(), if !worker.tasks.is_empty() => worker.take_event(event),
            () = tokio::time::sleep_until(wake) => {}
        }
        worker.take_ready_events();
    }
}

/// Connects to both clusters, however long that takes. None when the orders end before.
async fn connect(
    settings: WorkerSettings,
    flow: Arc<FlowStats>,
    inbox: &mut mpsc::Receiver<Command>,
) -> anyhow::Result<Option<WorkerState>> {
    loop {
        let problem = match WorkerState::connect(&settings, &flow).await {
            Ok(worker) => return Ok(Some(worker)),
            Err(problem) => format!("{problem:#}"),
        };
        warn!(flow = %settings.flow, %problem, "worker could not connect, trying again");
        flow.set_error(now_ms(), problem);
        tokio::time::sleep(Duration::from_millis(CONNECT_RETRY_MS)).await;
        if inbox.is_closed() && inbox.is_empty() {
            return Ok(None);
        }
    }
}

impl WorkerState {
    async fn connect(settings: &WorkerSettings, flow: &Arc<FlowStats>) -> anyhow::Result<Self> {
        let now = Instant::now();
        let source = connect_to("source", settings.flow.source.as_str(), &settings.source);
        let target = connect_to("target", settings.flow.target.as_str(), &settings.target);
        let (source, target) = tokio::try_join!(source, target)?;
        let identity = init_producer_id(&target)
            .await
            .with_context(|| format!("could not get a producer id on target \"{}\"", settings.flow.target))?;
        let options = ProducerOptions {
            request_bytes_max: settings.request_bytes_max,
            in_flight_max: PRODUCE_IN_FLIGHT_MAX,
            acks_timeout_ms: i32::try_from(settings.acks_timeout.as_millis()).unwrap_or(i32::MAX),
            retry_backoff: settings.retry_backoff,
            retry_backoff_max: settings.retry_backoff_max,
            ..ProducerOptions::default()
        };
        Ok(Self {
            source: SourceSide {
                fetchers: std::array::from_fn(|_| source.with_own_connections()),
                metadata: source.metadata(),
                refresh: Refresh::new(settings.source.metadata_max_age, now),
                control: source,
            },
            target: TargetSide {
                data: target.with_own_connections(),
                metadata: target.metadata(),
                refresh: Refresh::new(settings.target.metadata_max_age, now),
                control: target,
            },
            producer: Producer::new(identity, options),
            occupants: HashMap::new(),
            by_source: HashMap::new(),
            ledgers: BTreeMap::new(),
            transform: Transform::default(),
            position_builder: BatchBuilder::new(),
            budget: Budget::new(settings.buffer_bytes_max),
            fetches: Fetches::default(),
            tasks: JoinSet::new(),
            releases: Vec::new(),
            postponed: Vec::new(),
            commit_due: now + settings.commit_interval,
            lane_wake: None,
            settings: settings.clone(),
            flow: Arc::clone(flow),
        })
    }

    /// All that can be done now without waiting.
    fn turn(&mut self, now: Instant) {
        self.wake_lanes(now);
        if now >= self.commit_due {
            self.want_positions();
            self.commit_due = now + self.settings.commit_interval;
        }
        self.advance_releases(now);
        self.refresh_metadata(now);
        self.take_late_events(now);
        self.send_requests(now);
        self.start_fetches(now);
    }

    fn next_wake(&self, now: Instant) -> Instant {
        let wakes = [
            Some(self.commit_due),
            self.lane_wake,
            self.producer.next_wake().map(Instant::from_std),
            self.source.refresh.next_wake(),
            self.target.refresh.next_wake(),
            self.releases
                .iter()
                .filter(|release| release.done.is_some())
                .map(|release| release.deadline)
                .min(),
        ];
        wakes.into_iter().flatten().min().unwrap_or(self.commit_due).max(now)
    }

    /// Takes what else is ready before the next turn, so that one turn serves many answers.
    fn take_ready_events(&mut self) {
        while let Some(event) = self.tasks.try_join_next() {
            self.take_event(event);
        }
    }

    fn take_event(&mut self, event: Result<Event, tokio::task::JoinError>) {
        let now = Instant::now();
        match event {
            Ok(Event::Fetched { fetch, answer }) => self.take_fetched(fetch, answer, now),
            Ok(Event::Produced { call, answer }) => self.take_produced(call, answer, now),
            Ok(Event::SourceMetadata(answer)) => self.take_source_metadata(answer, now),
            Ok(Event::TargetMetadata(answer)) => self.take_target_metadata(answer, now),
            Ok(Event::Identity(identity)) => self.take_identity(identity),
            Ok(Event::Located { lane, bounds }) => self.take_located(lane, bounds, now),
            Err(problem) => warn!(flow = %self.settings.flow, %problem, "a task of the worker was lost"),
        }
    }

    fn obey(&mut self, command: Command, now: Instant) {
        match command {
            Command::Add(starts) => self.add_lanes(starts, now),
            Command::ReleaseSlots { slots, done, within } => {
                let is_named = |lane: &RelayLane| slots.contains(&lane.slot);
                let lanes = self.drain_lanes(is_named);
                self.releases.push(Release { lanes, slots, done: Some(done), deadline: now + within });
            }
            Command::ReleasePartitions { partitions, done, within } => {
                let lanes = self.drain_lanes(|lane| partitions.contains(&lane.source));
                self.releases.push(Release {
                    lanes,
                    slots: Vec::new(),
                    done: Some(done),
                    deadline: now + within,
                });
            }
        }
    }

    fn release_everything(&mut self, now: Instant) {
        let lanes = self.drain_lanes(|_| true);
        let slots = self.ledgers.keys().copied().collect();
        let deadline = now + Duration::from_millis(CLOSE_SETTLE_MS_MAX);
        self.postponed.clear();
        self.releases.push(Release { lanes, slots, done: None, deadline });
    }

    fn is_past_every_deadline(&self, now: Instant) -> bool {
        self.releases.iter().all(|release| release.deadline <= now)
    }

    /// Adds partitions; those that are relayed already stay as they are.
    fn add_lanes(&mut self, starts: Vec<LaneStart>, now: Instant) {
        for start in starts {
            match self.by_source.get(&start.partition).and_then(|lane| self.relay_lane(*lane)) {
                Some(lane) if lane.condition == Condition::Draining => self.postponed.push(start),
                Some(_) => {}
                None => self.add_lane(start, now),
            }
        }
        self.source.refresh.now(now);
        self.target.refresh.now(now);
        self.commit_due = self.commit_due.min(now + Duration::from_millis(FIRST_COMMIT_MS));
    }

    fn add_lane(&mut self, start: LaneStart, now: Instant) {
        let slot = start.slot;
        let ledger_lane = self.ledger_lane(slot);
        if let (Some(first), Some(Occupant::Positions(ledger))) =
            (start.first, self.occupants.get_mut(&ledger_lane))
        {
            ledger.loaded(start.partition.clone(), first);
        }
        let lane = self.producer.add_lane(start.target_topic.as_str().into(), start.partition.partition);
        self.flow.add_partition(start.partition.clone(), Arc::clone(&start.stats));
        self.by_source.insert(start.partition.clone(), lane);
        let is_located = start.first.is_some();
        let relay = RelayLane::new(start.partition, slot, start.first, start.stats);
        relay.publish_position();
        self.occupants.insert(lane, Occupant::Relay(relay));
        self.lead_lane(lane);
        if !is_located {
            self.locate(lane, now);
        }
    }

    /// The producer's lane for a slot's positions; made when the slot is new.
    fn ledger_lane(&mut self, slot: Slot) -> Lane {
        if let Some(lane) = self.ledgers.get(&slot) {
            return *lane;
        }
        let lane = self.producer.add_lane(self.settings.positions_topic.as_str().into(), slot.0);
        self.ledgers.insert(slot, lane);
        self.occupants.insert(lane, Occupant::Positions(Ledger::new(slot)));
        self.lead_lane(lane);
        lane
    }

    pub(super) fn relay_lane(&self, lane: Lane) -> Option<&RelayLane> {
        match self.occupants.get(&lane) {
            Some(Occupant::Relay(relay)) => Some(relay),
            _ => None,
        }
    }

    pub(super) fn relay_lane_mut(&mut self, lane: Lane) -> Option<&mut RelayLane> {
        match self.occupants.get_mut(&lane) {
            Some(Occupant::Relay(relay)) => Some(relay),
            _ => None,
        }
    }

    /// Stops reading the partitions that `is_meant` picks and throws away what was not sent yet.
    fn drain_lanes(&mut self, is_meant: impl Fn(&RelayLane) -> bool) -> BTreeSet<usize> {
        self.postponed.retain(|start| !self.by_source.contains_key(&start.partition));
        let mut drained = BTreeSet::new();
        for (lane, occupant) in &mut self.occupants {
            if let Occupant::Relay(relay) = occupant
                && is_meant(relay)
            {
                self.budget.free(relay.clear_queue());
                relay.condition = Condition::Draining;
                drained.insert(lane.0);
            }
        }
        drained
    }

    /// Lets go of what is settled and stored.
    fn advance_releases(&mut self, now: Instant) {
        for mut release in std::mem::take(&mut self.releases) {
            if self.is_settled_and_stored(&release) {
                self.finish_release(&mut release);
                continue;
            }
            if now >= release.deadline
                && let Some(done) = release.done.take()
            {
                warn!(flow = %self.settings.flow, slots = ?release.slots, "partitions let go before all was settled; \
                       the next owner copies some records again");
                let _receiver_may_be_gone = done.send(());
            }
            self.releases.push(release);
        }
    }

    fn is_settled_and_stored(&mut self, release: &Release) -> bool {
        let mut is_done = true;
        let mut wanted = BTreeSet::new();
        for number in &release.lanes {
            let lane = Lane(*number);
            let Some(relay) = self.relay_lane(lane) else { continue };
            let is_given_up = relay.held.is_some() && self.producer.in_flight(lane) == 0;
            if !relay.is_idle() && !is_given_up {
                is_done = false;
            } else if self.is_unstored(relay) {
                wanted.insert(relay.slot);
            }
        }
        if !is_done {
            return false;
        }
        for slot in &wanted {
            if let Some(ledger) = self.ledger_mut(*slot) {
                ledger.want();
            }
        }
        let is_quiet = |slot: &Slot| match self.ledgers.get(slot).and_then(|lane| self.occupants.get(lane)) {
            Some(Occupant::Positions(ledger)) => ledger.is_quiet(),
            _ => true,
        };
        wanted.is_empty() && release.slots.iter().all(is_quiet)
    }

    fn is_unstored(&self, relay: &RelayLane) -> bool {
        let ledger = self.ledgers.get(&relay.slot).and_then(|lane| self.occupants.get(lane));
        match ledger {
            Some(Occupant::Positions(ledger)) => ledger.is_news(&relay.source, relay.progress.safe_offset()),
            _ => false,
        }
    }

    fn ledger_mut(&mut self, slot: Slot) -> Option<&mut Ledger> {
        match self.ledgers.get(&slot).and_then(|lane| self.occupants.get_mut(lane)) {
            Some(Occupant::Positions(ledger)) => Some(ledger),
            _ => None,
        }
    }

    fn finish_release(&mut self, release: &mut Release) {
        for number in &release.lanes {
            let lane = Lane(*number);
            let Some(Occupant::Relay(relay)) = self.occupants.remove(&lane) else { continue };
            self.by_source.remove(&relay.source);
            self.flow.remove_partition(&relay.source);
            if let Some(ledger) = self.ledger_mut(relay.slot) {
                ledger.forget(&relay.source);
            }
            self.remove_producer_lane(lane);
        }
        for slot in &release.slots {
            if self.occupants.values().any(|occupant| occupant.is_relay_of(*slot)) {
                continue;
            }
            if let Some(lane) = self.ledgers.remove(slot) {
                self.occupants.remove(&lane);
                self.remove_producer_lane(lane);
            }
        }
        if let Some(done) = release.done.take() {
            let _receiver_may_be_gone = done.send(());
        }
        let again = std::mem::take(&mut self.postponed);
        if !again.is_empty() {
            self.add_lanes(again, Instant::now());
        }
    }

    fn remove_producer_lane(&mut self, lane: Lane) {
        if let Err(problem) = self.producer.remove_lane(lane) {
            warn!(flow = %self.settings.flow, %problem, "a settled partition was still in flight");
        }
    }

    fn want_positions(&mut self) {
        let mut news = BTreeSet::new();
        for occupant in self.occupants.values() {
            if let Occupant::Relay(relay) = occupant
                && self.is_unstored(relay)
            {
                news.insert(relay.slot);
            }
        }
        for slot in news {
            if let Some(ledger) = self.ledger_mut(slot) {
                ledger.want();
            }
        }
    }

    fn refresh_metadata(&mut self, now: Instant) {
        if self.by_source.is_empty() {
            return;
        }
        if self.source.refresh.start(now) {
            let topics: BTreeSet<&str> =
                self.by_source.keys().map(|partition| partition.topic.as_str()).collect();
            let topics = topics.into_iter().map(Arc::from).collect();
            let client = self.source.control.clone();
            let task = async move { client.refresh_metadata(TopicSelection::Named(topics)).await };
            self.tasks.spawn(async move { Event::SourceMetadata(task.await) });
        }
        if self.target.refresh.start(now) {
            let lanes = self.occupants.keys().filter_map(|lane| self.target_of(*lane));
            let topics: BTreeSet<Arc<str>> = lanes.map(|(topic, _partition)| topic).collect();
            let client = self.target.control.clone();
            let task = async move {
                client.refresh_metadata(TopicSelection::Named(topics.into_iter().collect())).await
            };
            self.tasks.spawn(async move { Event::TargetMetadata(task.await) });
        }
    }

    fn take_source_metadata(&mut self, answer: Result<Arc<ClusterMetadata>, WireError>, now: Instant) {
        match answer {
            Ok(metadata) => {
                self.source.metadata = metadata;
                self.source.refresh.finished(now, true);
                let is_leaderless = |lane: &RelayLane| {
                    leader_of(&self.source.metadata, &lane.topic, lane.source.partition).is_none()
                };
                if self.occupants.values().any(|occupant| occupant.relay().is_some_and(is_leaderless)) {
                    self.source.refresh.distrust(now);
                }
            }
            Err(problem) => {
                self.flow_problem("source", &problem);
                self.source.refresh.finished(now, false);
            }
        }
    }

    fn take_target_metadata(&mut self, answer: Result<Arc<ClusterMetadata>, WireError>, now: Instant) {
        match answer {
            Ok(metadata) => {
                self.target.metadata = metadata;
                self.target.refresh.finished(now, true);
                let lanes: Vec<Lane> = self.occupants.keys().copied().collect();
                let mut all_led = true;
                for lane in lanes {
                    all_led &= self.lead_lane(lane);
                }
                if !all_led {
                    self.target.refresh.distrust(now);
                }
            }
            Err(problem) => {
                self.flow_problem("target", &problem);
                self.target.refresh.finished(now, false);
            }
        }
    }

    /// Tells the producer who leads the lane; false when nobody is known to.
    fn lead_lane(&mut self, lane: Lane) -> bool {
        let Some((topic, partition)) = self.target_of(lane) else { return true };
        let leader = leader_of(&self.target.metadata, &topic, partition).map(|(leader, _epoch)| leader);
        self.producer.set_leader(lane, leader);
        leader.is_some()
    }

    /// The target partition that a lane writes to.
    fn target_of(&self, lane: Lane) -> Option<(Arc<str>, i32)> {
        match self.occupants.get(&lane)? {
            Occupant::Relay(relay) => Some((Arc::clone(&relay.target), relay.source.partition)),
            Occupant::Positions(ledger) => {
                Some((self.settings.positions_topic.as_str().into(), ledger.slot.0))
            }
        }
    }

    fn flow_problem(&self, side: &'static str, problem: &WireError) {
        let message = format!("{side}: {problem}");
        warn!(flow = %self.settings.flow, side, %problem, "a cluster did not answer as it should");
        self.flow.set_error(now_ms(), message);
    }

    /// Makes sure that the loop wakes for a partition.
    pub(super) fn wake_at(&mut self, at: Instant) {
        self.lane_wake = Some(self.lane_wake.map_or(at, |wake| wake.min(at)));
    }
}

impl Occupant {
    pub(super) fn relay(&self) -> Option<&RelayLane> {
        match self {
            Occupant::Relay(relay) => Some(relay),
            Occupant::Positions(_) => None,
        }
    }

    fn is_relay_of(&self, slot: Slot) -> bool {
        self.relay().is_some_and(|relay| relay.slot == slot)
    }
}

async fn connect_to(side: &str, alias: &str, options: &ClientOptions) -> anyhow::Result<Client> {
    Client::connect(options.clone()).await.with_context(|| format!("could not reach {side} \"{alias}\""))
}
