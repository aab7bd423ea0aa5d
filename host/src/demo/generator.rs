//! The orders generator: a producer over tidegate-wire, so many orders a second.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tidegate_wire::ApiKey;
use tidegate_wire::batch::{BatchBuilder, Codec};
use tidegate_wire::client::{Client, ClientOptions, NodeId};
use tidegate_wire::error::WireError;
use tidegate_wire::metadata::TopicSelection;
use tidegate_wire::produce::{
    BatchSource, CallId, Lane, OutBatch, ProduceEvent, Producer, ProducerOptions, init_producer_id,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::order::Order;
use super::{PARTITIONS, TOPIC, stopped};
use crate::offsets::murmur2;
use crate::status::now_ms;

/// Orders are made in steps of this length, in milliseconds.
const STEP_MS: u64 = 20;

/// Orders that wait to be sent. When the cluster is slower than the rate, fewer are made.
const WAITING_COUNT_MAX: usize = 50_000;

/// Records in a batch; what is built in one go.
const BATCH_RECORDS_MAX: i32 = 1_000;

/// How long the last orders may take to be acknowledged, in milliseconds.
const SETTLE_MS_MAX: u64 = 5_000;

/// A record that waits.
struct Waiting {
    order: Order,
    made_at_ms: i64,
}

/// Orders that wait to be sent.
struct Shelf {
    /// By partition, oldest first. The producer's lanes have the same numbers: they were added in this order.
    lanes: Vec<VecDeque<Waiting>>,
    builder: BatchBuilder,
    next_tag: u64,
    /// Batches that were given to the producer and are not acknowledged.
    unacknowledged: usize,
    problem: Option<anyhow::Error>,
}

/// Makes orders and sends them.
pub(super) struct Generator {
    client: Client,
    producer: Producer,
    lanes: Vec<Lane>,
    shelf: Shelf,
    answers: JoinSet<(CallId, Result<Bytes, WireError>)>,
    made_count: u64,
}

impl Generator {
    /// Produces until `stop` says so and all is acknowledged; gives the number of orders.
    pub(super) async fn run(
        bootstrap: String,
        rate: u32,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<u64> {
        let work = async {
            let mut generator = Self::connect(bootstrap).await?;
            generator.produce(rate, stop).await?;
            generator.settle().await?;
            anyhow::Ok(generator.made_count)
        };
        work.await.context("the orders generator failed")
    }

    async fn connect(bootstrap: String) -> anyhow::Result<Self> {
        let client = Client::connect(ClientOptions {
            bootstrap_servers: vec![bootstrap],
            client_id: "orders-generator".to_owned(),
            ..ClientOptions::default()
        })
        .await?;
        let identity = init_producer_id(&client).await?;
        let mut producer = Producer::new(identity, ProducerOptions::default());
        let lanes = (0..PARTITIONS).map(|partition| producer.add_lane(Arc::from(TOPIC), partition)).collect();
        let shelf = Shelf {
            lanes: (0..PARTITIONS).map(|_| VecDeque::new()).collect(),
            builder: BatchBuilder::new(),
            next_tag: 0,
            unacknowledged: 0,
            problem: None,
        };
        let mut generator = Self { client, producer, lanes, shelf, answers: JoinSet::new(), made_count: 0 };
        generator.find_leaders().await?;
        Ok(generator)
    }

    async fn find_leaders(&mut self) -> anyhow::Result<()> {
        let topics = TopicSelection::Named(vec![Arc::from(TOPIC)]);
        let metadata = self.client.refresh_metadata(topics).await?;
        let topic = metadata.topics.get(TOPIC).with_context(|| format!("topic \"{TOPIC}\" is gone"))?;
        for (partition, lane) in (0..).zip(&self.lanes) {
            let leader = topic.partitions.get(&partition).and_then(|partition| partition.leader);
            self.producer.set_leader(*lane, leader);
        }
        Ok(())
    }

    async fn produce(&mut self, rate: u32, mut stop: watch::Receiver<bool>) -> anyhow::Result<()> {
        let mut steps = tokio::time::interval(Duration::from_millis(STEP_MS));
        steps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut pace = Pace::new(rate, Instant::now());
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return Ok(()),
                Some(answered) = self.answers.join_next() => self.take(answered).await?,
                now = steps.tick() => self.make(pace.due(now)),
            }
            self.send()?;
        }
    }

    /// Waits until nothing is left unsent or unacknowledged.
    async fn settle(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_millis(SETTLE_MS_MAX);
        let mut steps = tokio::time::interval(Duration::from_millis(STEP_MS));
        loop {
            self.send()?;
            if self.shelf.waiting_count() == 0 && self.shelf.unacknowledged == 0 {
                return Ok(());
            }
            tokio::select! {
                Some(answered) = self.answers.join_next() => self.take(answered).await?,
                // A lane that waits for its next try has no answer to come.
                _ = steps.tick() => {}
                () = tokio::time::sleep_until(deadline) => {
                    anyhow::bail!("the last orders were not acknowledged within {SETTLE_MS_MAX} ms")
                }
            }
        }
    }

    fn make(&mut self, due: u64) {
        for _ in 0..due {
            if self.shelf.waiting_count() >= WAITING_COUNT_MAX {
                return;
            }
            self.made_count += 1;
            self.shelf.put(Order::numbered(self.made_count));
        }
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let nodes: Vec<NodeId> = self.producer.nodes_ready(std::time::Instant::now()).collect();
        for node in nodes {
            while let Some(call) =
                self.producer.next_request(node, std::time::Instant::now(), &mut self.shelf)
            {
                let id = call.id;
                let answer = self.client.send_parts(node, ApiKey::Produce, call.version, call.parts);
                self.answers.spawn(async move { (id, answer.await) });
            }
        }
        self.shelf.problem.take().map_or(Ok(()), Err)
    }

    async fn take(
        &mut self,
        answered: Result<(CallId, Result<Bytes, WireError>), tokio::task::JoinError>,
    ) -> anyhow::Result<()> {
        let (call, answer) = answered?;
        let mut events = Vec::new();
        self.producer.on_answer(call, answer, std::time::Instant::now(), &mut events);
        for event in events {
            match event {
                ProduceEvent::Acked { .. } => self.shelf.unacknowledged -= 1,
                ProduceEvent::RefreshMetadata { .. } => self.find_leaders().await?,
                ProduceEvent::Failed { error, message, .. } => {
                    anyhow::bail!("cluster east refused orders: {error:?} {}", message.unwrap_or_default())
                }
                ProduceEvent::IdentityExhausted { .. } => {
                    let identity = init_producer_id(&self.client).await?;
                    self.producer.set_identity(identity);
                }
                ProduceEvent::Retrying { .. }
                | ProduceEvent::EpochBumped { .. }
                | ProduceEvent::BadAnswer { .. } => {}
            }
        }
        Ok(())
    }
}

impl Shelf {
    fn waiting_count(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    /// Puts an order where Kafka's own partitioner would: orders of one key stay in order.
    fn put(&mut self, order: Order) {
        let hash = murmur2(order.order.as_bytes()) & 0x7fff_ffff;
        let lane = hash as usize % self.lanes.len();
        self.lanes[lane].push_back(Waiting { order, made_at_ms: now_ms() });
    }

    fn build(&mut self, lane: usize, bytes_max: usize) -> anyhow::Result<Option<OutBatch>> {
        let Some(waiting) = self.lanes.get_mut(lane).filter(|waiting| !waiting.is_empty()) else {
            return Ok(None);
        };
        // Not compressed: so every client can look inside, also one without codecs.
        self.builder.start(Codec::None);
        // Half of what fits is left free, so that the last record may be of any size; one goes in any case.
        let has_room = |builder: &BatchBuilder| {
            let count = builder.record_count();
            count == 0 || (count < BATCH_RECORDS_MAX && builder.uncompressed_bytes() < bytes_max / 2)
        };
        while has_room(&self.builder) {
            let Some(Waiting { order, made_at_ms }) = waiting.pop_front() else { break };
            let headers: [(&[u8], Option<&[u8]>); 2] =
                [(b"content-type", Some(b"application/json")), (b"channel", Some(order.channel.as_bytes()))];
            self.builder.push_parts(Some(order.order.as_bytes()), Some(&order.json()?), &headers, made_at_ms);
        }
        let built = self.builder.finish()?;
        self.next_tag += 1;
        self.unacknowledged += 1;
        Ok(Some(OutBatch { header: built.header, payload: built.payload, tag: self.next_tag }))
    }
}

impl BatchSource for Shelf {
    fn next(&mut self, lane: Lane, bytes_max: usize) -> Option<OutBatch> {
        self.build(lane.0, bytes_max).unwrap_or_else(|problem| {
            self.problem = Some(problem);
            None
        })
    }
}

/// How many orders are due. The first at once, so that there is something to copy.
#[derive(Debug)]
struct Pace {
    rate: u32,
    started: Instant,
    given: u64,
}

impl Pace {
    fn new(rate: u32, started: Instant) -> Self {
        Self { rate, started, given: 0 }
    }

    fn due(&mut self, now: Instant) -> u64 {
        let elapsed_ms = (now - self.started).as_millis();
        let total =
            u64::try_from(elapsed_ms * u128::from(self.rate) / 1_000).unwrap_or(u64::MAX).saturating_add(1);
        let due = total.saturating_sub(self.given);
        self.given = self.given.max(total);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_order_comes_at_once_and_then_so_many_a_second() {
        let start = Instant::now();
        let mut pace = Pace::new(50, start);
        let at = |ms| start + Duration::from_millis(ms);
        let due: Vec<u64> = [0, 10, 20, 1_000, 1_000, 3_000].into_iter().map(|ms| pace.due(at(ms))).collect();
        assert_eq!(due, [1, 0, 1, 49, 0, 100]);
    }

    #[test]
    fn a_slow_rate_is_kept_too() {
        let start = Instant::now();
        let mut pace = Pace::new(1, start);
        let total: u64 = (0..=500).map(|step| pace.due(start + Duration::from_millis(step * STEP_MS))).sum();
        assert_eq!(total, 11);
    }
}
