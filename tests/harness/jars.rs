//! Kafka's jars, fetched once by Maven into the user's cache folder and shared by every checkout.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::kafka::KafkaVersion;
use crate::skip;

/// `group:artifact:version` of what is fetched; Maven adds what these need.
fn artifacts(version: KafkaVersion) -> &'static [&'static str] {
    match version {
        KafkaVersion::V4_3_1 => &[
            "org.apache.kafka:kafka_2.13:4.3.1",
            "org.apache.kafka:kafka-tools:4.3.1",
            "org.apache.kafka:connect-runtime:4.3.1",
            "org.apache.kafka:connect-mirror:4.3.1",
            "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
        ],
        // Brings its own ZooKeeper. Without a logging back end it would fail in silence.
        KafkaVersion::V2_7_1 => &["org.apache.kafka:kafka_2.13:2.7.1", "org.slf4j:slf4j-simple:1.7.30"],
    }
}

/// Folder with the jars of this version, fetched if it is not there yet.
///
/// # Errors
/// When Maven is missing or fails; says what to do.
pub fn fetch(version: KafkaVersion) -> anyhow::Result<PathBuf> {
    let cache = cache_directory()?;
    let directory = cache.join(format!("kafka-{version}"));
    if directory.is_dir() {
        return Ok(directory);
    }
    fs::create_dir_all(&cache)?;
    // Two test processes may want the jars at once: the second waits here and then finds them.
    let lock = File::create(cache.join("kafka-jars.lock"))?;
    lock.lock().context("could not lock the cache of Kafka's jars")?;
    if !directory.is_dir() {
        fetch_with_maven(version, &cache, &directory)?;
    }
    Ok(directory)
}

/// `$XDG_CACHE_HOME/tidegate`, else `~/.cache/tidegate`.
///
/// # Errors
/// When neither variable is set.
pub fn cache_directory() -> anyhow::Result<PathBuf> {
    let parent = match std::env::var_os("XDG_CACHE_HOME") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(parent.join("tidegate"))
}

/// The folder appears by one rename, so it is whole or not there.
fn fetch_with_maven(version: KafkaVersion, cache: &Path, directory: &Path) -> anyhow::Result<()> {
    ensure!(
        skip::runs("mvn", &["-version"]),
        "Kafka {version} is not in {} and there is no Maven to fetch it; apt-get install maven",
        cache.display()
    );
    let work = tempfile::Builder::new().prefix("kafka-jars-").tempdir_in(cache)?;
    fs::write(work.path().join("pom.xml"), pom(version)?)?;
    let output = Command::new("mvn")
        .args(["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"])
        .current_dir(work.path())
        .stdin(Stdio::null())
        .output()
        .context("could not run mvn")?;
    ensure!(
        output.status.success(),
        "mvn could not fetch Kafka {version}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    fs::rename(work.path().join("jars"), directory).context("mvn fetched nothing")
}

fn pom(version: KafkaVersion) -> anyhow::Result<String> {
    let mut dependencies = String::new();
    for artifact in artifacts(version) {
        let mut parts = artifact.split(':');
        for element in ["<dependency><groupId>", "</groupId><artifactId>", "</artifactId><version>"] {
            dependencies += element;
            dependencies += parts.next().context("an artifact has three parts")?;
        }
        dependencies += "</version></dependency>\n";
    }
    Ok(format!(
        "<project>\n<modelVersion>4.0.0</modelVersion>\n<groupId>org.example</groupId><artifactId>jars</artifactId>\
         <version>1</version><packaging>pom</packaging>\n<dependencies>\n{dependencies}</dependencies>\n</project>\n"
    ))
}
