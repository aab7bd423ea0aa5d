//! What must not leave a region is found nowhere on the other side: not in a topic, not in the brokers' files, not in
//! our logs.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_tests::record::Content;
use tidegate_tests::{
    Isolation, KafkaCluster, ProducerOptions, eventually, producer::produce_contents, read_all, shared,
    topics,
};

use super::{recent_ms, with_plugin};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

const TOPIC: &str = "customers";
const ADDRESS_COUNT: usize = 1_000;
const FILTER: &str = r#"{"conditions":[{"by":"header","name":"region","allow":["eu"]}]}"#;
const REDACT: &str = r#"{"salt":"a salt of this test","fields":[
    {"paths":["email","contacts[*].email"],"action":"mask"},{"paths":["billing.email"],"action":"hash"}]}"#;

fn address(number: usize) -> String {
    format!("planted-{number:04}@secret.example")
}

/// Each record carries one address, in one of five places; some of the records are not even JSON.
fn content(number: usize) -> Content {
    let address = address(number);
    let (region, value) = match number % 5 {
        0 => ("us", format!(r#"{{"email":"{address}","note":"stays at home"}}"#)),
        1 => ("eu", format!(r#"{{"email":"{address}","order":{number}}}"#)),
        2 => ("eu", format!(r#"{{"contacts":[{{"email":"{address}"}},{{"email":null}}]}}"#)),
        // An escaped name, an escaped value, and the member twice.
        3 => ("eu", format!(r#"{{"billing":{{"\u0065mail":"{address}","email":"{address}"}}}}"#)),
        _ => ("eu", format!(r#"{{"email":"{address}" and no JSON"#)),
    };
    Content {
        key: Some(format!("customer-{number}").into_bytes()),
        value: Some(value.into_bytes()),
        headers: vec![("region".to_owned(), Some(region.into()))],
        timestamp_ms: recent_ms(number),
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

fn holds(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

fn files_with_addresses(folder: &Path) -> Vec<PathBuf> {
    let holds_one = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| holds(&bytes, b"@secret.example"));
    files_below(folder).into_iter().filter(holds_one).collect()
}

async fn topics_with_addresses(cluster: &KafkaCluster) -> Vec<String> {
    let mut found = Vec::new();
    for topic in topics::topic_names(cluster).await.unwrap() {
        let records = read_all(cluster, &topic, Isolation::ReadUncommitted).await.unwrap();
        let is_found = records.iter().any(|record| {
            let parts = [record.content.key.as_deref(), record.content.value.as_deref()];
            let headers = record.content.headers.iter().filter_map(|(_, value)| value.as_deref());
            parts.into_iter().flatten().chain(headers).any(|part| holds(part, b"@secret.example"))
        });
        if is_found {
            found.push(topic);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn none_of_a_thousand_planted_addresses_leaves() {
    // A target of its own: its files are searched whole.
    let (Some(clusters), Some(target)) = (shared::clusters().await, shared::own_cluster().await) else {
        return;
    };
    topics::create_topic(clusters.source, TOPIC, 4, &[]).await.unwrap();
    let contents = (0..ADDRESS_COUNT).map(|number| ((number % 4) as i32, content(number))).collect();
    produce_contents(clusters.source, TOPIC, contents, &ProducerOptions::default()).await.unwrap();
    let scenario = Scenario::new("res", clusters.source, &target, |file| {
        let file = file.topics(TOPIC).set("tidegate.plugins", "region, mask");
        let file = with_plugin(file, "region", "region-filter", FILTER);
        with_plugin(file, "mask", "redact", &REDACT.replace('\n', " "))
            .set("tidegate.plugin.mask.on.fault", "quarantine")
    });
    let mut process = scenario.run();
    // Four of five are of region eu, and one of five is no JSON and goes into quarantine.
    scenario.holds(&mut process, "res.customers", (ADDRESS_COUNT * 3 / 5) as i64).await;
    let quarantine = "tidegate-quarantine.target.internal";
    let kept = eventually("the quarantine to hold what is no JSON", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let all = read_all(clusters.source, quarantine, Isolation::ReadUncommitted).await?;
        let own = all.iter().filter(|record| {
            let name = |(name, value): &(String, Option<Vec<u8>>)| {
                name == "tidegate.quarantine.topic" && value.as_deref() == Some(TOPIC.as_bytes())
            };
            record.content.headers.iter().any(name)
        });
        let count = own.count();
        anyhow::ensure!(count == ADDRESS_COUNT / 5, "{count} are there");
        Ok(())
    });
    kept.await.unwrap_or_else(|error| panic!("{error:#}\n{}", process.log_tail()));
    let log = process.log_text();
    assert!(!log.contains("@secret.example"), "an address stands in the log");
    let status =
        process.http_get("/api/v1/status").await.unwrap() + &process.http_get("/metrics").await.unwrap();
    assert!(!status.contains("@secret.example"), "an address stands in status or metrics");
    stops(process).await;
    assert_eq!(topics_with_addresses(&target).await, Vec::<String>::new());
    assert_eq!(files_with_addresses(&target.log_directory()), Vec::<PathBuf>::new());
    // The search itself finds what is there.
    assert!(topics_with_addresses(clusters.source).await.contains(&TOPIC.to_owned()));
    assert!(!files_with_addresses(&clusters.source.log_directory()).is_empty());
}
