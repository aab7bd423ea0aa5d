//! The whole process: all flows of a file, what watches them, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::cluster::NodeIdentity;
use crate::config::Config;
use crate::flow::{self, FlowFailure, FlowSetting};
use crate::names::FlowName;
use crate::plugin::Engine;
use crate::serve::{self, Watched};
use crate::status::{FlowState, Registry, now_ms};

/// Pause before a flow that ended by an error starts again, in milliseconds.
const RESTART_MS: u64 = 5_000;

/// A process that is about to run.
pub struct App {
    config: Config,
    registry: Arc<Registry>,
    watched: Arc<Watched>,
    listener: TcpListener,
    engine: Engine,
    node: Arc<NodeIdentity>,
}

impl App {
    /// Takes what the process needs of this machine: the port, the node's identity, the plugin engine.
    pub async fn prepare(config: Config) -> anyhow::Result<Self> {
        let listener = serve::bind(config.process.http_listen).await?;
        let engine = Engine::new(Some(config.process.cache_dir.clone()))
            .context("could not start the plugin engine")?;
        let node = NodeIdentity::acquire(&config.process.cache_dir).with_context(|| {
            format!("could not take an identity in {}", config.process.cache_dir.display())
        })?;
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

    /// Runs all flows until `stop` says so. A flow that can't start ends the process when no other flow runs; one that
    /// ran before is started again.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), FlowFailure> {
        let address = self.http_address().map_err(FlowFailure::Internal)?;
        info!(http = %address, flows = self.config.flows.len(), "tidegate {} runs", env!("CARGO_PKG_VERSION"));
        let watched = self.watched();
        let mut watchers = JoinSet::new();
        watchers.spawn(serve::serve(self.listener, Arc::clone(&watched)));
        watchers.spawn(async move {
            watched.sample_forever().await;
            Ok(())
        });
        let mut flows = JoinSet::new();
        for flow in &self.config.flows {
            let setting = FlowSetting {
                flow: flow.clone(),
                process: self.config.process.clone(),
                clusters: self.config.clusters.clone(),
                registry: Arc::clone(&self.registry),
                engine: self.engine.clone(),
                node: Arc::clone(&self.node),
                reverse_is_enabled: flow::has_flow_back(&self.config, &flow.name),
            };
            self.registry.flow(&flow.name).set_state(FlowState::Starting);
            flows.spawn(keep_running(setting, stop.clone()));
        }
        let mut first_failure = None;
        while let Some(ended) = flows.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => {
                    first_failure.get_or_insert(failure);
                }
                Err(problem) => {
                    let problem = anyhow::anyhow!("a flow's task was lost: {problem}");
                    first_failure.get_or_insert(FlowFailure::Internal(problem));
                }
            }
        }
        info!("tidegate ends");
        first_failure.map_or(Ok(()), Err)
    }
}

/// Runs a flow, and again when it ended by an error after it had run.
async fn keep_running(setting: FlowSetting, mut stop: watch::Receiver<bool>) -> Result<(), FlowFailure> {
    let name = setting.flow.name.clone();
    let stats = setting.registry.flow(&name);
    let mut has_run = false;
    loop {
        let result = flow::run(setting.clone(), stop.clone()).await;
        let Err(failure) = result else { return Ok(()) };
        stats.set_error(now_ms(), failure.to_string());
        stats.set_state(FlowState::Failed);
        has_run |= stats.has_run();
        if !has_run {
            error!(flow = %name, %failure, "flow can't start");
            return Err(failure);
        }
        note_restart(&name, &failure);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(RESTART_MS)) => {}
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        }
    }
}

fn note_restart(name: &FlowName, failure: &FlowFailure) {
    warn!(flow = %name, %failure, restart_ms = RESTART_MS, "flow ended by an error and starts again");
}
