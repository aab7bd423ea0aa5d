//! What a copy adds to the way of a record: 1000 records a second, each carrying the time when it was handed to its
//! producer, read at the source and at the target by the same kind of reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use tidegate_tests::{KafkaCluster, end_offsets, eventually, topics};

use crate::contender::{Kind, Running, flow_file};

const RECORDS_PER_SECOND: u64 = 1_000;
const PARTITION_COUNT: i32 = 6;
/// Records of the first seconds warm caches and compilers up and are not counted.
const WARM_UP: Duration = Duration::from_secs(10);
const FIRST_RECORD_DEADLINE: Duration = Duration::from_secs(120);

/// Quantiles in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantiles {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// The same records seen at both ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) at_source: Quantiles,
    pub(crate) at_target: Quantiles,
    pub(crate) record_count: usize,
}

/// Runs one contender for `duration` after its warm-up.
pub(crate) async fn measure(
    kind: Kind,
    duration: Duration,
    source: &KafkaCluster,
    target: &KafkaCluster,
) -> anyhow::Result<Measured> {
    let alias = if kind == Kind::Tidegate { "tglatency" } else { "mmlatency" };
    let topic = format!("latency-{}", kind.key());
    let target_topic = format!("{alias}.{topic}");
    topics::create_topic(source, &topic, PARTITION_COUNT, &[]).await?;
    let directory = tempfile::tempdir()?;
    let file = flow_file(alias, &topic, source, target).write(directory.path())?;
    let mut running = Running::start(kind, &file).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let producer = thread::spawn({
        let (stop, config, topic) = (Arc::clone(&stop), client(source), topic.clone());
        move || send(&config, &topic, start, &stop)
    });
    eventually("the first record on the target", FIRST_RECORD_DEADLINE, async || {
        running.usage()?;
        ensure!(end_offsets(target, &target_topic).await?.values().any(|end| *end > 0), "none is there");
        Ok(())
    })
    .await?;
    // From here on both readers count what was produced after the warm-up.
    let from = start.elapsed() + WARM_UP;
    let until = from + duration;
    let readers = [(source, &topic), (target, &target_topic)].map(|(cluster, topic)| {
        let (config, topic) = (client(cluster), topic.clone());
        thread::spawn(move || read(&config, &topic, start, from, until))
    });
    let mut delays = Vec::new();
    for reader in readers {
        let joined = tokio::task::spawn_blocking(move || reader.join()).await?;
        delays.push(joined.map_err(|_| anyhow!("a reader panicked"))??);
    }
    stop.store(true, Ordering::Relaxed);
    producer.join().map_err(|_| anyhow!("the producer panicked"))??;
    running.stop().await?;
    let [at_source, at_target] = [quantiles(&mut delays[0])?, quantiles(&mut delays[1])?];
    Ok(Measured { at_source, at_target, record_count: delays[1].len() })
}

fn client(cluster: &KafkaCluster) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers());
    config
}

fn send(config: &ClientConfig, topic: &str, start: Instant, stop: &AtomicBool) -> anyhow::Result<()> {
    let producer: ThreadedProducer<DefaultProducerContext> = config.clone().set("linger.ms", "0").create()?;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = start.elapsed().as_micros() as u64 * RECORDS_PER_SECOND / 1_000_000;
        while number < due {
            let mut value = [b'.'; 1024];
            value[..8].copy_from_slice(&(start.elapsed().as_nanos() as u64).to_be_bytes());
            let partition = (number % PARTITION_COUNT as u64) as i32;
            let record = BaseRecord::<'_, (), [u8]>::to(topic).partition(partition).payload(&value[..]);
            producer.send(record).map_err(|(error, _)| error)?;
            number += 1;
        }
        thread::sleep(Duration::from_micros(500));
    }
    Ok(producer.flush(Duration::from_secs(30))?)
}

/// Delays of the records that were produced between two moments.
fn read(
    config: &ClientConfig,
    topic: &str,
    start: Instant,
    from: Duration,
    until: Duration,
) -> anyhow::Result<Vec<Duration>> {
    let consumer: BaseConsumer =
        config.clone().set("group.id", "latency").set("enable.auto.commit", "false").create()?;
    let mut assignment = TopicPartitionList::new();
    for partition in 0..PARTITION_COUNT {
        assignment.add_partition_offset(topic, partition, Offset::End)?;
    }
    consumer.assign(&assignment)?;
    let mut delays = Vec::new();
    // What was produced last needs some time to come.
    while start.elapsed() < until + Duration::from_secs(2) {
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = message?;
        let now = start.elapsed();
        let Some(stamp) = message.payload().and_then(|value| value.first_chunk::<8>()) else { continue };
        let produced = Duration::from_nanos(u64::from_be_bytes(*stamp));
        if (from..until).contains(&produced) {
            delays.push(now.saturating_sub(produced));
        }
    }
    let wanted = (until - from).as_secs() * RECORDS_PER_SECOND;
    ensure!(
        delays.len() as u64 * 100 >= wanted * 95,
        "{} of some {wanted} records of {topic} were seen",
        delays.len()
    );
    Ok(delays)
}

fn quantiles(delays: &mut [Duration]) -> anyhow::Result<Quantiles> {
    ensure!(!delays.is_empty(), "no record was seen");
    delays.sort_unstable();
    let at = |part: f64| delays[((delays.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    Ok(Quantiles { p50_ms: at(0.5), p99_ms: at(0.99) })
}
