//! What the writing and the reading side of a connection share: requests in flight, the one that is next, and two times.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kafka_protocol::messages::ApiKey;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::WireError;

use super::in_flight::InFlight;
use super::request::Outgoing;

/// What writing and reading share. The lock is never held across an await.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    state: Mutex<DeskState>,
    /// A request was written: there is a new deadline.
    pub(super) written: Notify,
    /// A request was answered: there is room.
    pub(super) answered: Notify,
}

#[derive(Debug)]
pub(super) struct DeskState {
    pub(super) in_flight: InFlight,
    /// Taken from the queue, not yet written.
    pub(super) waiting: Option<Outgoing>,
    /// The end of a throttle.
    pub(super) silent_until: Instant,
    /// When something was last sent or received.
    pub(super) active_at: Instant,
}

impl Default for DeskState {
    fn default() -> Self {
        let now = Instant::now();
        DeskState { in_flight: InFlight::default(), waiting: None, silent_until: now, active_at: now }
    }
}

impl Desk {
    pub(super) fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait_with(&self, request: Outgoing) {
        self.lock().waiting = Some(request);
    }

    /// Fails everything that was in flight or waited, oldest first.
    pub(crate) fn fail_all(&self, error: impl Fn(ApiKey, bool) -> WireError) {
        let mut state = self.lock();
        let (flying, waiting) = (state.in_flight.take(), state.waiting.take());
        drop(state);
        for (index, request) in flying.into_iter().enumerate() {
            let _ = request.reply.send(Err(error(request.api, index == 0)));
        }
        if let Some(request) = waiting {
            let api = request.api;
            request.fail(error(api, false));
        }
    }
}
