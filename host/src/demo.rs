//! The demonstration: two clusters in memory, an orders generator, the flow `east->west` run as `tidegate run` runs it,
//! and a check at the end that reads both clusters without the relay's help. What is shown of it is the caller's.

mod comparison;
mod digest;
mod file;
mod folder;
mod generator;
mod look;
mod order;

use std::time::Duration;

use anyhow::Context as _;
use tidegate_embedded::{Cluster, ClusterOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use self::comparison::{Comparison, Difference};
pub use self::look::Look;

use self::digest::SideDigest;
use self::folder::TemporaryFolder;
use self::generator::Generator;
use self::look::Observer;
use crate::app::App;
use crate::config::{self, LoadOptions, Loaded, ProcessOverrides};
use crate::flow::FlowFailure;

/// The topic that orders go to.
pub const TOPIC: &str = "orders";

/// What the default policy calls it over there.
pub const TARGET_TOPIC: &str = "east.orders";

/// Partitions of the topic.
pub const PARTITIONS: i32 = 6;

/// What a cluster keeps of a partition, in bytes. Older records leave the memory, on both sides; so a demo that is
/// forgotten for a week takes no more than twelve times this.
const PARTITION_BYTES_MAX: usize = 64 << 20;

/// How long the copy may take to catch up after the last order, in milliseconds.
const CATCH_UP_MS_MAX: u64 = 10_000;

/// How often it is looked whether a record has come, in milliseconds.
const POLL_MS: u64 = 5;

/// A look at everything comes so often, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// What a demo is told.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Orders per second.
    pub rate: u32,
    /// Port of cluster east; 0: chosen by the system.
    pub east_port: u16,
    /// Port of cluster west; 0: chosen by the system.
    pub west_port: u16,
    /// Where status, health and metrics are served.
    pub http_listen: String,
}

/// What a demo tells while it goes on.
#[derive(Clone, Debug)]
pub enum DemoEvent {
    /// All is up; the flow starts now.
    Started(Introduction),
    /// How it stands; once a second.
    Looked(Look),
    /// No more orders; the copy catches up.
    CatchingUp,
    /// How it stands at the end, with the rates of the whole time.
    LookedLast(Look),
}

/// What is there to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The flow's file, as `tidegate run` would read it.
    pub file: String,
    /// `bootstrap.servers` of east.
    pub east: String,
    /// `bootstrap.servers` of west.
    pub west: String,
    /// Where HTTP is served.
    pub http: String,
}

/// How it ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the check found.
    pub comparison: Comparison,
    /// Orders that the source acknowledged.
    pub orders_count: u64,
    /// Whether the copy reached the last order in time.
    pub has_caught_up: bool,
    /// From the start until the first record lay on the target.
    pub first_copied_after: Option<Duration>,
}

/// Why a demo could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum DemoFailure {
    /// A port, a folder or the generator.
    #[error("{0:#}")]
    Surroundings(anyhow::Error),
    /// The settings don't make a file.
    #[error("{0}")]
    Configuration(#[from] Box<config::LoadError>),
    /// The flow itself.
    #[error(transparent)]
    Flow(Box<FlowFailure>),
    /// What lies in a log can't be read.
    #[error("{0:#}")]
    Unreadable(anyhow::Error),
}

/// Runs the demo until `stop` says so: then no more orders, catch up, stop the flow, compare.
pub async fn run(
    options: &DemoOptions,
    stop: watch::Receiver<bool>,
    tell: &mut (dyn FnMut(DemoEvent) + Send),
) -> Result<Outcome, DemoFailure> {
    let stage = Stage::build(options).await?;
    let result = stage.play(options, stop, tell).await;
    let Stage { east, west, .. } = stage;
    east.shutdown().await;
    west.shutdown().await;
    result
}

/// The two clusters and the place for the process's files.
struct Stage {
    started: Instant,
    east: Cluster,
    west: Cluster,
    folder: TemporaryFolder,
}

/// The flow and the generator, each a task.
struct Players {
    flow: JoinHandle<Result<(), FlowFailure>>,
    stop_flow: watch::Sender<bool>,
    generator: JoinHandle<anyhow::Result<u64>>,
    stop_generator: watch::Sender<bool>,
}

/// Why the watching ended.
enum Ended {
    Asked,
    Flow(Result<(), DemoFailure>),
    Generator(DemoFailure),
}

impl Stage {
    async fn build(options: &DemoOptions) -> Result<Self, DemoFailure> {
        let started = Instant::now();
        let folder = TemporaryFolder::create().map_err(DemoFailure::Surroundings)?;
        let east = start_cluster("east", options.east_port).await?;
        let west = start_cluster("west", options.west_port).await?;
        east.create_topic(TOPIC, PARTITIONS, &[])
            .map_err(|problem| DemoFailure::Surroundings(problem.into()))?;
        Ok(Self { started, east, west, folder })
    }

    async fn play(
        &self,
        options: &DemoOptions,
        stop: watch::Receiver<bool>,
        tell: &mut (dyn FnMut(DemoEvent) + Send),
    ) -> Result<Outcome, DemoFailure> {
        let (file, loaded) = self.load(options)?;
        let app =
            App::prepare(loaded.config).await.map_err(|failure| DemoFailure::Surroundings(failure.into()))?;
        let http = app.http_address().map_err(DemoFailure::Surroundings)?.to_string();
        let (east, west) = (self.east.bootstrap_servers(), self.west.bootstrap_servers());
        tell(DemoEvent::Started(Introduction { file, east, west, http }));
        let mut observer = Observer::new(&self.east, &self.west, app.watched(), self.started);
        let mut players = self.start_players(app, options.rate);
        let ended = self.watch(&mut players, stop, &mut observer, tell).await;
        players.stop_generator.send_replace(true);
        let orders_count = match ended {
            Ended::Asked => {
                lost((&mut players.generator).await).and_then(|made| made.map_err(DemoFailure::Surroundings))
            }
            Ended::Generator(failure) => Err(failure),
            Ended::Flow(result) => {
                players.generator.abort();
                let early = anyhow::anyhow!("the flow ended by itself");
                return result.and(Err(DemoFailure::Surroundings(early)));
            }
        };
        if orders_count.is_ok() {
            tell(DemoEvent::CatchingUp);
            self.catch_up(&mut observer).await;
        }
        let has_caught_up = observer.has_caught_up();
        tell(DemoEvent::LookedLast(observer.last_look()));
        players.stop_flow.send_replace(true);
        lost((&mut players.flow).await)?.map_err(flow_failure)?;
        let orders_count = orders_count?;
        let comparison = self.compare().map_err(DemoFailure::Unreadable)?;
        Ok(Outcome {
            comparison,
            orders_count,
            has_caught_up,
            first_copied_after: observer.first_copied_after(),
        })
    }

    /// The same way as `tidegate run FILE`, but for the file, which lies nowhere, and the environment, which is left out.
    fn load(&self, options: &DemoOptions) -> Result<(String, Loaded), DemoFailure> {
        let text = file::text(&self.east.bootstrap_servers(), &self.west.bootstrap_servers());
        let flags = ProcessOverrides {
            http_listen: Some(options.http_listen.clone()),
            cache_dir: Some(self.folder.path().display().to_string()),
            ..ProcessOverrides::default()
        };
        let load_options = LoadOptions { flags, ..LoadOptions::default() };
        let loaded = config::load_bytes(file::NAME, text.as_bytes(), self.folder.path(), &load_options)?;
        Ok((text, loaded))
    }

    fn start_players(&self, app: App, rate: u32) -> Players {
        let (stop_generator, generator_stop) = watch::channel(false);
        let (stop_flow, flow_stop) = watch::channel(false);
        let generator = tokio::spawn(Generator::run(self.east.bootstrap_servers(), rate, generator_stop));
        let flow = tokio::spawn(app.run(flow_stop));
        Players { flow, stop_flow, generator, stop_generator }
    }

    async fn watch(
        &self,
        players: &mut Players,
        mut stop: watch::Receiver<bool>,
        observer: &mut Observer<'_>,
        tell: &mut (dyn FnMut(DemoEvent) + Send),
    ) -> Ended {
        let mut looks = tokio::time::interval_at(self.started, Duration::from_millis(LOOK_MS));
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut polls = tokio::time::interval(Duration::from_millis(POLL_MS));
        polls.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => return Ended::Asked,
                result = &mut players.flow => {
                    return Ended::Flow(lost(result).and_then(|result| result.map_err(flow_failure)));
                }
                result = &mut players.generator => return Ended::Generator(generator_failure(result)),
                _ = looks.tick() => tell(DemoEvent::Looked(observer.look())),
                _ = polls.tick(), if observer.first_copied_after().is_none() => observer.note_first(),
            }
        }
    }

    /// Waits, within [`CATCH_UP_MS_MAX`], until the target has as many records as the source.
    async fn catch_up(&self, observer: &mut Observer<'_>) {
        let deadline = Instant::now() + Duration::from_millis(CATCH_UP_MS_MAX);
        while !observer.has_caught_up() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
        }
        observer.note_first();
    }

    /// Reads what lies in both clusters' memory and compares it, record by record.
    fn compare(&self) -> anyhow::Result<Comparison> {
        let first_kept = |partition| {
            let start = |cluster: &Cluster, topic| {
                cluster.partition(topic, partition).map_or(0, |it| it.start_offset)
            };
            start(&self.east, TOPIC).max(start(&self.west, TARGET_TOPIC))
        };
        let first_offsets: Vec<i64> = (0..PARTITIONS).map(first_kept).collect();
        let side = |cluster: &Cluster, name: &str, topic: &str| {
            let logs = (0..PARTITIONS).map(|partition| cluster.log(topic, partition));
            SideDigest::read(logs, &first_offsets)
                .with_context(|| format!("could not read {topic} of cluster {name}"))
        };
        let source = side(&self.east, "east", TOPIC)?;
        let target = side(&self.west, "west", TARGET_TOPIC)?;
        Ok(Comparison::of(&source, &target))
    }
}

impl Drop for Players {
    /// A demo that ends early leaves nothing running.
    fn drop(&mut self) {
        self.generator.abort();
        self.flow.abort();
    }
}

async fn start_cluster(name: &str, port: u16) -> Result<Cluster, DemoFailure> {
    let options = ClusterOptions {
        cluster_id: format!("demo-{name}"),
        ports: vec![port],
        partition_bytes_max: PARTITION_BYTES_MAX,
        ..ClusterOptions::default()
    };
    Cluster::start(options)
        .await
        .with_context(|| {
            format!("could not start cluster {name} (--{name}-port {port}; 0 lets the system choose)")
        })
        .map_err(DemoFailure::Surroundings)
}

fn generator_failure(result: Result<anyhow::Result<u64>, tokio::task::JoinError>) -> DemoFailure {
    match lost(result) {
        Ok(Ok(_)) => DemoFailure::Surroundings(anyhow::anyhow!("the orders generator ended by itself")),
        Ok(Err(problem)) => DemoFailure::Surroundings(problem),
        Err(failure) => failure,
    }
}

fn flow_failure(failure: FlowFailure) -> DemoFailure {
    DemoFailure::Flow(Box::new(failure))
}

/// Waits for the order. A lost sender is one, too: nobody could give another.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _sender_is_lost = stop.wait_for(|stop| *stop).await.is_err();
}

fn lost<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, DemoFailure> {
    result.map_err(|problem| {
        DemoFailure::Surroundings(anyhow::anyhow!("a task of the demo was lost: {problem}"))
    })
}

#[cfg(test)]
mod tests;
