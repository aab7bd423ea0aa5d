//! The real MirrorMaker 2 as a child process: for comparison, for hand-over, and as a neighbour that must be noticed.

use std::path::Path;
use std::time::Duration;

use crate::jars;
use crate::kafka::{KafkaVersion, java_command, write_log_settings};
use crate::process::{Process, Signal, Start, Usage};

/// MirrorMaker 2 stops its connectors one after the other and then its herders.
const STOP_DEADLINE: Duration = Duration::from_secs(90);

/// A running MirrorMaker 2 4.3.1. Dropping it kills it.
#[derive(Debug)]
pub struct MirrorMaker {
    process: Process,
    _directory: tempfile::TempDir,
}

impl MirrorMaker {
    /// Starts it with a configuration file and the heap of Kafka's own start script (2 GiB at most). It is not waited for.
    ///
    /// # Errors
    /// When there is no Java or the jars can't be fetched.
    pub async fn start(file: &Path) -> anyhow::Result<MirrorMaker> {
        const HEAP_MIB: u32 = 2048;
        let jars = tokio::task::spawn_blocking(|| jars::fetch(KafkaVersion::V4_3_1)).await??;
        let directory = tempfile::Builder::new().prefix("tidegate-mm2-").tempdir()?;
        write_log_settings(directory.path())?;
        let mut command =
            java_command(&jars, HEAP_MIB, directory.path(), "org.apache.kafka.connect.mirror.MirrorMaker");
        command.insert(1, "-Xms256m".into());
        command.push(file.into());
        let process = Process::start(Start {
            name: "MirrorMaker 2".to_owned(),
            command,
            environment: Vec::new(),
            log: directory.path().join("mirror-maker.log"),
            directory: Some(directory.path().to_owned()),
        })?;
        Ok(MirrorMaker { process, _directory: directory })
    }

    /// Stops it as an operator would (SIGTERM): it stores its positions before it ends.
    ///
    /// # Errors
    /// The end of its log, when it does not end in time.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::Term);
        self.process.ended(STOP_DEADLINE).await.map(drop)
    }

    /// Kills it: positions since the last flush are not stored.
    ///
    /// # Errors
    /// When the system does not take it away.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::Kill);
        self.process.ended(STOP_DEADLINE).await.map(drop)
    }

    /// What it used so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        self.process.usage()
    }

    /// Fails with the end of its log when it has ended.
    ///
    /// # Errors
    /// The exit code and the log's end.
    pub fn still_runs(&mut self) -> anyhow::Result<()> {
        self.process.still_runs()
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}
