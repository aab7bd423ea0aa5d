//! One process that copies the filled topic while it is watched from outside.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tidegate_tests::process::Usage;
use tidegate_tests::reader::EndWatch;
use tidegate_tests::{FlowFile, KafkaCluster, MirrorMaker, Tidegate, topics};

use crate::workload::Workload;

/// The slowest copy here takes half a minute on idle cores.
const COPY_DEADLINE: Duration = Duration::from_secs(600);
/// How often the target is asked for its ends. It costs the watched process nothing, but the machine a little.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

/// Who copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With the workload's policy as a stock transformation.
    MirrorMaker,
    /// With the workload's policy as a plugin.
    Tidegate,
    /// Without the workload's policy.
    Plain,
}

impl Kind {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Kind::MirrorMaker => "mirror_maker",
            Kind::Tidegate => "tidegate",
            Kind::Plain => "tidegate_plain",
        }
    }

    fn alias(self) -> &'static str {
        match self {
            Kind::MirrorMaker => "mm",
            Kind::Tidegate => "tg",
            Kind::Plain => "pl",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::MirrorMaker => "MirrorMaker 2 4.3.1",
            Kind::Tidegate => "Tidegate",
            Kind::Plain => "Tidegate, no policy",
        })
    }
}

/// A running one.
pub(crate) enum Running {
    MirrorMaker(MirrorMaker),
    Tidegate(Tidegate),
}

impl Running {
    pub(crate) async fn start(kind: Kind, file: &Path) -> anyhow::Result<Running> {
        Ok(match kind {
            Kind::MirrorMaker => Running::MirrorMaker(MirrorMaker::start(file).await?),
            Kind::Tidegate | Kind::Plain => Running::Tidegate(Tidegate::start(file, &[])?),
        })
    }

    pub(crate) fn usage(&mut self) -> anyhow::Result<Usage> {
        match self {
            Running::MirrorMaker(process) => process.still_runs().and_then(|()| process.usage()),
            Running::Tidegate(process) => process.still_runs().and_then(|()| process.usage()),
        }
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Running::MirrorMaker(process) => process.stop().await,
            Running::Tidegate(process) => process.stop(Duration::from_secs(60)).await.map(drop),
        }
    }
}

/// What was seen of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// From the start of the process until the first record was on the target.
    pub(crate) first_record: Duration,
    /// From then until the last.
    pub(crate) wall: Duration,
    /// User and system time of the process between the same two moments.
    pub(crate) cpu: Duration,
    /// Records that arrived between them.
    pub(crate) record_count: u64,
    /// User and system time of the process with its start.
    pub(crate) cpu_with_start: Duration,
    pub(crate) resident_peak_bytes: u64,
}

impl Measured {
    pub(crate) fn cpu_s_per_million(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.record_count as f64
    }

    pub(crate) fn records_per_second(&self) -> f64 {
        self.record_count as f64 / self.wall.as_secs_f64()
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "first record after {:.2} s, then {:.0} rec/s, {:.3} CPU-s per million, {} MiB",
            self.first_record.as_secs_f64(),
            self.records_per_second(),
            self.cpu_s_per_million(),
            self.resident_peak_bytes / 1_048_576
        )
    }
}

/// The file that both read; `alias` keeps the two apart on the target.
pub(crate) fn flow_file(alias: &str, topic: &str, source: &KafkaCluster, target: &KafkaCluster) -> FlowFile {
    FlowFile::new(alias, source, target).topics(topic)
}

/// Lets one contender copy the workload's topic, and removes the copy.
pub(crate) async fn measure(
    kind: Kind,
    workload: &Workload,
    source: &KafkaCluster,
    target: &KafkaCluster,
) -> anyhow::Result<Measured> {
    let directory = tempfile::tempdir()?;
    let alias = format!("{}{}", kind.alias(), workload.name);
    let policy = match kind {
        Kind::MirrorMaker => workload.policy.transformations(),
        Kind::Tidegate => workload.policy.plugins(),
        Kind::Plain => &[],
    };
    let file = flow_file(&alias, &workload.topic(), source, target);
    let file = policy.iter().fold(file, |file, (key, value)| file.set_for_flow(key, value));
    let file = file.write(directory.path())?;
    let target_topic = format!("{alias}.{}", workload.topic());
    let watch = EndWatch::new(target, &target_topic)?;
    let record_count = workload.record_count;
    let start = Instant::now();
    let mut running = Running::start(kind, &file).await?;
    let watched = tokio::task::spawn_blocking(move || {
        let measured = watch_copy(&mut running, &watch, start, record_count);
        (running, measured)
    });
    let (running, measured) = watched.await?;
    let measured = measured.with_context(|| format!("{kind} did not copy {}", workload.topic()))?;
    running.stop().await?;
    topics::delete_topic(target, &target_topic).await?;
    Ok(measured)
}

fn watch_copy(
    running: &mut Running,
    watch: &EndWatch,
    start: Instant,
    record_count: u64,
) -> anyhow::Result<Measured> {
    let mut first: Option<(Instant, Usage, u64)> = None;
    loop {
        let arrived_count = u64::try_from(watch.record_count()?)?;
        let (now, usage) = (Instant::now(), running.usage()?);
        if arrived_count > 0 && first.is_none() {
            first = Some((now, usage, arrived_count));
        }
        if let Some((first_at, first_usage, first_count)) = first
            && arrived_count >= record_count
        {
            ensure!(first_count < record_count, "all was copied between two looks; fill more records");
            return Ok(Measured {
                first_record: first_at - start,
                wall: now - first_at,
                cpu: usage.cpu - first_usage.cpu,
                record_count: record_count - first_count,
                cpu_with_start: usage.cpu,
                resident_peak_bytes: usage.resident_peak_bytes,
            });
        }
        ensure!(
            start.elapsed() < COPY_DEADLINE,
            "{arrived_count} of {record_count} records after {COPY_DEADLINE:?}"
        );
        std::thread::sleep(WATCH_INTERVAL);
    }
}
