//! `tidegate run FILE`: copies until SIGTERM or Ctrl-C.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use super::status::bytes_text;
use super::{Exit, Failure, RunArguments, logs};
use crate::app::App;
use crate::config::{Config, Fate, Loaded};
use crate::flow::FlowFailure;
use crate::serve::Watched;

/// A line of progress on a terminal comes so often, in milliseconds.
const PROGRESS_MS: u64 = 2_000;

/// Threads of the control loops. The data plane has its own.
const CONTROL_THREADS: usize = 2;

pub(super) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let loaded = arguments.file.load(&arguments.process)?;
    logs::start(loaded.config.process.log_format);
    tell_findings(&loaded);
    if loaded.config.flows.is_empty() {
        return Err(Exit::Configuration.because(anyhow::anyhow!(
            "no flow is enabled; write S->T.enabled = true for at least one pair of clusters (and check --clusters)"
        )));
    }
    runtime()?.block_on(run_config(loaded.config))
}

/// The runtime of the control loops.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .enable_all()
        .build()
        .map_err(|problem| Exit::Internal.because(problem))
}

async fn run_config(config: Config) -> Result<(), Failure> {
    let app = App::prepare(config).await.map_err(|problem| Exit::Unavailable.because(problem))?;
    let (order, stop) = watch::channel(false);
    let signals = tokio::spawn(stop_at_signal(order));
    let progress = std::io::stderr().is_terminal().then(|| tokio::spawn(show_progress(app.watched())));
    let result = app.run(stop).await;
    signals.abort();
    if let Some(progress) = progress {
        progress.abort();
    }
    result.map_err(flow_failure)
}

/// The exit code that fits a flow's failure.
pub(super) fn flow_failure(failure: FlowFailure) -> Failure {
    let exit = match &failure {
        FlowFailure::Unreachable { .. }
        | FlowFailure::MirrorMakerRunning { .. }
        | FlowFailure::Membership(_) => Exit::Unavailable,
        FlowFailure::Refused(_) | FlowFailure::Plugin(_) => Exit::Configuration,
        FlowFailure::NotAllowed(_) => Exit::NotAllowed,
        FlowFailure::Internal(_) => Exit::Internal,
    };
    exit.because(anyhow::Error::new(failure))
}

/// Gives the order to stop at SIGTERM or SIGINT; ends the process at the second.
pub(super) async fn stop_at_signal(order: watch::Sender<bool>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        warn!("signals can't be caught; stop this process with SIGKILL");
        return std::future::pending().await;
    };
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    info!("stopping: settling, storing positions, leaving; a second signal ends at once");
    order.send_replace(true);
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    warn!("ended at once; what is not stored will be copied again");
    std::process::exit(1);
}

/// Every key that is not simply honoured is named once at the start.
fn tell_findings(loaded: &Loaded) {
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    for row in &loaded.report.rows {
        if matches!(row.fate, Fate::Ignored | Fate::Mapped) {
            info!(key = row.key, line = row.line, fate = %row.fate, "{}", row.note);
        }
    }
}

async fn show_progress(watched: Arc<Watched>) {
    let mut step = tokio::time::interval(Duration::from_millis(PROGRESS_MS));
    loop {
        step.tick().await;
        for flow in watched.view().flows {
            if flow.records_per_second > 0.0 || flow.lag_records > 0 {
                eprintln!(
                    "{}  {:.0} rec/s  {}/s  lag {}",
                    flow.name,
                    flow.records_per_second,
                    bytes_text(flow.bytes_per_second),
                    flow.lag_records
                );
            }
        }
    }
}
