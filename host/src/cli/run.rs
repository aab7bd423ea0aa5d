//! `tidegate run FILE`: copies until SIGTERM or Ctrl-C.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use super::exit::ENDED_AT_ONCE;
use super::status::bytes_text;
use super::{Exit, Failure, RunArguments, logs};
use crate::app::{App, PrepareFailure};
use crate::config::{Config, Fate, Loaded, Row};
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
    let app = App::prepare(config).await.map_err(prepare_failure)?;
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

/// The exit code that fits what of this machine can't be had.
fn prepare_failure(failure: PrepareFailure) -> Failure {
    let exit = match &failure {
        PrepareFailure::Listen(_) => Exit::Unavailable,
        PrepareFailure::CacheFolder(_) | PrepareFailure::Token(_) => Exit::Configuration,
        PrepareFailure::Engine(_) => Exit::Internal,
    };
    exit.because(failure)
}

/// The exit code that fits a flow's failure.
pub(super) fn flow_failure(failure: FlowFailure) -> Failure {
    let exit = match &failure {
        FlowFailure::Unreachable { .. }
        | FlowFailure::Unavailable { .. }
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
    std::process::exit(ENDED_AT_ONCE);
}

/// Every key that is not simply honoured is named once at the start.
fn tell_findings(loaded: &Loaded) {
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    for row in rows_to_tell(loaded) {
        info!(key = row.key, line = row.line, fate = %row.fate, "{}", row.note);
    }
}

/// What no warning has said already, as one does of an unknown key.
fn rows_to_tell(loaded: &Loaded) -> impl Iterator<Item = &Row> {
    let is_told = |row: &Row| {
        loaded.warnings.iter().any(|warning| {
            warning.key.as_deref() == Some(row.key.as_str()) && row.note.starts_with(&warning.text)
        })
    };
    let rows = loaded.report.rows.iter().filter(|row| matches!(row.fate, Fate::Ignored | Fate::Mapped));
    rows.filter(move |row| !is_told(row))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ClusterAlias, FlowName};

    #[test]
    fn every_failure_of_a_flow_has_its_exit_code() {
        let flow = || FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") };
        let reason = || anyhow::anyhow!("the reason").context("what was done");
        let check = |failure: FlowFailure, code: u8| {
            let words = failure.to_string();
            let failure = flow_failure(failure);
            assert_eq!((failure.exit.code(), failure.to_string()), (code, words));
        };
        let unreachable = FlowFailure::Unreachable {
            flow: flow(),
            side: "source",
            alias: ClusterAlias::new("A"),
            servers: "a:1".to_owned(),
            waited_s: 30,
            problem: "no answer".to_owned(),
        };
        check(unreachable, 69);
        check(FlowFailure::Unavailable { flow: flow(), waited_s: 30, problem: reason() }, 69);
        check(FlowFailure::MirrorMakerRunning { flow: flow() }, 69);
        check(FlowFailure::Membership("the reason".to_owned()), 69);
        check(FlowFailure::Internal(reason()), 70);
        check(FlowFailure::NotAllowed(reason()), 77);
        check(FlowFailure::Refused("the reason".to_owned()), 78);
        check(FlowFailure::Plugin(reason()), 78);
        assert_eq!(flow_failure(FlowFailure::Plugin(reason())).to_string(), "what was done: the reason");
    }

    #[tokio::test]
    async fn a_cache_folder_that_cannot_be_written_is_a_matter_of_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let text =
            "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n";
        let flags = crate::config::ProcessOverrides {
            cache_dir: Some(file.display().to_string()),
            http_listen: Some("127.0.0.1:0".to_owned()),
            ..Default::default()
        };
        let options = crate::config::LoadOptions { flags, ..Default::default() };
        let loaded = crate::config::load_bytes("t", text.as_bytes(), folder.path(), &options).unwrap();
        let failure = prepare_failure(App::prepare(loaded.config).await.err().unwrap());
        assert_eq!(failure.exit.code(), 78);
        assert_eq!(
            failure.to_string(),
            format!(
                "could not take an identity in {0}: could not create folder {0}/nodes: Not a directory (os error 20); \
                 tidegate.cache.dir must be a folder that this process may write to",
                file.display()
            )
        );
    }

    #[tokio::test]
    async fn a_port_in_use_is_unavailable() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let problem = crate::serve::bind(taken.local_addr().unwrap(), false).await.unwrap_err();
        assert_eq!(prepare_failure(PrepareFailure::Listen(problem)).exit.code(), 69);
    }

    #[test]
    fn an_unknown_key_is_told_once() {
        let text = "clusters=A,B\nbootstrap.servers=a:1\nA->B.enabled=true\ntpoics=x\ntasks.max=1 \n";
        let environment = [("HOME".to_owned(), "/home/kafka".to_owned())].into();
        let options = crate::config::LoadOptions { environment, ..Default::default() };
        let loaded =
            crate::config::load_bytes("f", text.as_bytes(), std::path::Path::new("/"), &options).unwrap();
        let warned =
            loaded.warnings.iter().filter(|warning| warning.key.as_deref() == Some("tpoics")).count();
        assert_eq!(warned, 1);
        let told: Vec<&str> = rows_to_tell(&loaded).map(|row| row.key.as_str()).collect();
        assert_eq!(told, ["tasks.max"]);
    }
}
