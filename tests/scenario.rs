//! What most scenarios share: a configuration file, the process that runs it, and the question whether all has arrived.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use tidegate_tests::{
    Compared, Duplicates, FlowFile, Isolation, Record, Servers, Tidegate, compare, end_offsets, eventually,
    read_all,
};

/// Everything must have arrived within this time; on idle cores it takes seconds.
pub(super) const ARRIVAL_DEADLINE: Duration = Duration::from_secs(90);
/// A stop settles, stores and leaves; the process gives itself 30 s at most.
pub(super) const STOP_DEADLINE: Duration = Duration::from_secs(35);

/// A flow between two clusters under a file of its own.
pub(super) struct Scenario<'a> {
    pub(super) source: &'a dyn Servers,
    pub(super) target: &'a dyn Servers,
    pub(super) file: PathBuf,
    _directory: tempfile::TempDir,
}

impl<'a> Scenario<'a> {
    /// `alias` is the scenario's own: group and positions topic carry it on the shared target.
    pub(super) fn new(
        alias: &str,
        source: &'a dyn Servers,
        target: &'a dyn Servers,
        change: impl FnOnce(FlowFile) -> FlowFile,
    ) -> Scenario<'a> {
        let directory = tempfile::tempdir().unwrap();
        let file = change(FlowFile::new(alias, source, target)).write(directory.path()).unwrap();
        Scenario { source, target, file, _directory: directory }
    }

    /// Starts `tidegate run`.
    pub(super) fn run(&self) -> Tidegate {
        Tidegate::start(&self.file, &[]).unwrap()
    }

    /// Waits until the target topic holds what the source topic holds now, while `process` runs.
    pub(super) async fn arrives(&self, process: &mut Tidegate, topic: &str, target_topic: &str) -> Compared {
        self.arrives_by(process, topic, target_topic, Isolation::ReadUncommitted, Duplicates::Forbidden).await
    }

    /// The same, with a say in what counts as the source's records, and whether some may come twice.
    pub(super) async fn arrives_by(
        &self,
        process: &mut Tidegate,
        topic: &str,
        target_topic: &str,
        isolation: Isolation,
        duplicates: Duplicates,
    ) -> Compared {
        let source = read_all(self.source, topic, isolation).await.unwrap();
        assert!(!source.is_empty(), "{topic} is empty: nothing would be tested");
        let what = format!("{} records of {topic} to be in {target_topic}", source.len());
        let arrived = eventually(&what, ARRIVAL_DEADLINE, async || {
            process.still_runs()?;
            self.compare_now(&source, target_topic, duplicates).await
        });
        match arrived.await {
            Ok(compared) => compared,
            Err(error) => panic!("{error:#}\n{}", process.log_tail()),
        }
    }

    /// Reads the target only when it may hold everything: reading is dear, asking for the ends is not.
    async fn compare_now(
        &self,
        source: &[Record],
        topic: &str,
        duplicates: Duplicates,
    ) -> anyhow::Result<Compared> {
        let ends = end_offsets(self.target, topic).await?;
        let count: i64 = ends.values().sum();
        ensure!(count >= source.len() as i64, "{count} of {} records are there", source.len());
        let target = read_all(self.target, topic, Isolation::ReadUncommitted).await?;
        compare(source, &target, duplicates).with_context(|| format!("{topic} is no copy"))
    }

    /// Waits until the target topic holds at least so many records.
    pub(super) async fn holds(&self, process: &mut Tidegate, target_topic: &str, count: i64) {
        let what = format!("{count} records in {target_topic}");
        let held = eventually(&what, ARRIVAL_DEADLINE, async || {
            process.still_runs()?;
            let found: i64 = end_offsets(self.target, target_topic).await?.values().sum();
            ensure!(found >= count, "{found} are there");
            Ok(())
        });
        if let Err(error) = held.await {
            panic!("{error:#}\n{}", process.log_tail());
        }
    }

    /// How many records the target topic holds now.
    pub(super) async fn count(&self, target_topic: &str) -> i64 {
        end_offsets(self.target, target_topic).await.unwrap().values().sum()
    }
}

/// SIGTERM must end a process with exit code 0 in bounded time.
pub(super) async fn stops(process: Tidegate) {
    let log = process.log_tail();
    let code = process.stop(STOP_DEADLINE).await.unwrap();
    assert_eq!(code, 0, "{log}");
}

/// Tells a figure of a passing scenario, which the test runner would keep to itself.
pub(super) fn report(what: &str) {
    use std::io::Write;
    let thread = std::thread::current();
    let line = format!("{}: {what}\n", thread.name().unwrap_or("a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
