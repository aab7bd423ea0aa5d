//! Logs by tracing: text or JSON lines on stderr. `TIDEGATE_LOG` (as `RUST_LOG`) sets what is shown.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// What is shown when `TIDEGATE_LOG` is not set: what an operator did or will look for, and all that went wrong.
const DEFAULT_FILTER: &str = "info";

/// What is shown beside a view when `TIDEGATE_LOG` is not set.
const FILTER_BESIDE_VIEW: &str = "warn";

/// Starts logging for this process. A second call changes nothing.
pub(super) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env("TIDEGATE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let is_terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _already_started = match format {
        LogFormat::Text => lines.with_ansi(is_terminal).with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// Starts logging for a process that shows a view: warnings and what is worse, as text, through a writer that knows the
/// view. A second call changes nothing.
pub(super) fn start_beside<W: std::io::Write + 'static>(
    writer: impl Fn() -> W + Send + Sync + 'static,
    is_terminal: bool,
) {
    let filter =
        EnvFilter::try_from_env("TIDEGATE_LOG").unwrap_or_else(|_| EnvFilter::new(FILTER_BESIDE_VIEW));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    let _already_started = lines.with_ansi(is_terminal).with_target(false).try_init();
}
