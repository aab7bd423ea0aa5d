//! Child processes that never outlive the test process, with their log, their exit code and what they used.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::eventually;

/// Stands between the test process and the child: it waits on its standard input, a pipe that the kernel closes when the
/// test process ends in whatever way, and then kills the child and removes its folder. It needs no privileges and no
/// `unsafe`. Signals that reach the whole group (Ctrl-C) end the child, not the keeper. The child's process id is its first line of output, the child's exit code its own.
const KEEPER: &str = r#"
log="$1"; directory="$2"; shift 2
exec 3<&0
trap : TERM INT HUP
"$@" </dev/null 3<&- >>"$log" 2>&1 &
child=$!
(
    trap '' TERM INT HUP
    read -r line <&3
    [ -z "$directory" ] || : > "$directory/.orphaned"
    kill -KILL "$child"
) >/dev/null 2>&1 &
watch=$!
echo "$child"
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
if [ -n "$directory" ] && [ -e "$directory/.orphaned" ]; then rm -rf "$directory"; fi
kill -KILL "$watch" 2>/dev/null
exit "$code"
"#;

/// Names a folder in which every child's log is kept, to look into after a run.
const LOGS_VARIABLE: &str = "TEST_LOGS";

/// A signal that a test sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Asks to stop.
    Term,
    /// Ends at once; nothing can be saved.
    Kill,
    /// Freezes the process.
    Stop,
    /// Thaws it.
    Continue,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Signal::Term => "TERM",
            Signal::Kill => "KILL",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
        }
    }
}

/// What a process used so far, from `/proc`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User and system time of all its threads, also of those that ended; whole 10 ms.
    pub cpu: Duration,
    /// Resident memory now.
    pub resident_bytes: u64,
    /// The most resident memory it ever had.
    pub resident_peak_bytes: u64,
}

/// How to start a child.
#[derive(Debug, Default)]
pub struct Start {
    /// Name in messages: `kafka 4.3.1 on port 15000`.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Variables added to the test process's own environment.
    pub environment: Vec<(String, String)>,
    /// File that standard output and standard error are appended to.
    pub log: PathBuf,
    /// Folder that goes with the child if the test process ends without tidying up.
    pub directory: Option<PathBuf>,
}

/// A running or ended child. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    keeper: Child,
    pid: u32,
    log: PathBuf,
    log_start_bytes: u64,
}

impl Process {
    /// Starts a child.
    ///
    /// # Errors
    /// When the program can't be started.
    pub fn start(start: Start) -> anyhow::Result<Process> {
        let log_start_bytes = fs::metadata(&start.log).map_or(0, |metadata| metadata.len());
        let directory = start.directory.map(PathBuf::into_os_string).unwrap_or_default();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&start.log)
            .arg(directory)
            .args(&start.command)
            .envs(start.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {}", start.name))?;
        let stdout = keeper.stdout.take().context("the keeper has an output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let pid = line.trim().parse().with_context(|| format!("{} gave no process id", start.name))?;
        Ok(Process { name: start.name, keeper, pid, log: start.log, log_start_bytes })
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal. A child that has ended already is left alone.
    pub fn signal(&mut self, signal: Signal) {
        if self.exit_code().is_none() {
            // The shell's own `kill`: there is no safe call in the standard library, and not every machine has /bin/kill.
            let command = format!("kill -{} {}", signal.name(), self.pid);
            let _ = Command::new("sh").args(["-c", &command]).stderr(Stdio::null()).status();
        }
    }

    /// Exit code of a child that ended (128 + signal number if a signal ended it), `None` while it runs.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.keeper.try_wait().ok().flatten().map(|status| status.code().unwrap_or(-1))
    }

    /// Waits for the child's end.
    ///
    /// # Errors
    /// When it still runs after `deadline`; the end of its log is part of the message.
    pub async fn ended(&mut self, deadline: Duration) -> anyhow::Result<i32> {
        let what = format!("the end of {}", self.name);
        let ended = eventually(&what, deadline, async || {
            self.exit_code().with_context(|| format!("process {} still runs", self.pid))
        });
        let result = ended.await;
        result.with_context(|| self.log_tail())
    }

    /// Fails with the end of the log when the child has ended although it should run.
    ///
    /// # Errors
    /// The exit code and the end of the log.
    pub fn still_runs(&mut self) -> anyhow::Result<()> {
        match self.exit_code() {
            None => Ok(()),
            Some(code) => bail!("{} ended with exit code {code}; {}", self.name, self.log_tail()),
        }
    }

    /// What the child wrote since it was started.
    pub fn log_text(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.log_start_bytes as usize..).unwrap_or_default()).into_owned()
    }

    /// The last lines of the log, for messages.
    pub fn log_tail(&self) -> String {
        const LINES: usize = 40;
        let text = self.log_text();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
        format!("the log of {} ends with:\n  {tail}", self.name)
    }

    /// What it used so far.
    ///
    /// # Errors
    /// When it has ended: the kernel keeps no figures of it.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        usage_of(self.pid).with_context(|| format!("no figures of {}: it does not run", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        let _ = self.keeper.wait();
        if let Some(directory) = std::env::var_os(LOGS_VARIABLE) {
            let thread = std::thread::current();
            let name = format!("{}-{}.log", thread.name().unwrap_or("test").replace("::", "."), self.pid);
            let _ = fs::write(Path::new(&directory).join(name), self.log_text());
        }
    }
}

/// What the process with this id used so far.
///
/// # Errors
/// When there is no such process.
pub fn usage_of(pid: u32) -> anyhow::Result<Usage> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let status = fs::read_to_string(directory.join("status"))?;
    Ok(Usage {
        cpu: cpu_time(&directory.join("stat"))?,
        resident_bytes: status_kib(&status, "VmRSS:") * 1024,
        resident_peak_bytes: status_kib(&status, "VmHWM:") * 1024,
    })
}

/// `utime` and `stime` of a `stat` file. Their unit is 1/100 s on every Linux that Rust's standard library runs on.
fn cpu_time(stat: &Path) -> anyhow::Result<Duration> {
    const TICKS_PER_SECOND: u64 = 100;
    let text = fs::read_to_string(stat)?;
    // The program's name stands in brackets and may itself hold blanks and brackets; the third field follows the last one.
    let behind_name = text.rsplit_once(')').context("no program name")?.1;
    let ticks: Vec<u64> =
        behind_name.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
}

fn status_kib(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}
