//! A real one-node Kafka cluster: formatted, started, stopped, killed and started again on the same port and data.

mod settings;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::eventually;
use crate::jars;
use crate::port::free_port;
use crate::process::{Process, Signal, Start};

/// A broker is ready 4–7 s after its start on two idle cores; they are rarely idle.
const READY_DEADLINE: Duration = Duration::from_secs(120);
/// A stop writes every partition's state; on KRaft also a snapshot.
const STOP_DEADLINE: Duration = Duration::from_secs(60);
/// Starts are tried again when another process took one of the ports in between.
const START_ATTEMPTS: usize = 3;

/// A pinned version of Kafka.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KafkaVersion {
    /// KRaft, one JVM. Also brings MirrorMaker 2.
    V4_3_1,
    /// The oldest that we speak to: brings a ZooKeeper of its own.
    V2_7_1,
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            KafkaVersion::V4_3_1 => "4.3.1",
            KafkaVersion::V2_7_1 => "2.7.1",
        })
    }
}

/// What differs from a plain cluster.
#[derive(Debug, Clone)]
pub struct KafkaOptions {
    /// The broker's heap.
    pub heap_mib: u32,
    /// Broker properties that are added to, or replace, the harness's own.
    pub properties: Vec<(String, String)>,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        KafkaOptions { heap_mib: 512, properties: Vec::new() }
    }
}

/// A running cluster. Dropping it kills its processes and removes its data.
#[derive(Debug)]
pub struct KafkaCluster {
    version: KafkaVersion,
    heap_mib: u32,
    port: u16,
    jars: PathBuf,
    directory: tempfile::TempDir,
    broker: Mutex<Option<Process>>,
    zookeeper: Option<Process>,
}

impl KafkaCluster {
    /// Formats and starts a cluster, and waits until it answers a metadata request.
    ///
    /// # Errors
    /// When there is no Java, when the jars can't be fetched, or with the end of the log when a process does not come up.
    pub async fn start(version: KafkaVersion, options: KafkaOptions) -> anyhow::Result<KafkaCluster> {
        let jars = tokio::task::spawn_blocking(move || jars::fetch(version)).await??;
        let mut attempt = 1;
        loop {
            match Self::start_once(version, &options, jars.clone()).await {
                Err(error) if attempt < START_ATTEMPTS && format!("{error:#}").contains("already in use") => {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn start_once(
        version: KafkaVersion,
        options: &KafkaOptions,
        jars: PathBuf,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("tidegate-kafka-").tempdir()?;
        let mut cluster = KafkaCluster {
            version,
            heap_mib: options.heap_mib,
            port: free_port()?,
            jars,
            directory,
            broker: Mutex::new(None),
            zookeeper: None,
        };
        fs::write(cluster.path("log4j2.xml"), settings::LOG4J2_XML)?;
        match version {
            KafkaVersion::V4_3_1 => cluster.format(options)?,
            KafkaVersion::V2_7_1 => cluster.start_zookeeper(options)?,
        }
        cluster.start_again().await?;
        Ok(cluster)
    }

    /// `host:port` for any client.
    pub fn bootstrap_servers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The version that runs.
    pub fn version(&self) -> KafkaVersion {
        self.version
    }

    /// Folder with the partitions' logs: `TOPIC-PARTITION/00000000000000000000.log`.
    pub fn log_directory(&self) -> PathBuf {
        self.path("data")
    }

    /// Stops the broker as an operator would (SIGTERM) and waits for its end. Does nothing when it does not run.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn stop(&self) -> anyhow::Result<()> {
        let Some(mut broker) = self.take_broker() else { return Ok(()) };
        broker.signal(Signal::Term);
        broker.ended(STOP_DEADLINE).await.map(drop)
    }

    /// Kills the broker (SIGKILL): nothing is written any more.
    ///
    /// # Errors
    /// When the system does not take it away.
    pub async fn kill(&self) -> anyhow::Result<()> {
        let Some(mut broker) = self.take_broker() else { return Ok(()) };
        broker.signal(Signal::Kill);
        broker.ended(STOP_DEADLINE).await.map(drop)
    }

    /// Starts the broker on the same port and data, and waits until it answers a metadata request.
    ///
    /// # Errors
    /// The end of the log, when it ends or does not answer in time.
    pub async fn start_again(&self) -> anyhow::Result<()> {
        let settings = self.path("server.properties").into_os_string();
        let mut broker = self.java(&format!("kafka {}", self.version), "kafka.Kafka", vec![settings])?;
        wait_until_ready(&mut broker, &self.bootstrap_servers()).await?;
        *self.broker.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(broker);
        Ok(())
    }

    /// What the broker's process used so far.
    ///
    /// # Errors
    /// When it does not run.
    pub fn usage(&self) -> anyhow::Result<crate::process::Usage> {
        let broker = self.broker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        broker.as_ref().context("the broker does not run")?.usage()
    }

    fn take_broker(&self) -> Option<Process> {
        self.broker.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn java(&self, name: &str, class: &str, arguments: Vec<OsString>) -> anyhow::Result<Process> {
        let mut command = java_command(&self.jars, self.heap_mib, self.directory.path(), class);
        command.extend(arguments);
        Process::start(Start {
            name: format!("{name} on port {}", self.port),
            command,
            environment: Vec::new(),
            log: self.path(&format!("{class}.log")),
            directory: Some(self.directory.path().to_owned()),
        })
    }

    fn format(&self, options: &KafkaOptions) -> anyhow::Result<()> {
        let properties = settings::kraft(self.port, free_port()?, &self.log_directory(), &options.properties);
        let settings = self.path("server.properties");
        fs::write(&settings, properties)?;
        let storage_tool = |arguments: &[&str]| -> anyhow::Result<String> {
            let mut command = java_command(&self.jars, 128, self.directory.path(), "kafka.tools.StorageTool");
            command.extend(arguments.iter().map(OsString::from));
            let output = Command::new(&command[0]).args(&command[1..]).output()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let errors = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "Kafka's storage tool {arguments:?} failed: {text} {errors}");
            Ok(text)
        };
        let id = storage_tool(&["random-uuid"])?;
        // The tool may write warnings before the id.
        let id = id.lines().last().context("Kafka's storage tool gave no id")?.to_owned();
        storage_tool(&["format", "-t", &id, "-c", &settings.to_string_lossy()]).map(drop)
    }

    fn start_zookeeper(&mut self, options: &KafkaOptions) -> anyhow::Result<()> {
        let port = free_port()?;
        let file = self.path("zookeeper.properties");
        fs::write(&file, settings::zookeeper(port, &self.path("zookeeper")))?;
        let properties =
            settings::with_zookeeper(self.port, port, &self.log_directory(), &options.properties);
        fs::write(self.path("server.properties"), properties)?;
        let class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
        self.zookeeper = Some(self.java("zookeeper of kafka 2.7.1", class, vec![file.into_os_string()])?);
        Ok(())
    }
}

impl Drop for KafkaCluster {
    fn drop(&mut self) {
        // Before the folder goes.
        drop(self.take_broker());
        drop(self.zookeeper.take());
    }
}

/// `java -cp "JARS/*" CLASS`. The JVM itself expands the star.
pub(crate) fn java_command(jars: &Path, heap_mib: u32, directory: &Path, class: &str) -> Vec<OsString> {
    let mut log_settings = OsString::from("-Dlog4j2.configurationFile=");
    log_settings.push(directory.join("log4j2.xml"));
    vec![
        "java".into(),
        format!("-Xmx{heap_mib}m").into(),
        // A second of start-up less per process, and fewer threads on two cores.
        "-XX:TieredStopAtLevel=4".into(),
        "-XX:+UseG1GC".into(),
        "-Xshare:auto".into(),
        log_settings,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".into(),
        "-cp".into(),
        jars.join("*").into_os_string(),
        class.into(),
    ]
}

/// Writes the logging settings that [`java_command`] names.
pub(crate) fn write_log_settings(directory: &Path) -> anyhow::Result<()> {
    Ok(fs::write(directory.join("log4j2.xml"), settings::LOG4J2_XML)?)
}

/// A port that is open is not enough: only a broker that names itself in its metadata can be used.
async fn wait_until_ready(broker: &mut Process, bootstrap_servers: &str) -> anyhow::Result<()> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap_servers).set("log_level", "0");
    config.set("reconnect.backoff.ms", "50").set("reconnect.backoff.max.ms", "200");
    let what = "a metadata answer with a broker";
    let mut ended = None;
    let ready = eventually(what, READY_DEADLINE, async || {
        if let Err(error) = broker.still_runs() {
            ended = Some(error);
            return Ok(());
        }
        let consumer: BaseConsumer = config.create()?;
        let ask = move || consumer.fetch_metadata(None, Duration::from_millis(1000));
        let metadata = tokio::task::spawn_blocking(ask).await??;
        ensure!(!metadata.brokers().is_empty(), "the metadata names no broker");
        Ok(())
    });
    let result = ready.await;
    match ended {
        Some(error) => Err(error),
        None => result.with_context(|| broker.log_tail()),
    }
}
