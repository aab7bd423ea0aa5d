//! Settings of the Kafka clients of a flow. Defaults are those of Kafka's own clients unless a field says otherwise.

use std::time::Duration;

/// Where a partition without a stored position starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    /// At its first record.
    Earliest,
    /// At its end: only records from now on.
    Latest,
    /// Nowhere: the partition stops and says so.
    None,
}

/// What of a transactional source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Everything, aborted transactions too. MirrorMaker 2's default.
    ReadUncommitted,
    /// Committed records only.
    ReadCommitted,
}

/// A codec that records are compressed with again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// zstd.
    Zstd,
}

/// The reader of the source. Every setting comes from `S->T.source.consumer.*`, else `S.consumer.*`, else
/// `S->T.consumer.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceClientConfig {
    /// `client.id`, default `S->T|tidegate|replication-consumer`; one's own id is put in front of that, as MirrorMaker 2
    /// does.
    pub client_id: String,
    /// `fetch.min.bytes`, default 1: a broker answers as soon as it has so much. More makes larger answers and more
    /// delay.
    pub fetch_min_bytes: i32,
    /// `fetch.max.bytes`, default 52 428 800: the most that one answer carries (a first batch that is larger still
    /// comes). Bounded by the worker's buffer as well.
    pub fetch_max_bytes: i32,
    /// `fetch.max.wait.ms`, default 500: how long a broker waits for `fetch_min_bytes`.
    pub fetch_max_wait: Duration,
    /// `max.partition.fetch.bytes`, default 1 048 576: the most that one partition has in an answer.
    pub max_partition_fetch_bytes: i32,
    /// `auto.offset.reset`, default `earliest` (MirrorMaker 2's, not the consumer's `latest`).
    pub auto_offset_reset: OffsetReset,
    /// `isolation.level`, default `read_uncommitted`.
    pub isolation: Isolation,
    /// Connections to the source's brokers.
    pub connection: ConnectionConfig,
}

/// The writer of the target. Every setting comes from `S->T.producer.override.*`, else `T.producer.*`;
/// `S->T.producer.*` never reaches it, in MirrorMaker 2 neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetClientConfig {
    /// `client.id`, default `S->T|tidegate|replication-producer`.
    pub client_id: String,
    /// `max.request.size`: None when it is not set. Tidegate hands whole batches on, so the property bounds a batch,
    /// as it does in Kafka's producer, where the largest batch is the largest record with its header.
    /// Set: a source batch larger than this is split, and waiting batches are merged up to it. None: batches are merged
    /// up to [`MERGED_BATCH_BYTES_MAX`], but a source batch that is larger goes as it is, up to the target's
    /// `max.message.bytes`. A bound of Kafka's 1 MiB by default would force the split of every full batch that a
    /// producer with a larger bound wrote, and take the cheap path from it for nothing.
    pub batch_bytes_max: Option<usize>,
    /// The bound for one produce request in bytes: [`REQUEST_BYTES_MAX`], or `max.request.size` if that is larger. A
    /// request carries at most one batch of each partition, of many partitions.
    pub max_request_bytes: usize,
    /// `compression.type`: None when it is not set, and batches keep the source's codec. Set: every record is compressed
    /// again, which costs the cheap path.
    pub compression: Option<Compression>,
    /// `request.timeout.ms` as the broker is told it: how long it waits for its replicas.
    pub acks_timeout: Duration,
    /// Connections to the target's brokers.
    pub connection: ConnectionConfig,
}

impl TargetClientConfig {
    /// Waiting batches of a partition are merged up to so many bytes.
    pub fn merged_batch_bytes_max(&self) -> usize {
        self.batch_bytes_max.unwrap_or(MERGED_BATCH_BYTES_MAX)
    }
}

/// Waiting small batches are merged up to so many bytes when `max.request.size` is not set. It is the default of
/// `max.request.size` in Kafka's producer, so it fits into what every broker takes by default
/// (`max.message.bytes` 1 048 588).
pub const MERGED_BATCH_BYTES_MAX: usize = 1_048_576;

/// One produce request carries at most so many bytes (a larger single batch still goes). Larger requests save
/// round trips and make a broker hold more memory; brokers take 100 MiB (`socket.request.max.bytes`).
pub const REQUEST_BYTES_MAX: usize = 8 * 1_048_576;

/// A control client: topics, settings. From `S->T.source.admin.*`, else `S.admin.*`, else `S->T.admin.*` (and `target`
/// with `T` alike).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminClientConfig {
    /// `client.id`, default `S->T|tidegate|replication-source-admin` (or `-target-admin`).
    pub client_id: String,
    /// Connections to the brokers.
    pub connection: ConnectionConfig,
}

/// How connections are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// `request.timeout.ms`, default 30 000 (40 000 for the group's connection, as Connect has it): an answer that
    /// takes longer counts as lost and the request is sent again.
    pub request_timeout: Duration,
    /// `metadata.max.age.ms`, default 300 000: after so long metadata are asked for anew without a reason.
    pub metadata_max_age: Duration,
    /// `reconnect.backoff.ms`, default 50: the first wait before a broker is called again.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`, default 1 000: the waits grow up to this.
    pub reconnect_backoff_max: Duration,
    /// `retry.backoff.ms`, default 100: the first wait before a refused request is sent again. Read for the writer and
    /// for the group's member alone; the reader and the control loop have a rhythm of their own.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`, default 1 000: the waits grow up to this.
    pub retry_backoff_max: Duration,
    /// `connections.max.idle.ms`, default 540 000 (300 000 for control clients): an idle connection is closed.
    /// None for a negative value: never.
    pub connections_idle_max: Option<Duration>,
    /// `socket.connection.setup.timeout.ms`, default 10 000: how long a connection may take to be made.
    pub connection_setup_timeout: Duration,
    /// `send.buffer.bytes`: None (unset or −1) leaves it to the system. Kafka's clients default to 128 KiB; the
    /// system's own tuning carries large batches better over long distances.
    pub send_buffer_bytes: Option<usize>,
    /// `receive.buffer.bytes`: None (unset or −1) leaves it to the system (Kafka's clients: 64 KiB).
    pub receive_buffer_bytes: Option<usize>,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            metadata_max_age: Duration::from_secs(300),
            reconnect_backoff: Duration::from_millis(50),
            reconnect_backoff_max: Duration::from_secs(1),
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            connections_idle_max: Some(Duration::from_secs(540)),
            connection_setup_timeout: Duration::from_secs(10),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}
