//! `tidegate demo`: two clusters in memory, orders, the flow between them, and a check at the end.

mod screen;
mod view;

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::screen::{LogWriter, Screen};
use super::run::{flow_failure, runtime, stop_at_signal};
use super::{DemoArguments, Exit, Failure, logs};
use crate::demo::{self, DemoEvent, DemoFailure, DemoOptions, Outcome};

pub(super) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let screen = Arc::new(Mutex::new(Screen::of_stdout()));
    let for_logs = Arc::clone(&screen);
    logs::start_beside(move || LogWriter::new(Arc::clone(&for_logs)), std::io::stderr().is_terminal());
    let outcome = runtime()?.block_on(play(arguments, &screen)).map_err(demo_failure)?;
    tell_outcome(&outcome, &screen)
}

async fn play(arguments: &DemoArguments, screen: &Mutex<Screen>) -> Result<Outcome, DemoFailure> {
    let options = DemoOptions {
        rate: arguments.rate,
        east_port: arguments.east_port,
        west_port: arguments.west_port,
        http_listen: arguments.http_listen.clone(),
    };
    let (order, stop) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(stop_at_signal(order.clone()));
    if std::io::stdout().is_terminal() {
        tasks.spawn(stop_at_hangup(order.clone()));
    }
    if let Some(seconds) = arguments.seconds {
        tasks.spawn(stop_after(seconds, order));
    }
    let mut tell = |event| show(event, arguments, screen);
    demo::run(&options, stop, &mut tell).await
}

/// A window that is closed ends the demo as Ctrl-C does; so its folder is removed.
async fn stop_at_hangup(order: watch::Sender<bool>) {
    match signal(SignalKind::hangup()) {
        Ok(mut hangup) => {
            hangup.recv().await;
            order.send_replace(true);
        }
        Err(_) => std::future::pending().await,
    }
}

async fn stop_after(seconds: u64, order: watch::Sender<bool>) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    order.send_replace(true);
}

fn show(event: DemoEvent, arguments: &DemoArguments, screen: &Mutex<Screen>) {
    let mut screen = lock(screen);
    match event {
        DemoEvent::Started(introduction) => screen.say(&view::introduction(&introduction, arguments)),
        DemoEvent::Looked(look) => screen.show(&view::block(&look), &view::line(&look)),
        DemoEvent::LookedLast(look) => {
            screen.show(&view::block(&look), &view::line(&look));
            screen.keep();
        }
        DemoEvent::CatchingUp => screen.say("no more orders; waiting until the copy has caught up"),
    }
}

fn tell_outcome(outcome: &Outcome, screen: &Mutex<Screen>) -> Result<(), Failure> {
    let mut screen = lock(screen);
    if !outcome.comparison.is_identical() {
        let late = if outcome.has_caught_up { "" } else { "; the copy did not catch up in time" };
        return Err(Exit::Data.because(anyhow::anyhow!("{}{late}", outcome.comparison)));
    }
    screen.say(&view::conclusion(outcome));
    Ok(())
}

fn demo_failure(failure: DemoFailure) -> Failure {
    match failure {
        DemoFailure::Surroundings(problem) => Exit::Unavailable.because(problem),
        DemoFailure::Configuration(problem) => Exit::Configuration.because(anyhow::anyhow!("{problem}")),
        DemoFailure::Flow(failure) => flow_failure(*failure),
        DemoFailure::Unreadable(problem) => Exit::Data.because(problem),
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
