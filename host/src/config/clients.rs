//! Reads the settings of a flow's clients from their layers.

use std::time::Duration;

use super::client_config::{
    AdminClientConfig, Compression, ConnectionConfig, Isolation, OffsetReset, REQUEST_BYTES_MAX,
    SourceClientConfig, TargetClientConfig,
};
use super::layers::{End, FlowReader, Layer};
use super::report::Fate;
use super::values;

pub(super) fn source_client(reader: &mut FlowReader<'_>) -> SourceClientConfig {
    const ISOLATIONS: [(&str, Isolation); 2] =
        [("read_uncommitted", Isolation::ReadUncommitted), ("read_committed", Isolation::ReadCommitted)];
    let layer = Layer::Consumer;
    SourceClientConfig {
        client_id: client_id(reader, layer, "replication-consumer"),
        fetch_min_bytes: reader.int(layer, "fetch.min.bytes", 0, 1),
        fetch_max_bytes: reader.int(layer, "fetch.max.bytes", 1, 52_428_800),
        fetch_max_wait: milliseconds(reader, layer, "fetch.max.wait.ms", 0, 500),
        max_partition_fetch_bytes: reader.int(layer, "max.partition.fetch.bytes", 1, 1_048_576),
        auto_offset_reset: auto_offset_reset(reader),
        isolation: reader.word(layer, "isolation.level", &ISOLATIONS, Isolation::ReadUncommitted),
        connection: connection(reader, layer),
    }
}

fn auto_offset_reset(reader: &mut FlowReader<'_>) -> OffsetReset {
    const NAME: &str = "auto.offset.reset";
    const WORDS: [(&str, OffsetReset); 3] =
        [("earliest", OffsetReset::Earliest), ("latest", OffsetReset::Latest), ("none", OffsetReset::None)];
    match reader.find(Layer::Consumer, NAME) {
        // KIP-1106.
        Some(found) if values::trim(&found.value).to_ascii_lowercase().starts_with("by_duration") => {
            let text = "by_duration is not yet honoured; write earliest, latest or none";
            reader.settings.refuse(&found.key, text);
            OffsetReset::Earliest
        }
        _ => reader.word(Layer::Consumer, NAME, &WORDS, OffsetReset::Earliest),
    }
}

pub(super) fn target_client(reader: &mut FlowReader<'_>) -> TargetClientConfig {
    let layer = Layer::Producer;
    let connection = connection(reader, layer);
    let batch_bytes_max = batch_bytes_max(reader);
    TargetClientConfig {
        client_id: client_id(reader, layer, "replication-producer"),
        batch_bytes_max,
        max_request_bytes: batch_bytes_max.unwrap_or(0).max(REQUEST_BYTES_MAX),
        compression: compression(reader),
        acks_timeout: connection.request_timeout,
        connection,
    }
}

fn batch_bytes_max(reader: &mut FlowReader<'_>) -> Option<usize> {
    /// A smaller bound than this can't hold a batch's header and a small record.
    const BYTES_MIN: i64 = 1_024;
    let keys = Layer::Producer.keys(&reader.flow, "max.request.size");
    let number = reader.number(Layer::Producer, "max.request.size", BYTES_MIN, i32::MAX.into())?;
    let key = keys.iter().find(|key| reader.settings.peek(key).is_some())?;
    reader.settings.judge(
        key,
        Fate::Mapped,
        "batches larger than this are split, waiting ones are merged up to it",
    );
    usize::try_from(number).ok()
}

fn compression(reader: &mut FlowReader<'_>) -> Option<Compression> {
    const CODECS: [(&str, Option<Compression>); 5] = [
        ("none", Some(Compression::None)),
        ("gzip", Some(Compression::Gzip)),
        ("snappy", Some(Compression::Snappy)),
        ("lz4", Some(Compression::Lz4)),
        ("zstd", Some(Compression::Zstd)),
    ];
    reader.word(Layer::Producer, "compression.type", &CODECS, None)
}

pub(super) fn admin_client(reader: &mut FlowReader<'_>, end: End) -> AdminClientConfig {
    let layer = Layer::Admin(end);
    let role = format!("replication-{}-admin", end.word());
    AdminClientConfig { client_id: client_id(reader, layer, &role), connection: connection(reader, layer) }
}

/// MirrorMaker 2's form, `[<own id>|]S->T|<connector>|<role>`.
fn client_id(reader: &mut FlowReader<'_>, layer: Layer, role: &str) -> String {
    let name = format!("{}|tidegate|{role}", reader.flow);
    match reader.find(layer, "client.id") {
        Some(own) if !own.value.trim().is_empty() => format!("{}|{name}", own.value.trim()),
        _ => name,
    }
}

pub(super) fn connection(reader: &mut FlowReader<'_>, layer: Layer) -> ConnectionConfig {
    let request_timeout_ms = if layer == Layer::Worker { 40_000 } else { 30_000 };
    let idle_ms = if matches!(layer, Layer::Admin(_)) { 300_000 } else { 540_000 };
    let reconnect_backoff = milliseconds(reader, layer, "reconnect.backoff.ms", 0, 50);
    let (retry_backoff, retry_backoff_max) = retry_backoff(reader, layer);
    ConnectionConfig {
        request_timeout: milliseconds(reader, layer, "request.timeout.ms", 1, request_timeout_ms),
        metadata_max_age: milliseconds(reader, layer, "metadata.max.age.ms", 0, 300_000),
        reconnect_backoff,
        // As Kafka's clients: a longest wait below the first one counts as the first.
        reconnect_backoff_max: milliseconds(reader, layer, "reconnect.backoff.max.ms", 0, 1_000)
            .max(reconnect_backoff),
        retry_backoff,
        retry_backoff_max,
        connections_idle_max: match reader.number(layer, "connections.max.idle.ms", -1, MILLISECONDS_MAX) {
            Some(milliseconds) => u64::try_from(milliseconds).ok().map(Duration::from_millis),
            None => Some(Duration::from_millis(idle_ms)),
        },
        connection_setup_timeout: milliseconds(
            reader,
            layer,
            "socket.connection.setup.timeout.ms",
            1,
            10_000,
        ),
        send_buffer_bytes: buffer_bytes(reader, layer, "send.buffer.bytes"),
        receive_buffer_bytes: buffer_bytes(reader, layer, "receive.buffer.bytes"),
    }
}

/// The reader asks again in a rhythm of its own, the control loop in its next round.
fn retry_backoff(reader: &mut FlowReader<'_>, layer: Layer) -> (Duration, Duration) {
    let defaults = ConnectionConfig::default();
    if !matches!(layer, Layer::Producer | Layer::Worker) {
        return (defaults.retry_backoff, defaults.retry_backoff_max);
    }
    let first = milliseconds(reader, layer, "retry.backoff.ms", 0, 100);
    (first, milliseconds(reader, layer, "retry.backoff.max.ms", 0, 1_000).max(first))
}

/// A hundred years. Times go up to this, so adding one to now can't overflow a clock.
const MILLISECONDS_MAX: i64 = 100 * 366 * 24 * 3_600_000;

pub(super) fn milliseconds(
    reader: &mut FlowReader<'_>,
    layer: Layer,
    name: &str,
    least: i64,
    default: u64,
) -> Duration {
    let number = reader.number(layer, name, least, i64::MAX).map(|number| number.min(MILLISECONDS_MAX));
    Duration::from_millis(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(default))
}

fn buffer_bytes(reader: &mut FlowReader<'_>, layer: Layer, name: &str) -> Option<usize> {
    usize::try_from(reader.int(layer, name, -1, -1)).ok()
}
