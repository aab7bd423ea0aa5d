//! The commands; each a file. Exit codes follow `sysexits.h`.

mod check;
mod client;
mod demo;
mod exit;
mod flow;
mod logs;
mod plan;
mod plugin;
mod plugin_live;
mod quarantine;
mod run;
mod status;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::exit::{Exit, Failure};
use crate::config::{LoadOptions, Loaded, ProcessOverrides};
use crate::names::ClusterAlias;

/// Replicates Kafka topics between clusters from MirrorMaker 2's configuration file.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy topics as the file says, until SIGTERM or Ctrl-C.
    Run(RunArguments),
    /// Say what becomes of every key of the file, and all that is wrong with it. Asks no cluster.
    Check(CheckArguments),
    /// Look at the clusters, say what `run` would create and copy, and stop.
    Plan(PlanArguments),
    /// Show what a running Tidegate does.
    Status(StatusArguments),
    /// Write, test, measure and look at plugins.
    Plugin(plugin::PluginArguments),
    /// Tell a running flow to go on where a plugin stopped it.
    Flow(flow::FlowArguments),
    /// Look at records that plugins could not judge or refused, and play them again.
    Quarantine(quarantine::QuarantineArguments),
    /// Copy orders between two clusters in memory and watch it; needs nothing else.
    Demo(DemoArguments),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

#[derive(Debug, Args)]
struct FileArguments {
    /// MirrorMaker 2's file, such as connect-mirror-maker.properties.
    file: PathBuf,
    /// Serve only flows into these clusters, as connect-mirror-maker.sh does. All when absent.
    #[arg(long, num_args = 1.., value_name = "ALIAS")]
    clusters: Vec<String>,
}

#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    file: FileArguments,
    #[command(flatten)]
    process: ProcessArguments,
}

#[derive(Debug, Default, Args)]
struct ProcessArguments {
    /// Where status, health and metrics are served (tidegate.http.listen) [default: 127.0.0.1:8642]
    #[arg(long, value_name = "ADDRESS:PORT")]
    http_listen: Option<String>,
    /// Relay threads a flow (tidegate.workers).
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Data that one worker may hold, in MiB (tidegate.worker.buffer.mb) [default: 16]
    #[arg(long, value_name = "N")]
    worker_buffer_mb: Option<String>,
    /// Where the node's identity, compiled plugins and the token made by itself are kept (tidegate.cache.dir).
    #[arg(long, value_name = "FOLDER")]
    cache_dir: Option<String>,
    /// text or json (tidegate.log.format).
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// How long a cluster may be out of reach at the start (tidegate.start.timeout.ms) [default: 30000]
    #[arg(long, value_name = "N")]
    start_timeout_ms: Option<String>,
    /// How long a stop may settle and store positions (tidegate.stop.timeout.ms) [default: 30000]
    #[arg(long, value_name = "N")]
    stop_timeout_ms: Option<String>,
    /// Wait while a running MirrorMaker 2 holds the flow, instead of ending (tidegate.wait.for.mirror.maker).
    #[arg(long)]
    wait_for_mirror_maker: bool,
    /// File with the token that who changes something must show (tidegate.http.token.file); it must be there
    /// [default: http.token in the cache folder, which is made when absent]
    #[arg(long, value_name = "FILE")]
    http_token_file: Option<String>,
    /// Swap a plugin in when its module file changes (tidegate.plugins.watch).
    #[arg(long)]
    plugins_watch: bool,
}

#[derive(Debug, Args)]
struct CheckArguments {
    #[command(flatten)]
    file: FileArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Args)]
struct PlanArguments {
    #[command(flatten)]
    file: FileArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Args)]
struct StatusArguments {
    #[command(flatten)]
    client: client::ClientArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Longest demo that ends by itself, in seconds: a year.
const SECONDS_MAX: u64 = 365 * 24 * 3_600;

#[derive(Debug, Args)]
struct DemoArguments {
    /// End by itself after so many seconds; without it the demo runs until Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: Option<u64>,
    /// Orders per second.
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Port of cluster east; 0 lets the system choose.
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    east_port: u16,
    /// Port of cluster west; 0 lets the system choose.
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    west_port: u16,
    /// Where status, health and metrics are served; port 0 lets the system choose.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    http_listen: String,
}

/// Prints to standard output. A reader that has gone (`| head`) is no error: what it wanted, it has.
fn print(text: &str) {
    use std::io::Write as _;
    let _reader_may_have_gone = std::io::stdout().lock().write_all(text.as_bytes());
}

/// What records and plugins say may not steer the terminal that shows it.
fn visible(text: &str) -> String {
    let shown = |character: char| match character.is_control() && !matches!(character, '\n' | '\t') {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Runs the command line and gives the process's exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(problem) => {
            let _closed_output = problem.print();
            let is_help = !problem.use_stderr();
            return if is_help { ExitCode::SUCCESS } else { Exit::Usage.into() };
        }
    };
    let result = match cli.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Plugin(arguments) => plugin::run(&arguments),
        Command::Flow(arguments) => flow::run(&arguments),
        Command::Quarantine(arguments) => quarantine::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tidegate: {failure}");
            failure.exit.into()
        }
    }
}

impl FileArguments {
    fn load(&self, process: &ProcessArguments) -> Result<Loaded, Failure> {
        crate::config::load(&self.file, &self.options(process))
            .map_err(|problem| config_failure(&self.file, &problem))
    }

    fn options(&self, process: &ProcessArguments) -> LoadOptions {
        let clusters = (!self.clusters.is_empty())
            .then(|| self.clusters.iter().map(|alias| ClusterAlias::new(alias)).collect());
        LoadOptions {
            clusters,
            environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            flags: process.overrides(),
        }
    }
}

impl ProcessArguments {
    fn overrides(&self) -> ProcessOverrides {
        ProcessOverrides {
            http_listen: self.http_listen.clone(),
            workers: self.workers.clone(),
            worker_buffer_mb: self.worker_buffer_mb.clone(),
            cache_dir: self.cache_dir.clone(),
            log_format: self.log_format.clone(),
            start_timeout_ms: self.start_timeout_ms.clone(),
            stop_timeout_ms: self.stop_timeout_ms.clone(),
            wait_for_mirror_maker: self.wait_for_mirror_maker.then(|| "true".to_owned()),
            http_token_file: self.http_token_file.clone(),
            plugins_watch: self.plugins_watch.then(|| "true".to_owned()),
        }
    }
}

fn config_failure(file: &Path, problem: &crate::config::LoadError) -> Failure {
    let hint = format!("`tidegate check {}` shows what becomes of every key", file.display());
    Failure { exit: Exit::Configuration, problem: anyhow::anyhow!("{problem}\n{hint}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_dont_steer_the_terminal() {
        assert_eq!(visible("a\u{1b}[2J\r\u{9b}\tb\nü"), "a\\u{1b}[2J\\r\\u{9b}\tb\nü");
    }

    #[test]
    fn every_setting_of_the_process_has_its_flag() {
        let line = "tidegate run f --http-listen 127.0.0.1:1 --workers 2 --worker-buffer-mb 3 --cache-dir c --log-format json \
                    --start-timeout-ms 4 --stop-timeout-ms 5 --wait-for-mirror-maker --http-token-file t --plugins-watch";
        let Command::Run(arguments) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("run is another command")
        };
        let text = |value: &str| Some(value.to_owned());
        assert_eq!(
            arguments.process.overrides(),
            ProcessOverrides {
                http_listen: text("127.0.0.1:1"),
                workers: text("2"),
                worker_buffer_mb: text("3"),
                cache_dir: text("c"),
                log_format: text("json"),
                start_timeout_ms: text("4"),
                stop_timeout_ms: text("5"),
                wait_for_mirror_maker: text("true"),
                http_token_file: text("t"),
                plugins_watch: text("true"),
            }
        );
    }
}
