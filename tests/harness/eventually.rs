//! Waiting for a result instead of sleeping: a condition is asked until it holds or its time is over.

use std::time::{Duration, Instant};

/// Time between two questions. Short, so that a test ends soon after its condition holds; long enough to leave the
/// two cores to what is being waited for.
const ASK_INTERVAL: Duration = Duration::from_millis(25);

/// Asks `condition` until it answers `Ok`, and gives its answer. An `Err` means "not yet" and says why; the last one
/// is told when `deadline` has passed.
///
/// # Errors
/// What was waited for, how long, and the condition's last reason.
pub async fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut condition: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        let reason = match condition().await {
            Ok(value) => return Ok(value),
            Err(reason) => reason,
        };
        if start.elapsed() >= deadline {
            return Err(reason.context(format!("waited {} s for: {what}", deadline.as_secs())));
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}
