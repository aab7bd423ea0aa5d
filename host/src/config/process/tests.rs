//! The process settings' layers, and what is said of bad ones.

use std::collections::BTreeMap;

use super::*;
use crate::config::{Loaded, load_bytes};

const FLOW: &str = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\nemit.heartbeats.enabled=false\n";

fn load(extra: &str, environment: &[(&str, &str)], flags: ProcessOverrides) -> Result<Loaded, String> {
    let environment: BTreeMap<String, String> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = LoadOptions { clusters: None, environment, flags };
    load_bytes("mm2.properties", format!("{FLOW}{extra}").as_bytes(), Path::new("/etc/mm2"), &options)
        .map_err(|error| error.to_string())
}

/// Takes note of what is not there yet.
const SILENCED: &str = "emit.offset-syncs.enabled=false\nemit.checkpoints.enabled=false\nsync.topic.acls.enabled=false\n\
                        sync.topic.configs.enabled=false\n";

const HOME: (&str, &str) = ("HOME", "/home/kafka");

#[test]
fn defaults_hold_where_nothing_is_said() {
    let process = load("", &[HOME], ProcessOverrides::default()).unwrap().config.process;
    assert_eq!(
        process,
        ProcessConfig {
            http_listen: "127.0.0.1:8642".parse().unwrap(),
            workers: default_workers(),
            worker_buffer_bytes: 16 * 1_048_576,
            cache_dir: "/home/kafka/.cache/tidegate".into(),
            log_format: LogFormat::Text,
            start_timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(30),
            wait_for_mirror_maker: false,
            http_token_file: None,
            plugins_watch: false,
        }
    );
}

#[test]
fn flags_beat_the_environment_and_that_the_file() {
    let file = "tidegate.workers=2\ntidegate.log.format=json\ntidegate.http.listen=127.0.0.1:1\ntidegate.cache.dir=cache\n";
    let environment = [HOME, ("TIDEGATE_WORKERS", "3"), ("TIDEGATE_HTTP_LISTEN", "127.0.0.1:2")];
    let flags = ProcessOverrides { workers: Some("4".into()), ..ProcessOverrides::default() };
    let loaded = load(file, &environment, flags).unwrap();
    let process = loaded.config.process;
    assert_eq!(process.workers, 4);
    assert_eq!(process.http_listen, "127.0.0.1:2".parse().unwrap());
    assert_eq!(process.log_format, LogFormat::Json);
    assert_eq!(process.cache_dir, Path::new("/etc/mm2/cache"));
    let fates: Vec<String> =
        loaded.report.rows[5..].iter().map(|row| format!("{} {} {}", row.key, row.fate, row.note)).collect();
    assert_eq!(
        fates,
        [
            "tidegate.workers ignored --workers is stronger",
            "tidegate.log.format honoured ",
            "tidegate.http.listen ignored TIDEGATE_HTTP_LISTEN in the environment is stronger",
            "tidegate.cache.dir honoured ",
        ]
    );
}

#[test]
fn every_setting_has_its_key_and_is_read_from_each_layer() {
    assert_eq!(SETTINGS.map(|setting| format!("tidegate.{}", setting.name)), KEYS);
    let values = ["[::1]:9", "7", "5", "/c", "json", "1", "2", "true", "/t", "true"];
    let expected = ProcessConfig {
        http_listen: "[::1]:9".parse().unwrap(),
        workers: 7,
        worker_buffer_bytes: 5 * 1_048_576,
        cache_dir: "/c".into(),
        log_format: LogFormat::Json,
        start_timeout: Duration::from_millis(1),
        stop_timeout: Duration::from_millis(2),
        wait_for_mirror_maker: true,
        http_token_file: Some("/t".into()),
        plugins_watch: true,
    };
    let variables: Vec<String> = SETTINGS.iter().map(|setting| variable(setting.name)).collect();
    let environment: Vec<(&str, &str)> = variables.iter().map(String::as_str).zip(values).collect();
    assert_eq!(load("", &environment, ProcessOverrides::default()).unwrap().config.process, expected);
    let [listen, workers, buffer, cache, format, start, stop, wait, token, watch] =
        values.map(|value| Some(value.to_owned()));
    let flags = ProcessOverrides {
        http_listen: listen,
        workers,
        worker_buffer_mb: buffer,
        cache_dir: cache,
        log_format: format,
        start_timeout_ms: start,
        stop_timeout_ms: stop,
        wait_for_mirror_maker: wait,
        http_token_file: token,
        plugins_watch: watch,
    };
    assert_eq!(load("", &[], flags).unwrap().config.process, expected);
    let file: String = KEYS.iter().zip(values).map(|(key, value)| format!("{key}={value}\n")).collect();
    let from_file = load(&file, &[], ProcessOverrides::default()).unwrap().config.process;
    assert_eq!(from_file, expected);
}

#[test]
fn bad_settings_are_named_where_they_stand() {
    let flags = ProcessOverrides { workers: Some("many".into()), ..ProcessOverrides::default() };
    let environment = [("TIDEGATE_LOG_FORMAT", "xml"), ("TIDEGATE_PORT", "tcp://10.0.0.1:80")];
    let file = "tidegate.http.listen=0.0.0.0:8642\ntidegate.stop.timeout.ms=5s\ntidegate.cache.dri=x\n";
    assert_eq!(
        load(file, &environment, flags).unwrap_err(),
        "mm2.properties has 6 problems:\n  \
         line 6: tidegate.http.listen = \"0.0.0.0:8642\": whoever asks from beyond this machine must show a \
         token; name its file with tidegate.http.token.file, or listen on 127.0.0.1\n  \
         line 7: tidegate.stop.timeout.ms = \"5s\": wants a whole number from 0 to 86400000\n  \
         line 8: tidegate.cache.dri = \"(hidden)\": unknown key of Tidegate; did you mean \"tidegate.cache.dir\"?\n  \
         --workers = \"many\": wants a whole number from 1 to 256\n  \
         tidegate.cache.dir: is not set, and neither XDG_CACHE_HOME nor HOME says where a cache may be; name a folder of \
         one's own\n  \
         TIDEGATE_LOG_FORMAT = \"xml\": wants text or json"
    );
}

#[test]
fn only_a_token_opens_the_door() {
    let flags =
        || ProcessOverrides { http_listen: Some("10.0.0.1:80".into()), ..ProcessOverrides::default() };
    assert_eq!(
        load(SILENCED, &[HOME], flags()).unwrap_err(),
        "mm2.properties has 1 problem:\n  --http-listen = \"10.0.0.1:80\": whoever asks from beyond this machine must show a token; \
         name its file with tidegate.http.token.file, or listen on 127.0.0.1"
    );
    let file = format!("{SILENCED}tidegate.http.token.file=token\n");
    let loaded = load(&file, &[HOME], flags()).unwrap();
    assert_eq!(loaded.config.process.http_listen, "10.0.0.1:80".parse().unwrap());
    assert_eq!(loaded.config.process.http_token_file, Some("/etc/mm2/token".into()));
    let row = loaded.report.rows.last().unwrap();
    assert_eq!((row.fate, row.value.as_str()), (Fate::Honoured, "token"));
    let environment = [HOME, ("TIDEGATE_HTTP_TOKEN_FILE", "run/token")];
    let loaded = load(&file, &environment, ProcessOverrides::default()).unwrap();
    assert_eq!(loaded.config.process.http_token_file, Some("run/token".into()));
    assert_eq!(loaded.warnings, []);
}

#[test]
fn strange_variables_are_told_and_harmless() {
    let environment = [
        HOME,
        ("TIDEGATE_PORT", "tcp://10.0.0.1:80"),
        ("TIDEGATE_HTTP_LISEN", "x"),
        ("TIDEGATE_LOG", "debug"),
    ];
    let loaded = load(SILENCED, &environment, ProcessOverrides::default()).unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "TIDEGATE_HTTP_LISEN: this environment variable is unknown to Tidegate and does nothing; did you mean \
             \"TIDEGATE_HTTP_LISTEN\"?",
            "TIDEGATE_PORT: this environment variable is unknown to Tidegate and does nothing",
        ]
    );
}
