//! Requests that were written and not answered. A broker answers the requests of one connection in their order, so the next
//! answer belongs to the oldest request or the connection can't be trusted any more. Pure.

use std::collections::VecDeque;

use kafka_protocol::messages::ApiKey;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::WireError;

use super::request::Answer;

/// One written request.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) correlation: i32,
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
    pub(crate) deadline: Instant,
    pub(crate) reply: oneshot::Sender<Result<Answer, WireError>>,
}

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    requests: VecDeque<Flying>,
    next_correlation: i32,
}

impl InFlight {
    /// The number for the next request: 0, 1, … and from the highest to 0 again.
    pub(crate) fn next_correlation(&mut self) -> i32 {
        let correlation = self.next_correlation;
        self.next_correlation = correlation.checked_add(1).unwrap_or(0);
        correlation
    }

    pub(crate) fn push(&mut self, request: Flying) {
        self.requests.push_back(request);
    }

    /// The request that an answer with this correlation id belongs to, or why there is none.
    pub(crate) fn answered(&mut self, correlation: i32) -> Result<Flying, String> {
        match self.requests.front() {
            Some(oldest) if oldest.correlation == correlation => {
                self.requests.pop_front().ok_or_else(String::new)
            }
            Some(oldest) => Err(format!(
                "it answered request {correlation} where the answer to request {} was due",
                oldest.correlation
            )),
            None => Err(format!("it answered request {correlation} though nothing was asked")),
        }
    }

    /// When the oldest has waited too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.requests.front().map(|request| request.deadline)
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Takes all, oldest first.
    pub(crate) fn take(&mut self) -> VecDeque<Flying> {
        std::mem::take(&mut self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(in_flight: &mut InFlight) -> i32 {
        let correlation = in_flight.next_correlation();
        let (reply, _) = oneshot::channel();
        in_flight.push(Flying {
            correlation,
            api: ApiKey::Metadata,
            version: 9,
            deadline: Instant::now(),
            reply,
        });
        correlation
    }

    #[test]
    fn only_the_oldest_may_be_answered() {
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.answered(0).unwrap_err(), "it answered request 0 though nothing was asked");
        assert_eq!((push(&mut in_flight), push(&mut in_flight)), (0, 1));
        assert_eq!(
            in_flight.answered(1).unwrap_err(),
            "it answered request 1 where the answer to request 0 was due"
        );
        assert_eq!(in_flight.answered(0).unwrap().correlation, 0);
        assert_eq!(in_flight.answered(1).unwrap().correlation, 1);
        assert!(in_flight.is_empty());
    }

    #[test]
    fn correlation_ids_start_again_after_the_highest() {
        let mut in_flight = InFlight { next_correlation: i32::MAX, ..InFlight::default() };
        assert_eq!((push(&mut in_flight), push(&mut in_flight)), (i32::MAX, 0));
    }
}
