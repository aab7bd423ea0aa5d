//! Requests and answers on one open connection, until it ends. Writing and reading run side by side in one task: a broker that waits
//! for us to read its answers does not read our requests, so writing alone could wait for ever.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use kafka_protocol::messages::ApiKey;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::WireError;
use crate::transport::{ReadHalf, WriteHalf};
use crate::versions::ApiVersions;

use super::desk::Desk;
use super::frame::Frame;
use super::in_flight::Flying;
use super::reader::{AnswerReader, ReadError};
use super::request::{Answer, Content, Outgoing};
use super::response_header::skip_tagged_fields;
use super::{ConnectionOptions, throttle};

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nobody can send any more and all is answered.
    Finished,
    /// Nothing happened for so long that it was closed, by us or by the broker. No failure.
    Idle,
    /// No answer in time.
    TimedOut,
    /// Anything else.
    Lost(String),
}

/// One open connection.
pub(crate) struct Exchange<'a> {
    pub(crate) address: &'a Arc<str>,
    pub(crate) options: &'a ConnectionOptions,
    pub(crate) versions: &'a ApiVersions,
    pub(crate) requests: &'a mut mpsc::Receiver<Outgoing>,
    pub(crate) desk: &'a Desk,
}

impl Exchange<'_> {
    /// Serves until the end. What is left on the desk is the caller's to fail.
    pub(crate) async fn serve(
        self,
        mut reader: AnswerReader,
        mut read_half: ReadHalf,
        mut write_half: WriteHalf,
    ) -> Ended {
        let Exchange { address, options, versions, requests, desk } = self;
        let writing = Writing { address, options, versions, desk };
        let reading = Reading { address, options, desk };
        tokio::select! {
            ended = writing.run(requests, &mut write_half) => ended,
            ended = reading.run(&mut reader, &mut read_half) => ended,
        }
    }
}

struct Writing<'a> {
    address: &'a Arc<str>,
    options: &'a ConnectionOptions,
    versions: &'a ApiVersions,
    desk: &'a Desk,
}

impl Writing<'_> {
    async fn run(self, requests: &mut mpsc::Receiver<Outgoing>, write_half: &mut WriteHalf) -> Ended {
        loop {
            if self.desk.lock().waiting.is_none() {
                match requests.recv().await {
                    Some(request) => self.desk.wait_with(request),
                    None => {
                        self.until_in_flight(0).await;
                        return Ended::Finished;
                    }
                }
            }
            self.until_in_flight(self.options.in_flight_max.max(1) - 1).await;
            self.until_not_throttled().await;
            let Some(mut frame) = self.next_frame() else { continue };
            if let Err(error) = write_half.write_all_buf(&mut frame).await {
                return Ended::Lost(error.to_string());
            }
        }
    }

    async fn until_in_flight(&self, count_max: usize) {
        while self.desk.lock().in_flight.len() > count_max {
            self.desk.answered.notified().await;
        }
    }

    async fn until_not_throttled(&self) {
        loop {
            let until = self.desk.lock().silent_until;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Turns the waiting request into a frame in flight, or tells its caller why not. From here on the frame is written whole,
    /// whether its caller still waits or not.
    fn next_frame(&self) -> Option<Frame> {
        let mut state = self.desk.lock();
        let request = state.waiting.take()?;
        if request.reply.is_closed() {
            return None;
        }
        let now = Instant::now();
        // A throttled connection is the broker's wish, not slowness: it does not count as waiting.
        if now > request.queued_at.max(state.silent_until) + self.options.request_timeout {
            let error = self.timed_out(request.api);
            drop(state);
            request.fail(error);
            return None;
        }
        let correlation = state.in_flight.next_correlation();
        match self.frame(request.api, request.content, correlation) {
            Ok((version, frame)) => {
                let deadline = now + self.options.request_timeout;
                let Outgoing { api, reply, .. } = request;
                state.in_flight.push(Flying { correlation, api, version, deadline, reply });
                state.active_at = now;
                self.desk.written.notify_one();
                Some(frame)
            }
            Err(error) => {
                let _ = request.reply.send(Err(error));
                None
            }
        }
    }

    fn frame(&self, api: ApiKey, content: Content, correlation: i32) -> Result<(i16, Frame), WireError> {
        let (version, parts) = match content {
            Content::Encode(encode) => {
                let version = self.versions.negotiate(self.address, api)?;
                (version, vec![encode(version)?])
            }
            Content::Parts { version, parts } => {
                self.versions.check(self.address, api, version)?;
                (version, parts)
            }
        };
        match Frame::new(api, version, correlation, &self.options.client_id, parts) {
            Some(frame) => Ok((version, frame)),
            None => {
                let reason = "it is larger than 2 GiB".to_owned();
                Err(WireError::Unwritable { api, version, reason })
            }
        }
    }

    fn timed_out(&self, api: ApiKey) -> WireError {
        WireError::TimedOut {
            address: Arc::clone(self.address),
            api,
            timeout_ms: self.options.request_timeout.as_millis() as u64,
        }
    }
}

struct Reading<'a> {
    address: &'a Arc<str>,
    options: &'a ConnectionOptions,
    desk: &'a Desk,
}

impl Reading<'_> {
    async fn run(self, reader: &mut AnswerReader, read_half: &mut ReadHalf) -> Ended {
        loop {
            let deadline = self.deadline();
            tokio::select! {
                biased;
                answer = reader.next(read_half) => match answer {
                    Ok(answer) => {
                        if let Err(reason) = self.deliver(answer) {
                            return Ended::Lost(reason);
                        }
                    }
                    Err(error) => return self.read_failed(error),
                },
                () = self.desk.written.notified() => {}
                () = tokio::time::sleep_until(deadline) => {
                    if let Some(ended) = self.deadline_passed() {
                        return ended;
                    }
                }
            }
        }
    }

    /// When the oldest request is late, or, with none in flight, when the connection has been idle for too long.
    fn deadline(&self) -> Instant {
        let state = self.desk.lock();
        state.in_flight.deadline().unwrap_or(state.active_at + self.options.connections_idle_max)
    }

    fn deadline_passed(&self) -> Option<Ended> {
        let now = Instant::now();
        let state = self.desk.lock();
        match state.in_flight.deadline() {
            Some(deadline) => (deadline <= now).then_some(Ended::TimedOut),
            None if state.waiting.is_some() => {
                // It waits for the end of a throttle; look again after it.
                drop(state);
                self.touch(now);
                None
            }
            None => (state.active_at + self.options.connections_idle_max <= now).then_some(Ended::Idle),
        }
    }

    fn touch(&self, now: Instant) {
        self.desk.lock().active_at = now;
    }

    fn read_failed(&self, error: ReadError) -> Ended {
        let state = self.desk.lock();
        match error {
            // Brokers close connections that were idle for `connections.max.idle.ms`, and all when they stop.
            ReadError::Closed if state.in_flight.is_empty() && state.waiting.is_none() => Ended::Idle,
            error => Ended::Lost(error.to_string()),
        }
    }

    /// Gives an answer to its caller; an error means that the order of answers is lost.
    fn deliver(&self, mut answer: Bytes) -> Result<(), String> {
        // The reader gives no answer without its correlation id.
        let correlation = answer.get_i32();
        let mut state = self.desk.lock();
        let request = state.in_flight.answered(correlation)?;
        let now = Instant::now();
        state.active_at = now;
        if request.api.response_header_version(request.version) >= 1 {
            skip_tagged_fields(&mut answer).ok_or("an answer ends within its header")?;
        }
        let silence = throttle::wait(request.api, request.version, &answer);
        if silence > Duration::ZERO {
            tracing::debug!(address = %self.address, api = ?request.api, ?silence, "broker asks for silence");
            state.silent_until = state.silent_until.max(now + silence);
        }
        drop(state);
        self.desk.answered.notify_one();
        let Flying { version, reply, .. } = request;
        let _ = reply.send(Ok(Answer { address: Arc::clone(self.address), version, body: answer }));
        Ok(())
    }
}
