//! How a flow begins: reach both clusters, load its naming plugin, look once, make the positions topic, join the group.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_wire::batch::Codec;
use tidegate_wire::client::{Client, Isolation as WireIsolation};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{info, warn};

use super::book::Book;
use super::failure::{FlowFailure, Setback};
use super::first::{first, load_file};
use super::patience::{Patience, RETRY_MS};
use super::policies::{Loader, Ready};
use super::swap::Policies;
use super::tail::{follow, read_all};
use crate::cluster::{
    ClusterAdmin, LogReader, Membership, MembershipEvent, MembershipOptions, NodeIdentity, PluginsLog,
    PositionsTopic, client_options,
};
use crate::config::{
    AdminClientConfig, ClusterConfig, Compression, Config, FlowConfig, Isolation, PositionsConfig,
    ProcessConfig,
};
use crate::control::{Plan, Round};
use crate::names::{ClusterAlias, FlowName, TopicName};
use crate::plugin::{Chain, Engine};
use crate::relay::WorkerSettings;
use crate::serve::orders::Orders;
use crate::status::Registry;

/// How long a new positions topic rests before the group is joined, in milliseconds. The group's coordinator hears of a
/// topic some time after it is made; a member that comes before gets no slots, and the coordinator looks again only a
/// second later (`group.consumer.assignment.interval.ms`).
const NEW_TOPIC_MS: u64 = 200;

/// All that a flow is started with.
#[derive(Clone)]
pub struct FlowSetting {
    /// What it shall do.
    pub flow: FlowConfig,
    /// Settings of the process.
    pub process: ProcessConfig,
    /// Every cluster of the file.
    pub clusters: BTreeMap<ClusterAlias, ClusterConfig>,
    /// Where it says how it stands.
    pub registry: Arc<Registry>,
    /// Runs its plugins.
    pub engine: Engine,
    /// Who this process is in groups.
    pub node: Arc<NodeIdentity>,
    /// Where it takes orders from.
    pub orders: Arc<Orders>,
    /// Whether enabled flows lead from the target back to the source.
    pub reverse_is_enabled: bool,
}

/// A flow that has reached both clusters.
pub(super) struct Started {
    pub(super) source: ClusterAdmin,
    pub(super) target: ClusterAdmin,
    pub(super) slot_count: i32,
    pub(super) positions_topic: TopicName,
    pub(super) membership: Membership,
    pub(super) events: mpsc::Receiver<MembershipEvent>,
}

/// A flow that can begin to run.
pub(super) struct Begun {
    pub(super) started: Started,
    pub(super) round: Box<Round>,
    pub(super) policies: Policies,
    /// One for each worker, to be handed out before anything else.
    pub(super) chains: Vec<Chain>,
    /// The generation is to be written down.
    pub(super) must_write: bool,
}

/// Reaches both clusters, loads the plugins, makes the positions topic and begins to join the group.
pub(super) async fn start(setting: &FlowSetting) -> Result<Begun, FlowFailure> {
    let flow = &setting.flow;
    let name = flow.name.clone();
    let patience = Patience::new(&name, setting.process.start_timeout);
    let loader = setting.loader();
    let file = load_file(&loader);
    let clusters = async {
        let (source, target) = connect(flow, &setting.clusters, setting.process.start_timeout).await?;
        // Early, while plugins are being compiled, so that the wait below is short.
        let is_one_cluster = source.client().metadata().cluster_id == target.client().metadata().cluster_id;
        let early = match is_one_cluster {
            // Whether anything may be made is decided by the first look.
            true => None,
            false => Some(ensure_positions_topic(&target, &flow.positions, &patience).await?),
        };
        Ok((source, target, early, Instant::now()))
    };
    let (file, clusters) = tokio::join!(file, clusters);
    let (source, target, early, ensured_at) = clusters?;
    let file = file.map_err(FlowFailure::Plugin)?;
    let (book, reader) = read_book(&target, &name, &patience).await?;
    let first = first(&loader, file, &book, &target, setting.node.id()).await.map_err(FlowFailure::Plugin)?;
    let must_write = first.must_write;
    let records = follow(target.clone(), name.clone(), reader);
    let log = PluginsLog::new(&target, &name.source, flow.positions.replication_factor);
    let (policies, ready) = Policies::new(loader, first, book, log, records);
    let Ready { chains, policies: hooks, .. } = ready;
    let mut round = Box::new(Round::new(flow.clone(), source.clone(), target.clone(), hooks));
    refuse_same_cluster(&mut round, &patience).await?;
    let PositionsTopic { slot_count, is_new } = match early {
        Some(topic) => topic,
        None => ensure_positions_topic(&target, &flow.positions, &patience).await?,
    };
    if is_new {
        tokio::time::sleep_until(ensured_at + Duration::from_millis(NEW_TOPIC_MS)).await;
    }
    let positions_topic = TopicName::parse(&flow.positions.topic)
        .map_err(|problem| FlowFailure::Refused(format!("offset.storage.topic: {problem}")))?;
    let options = MembershipOptions {
        bootstrap_servers: servers(&setting.clusters, &name.target).to_vec(),
        flow: name.clone(),
        node: Arc::clone(&setting.node),
        group: flow.group.clone(),
        positions_topic: positions_topic.clone(),
        wait_for_mirror_maker: setting.process.wait_for_mirror_maker,
    };
    let (membership, events) = Membership::start(options, target.client().clone());
    info!(flow = %name, slots = slot_count, "flow starts");
    let started = Started { source, target, slot_count, positions_topic, membership, events };
    Ok(Begun { started, round, policies, chains, must_write })
}

/// What was decided about the flow's plugins, and where to read on.
async fn read_book(
    target: &ClusterAdmin,
    flow: &FlowName,
    patience: &Patience,
) -> Result<(Book, Option<LogReader>), FlowFailure> {
    loop {
        let mut book = Book::new(flow);
        let read = read_all(target, flow, |record| {
            book.take(record);
        });
        match read.await {
            Ok(reader) => return Ok((book, reader)),
            Err(problem) => patience.again(Setback::Again(problem)).await?,
        }
    }
}

/// What `tidegate plan` shows of one flow: looks and plans, changes nothing.
pub async fn look_once(flow: &FlowConfig, config: &Config, engine: &Engine) -> Result<Plan, FlowFailure> {
    let patience = Patience::new(&flow.name, config.process.start_timeout);
    let (source, target) = connect(flow, &config.clusters, config.process.start_timeout).await?;
    let loader = Loader {
        engine: engine.clone(),
        flow: Arc::new(flow.clone()),
        aliases: config.clusters.keys().cloned().collect(),
        reverse_is_enabled: has_way_back(config, &flow.name),
        worker_count: 1,
    };
    let file = load_file(&loader).await.map_err(FlowFailure::Plugin)?;
    // A run would take the last decision, too; nothing is written here.
    let (book, _reader) = read_book(&target, &flow.name, &patience).await?;
    let first = first(&loader, file, &book, &target, "-").await.map_err(FlowFailure::Plugin)?;
    let mut round = Round::new(flow.clone(), source, target, first.ready.policies);
    loop {
        match round.observe_and_preview().await {
            Ok(plan) => return Ok(plan),
            Err(problem) => patience.again(problem).await?,
        }
    }
}

/// Whether enabled flows of the file, served here or elsewhere, lead from `flow`'s target back to its source, over
/// however many clusters: then names that stay would go round for ever.
pub fn has_way_back(config: &Config, flow: &FlowName) -> bool {
    leads(&config.enabled_flows, &flow.target, &flow.source)
}

/// Whether one can come from `from` to `to` over these flows.
fn leads(flows: &[FlowName], from: &ClusterAlias, to: &ClusterAlias) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(here) = reached.get(next).copied() {
        next += 1;
        for flow in flows.iter().filter(|flow| flow.source == *here) {
            if flow.target == *to {
                return true;
            }
            if !reached.contains(&&flow.target) {
                reached.push(&flow.target);
            }
        }
    }
    false
}

/// The first look at both clusters.
async fn look(round: &mut Round, patience: &Patience) -> Result<Plan, FlowFailure> {
    loop {
        match round.observe_and_plan().await {
            Ok(plan) => return Ok(plan),
            Err(problem) => patience.again(problem).await?,
        }
    }
}

/// A flow whose ends are one cluster under unchanged names would feed itself: nothing is started for it.
async fn refuse_same_cluster(round: &mut Round, patience: &Patience) -> Result<(), FlowFailure> {
    let plan = look(round, patience).await?;
    match plan.flow_refusal() {
        Some(refusal) => Err(FlowFailure::Refused(refusal.text.clone())),
        None => Ok(()),
    }
}

async fn ensure_positions_topic(
    target: &ClusterAdmin,
    positions: &PositionsConfig,
    patience: &Patience,
) -> Result<PositionsTopic, FlowFailure> {
    loop {
        match target.ensure_positions_topic(positions).await {
            Ok(topic) => return Ok(topic),
            Err(problem) => patience.again(problem).await?,
        }
    }
}

/// Reaches both clusters, trying again until `within` has passed.
async fn connect(
    flow: &FlowConfig,
    clusters: &BTreeMap<ClusterAlias, ClusterConfig>,
    within: Duration,
) -> Result<(ClusterAdmin, ClusterAdmin), FlowFailure> {
    let source = reach(&flow.name, "source", &flow.name.source, &flow.source_admin, clusters, within);
    let target = reach(&flow.name, "target", &flow.name.target, &flow.target_admin, clusters, within);
    tokio::try_join!(source, target)
}

async fn reach(
    flow: &FlowName,
    side: &'static str,
    alias: &ClusterAlias,
    admin: &AdminClientConfig,
    clusters: &BTreeMap<ClusterAlias, ClusterConfig>,
    within: Duration,
) -> Result<ClusterAdmin, FlowFailure> {
    let options = client_options(servers(clusters, alias), &admin.client_id, &admin.connection);
    let deadline = Instant::now() + within;
    loop {
        let attempt = tokio::time::timeout_at(deadline, Client::connect(options.clone())).await;
        let problem = match attempt {
            Ok(Ok(client)) => return Ok(ClusterAdmin::new(alias.clone(), client)),
            Ok(Err(problem)) => {
                let words = problem.to_string();
                if let Setback::Final(failure @ FlowFailure::NotAllowed(_)) =
                    anyhow::Error::new(problem).into()
                {
                    return Err(failure);
                }
                words
            }
            Err(_elapsed) => "no answer".to_owned(),
        };
        if Instant::now() + Duration::from_millis(RETRY_MS) >= deadline {
            return Err(FlowFailure::Unreachable {
                flow: flow.clone(),
                side,
                alias: alias.clone(),
                servers: servers(clusters, alias).join(","),
                waited_s: within.as_secs(),
                problem,
            });
        }
        warn!(%flow, side, cluster = %alias, %problem, "cluster can't be reached, trying again");
        tokio::time::sleep(Duration::from_millis(RETRY_MS)).await;
    }
}

fn servers<'a>(clusters: &'a BTreeMap<ClusterAlias, ClusterConfig>, alias: &ClusterAlias) -> &'a [String] {
    clusters.get(alias).map_or(&[], |cluster| &cluster.bootstrap_servers)
}

impl FlowSetting {
    fn loader(&self) -> Loader {
        Loader {
            engine: self.engine.clone(),
            flow: Arc::new(self.flow.clone()),
            aliases: self.clusters.keys().cloned().collect(),
            reverse_is_enabled: self.reverse_is_enabled,
            worker_count: self.process.workers,
        }
    }

    /// The settings of a relay worker of this flow.
    pub(super) fn worker_settings(&self, started: &Started) -> WorkerSettings {
        let flow = &self.flow;
        let (source, target) = (&flow.source, &flow.target);
        WorkerSettings {
            flow: flow.name.clone(),
            source_alias: flow.name.source.clone(),
            source: client_options(
                servers(&self.clusters, &flow.name.source),
                &source.client_id,
                &source.connection,
            ),
            target: client_options(
                servers(&self.clusters, &flow.name.target),
                &target.client_id,
                &target.connection,
            ),
            fetch_wait: source.fetch_max_wait,
            fetch_bytes_min: source.fetch_min_bytes,
            fetch_bytes_max: source.fetch_max_bytes,
            partition_fetch_bytes_max: source.max_partition_fetch_bytes,
            isolation: match source.isolation {
                Isolation::ReadCommitted => WireIsolation::ReadCommitted,
                Isolation::ReadUncommitted => WireIsolation::ReadUncommitted,
            },
            offset_reset: source.auto_offset_reset,
            compression: target.compression.map(codec),
            batch_bytes_max: target.batch_bytes_max,
            request_bytes_max: target.max_request_bytes,
            acks_timeout: target.acks_timeout,
            retry_backoff: target.connection.retry_backoff,
            retry_backoff_max: target.connection.retry_backoff_max,
            buffer_bytes_max: self.process.worker_buffer_bytes,
            positions_topic: started.positions_topic.clone(),
            commit_interval: flow.positions.flush_interval,
            quarantine: flow.quarantine.clone(),
        }
    }
}

fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::None => Codec::None,
        Compression::Gzip => Codec::Gzip,
        Compression::Snappy => Codec::Snappy,
        Compression::Lz4 => Codec::Lz4,
        Compression::Zstd => Codec::Zstd,
    }
}

#[cfg(test)]
mod tests;
