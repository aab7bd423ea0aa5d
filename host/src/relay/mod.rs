//! The data plane. A worker is an OS thread that relays some slots of a flow by whole record batches; it owns its
//! sockets, buffers and partitions, and nothing else touches them. It calls no admin function (invariant I8).
//!
//! Reading order: [`progress`] (what is settled), [`budget`] (how much may be held), [`tier`] and [`transform`] (what
//! happens to a batch), `chain` (what plugins are asked), `quarantine` (what they may not let pass), `lane` (one partition), `intake` (fetch), `outlet` (produce), `ledger` (positions), `leaders`,
//! `troubles` (rests, pauses, moves), `ends` (lag while nothing is fetched), `releases` (taking up and letting go), `policies` (the chain in a worker),
//! `worker` (the loop that drives them).

pub mod budget;
mod chain;
mod connect;
mod ends;
mod intake;
mod lane;
mod leaders;
mod ledger;
mod outlet;
mod policies;
pub mod progress;
mod quarantine;
pub mod range;
mod releases;
pub mod tier;
pub mod transform;
mod troubles;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tidegate_wire::batch::Codec;
use tidegate_wire::client::{ClientOptions, Isolation};
use tokio::sync::{mpsc, oneshot};

use crate::config::{OffsetReset, QuarantineConfig};
use crate::names::{ClusterAlias, FlowName, Slot, SourceOffset, SourcePartition, TopicName};
use crate::plugin::Chain;
use crate::status::{Changeover, FlowStats, PartitionStats};

/// Orders that may wait for a worker. A worker takes them between batches, within milliseconds.
pub const COMMANDS_MAX: usize = 64;

/// All that a worker needs to know of its flow.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// `source->target`.
    pub flow: FlowName,
    /// The alias that goes into position keys.
    pub source_alias: ClusterAlias,
    /// How to reach the source.
    pub source: ClientOptions,
    /// How to reach the target.
    pub target: ClientOptions,
    /// Kafka's `fetch.max.wait.ms`.
    pub fetch_wait: Duration,
    /// Kafka's `fetch.min.bytes`.
    pub fetch_bytes_min: i32,
    /// Kafka's `fetch.max.bytes`.
    pub fetch_bytes_max: i32,
    /// Kafka's `max.partition.fetch.bytes`.
    pub partition_fetch_bytes_max: i32,
    /// Kafka's `isolation.level`.
    pub isolation: Isolation,
    /// Kafka's `auto.offset.reset`: for partitions without a position, and when a position is out of range.
    pub offset_reset: OffsetReset,
    /// Recompress everything to this codec; none keeps the source's.
    pub compression: Option<Codec>,
    /// Batches larger than this many bytes are split before they are sent; none leaves that to the target's refusal.
    pub batch_bytes_max: Option<usize>,
    /// Bytes of batches in one Produce request; a single larger batch still goes alone.
    pub request_bytes_max: usize,
    /// How long the target may wait for its replicas (`request.timeout.ms` of the producer).
    pub acks_timeout: Duration,
    /// Pause before a refused request is tried again, doubled each time up to the second bound.
    pub retry_backoff: Duration,
    /// The longest such pause.
    pub retry_backoff_max: Duration,
    /// Fetched and unsettled bytes that the worker may hold.
    pub buffer_bytes_max: usize,
    /// `mm2-offsets.<source>.internal`.
    pub positions_topic: TopicName,
    /// Positions are stored at most this often, and at a stop.
    pub commit_interval: Duration,
    /// Where records go that `on.fault = quarantine` keeps from the target.
    pub quarantine: QuarantineConfig,
}

/// A partition that a worker shall relay.
#[derive(Clone, Debug)]
pub struct LaneStart {
    /// Which.
    pub partition: SourcePartition,
    /// Its name on the target; the plan has seen it there (invariant I6).
    pub target_topic: TopicName,
    /// The slot that its position key hashes to.
    pub slot: Slot,
    /// First offset to copy; none = as `auto.offset.reset` says.
    pub first: Option<SourceOffset>,
    /// The topic was deleted and made anew while this flow ran: it is copied from its first record, whatever is stored.
    pub is_made_anew: bool,
    /// Where the worker counts.
    pub stats: Arc<PartitionStats>,
}

/// What a worker can be told.
pub enum Command {
    /// Edit with this chain from the next batch on; the one before is dropped. Before its first chain a worker sends no
    /// record of any topic: closed, not open.
    TakeChain {
        /// The worker's own.
        chain: Box<Chain>,
        /// Told from where on each of its partitions is edited by it. Partitions that are taken up later have it in their
        /// [`PartitionStats`].
        taken: oneshot::Sender<Vec<(SourcePartition, Changeover)>>,
    },
    /// Relay these partitions too. One that is relayed already is left as it is.
    Add(Vec<LaneStart>),
    /// Stop reading these slots, settle what is in flight, store positions, let go, then answer.
    ReleaseSlots {
        /// The slots.
        slots: Vec<Slot>,
        /// Told when nothing of them is left, or when the deadline has passed.
        done: oneshot::Sender<()>,
        /// How long settling may take.
        within: Duration,
    },
    /// Ask the source who leads its partitions and what its topics' ids are: one was made anew.
    RefreshSource,
    /// Let partitions go on that a plugin's fault or refusal paused: the record in question is asked for again. Those that
    /// stand for other reasons are left alone.
    Resume {
        /// Which; none means all of this worker.
        partitions: Option<Vec<SourcePartition>>,
        /// Told those that went on.
        done: oneshot::Sender<Vec<SourcePartition>>,
    },
    /// The same as for slots, for single partitions (the source topic is gone or no longer selected).
    ReleasePartitions {
        /// The partitions.
        partitions: Vec<SourcePartition>,
        /// Told when they are let go.
        done: oneshot::Sender<()>,
        /// How long settling may take.
        within: Duration,
    },
}

/// A running worker. It ends when this is dropped or closed, after it has settled and stored.
#[derive(Debug)]
pub struct Worker {
    /// Where orders go.
    pub commands: mpsc::Sender<Command>,
    thread: std::thread::JoinHandle<anyhow::Result<()>>,
}

impl Worker {
    /// Starts the thread. It connects by itself; when it can't, it goes on trying and says so in `stats`.
    ///
    /// `ended` is told when the thread ends, however it does.
    pub fn spawn(
        number: usize,
        settings: WorkerSettings,
        stats: Arc<FlowStats>,
        ended: mpsc::Sender<()>,
    ) -> anyhow::Result<Self> {
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let name = format!("relay-{}-{number}", settings.flow);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let _told_by_its_drop = EndSignal(ended);
            worker::run_thread(settings, stats, inbox)
        })?;
        Ok(Self { commands, thread })
    }

    /// Tells the worker to settle, store and end. Wait for it with [`Closing::join`]; close all workers first, so that
    /// they settle side by side.
    pub fn close(self) -> Closing {
        Closing(self.thread)
    }
}

/// Tells the flow that a worker's thread has ended; also when it panics.
struct EndSignal(mpsc::Sender<()>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        // A full channel has told it already; a closed one has nobody to tell.
        let _told = self.0.try_send(());
    }
}

/// A worker that is ending.
#[derive(Debug)]
pub struct Closing(std::thread::JoinHandle<anyhow::Result<()>>);

impl Closing {
    /// Waits for the thread's end. Call it off the runtime's threads.
    pub fn join(self) -> anyhow::Result<()> {
        self.0.join().unwrap_or_else(|_panic| {
            Err(anyhow::anyhow!(
                "a relay worker panicked; its records since the last stored position come again"
            ))
        })
    }
}
