//! One connection to one broker, kept by one task. [`Connection`] is the handle: it queues requests and gives back
//! [`PendingAnswer`]s. The task (`actor`) connects when there is something to send, writes whole frames in the order of the calls,
//! and matches answers in their order. It ends when every handle is gone and what was sent is answered.

mod actor;
mod decode;
mod desk;
mod exchange;
mod frame;
mod handshake;
mod in_flight;
mod reader;
mod request;
mod response_header;
mod throttle;

#[cfg(test)]
pub(crate) mod stub;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::buffer::BufferPool;
use crate::error::WireError;
use crate::transport::TransportOptions;
use crate::versions::ApiVersions;

pub(crate) use decode::{decode_answer, malformed};
pub(crate) use request::Answer;
use request::{Content, Outgoing};
pub use throttle::THROTTLE_MS_MAX;

/// Requests that may wait for one broker, behind those that are in flight.
pub const WAITING_REQUESTS_MAX: usize = 256;

/// What a connection needs to know.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// Name that the broker's logs, quotas and metrics know us by.
    pub client_id: String,
    /// Bound on the answer to one request, from the moment that it is written.
    pub request_timeout: Duration,
    /// Wait after the first failure to connect.
    pub reconnect_backoff: Duration,
    /// What that wait grows to.
    pub reconnect_backoff_max: Duration,
    /// A connection on which nothing happened for so long is closed. Brokers close theirs after 10 min.
    pub connections_idle_max: Duration,
    /// Requests that were written and not answered yet.
    pub in_flight_max: usize,
    /// An answer that claims to be larger is malformed.
    pub response_bytes_max: usize,
    /// The socket.
    pub transport: TransportOptions,
}

/// What the task tells about itself.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone)]
struct State {
    connected: bool,
    failed_until: Option<Instant>,
    versions: Option<Arc<ApiVersions>>,
}

impl Telling {
    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Handle of a broker's connection. Clones share it.
#[derive(Debug, Clone)]
pub struct Connection {
    address: Arc<str>,
    queue: mpsc::Sender<Outgoing>,
    telling: Arc<Telling>,
}

impl Connection {
    /// Starts the task for `address` (host:port) on `runtime`. It connects with the first request. `seed` decides the jitter of its
    /// reconnects.
    pub fn start(
        address: Arc<str>,
        options: Arc<ConnectionOptions>,
        pool: BufferPool,
        seed: u64,
        runtime: &tokio::runtime::Handle,
    ) -> Connection {
        let (queue, requests) = mpsc::channel(WAITING_REQUESTS_MAX);
        let telling = Arc::new(Telling::default());
        let actor = actor::Actor {
            address: Arc::clone(&address),
            backoff: Backoff::new(options.reconnect_backoff, options.reconnect_backoff_max, seed),
            options,
            pool,
            requests,
            telling: Arc::clone(&telling),
        };
        runtime.spawn(actor.run());
        Connection { address, queue, telling }
    }

    /// host:port.
    pub fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// Whether a connection is open now. Another moment may differ; good for choosing between brokers, not for more.
    pub fn is_connected(&self) -> bool {
        self.telling.state().connected
    }

    /// Whether a request now would first wait for the end of a backoff.
    pub fn is_backing_off(&self) -> bool {
        self.telling.state().failed_until.is_some_and(|until| until > Instant::now())
    }

    /// What the broker said it speaks when we last connected; connects if that never happened.
    pub async fn versions(&self) -> Result<Arc<ApiVersions>, WireError> {
        if let Some(versions) = self.telling.state().versions {
            return Ok(versions);
        }
        // Any request connects; this one changes nothing.
        let answer = self.queue(ApiKey::ApiVersions, handshake::encode).await?.answer().await;
        match self.telling.state().versions {
            Some(versions) => Ok(versions),
            None => Err(answer.err().unwrap_or_else(|| self.ended(ApiKey::ApiVersions))),
        }
    }

    /// Queues prebuilt parts; see [`PendingAnswer`]. Does not wait: a full queue is an error of the answer.
    pub fn send_parts(&self, api: ApiKey, version: i16, parts: Vec<Bytes>) -> PendingAnswer {
        let (request, receiver) = Outgoing::new(api, Content::Parts { version, parts });
        let failed = match self.queue.try_send(request) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Full(_)) => Some(WireError::QueueFull {
                address: Arc::clone(&self.address),
                api,
                waiting_max: WAITING_REQUESTS_MAX,
            }),
            Err(mpsc::error::TrySendError::Closed(_)) => Some(self.ended(api)),
        };
        PendingAnswer { address: Arc::clone(&self.address), api, failed, receiver }
    }

    /// Queues a request that is encoded once the version is known; waits while the queue is full.
    pub(crate) async fn queue(
        &self,
        api: ApiKey,
        encode: impl FnOnce(i16) -> Result<Bytes, WireError> + Send + 'static,
    ) -> Result<Queued, WireError> {
        let (request, receiver) = Outgoing::new(api, Content::Encode(Box::new(encode)));
        self.queue.send(request).await.map_err(|_| self.ended(api))?;
        Ok(Queued { address: Arc::clone(&self.address), api, receiver })
    }

    fn ended(&self, api: ApiKey) -> WireError {
        ended(&self.address, api)
    }
}

fn ended(address: &Arc<str>, api: ApiKey) -> WireError {
    WireError::Closed { address: Arc::clone(address), api, reason: "its task has ended".to_owned() }
}

/// A request in the queue or in flight. Dropping it does no harm: what is written stays whole, and its answer is read and
/// forgotten; what was not written yet never will be.
#[derive(Debug)]
pub(crate) struct Queued {
    address: Arc<str>,
    api: ApiKey,
    receiver: oneshot::Receiver<Result<Answer, WireError>>,
}

impl Queued {
    pub(crate) async fn answer(self) -> Result<Answer, WireError> {
        self.receiver.await.unwrap_or_else(|_| Err(ended(&self.address, self.api)))
    }
}

/// The answer to [`Connection::send_parts`]: its body, behind the header. After a lost connection everything that was queued
/// or in flight fails with a retriable error, and nothing is sent again from here. Dropping it does no harm: a frame is
/// written whole or not at all.
#[derive(Debug)]
pub struct PendingAnswer {
    address: Arc<str>,
    api: ApiKey,
    failed: Option<WireError>,
    receiver: oneshot::Receiver<Result<Answer, WireError>>,
}

impl PendingAnswer {
    /// An answer that is already known to be this failure.
    pub(crate) fn failed(address: Arc<str>, api: ApiKey, error: WireError) -> PendingAnswer {
        let (_, receiver) = oneshot::channel();
        PendingAnswer { address, api, failed: Some(error), receiver }
    }
}

impl Future for PendingAnswer {
    type Output = Result<Bytes, WireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.receiver).poll(context).map(|outcome| match outcome {
            Ok(answer) => answer.map(|answer| answer.body),
            Err(_) => Err(ended(&self.address, self.api)),
        })
    }
}
