//! The loop of a worker: take orders and answers, fetch, send, store positions, sleep until the next of them.
//!
//! One thread, one owner: nothing in here is shared, so there are no locks. What may take time (a fetch, an
//! acknowledgement, metadata) is a task on the same thread whose end is an [`Event`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use tidegate_wire::batch::BatchBuilder;
use tidegate_wire::client::Client;
use tidegate_wire::error::WireError;
use tidegate_wire::fetch::FetchAnswer;
use tidegate_wire::list_offsets::ListedOffset;
use tidegate_wire::metadata::ClusterMetadata;
use tidegate_wire::produce::{CallId, Lane, Producer, ProducerIdentity};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::warn;

use super::budget::Budget;
use super::connect::{Connected, connect};
use super::intake::Fetches;
use super::lane::RelayLane;
use super::leaders::Refresh;
use super::ledger::Ledger;
use super::quarantine::TooLarge;
use super::releases::Release;
use super::transform::Transform;
use super::{Command, LaneStart, WorkerSettings};
use crate::names::{Slot, SourceOffset, SourcePartition};
use crate::plugin::Chain;
use crate::status::FlowStats;

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
    Ends(Result<Vec<ListedOffset>, WireError>),
    /// Records of a partition lie in quarantine, or one of them can't.
    Quarantined {
        key: LaneKey,
        result: Result<(), TooLarge>,
    },
    /// First and end offset of a partition's log, as far as they could be learnt.
    Located {
        key: LaneKey,
        bounds: Result<Bounds, String>,
    },
}

/// The offsets that a source partition holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) earliest: SourceOffset,
    pub(super) latest: SourceOffset,
}

/// A partition of this worker. The producer gives the number of a lane that was removed to another partition; what is
/// kept over a wait names the occupant, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneKey {
    pub(super) lane: Lane,
    /// [`RelayLane::number`]
    pub(super) number: u64,
}

/// What a lane of the producer carries.
#[derive(Debug)]
pub(super) enum Occupant {
    Relay(Box<RelayLane>),
    Positions(Ledger),
}

impl Occupant {
    pub(super) fn relay(&self) -> Option<&RelayLane> {
        match self {
            Occupant::Relay(relay) => Some(relay),
            Occupant::Positions(_) => None,
        }
    }
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

pub(super) struct WorkerState {
    pub(super) settings: WorkerSettings,
    pub(super) flow: Arc<FlowStats>,
    pub(super) source: SourceSide,
    pub(super) target: TargetSide,
    pub(super) producer: Producer,
    pub(super) occupants: HashMap<Lane, Occupant>,
    pub(super) by_source: HashMap<SourcePartition, Lane>,
    pub(super) ledgers: BTreeMap<Slot, Lane>,
    /// Lanes that send nothing any more, whoever leads them.
    pub(super) abandoned: HashSet<Lane>,
    /// None before the first: then no record is sent.
    pub(super) chain: Option<Box<Chain>>,
    pub(super) transform: Transform,
    pub(super) position_builder: BatchBuilder,
    pub(super) budget: Budget,
    pub(super) fetches: Fetches,
    pub(super) tasks: JoinSet<Event>,
    pub(super) releases: Vec<Release>,
    /// Partitions that were given back to this worker while it was still letting them go.
    pub(super) postponed: Vec<LaneStart>,
    pub(super) commit_due: Instant,
    /// When to look for ends that no fetch tells.
    pub(super) ends_due: Instant,
    /// The earliest moment at which a paused or quiet partition goes on.
    pub(super) lane_wake: Option<Instant>,
    /// Partitions that will go on elsewhere in their log.
    pub(super) jumping: Vec<Lane>,
    /// The number of the partition that was taken up last.
    pub(super) next_number: u64,
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
    runtime.block_on(run(settings, flow, inbox));
    Ok(())
}

async fn run(settings: WorkerSettings, flow: Arc<FlowStats>, mut inbox: mpsc::Receiver<Command>) {
    let Some(connected) = connect(&settings, &flow, &inbox).await else { return };
    let mut worker = WorkerState::new(settings, flow, connected);
    let mut open = true;
    loop {
        let now = Instant::now();
        worker.turn(now);
        if !open && worker.is_all_abandoned() {
            return;
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

impl WorkerState {
    fn new(settings: WorkerSettings, flow: Arc<FlowStats>, connected: Connected) -> Self {
        Self {
            source: connected.source,
            target: connected.target,
            producer: connected.producer,
            occupants: HashMap::new(),
            by_source: HashMap::new(),
            ledgers: BTreeMap::new(),
            abandoned: HashSet::new(),
            chain: None,
            transform: Transform::default(),
            position_builder: BatchBuilder::new(),
            budget: Budget::new(settings.buffer_bytes_max),
            fetches: Fetches::default(),
            tasks: JoinSet::new(),
            releases: Vec::new(),
            postponed: Vec::new(),
            commit_due: Instant::now() + settings.commit_interval,
            ends_due: Instant::now(),
            lane_wake: None,
            jumping: Vec::new(),
            next_number: 0,
            settings,
            flow,
        }
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
        self.jump_lanes();
        self.start_fetches(now);
        self.look_for_ends(now);
    }

    fn next_wake(&self, now: Instant) -> Instant {
        // Metadata is asked for only while there are partitions.
        let has_lanes = !self.by_source.is_empty();
        let wakes = [
            Some(self.commit_due),
            Some(self.ends_due).filter(|_| has_lanes),
            self.lane_wake,
            self.producer.next_wake().map(Instant::from_std),
            self.source.refresh.next_wake().filter(|_| has_lanes),
            self.target.refresh.next_wake().filter(|_| has_lanes),
            self.releases.iter().filter_map(Release::next_wake).min(),
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
            Ok(Event::Ends(ends)) => self.take_ends(ends, now),
            Ok(Event::Located { key, bounds }) => self.take_located(key, bounds, now),
            Ok(Event::Quarantined { key, result }) => self.take_quarantined(key, result),
            // We stopped it ourselves.
            Err(problem) if problem.is_cancelled() => {}
            Err(problem) => warn!(flow = %self.settings.flow, %problem, "a task of the worker was lost"),
        }
    }

    fn obey(&mut self, command: Command, now: Instant) {
        match command {
            Command::TakeChain { chain, taken } => {
                let changeovers = self.take_chain(chain);
                self.flow.note_chain_wait(now.elapsed());
                let _asker_may_be_gone = taken.send(changeovers);
            }
            Command::Add(starts) => self.add_lanes(starts, now),
            Command::RefreshSource => self.source.refresh.now(now),
            Command::Resume { partitions, done } => {
                let _asker_may_be_gone = done.send(self.resume_halted(partitions.as_deref()));
            }
            Command::ReleaseSlots { slots, done, within } => self.release_slots(slots, done, now + within),
            Command::ReleasePartitions { partitions, done, within } => {
                self.release_partitions(&partitions, done, now + within);
            }
        }
    }

    pub(super) fn relay_lane(&self, lane: Lane) -> Option<&RelayLane> {
        self.occupants.get(&lane)?.relay()
    }

    pub(super) fn relay_lane_mut(&mut self, lane: Lane) -> Option<&mut RelayLane> {
        match self.occupants.get_mut(&lane) {
            Some(Occupant::Relay(relay)) => Some(relay),
            _ => None,
        }
    }

    /// The partition that `key` means, if it still has its lane.
    pub(super) fn lane_of(&self, key: LaneKey) -> Option<&RelayLane> {
        self.relay_lane(key.lane).filter(|relay| relay.number == key.number)
    }

    pub(super) fn ledger(&self, slot: Slot) -> Option<&Ledger> {
        match self.occupants.get(self.ledgers.get(&slot)?) {
            Some(Occupant::Positions(ledger)) => Some(ledger),
            _ => None,
        }
    }

    pub(super) fn ledger_mut(&mut self, slot: Slot) -> Option<&mut Ledger> {
        match self.occupants.get_mut(self.ledgers.get(&slot)?) {
            Some(Occupant::Positions(ledger)) => Some(ledger),
            _ => None,
        }
    }

    /// Whether a partition's safe offset is not stored.
    pub(super) fn is_unstored(&self, relay: &RelayLane) -> bool {
        let safe = relay.progress.safe_offset();
        relay.is_placed && self.ledger(relay.slot).is_some_and(|ledger| ledger.is_news(&relay.source, safe))
    }

    fn want_positions(&mut self) {
        let relays = self.occupants.values().filter_map(Occupant::relay);
        let news: BTreeSet<Slot> =
            relays.filter(|relay| self.is_unstored(relay)).map(|relay| relay.slot).collect();
        for slot in news {
            if let Some(ledger) = self.ledger_mut(slot) {
                ledger.want();
            }
        }
    }

    /// Makes sure that the loop wakes for a partition.
    pub(super) fn wake_at(&mut self, at: Instant) {
        self.lane_wake = Some(self.lane_wake.map_or(at, |wake| wake.min(at)));
    }
}
