//! Settings of the process, not of a flow: `tidegate.http.listen` and the like. The `config` crate layers them:
//! defaults < file < environment (`TIDEGATE_HTTP_LISTEN`) < flags.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::problem::Problem;
use super::report::Fate;
use super::settings::Settings;
use super::{LoadOptions, secrets, values};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What holds for the whole process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessConfig {
    /// `tidegate.http.listen`, default `127.0.0.1:8642`: where health, metrics and the API answer. Always a loopback
    /// address unless `tidegate.http.token.file` is set: beyond this machine everything wants the token.
    pub http_listen: SocketAddr,
    /// `tidegate.workers`, default half the processors, at least 1, at most 8: relay threads for each flow. A thread moves
    /// hundreds of MB/s, so more serve many slots with plugins, and each holds its own buffer. In place of `tasks.max`.
    pub workers: usize,
    /// `tidegate.worker.buffer.mb`, default 16 MiB: the budget of one worker for data that is fetched and not settled.
    /// More rides out a slow target and fills fast long lines (bandwidth × delay); it is memory. In place of the
    /// producer's `buffer.memory`.
    pub worker_buffer_bytes: usize,
    /// `tidegate.cache.dir`, default `$XDG_CACHE_HOME/tidegate`, else `$HOME/.cache/tidegate`: this node's identity, compiled
    /// plugins, the token that was made by itself.
    pub cache_dir: PathBuf,
    /// `tidegate.log.format`, default `text`.
    pub log_format: LogFormat,
    /// `tidegate.start.timeout.ms`, default 30 000: how long a cluster may be unreachable at the start before the process
    /// gives up (exit 69).
    pub start_timeout: Duration,
    /// `tidegate.stop.timeout.ms`, default 30 000: how long a stop may take to settle and store positions. Keep it below
    /// what the service manager waits before it kills.
    pub stop_timeout: Duration,
    /// `tidegate.wait.for.mirror.maker`, default false: when MirrorMaker 2 still runs a flow, wait for its end (true) or
    /// leave with a word (false).
    pub wait_for_mirror_maker: bool,
    /// `tidegate.http.token.file`, a file that must be there; default `<cache.dir>/http.token` (None says so), which is made
    /// when it is absent. Who has its content may change something over HTTP.
    pub http_token_file: Option<PathBuf>,
    /// `tidegate.plugins.watch`, default false: a module file that changes is swapped in while the flow runs.
    pub plugins_watch: bool,
}

/// What flags of the command line say; the strongest layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOverrides {
    /// `--http-listen`.
    pub http_listen: Option<String>,
    /// `--workers`.
    pub workers: Option<String>,
    /// `--worker-buffer-mb`.
    pub worker_buffer_mb: Option<String>,
    /// `--cache-dir`.
    pub cache_dir: Option<String>,
    /// `--log-format`.
    pub log_format: Option<String>,
    /// `--start-timeout-ms`.
    pub start_timeout_ms: Option<String>,
    /// `--stop-timeout-ms`.
    pub stop_timeout_ms: Option<String>,
    /// `--wait-for-mirror-maker`.
    pub wait_for_mirror_maker: Option<String>,
    /// `--http-token-file`.
    pub http_token_file: Option<String>,
    /// `--plugins-watch`.
    pub plugins_watch: Option<String>,
}

/// A setting and the name that it has in each layer.
struct Setting {
    /// Behind `tidegate.` in the file.
    name: &'static str,
    default: &'static str,
    flag: fn(&ProcessOverrides) -> Option<&String>,
}

const SETTINGS: [Setting; 10] = [
    Setting { name: "http.listen", default: "127.0.0.1:8642", flag: |flags| flags.http_listen.as_ref() },
    Setting { name: "workers", default: "", flag: |flags| flags.workers.as_ref() },
    Setting { name: "worker.buffer.mb", default: "16", flag: |flags| flags.worker_buffer_mb.as_ref() },
    Setting { name: "cache.dir", default: "", flag: |flags| flags.cache_dir.as_ref() },
    Setting { name: "log.format", default: "text", flag: |flags| flags.log_format.as_ref() },
    Setting { name: "start.timeout.ms", default: "30000", flag: |flags| flags.start_timeout_ms.as_ref() },
    Setting { name: "stop.timeout.ms", default: "30000", flag: |flags| flags.stop_timeout_ms.as_ref() },
    Setting {
        name: "wait.for.mirror.maker",
        default: "false",
        flag: |flags| flags.wait_for_mirror_maker.as_ref(),
    },
    Setting { name: "http.token.file", default: "", flag: |flags| flags.http_token_file.as_ref() },
    Setting { name: "plugins.watch", default: "false", flag: |flags| flags.plugins_watch.as_ref() },
];

const KEYS: [&str; 10] = [
    "tidegate.http.listen",
    "tidegate.workers",
    "tidegate.worker.buffer.mb",
    "tidegate.cache.dir",
    "tidegate.log.format",
    "tidegate.start.timeout.ms",
    "tidegate.stop.timeout.ms",
    "tidegate.wait.for.mirror.maker",
    TOKEN_FILE_KEY,
    "tidegate.plugins.watch",
];

/// It sounds like a secret and is the place of one.
pub(super) const TOKEN_FILE_KEY: &str = "tidegate.http.token.file";

/// What the logs' filter is read from, where logs are started.
const LOG_VARIABLE: &str = "TIDEGATE_LOG";

/// The settings' keys in the file.
pub(super) fn keys() -> impl Iterator<Item = &'static str> + Clone {
    KEYS.into_iter()
}

const ENVIRONMENT_PREFIX: &str = "TIDEGATE";

fn variable(name: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}_{}", name.replace('.', "_").to_ascii_uppercase())
}

fn flag(name: &str) -> String {
    format!("--{}", name.replace('.', "-"))
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Default,
    File,
    Environment,
    Flag,
}

struct Reader<'a> {
    settings: &'a mut Settings,
    options: &'a LoadOptions,
    layers: config::Config,
    folder: &'a Path,
}

/// Reads the settings of the process; `folder` is the file's, where its relative paths start.
pub(super) fn read(settings: &mut Settings, options: &LoadOptions, folder: &Path) -> ProcessConfig {
    warn_of_unknown_variables(settings, options);
    let layers = match layers(settings, options) {
        Ok(layers) => layers,
        Err(error) => {
            settings
                .problems
                .push(Problem::of_file(format!("the process settings can't be layered: {error}")));
            config::Config::default()
        }
    };
    let mut reader = Reader { settings, options, layers, folder };
    let http_token_file = reader.path("http.token.file");
    ProcessConfig {
        http_listen: reader.http_listen(http_token_file.is_some()),
        workers: reader
            .parsed("workers", |value| values::number(value, 1, 256))
            .map_or_else(default_workers, to_usize),
        worker_buffer_bytes: 1_048_576
            * reader
                .parsed("worker.buffer.mb", |value| values::number(value, 1, 65_536))
                .map_or(16, to_usize),
        cache_dir: reader.cache_dir(),
        log_format: reader.parsed("log.format", log_format).unwrap_or(LogFormat::Text),
        start_timeout: reader.milliseconds("start.timeout.ms"),
        stop_timeout: reader.milliseconds("stop.timeout.ms"),
        wait_for_mirror_maker: reader.parsed("wait.for.mirror.maker", values::boolean).unwrap_or(false),
        http_token_file,
        plugins_watch: reader.parsed("plugins.watch", values::boolean).unwrap_or(false),
    }
}

fn layers(settings: &Settings, options: &LoadOptions) -> Result<config::Config, config::ConfigError> {
    let mut file = config::Config::builder();
    let mut builder = config::Config::builder();
    // Only known variables go in: Kubernetes sets TIDEGATE_PORT and its like for a service of that name.
    let mut environment = config::Map::new();
    for setting in &SETTINGS {
        builder = builder.set_default(setting.name, setting.default)?;
        if let Some(value) = settings.peek(&format!("tidegate.{}", setting.name)) {
            file = file.set_override(setting.name, value)?;
        }
        let variable = variable(setting.name);
        if let Some(value) = options.environment.get(&variable) {
            environment.insert(variable, value.clone());
        }
    }
    let environment =
        config::Environment::with_prefix(ENVIRONMENT_PREFIX).separator("_").source(Some(environment));
    builder = builder.add_source(file.build()?).add_source(environment);
    for setting in &SETTINGS {
        builder = builder.set_override_option(setting.name, (setting.flag)(&options.flags).cloned())?;
    }
    builder.build()
}

/// Kubernetes sets variables of this prefix for a service called `tidegate`: strange ones are told, not refused.
fn warn_of_unknown_variables(settings: &mut Settings, options: &LoadOptions) {
    let known: Vec<String> =
        SETTINGS.iter().map(|setting| variable(setting.name)).chain([LOG_VARIABLE.to_owned()]).collect();
    let prefix = format!("{ENVIRONMENT_PREFIX}_");
    let is_unknown = |name: &&String| name.starts_with(&prefix) && !known.contains(name);
    for name in options.environment.keys().filter(is_unknown) {
        // The prefix is left out: it would make all names alike.
        let own = |name: &'_ str| name[prefix.len()..].to_owned();
        let known: Vec<String> = known.iter().map(|name| own(name)).collect();
        let closest = values::closest(&own(name), known.iter().map(String::as_str));
        let closest = closest.map(|name| format!("{prefix}{name}"));
        settings.warnings.push(Problem {
            key: Some(name.clone()),
            closest,
            ..Problem::of_file("this environment variable is unknown to Tidegate and does nothing")
        });
    }
}

impl Reader<'_> {
    fn origin(&self, name: &str) -> Origin {
        let setting = SETTINGS.iter().find(|setting| setting.name == name);
        if setting.is_some_and(|setting| (setting.flag)(&self.options.flags).is_some()) {
            Origin::Flag
        } else if self.options.environment.contains_key(&variable(name)) {
            Origin::Environment
        } else if self.settings.peek(&format!("tidegate.{name}")).is_some() {
            Origin::File
        } else {
            Origin::Default
        }
    }

    /// The value of the strongest layer; the file's key gets its fate.
    fn value(&mut self, name: &str) -> String {
        let key = format!("tidegate.{name}");
        match self.origin(name) {
            Origin::Flag => self.settings.judge(&key, Fate::Ignored, format!("{} is stronger", flag(name))),
            Origin::Environment => {
                self.settings.judge(
                    &key,
                    Fate::Ignored,
                    format!("{} in the environment is stronger", variable(name)),
                );
            }
            Origin::File | Origin::Default => self.settings.judge(&key, Fate::Honoured, ""),
        }
        self.layers.get_string(name).unwrap_or_default()
    }

    /// None for an empty value, which is the same as none.
    fn parsed<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let value = self.value(name);
        if values::trim(&value).is_empty() {
            return None;
        }
        parse(&value).map_err(|text| self.refuse(name, &value, text)).ok()
    }

    fn refuse(&mut self, name: &str, value: &str, text: String) {
        let key = match self.origin(name) {
            Origin::Flag => flag(name),
            Origin::Environment => variable(name),
            Origin::File | Origin::Default => return self.settings.refuse(&format!("tidegate.{name}"), text),
        };
        let found = Some(secrets::printable(secrets::holds_user_information(value), &key, value));
        self.settings.problems.push(Problem { line: None, key: Some(key), found, text, closest: None });
    }

    fn milliseconds(&mut self, name: &str) -> Duration {
        const MILLISECONDS_MAX: i64 = 24 * 3_600_000;
        let number = self.parsed(name, |value| values::number(value, 0, MILLISECONDS_MAX));
        Duration::from_millis(number.unwrap_or(30_000).unsigned_abs())
    }

    fn path(&mut self, name: &str) -> Option<PathBuf> {
        let path = self.parsed(name, |value| Ok(PathBuf::from(values::trim(value))))?;
        Some(if self.origin(name) == Origin::File { self.folder.join(path) } else { path })
    }

    fn http_listen(&mut self, has_token: bool) -> SocketAddr {
        const NAME: &str = "http.listen";
        let parse = |value: &str| {
            let address: Result<SocketAddr, _> = values::trim(value).parse();
            address.map_err(|_| "wants an address and a port, as in 127.0.0.1:8642".to_owned())
        };
        let default = SocketAddr::from(([127, 0, 0, 1], 8642));
        let address = self.parsed(NAME, parse).unwrap_or(default);
        if !address.ip().is_loopback() && !has_token {
            let text = "whoever asks from beyond this machine must show a token; name its file with tidegate.http.token.file, or \
                        listen on 127.0.0.1";
            self.refuse(NAME, &address.to_string(), text.to_owned());
        }
        address
    }

    fn cache_dir(&mut self) -> PathBuf {
        const NAME: &str = "cache.dir";
        if let Some(path) = self.path(NAME) {
            return path;
        }
        let folder = |variable: &str| {
            let value = self.options.environment.get(variable).filter(|value| value.starts_with('/'));
            value.map(PathBuf::from)
        };
        let home = || folder("HOME").map(|home| home.join(".cache"));
        match folder("XDG_CACHE_HOME").or_else(home) {
            Some(cache) => cache.join("tidegate"),
            None => {
                self.settings.problems.push(Problem {
                    key: Some(format!("tidegate.{NAME}")),
                    ..Problem::of_file(
                        "is not set, and neither XDG_CACHE_HOME nor HOME says where a cache may be; name a folder of one's own",
                    )
                });
                PathBuf::new()
            }
        }
    }
}

fn log_format(value: &str) -> Result<LogFormat, String> {
    match values::trim(value) {
        word if word.eq_ignore_ascii_case("text") => Ok(LogFormat::Text),
        word if word.eq_ignore_ascii_case("json") => Ok(LogFormat::Json),
        _ => Err("wants text or json".into()),
    }
}

fn to_usize(number: i64) -> usize {
    usize::try_from(number).unwrap_or(1)
}

fn default_workers() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).clamp(1, 8)
}

#[cfg(test)]
mod tests;
