//! The whole process: all flows of a file, what watches them, and how it ends.

mod flows;

use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::info;

use self::flows::Flows;
use crate::cluster::NodeIdentity;
use crate::config::{Config, FlowConfig};
use crate::flow::{self, FlowFailure, FlowSetting};
use crate::plugin::Engine;
use crate::serve::{self, Watched};
use crate::status::Registry;

/// A process that is about to run.
pub struct App {
    config: Config,
    registry: Arc<Registry>,
    watched: Arc<Watched>,
    listener: TcpListener,
    engine: Engine,
    node: Arc<NodeIdentity>,
}

/// What of this machine can't be had.
#[derive(Debug, thiserror::Error)]
pub enum PrepareFailure {
    /// The address for HTTP.
    #[error("{0:#}")]
    Listen(anyhow::Error),
    /// The folder that keeps the node's identity.
    #[error("{0:#}; tidegate.cache.dir must be a folder that this process may write to")]
    CacheFolder(anyhow::Error),
    /// The engine that runs plugins.
    #[error("{0:#}")]
    Engine(anyhow::Error),
}

impl App {
    /// Takes what the process needs of this machine: the port, the node's identity, the plugin engine.
    pub async fn prepare(config: Config) -> Result<Self, PrepareFailure> {
        let listener = serve::bind(config.process.http_listen).await.map_err(PrepareFailure::Listen)?;
        let engine = Engine::new(Some(config.process.cache_dir.clone()))
            .context("could not start the plugin engine")
            .map_err(PrepareFailure::Engine)?;
        let node = NodeIdentity::acquire(&config.process.cache_dir)
            .with_context(|| format!("could not take an identity in {}", config.process.cache_dir.display()))
            .map_err(PrepareFailure::CacheFolder)?;
        let registry = Arc::new(Registry::default());
        let watched = Watched::new(Arc::clone(&registry));
        Ok(Self { config, registry, watched, listener, engine, node: Arc::new(node) })
    }

    /// Where HTTP is served; tells the port when the system chose it.
    pub fn http_address(&self) -> anyhow::Result<std::net::SocketAddr> {
        self.listener.local_addr().context("could not learn the HTTP port")
    }

    /// What can be watched while it runs.
    pub fn watched(&self) -> Arc<Watched> {
        Arc::clone(&self.watched)
    }

    /// Runs all flows until `stop` says so; fails when no flow could start.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), FlowFailure> {
        let address = self.http_address().map_err(FlowFailure::Internal)?;
        info!(http = %address, flows = self.config.flows.len(), "tidegate {} runs", env!("CARGO_PKG_VERSION"));
        let watched = self.watched();
        let mut watchers = JoinSet::new();
        // Before the listener goes its own way.
        let flows = self.config.flows.iter().map(|flow| (flow.name.clone(), self.setting(flow))).collect();
        watchers.spawn(serve::serve(self.listener, Arc::clone(&watched)));
        watchers.spawn(async move {
            watched.sample_forever().await;
            Ok(())
        });
        let run = {
            let stop = stop.clone();
            move |setting| flow::run(setting, stop.clone())
        };
        let result = Flows::new(flows, &self.registry, stop, run).keep().await;
        info!("tidegate ends");
        result
    }

    fn setting(&self, flow: &FlowConfig) -> FlowSetting {
        FlowSetting {
            flow: flow.clone(),
            process: self.config.process.clone(),
            clusters: self.config.clusters.clone(),
            registry: Arc::clone(&self.registry),
            engine: self.engine.clone(),
            node: Arc::clone(&self.node),
            reverse_is_enabled: flow::has_way_back(&self.config, &flow.name),
        }
    }
}
