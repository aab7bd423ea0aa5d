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
use crate::config::{Config, FlowConfig, ProcessConfig};
use crate::flow::{self, FlowFailure, FlowSetting};
use crate::plugin::Engine;
use crate::serve::api::Api;
use crate::serve::orders::Orders;
use crate::serve::token::Token;
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
    orders: Arc<Orders>,
    token: Token,
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
    /// The token that orders over HTTP must show.
    #[error("{0:#}; tidegate.http.token.file names a file with one, which this process may read")]
    Token(anyhow::Error),
}

impl App {
    /// Takes what the process needs of this machine: the port, the node's identity, the plugin engine.
    pub async fn prepare(config: Config) -> Result<Self, PrepareFailure> {
        let listener = serve::bind(config.process.http_listen, config.process.http_token_file.is_some())
            .await
            .map_err(PrepareFailure::Listen)?;
        let engine = Engine::new(Some(config.process.cache_dir.clone()))
            .context("could not start the plugin engine")
            .map_err(PrepareFailure::Engine)?;
        let node = NodeIdentity::acquire(&config.process.cache_dir)
            .with_context(|| format!("could not take an identity in {}", config.process.cache_dir.display()))
            .map_err(PrepareFailure::CacheFolder)?;
        let token = token(&config.process).map_err(PrepareFailure::Token)?;
        let registry = Arc::new(Registry::default());
        let watched = Watched::new(Arc::clone(&registry));
        let (node, orders) = (Arc::new(node), Arc::default());
        Ok(Self { config, registry, watched, listener, engine, node, orders, token })
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
        self.config.flows.iter().for_each(|flow| self.orders.expect(&flow.name));
        // Before the listener goes its own way.
        let flows = self.config.flows.iter().map(|flow| (flow.name.clone(), self.setting(flow))).collect();
        let is_loopback = address.ip().is_loopback();
        let api = Api { orders: self.orders, token: self.token, is_loopback };
        watchers.spawn(serve::serve(self.listener, Arc::clone(&watched), api));
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
            orders: Arc::clone(&self.orders),
            reverse_is_enabled: flow::has_way_back(&self.config, &flow.name),
        }
    }
}

/// A file that is named must hold the token; without one, it is made in the cache folder.
fn token(process: &ProcessConfig) -> anyhow::Result<Token> {
    match &process.http_token_file {
        Some(path) => Token::read(path),
        None => Token::read_or_make(&Token::default_path(&process.cache_dir)),
    }
}
