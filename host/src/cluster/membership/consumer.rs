//! The member itself: an rdkafka consumer on a thread of its own. The only place that uses rdkafka.
//!
//! It never fetches: partitions are paused as soon as they are assigned, and its queues are tiny for the moment before
//! that. It never commits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use super::verdict::{Problem, ends_membership};
use super::{Leaving, MembershipEvent, MembershipOptions};
use crate::names::Slot;

/// The thread looks at least so often whether it shall leave. Rebalances wake it at once.
const POLL_MS: u64 = 50;

/// A member of the new protocol hears of changes in answers to its heartbeats, and the broker asks for one every 5 s. A
/// member without slots asks so often …
const WAITING_HEARTBEAT_MS: u64 = 200;

/// … for so long; a group may have more members than slots.
const WAITING_MS_MAX: u64 = 15_000;

/// A member with slots asks so often, so that a newcomer gets its share soon. One small request a second.
const HEARTBEAT_MS: u64 = 1_000;

/// In the classic protocol a member shares the slots out, by the metadata of the positions topic that it asks for at that
/// moment. An answer with an error (a leader that is being elected is enough) counts as a topic without partitions: nobody
/// gets a slot, and librdkafka never asks again, because nothing changes any more for it. So a member whose share is empty
/// leaves and joins anew after so long …
const EMPTY_SHARE_MS: u64 = 1_000;

/// … and then after twice as long each time, up to this: a group may have more members than slots, and each join makes the
/// others share out anew.
const EMPTY_SHARE_MS_MAX: u64 = 300_000;

/// How the group is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// KIP-848.
    Consumer,
    /// The classic one, cooperative.
    Classic,
}

pub(super) struct ConsumerTask {
    pub(super) options: MembershipOptions,
    pub(super) protocol: Protocol,
    pub(super) events: mpsc::Sender<MembershipEvent>,
    pub(super) leaving: Arc<Leaving>,
}

/// How a member ended; without a problem it left because it was told to.
pub(super) struct ConsumerEnd {
    pub(super) problem: Option<Problem>,
    pub(super) had_slots: bool,
}

/// Joins and stays until told to leave or until something ends it.
pub(super) async fn run(task: ConsumerTask) -> ConsumerEnd {
    let (end, ended) = oneshot::channel();
    let runtime = Handle::current();
    let name = format!("group {}", task.options.group.id);
    let spawned = std::thread::Builder::new().name(name).spawn(move || {
        // The receiver is only gone when the runtime is.
        let _ = end.send(member(&task, runtime));
    });
    let failed =
        |reason: String| ConsumerEnd { problem: Some(Problem { code: None, reason }), had_slots: false };
    match spawned {
        Err(error) => failed(format!("could not start a thread: {error}")),
        Ok(_) => ended.await.unwrap_or_else(|_| failed("its thread ended unexpectedly".to_owned())),
    }
}

fn member(task: &ConsumerTask, runtime: Handle) -> ConsumerEnd {
    let slots = Slots {
        runtime,
        events: task.events.clone(),
        leaving: Arc::clone(&task.leaving),
        event_wait_max: task.options.revoke_wait_max(),
        had_slots: AtomicBool::new(false),
        problem: Mutex::new(None),
        held: Mutex::new(Vec::new()),
        empty_since: Mutex::new(None),
        quiet: AtomicBool::new(false),
    };
    let consumer: BaseConsumer<Slots> =
        match client_config(&task.options, task.protocol).create_with_context(slots) {
            Ok(consumer) => consumer,
            Err(error) => {
                let problem = Problem { code: error.rdkafka_error_code(), reason: error.to_string() };
                return ConsumerEnd { problem: Some(problem), had_slots: false };
            }
        };
    debug!(group = task.options.group.id, protocol = ?task.protocol, "joining");
    let problem = consume(&consumer, task);
    let slots = Arc::clone(consumer.context());
    if problem.is_some() {
        slots.lose_all();
    }
    slots.be_quiet();
    // Leaves the group and waits for the broker's answer.
    drop(consumer);
    ConsumerEnd { problem, had_slots: slots.had_slots.load(Ordering::Acquire) }
}

/// Polls until told to leave (None) or until something ends it.
fn consume(consumer: &BaseConsumer<Slots>, task: &ConsumerTask) -> Option<Problem> {
    let topics = [task.options.positions_topic.as_str()];
    let joined_at = Instant::now();
    let mut asked_at = joined_at;
    let mut empty_share_ms = EMPTY_SHARE_MS;
    if let Err(error) = consumer.subscribe(&topics) {
        return Some(Problem { code: error.rdkafka_error_code(), reason: error.to_string() });
    }
    while !task.leaving.is_set() && !task.events.is_closed() {
        let is_waiting =
            joined_at.elapsed() < Duration::from_millis(WAITING_MS_MAX) && !consumer.context().has_slots();
        let interval_ms = if is_waiting { WAITING_HEARTBEAT_MS } else { HEARTBEAT_MS };
        if task.protocol == Protocol::Consumer && asked_at.elapsed() >= Duration::from_millis(interval_ms) {
            // Subscribing to the same again changes nothing and makes librdkafka send its next heartbeat at once
            // (rd_kafka_cgrp_consumer_expedite_next_heartbeat); there is no other way to ask for one.
            asked_at = Instant::now();
            if let Err(error) = consumer.subscribe(&topics) {
                consumer.context().note(&error);
            }
        }
        if consumer.context().has_slots() {
            empty_share_ms = EMPTY_SHARE_MS;
        } else if task.protocol == Protocol::Classic && consumer.context().takes_empty_share(empty_share_ms) {
            debug!(waited_ms = empty_share_ms, "the group gave no slot, joining anew");
            empty_share_ms = (empty_share_ms * 2).min(EMPTY_SHARE_MS_MAX);
            consumer.unsubscribe();
            if let Err(error) = consumer.subscribe(&topics) {
                consumer.context().note(&error);
            }
        }
        // Records that came before the pause are nobody's business.
        if let Some(Err(error)) = consumer.poll(Duration::from_millis(POLL_MS)) {
            consumer.context().note(&error);
        }
        if let Some((code, reason)) = consumer.client().fatal_error() {
            return Some(Problem { code: Some(code), reason });
        }
        if let Some(problem) = consumer.context().take_problem() {
            return Some(problem);
        }
    }
    None
}

/// Bounds of librdkafka's settings, in milliseconds. A value beyond them, which Kafka's own clients take, would end the
/// membership before it began; it counts as the bound.
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

fn milliseconds(duration: Duration, least: u64, most: u64) -> String {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(least, most).to_string()
}

fn buffer_bytes(bytes: Option<usize>) -> String {
    /// librdkafka's bound.
    const BYTES_MAX: usize = 100_000_000;
    bytes.unwrap_or(0).min(BYTES_MAX).to_string()
}

fn client_config(options: &MembershipOptions, protocol: Protocol) -> ClientConfig {
    let group = &options.group;
    let connection = &group.connection;
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", options.bootstrap_servers.join(","))
        .set("client.id", options.node.client_id(&options.flow))
        .set("group.id", &group.id)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "latest")
        .set("allow.auto.create.topics", "false")
        .set("max.poll.interval.ms", milliseconds(options.rebalance_timeout(), 1, DAY_MS))
        .set("topic.metadata.refresh.interval.ms", milliseconds(connection.metadata_max_age, 1, HOUR_MS))
        .set("socket.timeout.ms", milliseconds(connection.request_timeout, 10, 300_000))
        .set(
            "socket.connection.setup.timeout.ms",
            milliseconds(connection.connection_setup_timeout, 1_000, DAY_MS),
        )
        .set("reconnect.backoff.ms", milliseconds(connection.reconnect_backoff, 0, HOUR_MS))
        .set("reconnect.backoff.max.ms", milliseconds(connection.reconnect_backoff_max, 0, HOUR_MS))
        .set("retry.backoff.ms", milliseconds(connection.retry_backoff, 1, 300_000))
        .set("retry.backoff.max.ms", milliseconds(connection.retry_backoff_max, 1, 300_000))
        // 0 is never here.
        .set(
            "connections.max.idle.ms",
            connection.connections_idle_max.map_or("0".to_owned(), |idle| milliseconds(idle, 1, DAY_MS)),
        )
        // 0 leaves it to the system.
        .set("socket.send.buffer.bytes", buffer_bytes(connection.send_buffer_bytes))
        .set("socket.receive.buffer.bytes", buffer_bytes(connection.receive_buffer_bytes))
        .set("queued.min.messages", "1")
        .set("queued.max.messages.kbytes", "1")
        .set("fetch.message.max.bytes", "1")
        .set("statistics.interval.ms", "0");
    match protocol {
        // Session and heartbeat are the broker's decision here; librdkafka refuses to be told.
        Protocol::Consumer => config.set("group.protocol", "consumer"),
        Protocol::Classic => config
            .set("group.protocol", "classic")
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", milliseconds(group.session_timeout, 1, HOUR_MS))
            .set("heartbeat.interval.ms", milliseconds(group.heartbeat_interval, 1, HOUR_MS)),
    };
    config
}

/// The consumer's context: turns rebalances into events, on the consumer's thread.
struct Slots {
    runtime: Handle,
    events: mpsc::Sender<MembershipEvent>,
    leaving: Arc<Leaving>,
    event_wait_max: Duration,
    had_slots: AtomicBool,
    problem: Mutex<Option<Problem>>,
    /// What was assigned and not yet revoked or lost.
    held: Mutex<Vec<Slot>>,
    /// When a share came that left the member without a slot.
    empty_since: Mutex<Option<Instant>>,
    /// The consumer is being closed: rebalances are not told any more.
    quiet: AtomicBool,
}

impl ClientContext for Slots {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        debug!(target: "tidegate::cluster::librdkafka", ?level, facility, "{message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        debug!(%error, reason, "the group's client reports an error");
        self.note(&error);
    }
}

impl ConsumerContext for Slots {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(partitions) = rebalance {
            self.revoke(slots_of(partitions), consumer.assignment_lost());
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => {
                if let Err(error) = consumer.pause(partitions) {
                    warn!(%error, "could not pause a slot's partition; some of it will be read for nothing");
                }
                self.assign(slots_of(partitions));
            }
            Rebalance::Revoke(_) => {}
            Rebalance::Error(error) => self.note(error),
        }
    }
}

impl Slots {
    fn assign(&self, slots: Vec<Slot>) {
        if slots.is_empty() && !self.has_slots() {
            lock(&self.empty_since).get_or_insert_with(Instant::now);
        }
        if slots.is_empty() || self.is_quiet() {
            return;
        }
        *lock(&self.empty_since) = None;
        self.had_slots.store(true, Ordering::Release);
        lock(&self.held).extend(&slots);
        info!(slots = slots.len(), "slots assigned");
        if !self.send(MembershipEvent::Assigned(slots)) {
            self.end(None, "the flow took no events for too long".to_owned());
        }
    }

    fn has_slots(&self) -> bool {
        !lock(&self.held).is_empty()
    }

    /// Whether the last share was empty and is so old; then it is forgotten.
    fn takes_empty_share(&self, age_ms: u64) -> bool {
        let mut since = lock(&self.empty_since);
        let is_due = since.is_some_and(|since| since.elapsed() >= Duration::from_millis(age_ms));
        if is_due {
            *since = None;
        }
        is_due
    }

    fn revoke(&self, slots: Vec<Slot>, is_lost: bool) {
        lock(&self.held).retain(|slot| !slots.contains(slot));
        if slots.is_empty() || self.is_quiet() {
            return;
        }
        if is_lost {
            warn!(slots = slots.len(), "slots lost");
            self.send(MembershipEvent::Lost(slots));
            return;
        }
        info!(slots = slots.len(), "slots revoked");
        let (done, waiting) = oneshot::channel();
        if !self.send(MembershipEvent::Revoked { slots, done }) {
            return;
        }
        let wait = self.event_wait_max;
        self.runtime.block_on(async {
            tokio::select! {
                _ = waiting => {}
                () = self.leaving.wait() => {}
                () = tokio::time::sleep(wait) => {
                    warn!(wait_ms = wait.as_millis(), "slots were not settled in time and are given away as they are");
                }
            }
        });
    }

    /// The member is dead: whatever it held is not ours any more.
    fn lose_all(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        if !held.is_empty() {
            warn!(slots = held.len(), "slots lost");
            self.send(MembershipEvent::Lost(held));
        }
    }

    /// From now on rebalances are not told.
    fn be_quiet(&self) {
        self.quiet.store(true, Ordering::Release);
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire) || self.leaving.is_set()
    }

    /// False when nobody took it.
    fn send(&self, event: MembershipEvent) -> bool {
        let wait = self.event_wait_max;
        self.runtime.block_on(async {
            tokio::select! {
                sent = self.events.send(event) => sent.is_ok(),
                () = self.leaving.wait() => false,
                () = tokio::time::sleep(wait) => false,
            }
        })
    }

    /// Keeps an error that the library does not get over by itself.
    fn note(&self, error: &KafkaError) {
        let Some(code) = error.rdkafka_error_code() else { return };
        if ends_membership(code) {
            self.end(Some(code), code.to_string());
        } else {
            debug!(%error, "the group's client goes on after an error");
        }
    }

    fn end(&self, code: Option<RDKafkaErrorCode>, reason: String) {
        lock(&self.problem).get_or_insert(Problem { code, reason });
    }

    fn take_problem(&self) -> Option<Problem> {
        lock(&self.problem).take()
    }
}

fn slots_of(partitions: &TopicPartitionList) -> Vec<Slot> {
    partitions.elements().iter().map(|element| Slot(element.partition())).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeIdentity;
    use crate::config::{ConnectionConfig, GroupConfig};
    use crate::names::{ClusterAlias, FlowName, TopicName};

    fn options(cache_dir: &std::path::Path) -> MembershipOptions {
        MembershipOptions {
            bootstrap_servers: vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()],
            flow: FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") },
            node: Arc::new(NodeIdentity::acquire(cache_dir).unwrap()),
            group: GroupConfig {
                id: "A-mm2".to_owned(),
                session_timeout: Duration::from_secs(10),
                heartbeat_interval: Duration::from_secs(3),
                rebalance_timeout: Duration::from_secs(5),
                connection: ConnectionConfig::default(),
            },
            positions_topic: TopicName::parse("mm2-offsets.A.internal").unwrap(),
            wait_for_mirror_maker: false,
        }
    }

    #[test]
    fn a_member_is_told_what_its_protocol_takes() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        let check = |protocol: Protocol, key: &str, expected: Option<&str>| {
            assert_eq!(client_config(&options, protocol).get(key), expected, "{protocol:?} {key}");
        };
        check(Protocol::Classic, "session.timeout.ms", Some("10000"));
        check(Protocol::Consumer, "session.timeout.ms", None);
        check(Protocol::Classic, "partition.assignment.strategy", Some("cooperative-sticky"));
        check(Protocol::Consumer, "partition.assignment.strategy", None);
        check(Protocol::Consumer, "bootstrap.servers", Some("127.0.0.1:1,127.0.0.1:2"));
        check(Protocol::Consumer, "socket.timeout.ms", Some("30000"));
        check(Protocol::Consumer, "retry.backoff.ms", Some("100"));
        check(Protocol::Consumer, "retry.backoff.max.ms", Some("1000"));
        check(Protocol::Consumer, "connections.max.idle.ms", Some("540000"));
        check(Protocol::Consumer, "socket.send.buffer.bytes", Some("0"));
        // librdkafka wants it no shorter than the session.
        check(Protocol::Classic, "max.poll.interval.ms", Some("10000"));
    }

    #[test]
    fn librdkafka_takes_every_bound() {
        let folder = tempfile::tempdir().unwrap();
        let create = |time: Duration, bytes: usize, idle: Option<Duration>| {
            let connection = ConnectionConfig {
                request_timeout: time,
                metadata_max_age: time,
                reconnect_backoff: time,
                reconnect_backoff_max: time,
                retry_backoff: time,
                retry_backoff_max: time,
                connections_idle_max: idle,
                connection_setup_timeout: time,
                send_buffer_bytes: Some(bytes),
                receive_buffer_bytes: Some(bytes),
            };
            let mut options = options(folder.path());
            options.group = GroupConfig {
                session_timeout: time,
                heartbeat_interval: time,
                rebalance_timeout: time,
                connection,
                ..options.group
            };
            for protocol in [Protocol::Consumer, Protocol::Classic] {
                let config = client_config(&options, protocol);
                let created: Result<BaseConsumer, KafkaError> = config.create();
                assert!(created.is_ok(), "{protocol:?} {time:?}: {:?}", created.err());
                assert_eq!(config.get("connections.max.idle.ms") == Some("0"), idle.is_none());
            }
        };
        let (least, most) = (Duration::ZERO, Duration::from_secs(100 * 366 * 86_400));
        create(least, 0, Some(least));
        create(most, usize::MAX, Some(most));
        create(Duration::from_secs(1), 1, None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_member_that_never_met_a_broker_leaves_when_told() {
        for protocol in [Protocol::Consumer, Protocol::Classic] {
            let folder = tempfile::tempdir().unwrap();
            let (events, mut received) = mpsc::channel(1);
            let leaving = Arc::new(Leaving::default());
            let task = ConsumerTask {
                options: options(folder.path()),
                protocol,
                events,
                leaving: Arc::clone(&leaving),
            };
            let member = tokio::spawn(run(task));
            leaving.set();
            let end = member.await.unwrap();
            // A setting that librdkafka refuses would show here.
            assert_eq!(end.problem, None, "{protocol:?}");
            assert!(!end.had_slots);
            assert!(received.recv().await.is_none());
        }
    }
}
