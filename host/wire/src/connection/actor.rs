//! The task of one broker: unconnected until there is something to send, then connected until that ends, and again.

use std::sync::Arc;

use kafka_protocol::messages::ApiKey;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::buffer::BufferPool;
use crate::error::WireError;
use crate::transport::{ReadHalf, Transport, WriteHalf};
use crate::versions::ApiVersions;

use super::desk::Desk;
use super::exchange::{Ended, Exchange};
use super::handshake::Fresh;
use super::reader::AnswerReader;
use super::request::Outgoing;
use super::{ConnectionOptions, Telling};

pub(crate) struct Actor {
    pub(crate) address: Arc<str>,
    pub(crate) options: Arc<ConnectionOptions>,
    pub(crate) pool: BufferPool,
    pub(crate) requests: mpsc::Receiver<Outgoing>,
    pub(crate) backoff: Backoff,
    pub(crate) telling: Arc<Telling>,
}

/// A connection that is ready for requests.
struct Open {
    reader: AnswerReader,
    read_half: ReadHalf,
    write_half: WriteHalf,
    versions: Arc<ApiVersions>,
}

impl Actor {
    /// Ends when every handle is gone.
    pub(crate) async fn run(mut self) {
        while let Some(request) = self.requests.recv().await {
            // Nobody waits for it any more: no reason to connect.
            if request.reply.is_closed() {
                continue;
            }
            self.until_backoff_ends().await;
            match self.open().await {
                Ok(open) => self.serve(open, request).await,
                Err(error) => {
                    tracing::debug!(address = %self.address, %error, "broker not reached");
                    self.failed();
                    request.fail(error.clone());
                    self.fail_queued(|_| error.clone());
                }
            }
        }
    }

    async fn until_backoff_ends(&self) {
        if let Some(until) = self.telling.state().failed_until {
            tokio::time::sleep_until(until).await;
        }
    }

    async fn open(&self) -> Result<Open, WireError> {
        let transport = Transport::open(&self.address, &self.options.transport).await?;
        let (mut read_half, mut write_half) = transport.split();
        let mut reader = AnswerReader::new(self.pool.clone(), self.options.response_bytes_max);
        let mut fresh = Fresh {
            address: &self.address,
            client_id: &self.options.client_id,
            reader: &mut reader,
            read_half: &mut read_half,
            write_half: &mut write_half,
        };
        let timeout = self.options.request_timeout;
        let versions = match tokio::time::timeout(timeout, fresh.negotiate()).await {
            Ok(versions) => Arc::new(versions?),
            Err(_) => return Err(self.timed_out(ApiKey::ApiVersions)),
        };
        Ok(Open { reader, read_half, write_half, versions })
    }

    async fn serve(&mut self, open: Open, first: Outgoing) {
        tracing::debug!(address = %self.address, "connected");
        self.backoff.succeeded();
        let versions = Arc::clone(&open.versions);
        self.telling.tell(|state| {
            state.connected = true;
            state.failed_until = None;
            state.versions = Some(versions);
        });
        let desk = Desk::default();
        desk.wait_with(first);
        let exchange = Exchange {
            address: &self.address,
            options: &self.options,
            versions: &open.versions,
            requests: &mut self.requests,
            desk: &desk,
        };
        let ended = exchange.serve(open.reader, open.read_half, open.write_half).await;
        tracing::debug!(address = %self.address, ?ended, "connection ended");
        self.telling.tell(|state| state.connected = false);
        self.end(&desk, ended);
    }

    /// After a failure nothing that was asked on the old connection may reach the new one: a request that waited behind a lost
    /// one would overtake it.
    fn end(&mut self, desk: &Desk, ended: Ended) {
        let reason = match ended {
            Ended::Finished | Ended::Idle => return,
            Ended::TimedOut => {
                let timeout_ms = self.options.request_timeout.as_millis();
                format!("an earlier request was not answered within {timeout_ms} ms")
            }
            Ended::Lost(ref reason) => reason.clone(),
        };
        self.failed();
        let address = Arc::clone(&self.address);
        let closed = |api| WireError::Closed { address: Arc::clone(&address), api, reason: reason.clone() };
        let oldest_timed_out = matches!(ended, Ended::TimedOut);
        desk.fail_all(
            |api, oldest| {
                if oldest && oldest_timed_out { self.timed_out(api) } else { closed(api) }
            },
        );
        self.fail_queued(closed);
    }

    fn failed(&mut self) {
        let until = Instant::now() + self.backoff.next_wait();
        self.telling.tell(|state| state.failed_until = Some(until));
    }

    fn fail_queued(&mut self, error: impl Fn(ApiKey) -> WireError) {
        while let Ok(request) = self.requests.try_recv() {
            let api = request.api;
            request.fail(error(api));
        }
    }

    fn timed_out(&self, api: ApiKey) -> WireError {
        WireError::TimedOut {
            address: Arc::clone(&self.address),
            api,
            timeout_ms: self.options.request_timeout.as_millis() as u64,
        }
    }
}
