//! A MirrorMaker 2 configuration file for one flow, which Tidegate and MirrorMaker 2 read alike.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Servers;

/// The text of a configuration file under construction.
#[derive(Debug, Clone)]
pub struct FlowFile {
    source: String,
    lines: Vec<(String, String)>,
}

/// Alias of the target in every file.
pub const TARGET: &str = "target";

impl FlowFile {
    /// One enabled flow `source->target`. The alias `source` is the scenario's own: group and positions topic carry it, and
    /// scenarios share clusters.
    pub fn new(source: &str, source_cluster: &dyn Servers, target_cluster: &dyn Servers) -> FlowFile {
        FlowFile::with_servers(
            source,
            &source_cluster.bootstrap_servers(),
            &target_cluster.bootstrap_servers(),
        )
    }

    /// The same with addresses at which nobody needs to listen.
    pub fn with_servers(source: &str, source_servers: &str, target_servers: &str) -> FlowFile {
        let mut file = FlowFile { source: source.to_owned(), lines: Vec::new() };
        file.push("clusters", &format!("{source}, {TARGET}"));
        file.push(&format!("{source}.bootstrap.servers"), source_servers);
        file.push(&format!("{TARGET}.bootstrap.servers"), target_servers);
        file.push(&format!("{source}->{TARGET}.enabled"), "true");
        file.push(&format!("{TARGET}->{source}.enabled"), "false");
        // Without it MirrorMaker 2 runs a second herder for the other direction, for heartbeats only.
        file.push(&format!("{TARGET}->{source}.emit.heartbeats.enabled"), "false");
        for key in [
            "replication.factor",
            "checkpoints.topic.replication.factor",
            "heartbeats.topic.replication.factor",
            "offset-syncs.topic.replication.factor",
            "config.storage.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
        ] {
            file.push(key, "1");
        }
        file.push("refresh.topics.interval.seconds", "1");
        // MirrorMaker 2 and the classic group protocol: a dead member is found dead after 6 s.
        file.push(&format!("{TARGET}.session.timeout.ms"), "6000");
        file.push(&format!("{TARGET}.heartbeat.interval.ms"), "1500");
        file
    }

    fn push(&mut self, key: &str, value: &str) {
        self.lines.push((key.to_owned(), value.to_owned()));
    }

    /// Adds a line. The last of two lines with one key counts.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> FlowFile {
        self.lines.retain(|(found, _)| found != key);
        self.push(key, value);
        self
    }

    /// Adds a line for the flow alone.
    #[must_use]
    pub fn set_for_flow(self, key: &str, value: &str) -> FlowFile {
        let key = format!("{}->{TARGET}.{key}", self.source);
        self.set(&key, value)
    }

    /// Which topics are copied: a list of regular expressions.
    #[must_use]
    pub fn topics(self, list: &str) -> FlowFile {
        self.set_for_flow("topics", list)
    }

    /// Copies under the same names.
    #[must_use]
    pub fn identity_names(self) -> FlowFile {
        self.set("replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
    }

    /// The file's text.
    pub fn text(&self) -> String {
        self.lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    /// Writes the file into a folder.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        let path = directory.join("mm2.properties");
        fs::write(&path, self.text())?;
        Ok(path)
    }
}
