//! The topic through which the nodes of a flow share what its plugins are: `tidegate-plugins.<source>.internal` on the target,
//! compacted, one partition. What its values mean is for `flow`; here are its name, its keys, and modules in pieces.
//!
//! | key | value |
//! |---|---|
//! | `decision/<flow>/<generation, 10 digits>` | JSON |
//! | `module/<digest>/<piece, 4 digits>` | bytes of the module; header `pieces`: how many there are |
//! | `report/<flow>/<generation, 10 digits>/<node>` | JSON |

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use kafka_protocol::ResponseError;
use sha2::{Digest, Sha256};
use tidegate_wire::client::Client;
use tracing::warn;

use super::admin::{BrokerRefusal, ClusterAdmin};
use super::append::{Appender, NewRecord};
use super::creation::NewTopic;
use super::log_reader::{LogReader, LogRecord};
use super::positions_topic::foreign_policy;
use crate::names::{ClusterAlias, TopicName};

/// Modules travel in pieces of this size: a record must fit a broker's default `message.max.bytes` of 1 MiB.
pub const PIECE_BYTES_MAX: usize = 900 * 1024;

/// Larger modules don't travel; each node needs them in a file.
pub const SHARED_MODULE_BYTES_MAX: usize = 24 << 20;

/// More pieces than the largest module has are not read into memory, whatever a header says.
const PIECES_COUNT_MAX: usize = SHARED_MODULE_BYTES_MAX.div_ceil(PIECE_BYTES_MAX);

/// The header of a piece that says how many there are.
const PIECES_HEADER: &str = "pieces";

/// As many replicas as the brokers give by themselves.
const BROKERS_DEFAULT: i16 = -1;

/// A new topic shows in metadata within so many looks …
const SEEN_ATTEMPTS_COUNT_MAX: u32 = 100;

/// … with this pause between them, in milliseconds.
const SEEN_PAUSE_MS: u64 = 50;

/// The topic's name for flows that come from `source`.
pub fn plugins_topic(source: &ClusterAlias) -> TopicName {
    // An alias is a part of topic names already; one that is no legal part was refused with the configuration.
    TopicName::parse(&format!("tidegate-plugins.{source}.internal"))
        .unwrap_or_else(|_| TopicName::parse("tidegate-plugins.internal").expect("a legal name"))
}

/// The topic as it is created.
pub fn new_plugins_topic(source: &ClusterAlias, replication_factor: i16) -> NewTopic {
    NewTopic {
        name: plugins_topic(source),
        partition_count: 1,
        replication_factor,
        configs: vec![("cleanup.policy".to_owned(), "compact".to_owned())],
    }
}

/// A record's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PluginsKey {
    /// What a generation of a flow is.
    Decision {
        /// `source->target`.
        flow: String,
        /// Its number.
        generation: u64,
    },
    /// A piece of a module.
    Module {
        /// SHA-256 of the whole, 64 hexadecimal digits.
        digest: String,
        /// From 0.
        piece: usize,
    },
    /// What a node made of a decision.
    Report {
        /// `source->target`.
        flow: String,
        /// Its number.
        generation: u64,
        /// Which node.
        node: String,
    },
}

impl fmt::Display for PluginsKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decision { flow, generation } => write!(formatter, "decision/{flow}/{generation:010}"),
            Self::Module { digest, piece } => write!(formatter, "module/{digest}/{piece:04}"),
            Self::Report { flow, generation, node } => {
                write!(formatter, "report/{flow}/{generation:010}/{node}")
            }
        }
    }
}

impl PluginsKey {
    /// None for keys of a later version of Tidegate, and of others.
    pub fn parse(key: &[u8]) -> Option<Self> {
        let (kind, rest) = std::str::from_utf8(key).ok()?.split_once('/')?;
        match kind {
            "decision" => {
                let (flow, generation) = rest.rsplit_once('/')?;
                Some(Self::Decision { flow: flow.to_owned(), generation: generation.parse().ok()? })
            }
            "module" => {
                let (digest, piece) = rest.split_once('/')?;
                Some(Self::Module { digest: digest.to_owned(), piece: piece.parse().ok()? })
            }
            "report" => {
                let (rest, node) = rest.rsplit_once('/')?;
                let (flow, generation) = rest.rsplit_once('/')?;
                let (flow, node) = (flow.to_owned(), node.to_owned());
                Some(Self::Report { flow, generation: generation.parse().ok()?, node })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        Bytes::from(self.to_string())
    }
}

/// Writes to the topic.
pub struct PluginsLog {
    admin: ClusterAdmin,
    topic: TopicName,
    replication_factor: i16,
    source: ClusterAlias,
    appender: Appender,
    is_there: bool,
}

impl PluginsLog {
    /// Asks for nothing yet.
    pub fn new(admin: &ClusterAdmin, source: &ClusterAlias, replication_factor: i16) -> Self {
        Self {
            topic: plugins_topic(source),
            source: source.clone(),
            replication_factor,
            appender: Appender::new(admin.client().clone()),
            admin: admin.clone(),
            is_there: false,
        }
    }

    /// Writes one value, or a tombstone; makes the topic first if there is none.
    pub async fn put(&mut self, key: &PluginsKey, value: Option<Bytes>, at_ms: i64) -> anyhow::Result<i64> {
        self.put_all(vec![(key.clone(), value)], at_ms).await
    }

    /// Writes several small values as one batch.
    pub async fn put_all(
        &mut self,
        values: Vec<(PluginsKey, Option<Bytes>)>,
        at_ms: i64,
    ) -> anyhow::Result<i64> {
        let record = |(key, value): (PluginsKey, Option<Bytes>)| NewRecord {
            key: Some(key.bytes()),
            value,
            headers: Vec::new(),
            timestamp_ms: at_ms,
        };
        self.append(&values.into_iter().map(record).collect::<Vec<_>>()).await
    }

    /// Writes a module, piece by piece.
    pub async fn put_module(&mut self, digest: &str, module: &[u8], at_ms: i64) -> anyhow::Result<()> {
        ensure!(
            module.len() <= SHARED_MODULE_BYTES_MAX,
            "a module of {} bytes does not travel through topic \"{}\", which takes {SHARED_MODULE_BYTES_MAX}",
            module.len(),
            self.topic
        );
        let count = module.len().div_ceil(PIECE_BYTES_MAX);
        for (piece, bytes) in module.chunks(PIECE_BYTES_MAX).enumerate() {
            let key = PluginsKey::Module { digest: digest.to_owned(), piece };
            let pieces = Some(Bytes::from(count.to_string()));
            let record = NewRecord {
                key: Some(key.bytes()),
                value: Some(Bytes::copy_from_slice(bytes)),
                headers: vec![(Bytes::from_static(PIECES_HEADER.as_bytes()), pieces)],
                timestamp_ms: at_ms,
            };
            self.append(&[record]).await?;
        }
        Ok(())
    }

    async fn append(&mut self, records: &[NewRecord]) -> anyhow::Result<i64> {
        self.ensure_topic().await?;
        let end = self.appender.append(&self.topic, 0, records).await;
        self.is_there = end.is_ok();
        end
    }

    /// A cluster that has not so many brokers gets the topic with its own default: what is decided must be written down.
    async fn create(&self) -> anyhow::Result<Result<(), BrokerRefusal>> {
        let mut refused = Ok(());
        for factor in [self.replication_factor, BROKERS_DEFAULT] {
            let wanted = new_plugins_topic(&self.source, factor);
            let mut outcomes = self.admin.create_topics(&[wanted]).await?;
            match outcomes.remove(&self.topic) {
                Some(Err(refusal)) if refusal.error == ResponseError::InvalidReplicationFactor => {
                    warn!(topic = %self.topic, replication_factor = factor, %refusal, "created with the brokers' default factor");
                    refused = Err(refusal);
                }
                Some(Err(refusal)) => return Ok(Err(refusal)),
                Some(Ok(_)) | None => return Ok(Ok(())),
            }
        }
        Ok(refused)
    }

    /// Where records are deleted by age, a decision would be gone one day, and the file's plugins would run again. Where the
    /// settings can't be read, the topic is trusted.
    async fn check_compacted(&self) -> anyhow::Result<()> {
        let configs = self.admin.topic_configs(std::slice::from_ref(&self.topic)).await?;
        let Some(Ok(entries)) = configs.get(&self.topic) else { return Ok(()) };
        if let Some(found) = foreign_policy(entries) {
            bail!(
                "topic \"{}\" on cluster \"{}\" has cleanup.policy = {found}, so what is decided would be deleted in time; set \
                 cleanup.policy = compact on it (kafka-configs --alter)",
                self.topic,
                self.admin.alias()
            );
        }
        Ok(())
    }

    async fn ensure_topic(&mut self) -> anyhow::Result<()> {
        if self.is_there {
            return Ok(());
        }
        if self.admin.find_topic(&self.topic).await?.is_some() {
            self.check_compacted().await?;
            self.is_there = true;
            return Ok(());
        }
        if let Err(refusal) = self.create().await? {
            bail!(
                "could not create topic \"{}\" on cluster \"{}\": {refusal}; allow CREATE on it, or create it by hand with one \
                 partition and cleanup.policy = compact",
                self.topic,
                self.admin.alias()
            );
        }
        for _ in 0..SEEN_ATTEMPTS_COUNT_MAX {
            if self.admin.topic(&self.topic).await?.is_some() {
                self.is_there = true;
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(SEEN_PAUSE_MS)).await;
        }
        bail!("topic \"{}\" was created but does not show in the metadata; try again", self.topic)
    }
}

/// Where a module lies in the topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModulePlace {
    /// The offset of each piece that was seen.
    pieces: BTreeMap<usize, i64>,
    /// How many there are.
    piece_count: usize,
}

impl ModulePlace {
    /// Notes a piece, or that it is gone.
    pub fn note(&mut self, piece: usize, record: &LogRecord) {
        let count =
            record.header(PIECES_HEADER).and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
        match (&record.value, count) {
            (Some(_), Some(count)) => {
                self.piece_count = count;
                self.pieces.insert(piece, record.offset);
            }
            _ => {
                self.pieces.remove(&piece);
            }
        }
    }

    /// Whether every piece was seen.
    pub fn is_whole(&self) -> bool {
        (1..=PIECES_COUNT_MAX).contains(&self.piece_count)
            && (0..self.piece_count).all(|piece| self.pieces.contains_key(&piece))
    }

    /// The number of pieces that were seen.
    pub fn pieces(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.keys().copied()
    }

    /// Reads the module; checked against its digest.
    pub async fn read(&self, client: &Client, topic: &TopicName, digest: &str) -> anyhow::Result<Vec<u8>> {
        let context = || format!("could not read module {digest} from topic \"{topic}\"");
        ensure!(self.is_whole(), "module {digest} is not whole in topic \"{topic}\"");
        let first = self.pieces.values().copied().min().unwrap_or(0);
        let mut reader = LogReader::new(client.clone(), topic, 0, first);
        let mut found: BTreeMap<usize, Bytes> = BTreeMap::new();
        while found.len() < self.piece_count {
            let part = reader.poll(Duration::ZERO).await.with_context(context)?;
            for record in part.records {
                let key = record.key.as_deref().and_then(PluginsKey::parse);
                if let (Some(PluginsKey::Module { digest: own, piece }), Some(value)) = (key, record.value)
                    && own == digest
                    && piece < self.piece_count
                    && value.len() <= PIECE_BYTES_MAX
                {
                    found.insert(piece, value);
                }
            }
            if part.is_end && found.len() < self.piece_count {
                bail!(
                    "{}: {} of its {} pieces are gone",
                    context(),
                    self.piece_count - found.len(),
                    self.piece_count
                );
            }
        }
        let module: Vec<u8> = found.into_values().flatten().collect();
        ensure!(digest_of(&module) == digest, "{}: its bytes are damaged", context());
        Ok(module)
    }
}

/// SHA-256 in 64 hexadecimal digits.
pub fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_as_they_were_written() {
        let flow = || "east->west".to_owned();
        for (key, text) in [
            (PluginsKey::Decision { flow: flow(), generation: 7 }, "decision/east->west/0000000007"),
            (PluginsKey::Module { digest: "ab".to_owned(), piece: 3 }, "module/ab/0003"),
            (
                PluginsKey::Report { flow: flow(), generation: 7, node: "0f-n".to_owned() },
                "report/east->west/0000000007/0f-n",
            ),
        ] {
            assert_eq!(key.to_string(), text);
            assert_eq!(PluginsKey::parse(text.as_bytes()), Some(key));
        }
        for strange in ["", "decision", "decision/east->west/x", "other/1", "module/ab"] {
            assert_eq!(PluginsKey::parse(strange.as_bytes()), None, "{strange}");
        }
    }

    #[test]
    fn the_topic_is_compacted_and_internal() {
        let topic = new_plugins_topic(&ClusterAlias::new("east"), -1);
        assert_eq!(topic.name.as_str(), "tidegate-plugins.east.internal");
        assert_eq!(topic.partition_count, 1);
        assert_eq!(topic.configs, [("cleanup.policy".to_owned(), "compact".to_owned())]);
    }

    #[tokio::test]
    async fn nothing_is_decided_in_a_topic_that_forgets() {
        use tidegate_embedded::{Cluster, ClusterOptions};
        use tidegate_wire::client::ClientOptions;

        let cluster = Cluster::start(ClusterOptions::default()).await.unwrap();
        let name = "tidegate-plugins.east.internal";
        cluster.create_topic(name, 1, &[("cleanup.policy", "delete")]).unwrap();
        let options = ClientOptions {
            bootstrap_servers: vec![cluster.bootstrap_servers()],
            ..ClientOptions::default()
        };
        let admin = ClusterAdmin::new(ClusterAlias::new("west"), Client::connect(options).await.unwrap());
        let mut log = PluginsLog::new(&admin, &ClusterAlias::new("east"), 1);
        let key = PluginsKey::Decision { flow: "east->west".to_owned(), generation: 1 };

        let problem = log.put(&key, Some(Bytes::from_static(b"{}")), 1).await.unwrap_err();

        assert_eq!(
            problem.to_string(),
            "topic \"tidegate-plugins.east.internal\" on cluster \"west\" has cleanup.policy = delete, so what is decided would be \
             deleted in time; set cleanup.policy = compact on it (kafka-configs --alter)"
        );
        assert_eq!(cluster.end_offset(name, 0), 0);
        cluster.shutdown().await;
    }

    #[test]
    fn a_module_is_whole_with_its_last_piece() {
        let piece = |offset: i64, value: Option<&'static [u8]>| LogRecord {
            offset,
            timestamp_ms: 0,
            key: None,
            value: value.map(Bytes::from_static),
            headers: vec![(Bytes::from_static(b"pieces"), Some(Bytes::from_static(b"2")))],
        };
        let mut place = ModulePlace::default();
        assert!(!place.is_whole());
        place.note(1, &piece(4, Some(b"b")));
        assert!(!place.is_whole());
        place.note(0, &piece(3, Some(b"a")));
        assert!(place.is_whole());
        place.note(0, &piece(9, None));
        assert!(!place.is_whole());
    }

    #[test]
    fn a_module_of_more_pieces_than_travel_is_never_whole() {
        let whole = |count: usize| {
            let mut place = ModulePlace::default();
            for piece in 0..count {
                let headers = vec![(Bytes::from_static(b"pieces"), Some(Bytes::from(count.to_string())))];
                let value = Some(Bytes::from_static(b"x"));
                let record = LogRecord { offset: piece as i64, timestamp_ms: 0, key: None, value, headers };
                place.note(piece, &record);
            }
            place.is_whole()
        };
        assert!(whole(PIECES_COUNT_MAX));
        assert!(!whole(PIECES_COUNT_MAX + 1));
    }
}
