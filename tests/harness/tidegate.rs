//! The `tidegate` binary as a child process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::eventually;
use crate::port::free_port;
use crate::process::{Process, Signal, Start, Usage};

/// Where another binary is to be tested than the one beside the test program.
const BINARY_VARIABLE: &str = "TESTED_TIDEGATE";

/// A running `tidegate run`. Dropping it kills it.
#[derive(Debug)]
pub struct Tidegate {
    process: Process,
    http_port: u16,
    directory: tempfile::TempDir,
}

/// What a command that ended left behind.
#[derive(Debug)]
pub struct Finished {
    /// The exit code.
    pub code: i32,
    /// Standard output and standard error in the order of writing.
    pub output: String,
}

impl Tidegate {
    /// Starts `tidegate run FILE ARGUMENTS…`, with its HTTP on a port of its own. It is not waited for.
    ///
    /// # Errors
    /// When the binary is not there.
    pub fn start(file: &Path, arguments: &[&str]) -> anyhow::Result<Tidegate> {
        let directory = tempfile::Builder::new().prefix("tidegate-run-").tempdir()?;
        let http_port = free_port()?;
        let mut command = vec![binary()?.into_os_string(), "run".into(), file.into()];
        command.extend(arguments.iter().map(Into::into));
        let process = Process::start(Start {
            name: "tidegate run".to_owned(),
            command,
            environment: vec![
                ("TIDEGATE_HTTP_LISTEN".to_owned(), format!("127.0.0.1:{http_port}")),
                ("RUST_BACKTRACE".to_owned(), "1".to_owned()),
            ],
            log: directory.path().join("tidegate.log"),
            directory: Some(directory.path().to_owned()),
        })?;
        Ok(Tidegate { process, http_port, directory })
    }

    /// Runs `tidegate ARGUMENTS…` to its end.
    ///
    /// # Errors
    /// When the binary is not there or the command does not end before `deadline`.
    pub async fn command(arguments: &[&str], deadline: Duration) -> anyhow::Result<Finished> {
        Self::command_with(arguments, &[], deadline).await
    }

    /// The same with these variables in its environment.
    ///
    /// # Errors
    /// As [`command`](Self::command).
    pub async fn command_with(
        arguments: &[&str],
        environment: &[(&str, &str)],
        deadline: Duration,
    ) -> anyhow::Result<Finished> {
        let mut variables = vec![("TIDEGATE_HTTP_LISTEN".to_owned(), format!("127.0.0.1:{}", free_port()?))];
        variables.extend(environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let directory = tempfile::Builder::new().prefix("tidegate-command-").tempdir()?;
        let mut command = vec![binary()?.into_os_string()];
        command.extend(arguments.iter().map(Into::into));
        let mut process = Process::start(Start {
            name: format!("tidegate {}", arguments.join(" ")),
            command,
            environment: variables,
            log: directory.path().join("tidegate.log"),
            directory: Some(directory.path().to_owned()),
        })?;
        let code = process.ended(deadline).await?;
        Ok(Finished { code, output: process.log_text() })
    }

    /// Sends SIGTERM and waits for the end; gives the exit code.
    ///
    /// # Errors
    /// When it still runs after `deadline`.
    pub async fn stop(mut self, deadline: Duration) -> anyhow::Result<i32> {
        self.process.signal(Signal::Term);
        self.process.ended(deadline).await
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When it had ended before on its own account: then there was nothing to kill.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        const TAKEN_AWAY_DEADLINE: Duration = Duration::from_secs(10);
        self.process.still_runs()?;
        self.process.signal(Signal::Kill);
        self.process.ended(TAKEN_AWAY_DEADLINE).await.map(drop)
    }

    /// Waits for the end that it takes by itself; gives the exit code.
    ///
    /// # Errors
    /// When it still runs after `deadline`.
    pub async fn ended(&mut self, deadline: Duration) -> anyhow::Result<i32> {
        self.process.ended(deadline).await
    }

    /// Fails with the end of its log when it has ended.
    ///
    /// # Errors
    /// The exit code and the log's end.
    pub fn still_runs(&mut self) -> anyhow::Result<()> {
        self.process.still_runs()
    }

    /// Waits until its log holds `text`.
    ///
    /// # Errors
    /// When it ended, or did not say so before `deadline`.
    pub async fn says(&mut self, text: &str, deadline: Duration) -> anyhow::Result<()> {
        let what = format!("{text:?} in its log");
        let said = eventually(&what, deadline, async || {
            if self.process.log_text().contains(text) {
                return Ok(());
            }
            self.process.still_runs()?;
            anyhow::bail!("it has not said it")
        });
        let result = said.await;
        result.with_context(|| self.process.log_tail())
    }

    /// Everything that it wrote.
    pub fn log_text(&self) -> String {
        self.process.log_text()
    }

    /// The end of its log, for messages.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Freezes or thaws it, as a machine that hangs.
    pub fn signal(&mut self, signal: Signal) {
        self.process.signal(signal);
    }

    /// What it used so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        self.process.usage()
    }

    /// Address of its HTTP server, `127.0.0.1:PORT`.
    pub fn http_address(&self) -> String {
        format!("127.0.0.1:{}", self.http_port)
    }

    /// Body of the answer to `GET PATH`.
    ///
    /// # Errors
    /// When nobody answers, or with another status than 200.
    pub async fn http_get(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = tokio::net::TcpStream::connect(self.http_address()).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.http_address());
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "GET {path} answers {head}: {body}");
        Ok(body.to_owned())
    }

    /// Sum of a metric over all its labels, from `/metrics`.
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let text = self.http_get("/metrics").await?;
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        // Behind the name stand labels in braces or a blank; else it is a longer name.
        let samples = lines.filter(|rest| rest.starts_with(['{', ' ']));
        Ok(samples.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// A folder that lives as long as this process.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// The binary beside the test program: `target/PROFILE/tidegate`.
///
/// # Errors
/// When it is not there; says how to build it.
pub fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(BINARY_VARIABLE) {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "{BINARY_VARIABLE} names {}, which is not there", path.display());
        return Ok(path);
    }
    let program = std::env::current_exe()?;
    let beside = program.ancestors().skip(1).take(2).map(|directory| directory.join("tidegate"));
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    beside.into_iter().find(|path| path.is_file()).with_context(|| {
        format!("there is no tidegate beside {}: cargo build -p tidegate{release}", program.display())
    })
}
