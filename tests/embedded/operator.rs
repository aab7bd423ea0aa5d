//! What an operator does to a flow that runs: orders over HTTP and by commands, looks at its status.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tidegate_tests::tidegate::Finished;
use tidegate_tests::{Tidegate, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scenario::{ARRIVAL_DEADLINE, Scenario};

/// The flow of a scenario whose source is called `mem`.
pub(super) const FLOW: &str = "mem->target";

/// A command waits for every node at most 30 s; a loaded machine needs some more.
const COMMAND_DEADLINE: Duration = Duration::from_secs(60);

/// Orders something over HTTP, with the token; gives code and body.
pub(super) async fn order(
    scenario: &Scenario<'_>,
    process: &Tidegate,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let token = std::fs::read_to_string(token_file(scenario)).unwrap();
    order_with(process, path, body, token.trim()).await.unwrap()
}

/// The same with any token.
pub(super) async fn order_with(
    process: &Tidegate,
    path: &str,
    body: &Value,
    token: &str,
) -> anyhow::Result<(u16, Value)> {
    let mut stream = tokio::net::TcpStream::connect(process.http_address()).await?;
    let body = body.to_string();
    let request = format!(
        "POST /api/v1/flows/mem-%3Etarget/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    let code = head.split(' ').nth(1).context("no code")?.parse()?;
    Ok((code, serde_json::from_str(body).with_context(|| format!("{head}: {body}"))?))
}

/// Runs `tidegate ARGUMENTS…` against a process, with its token; `cache` is the scenario's `tidegate.cache.dir`.
pub(super) async fn command(scenario: &Scenario<'_>, process: &Tidegate, arguments: &[&str]) -> Finished {
    let token_file = token_file(scenario);
    let address = process.http_address();
    let own = ["--http", &address, "--token-file", token_file.to_str().unwrap()];
    Tidegate::command(&[arguments, &own].concat(), COMMAND_DEADLINE).await.unwrap()
}

/// The same; it must end with this code. Gives what was said.
pub(super) async fn commanded(
    scenario: &Scenario<'_>,
    process: &Tidegate,
    arguments: &[&str],
    code: i32,
) -> String {
    let Finished { code: found, output } = command(scenario, process, arguments).await;
    assert_eq!(found, code, "{arguments:?}: {output}\n{}", process.log_tail());
    output
}

fn token_file(scenario: &Scenario<'_>) -> std::path::PathBuf {
    scenario.file.parent().unwrap().join("cache/http.token")
}

/// What `/api/v1/status` says of a flow.
pub(super) async fn flow_status(process: &Tidegate, flow: &str) -> anyhow::Result<Value> {
    let status: Value = serde_json::from_str(&process.http_get("/api/v1/status").await?)?;
    let flows = status["flows"].as_array().context("a status without flows")?;
    let found = flows.iter().find(|own| own["name"] == flow);
    found.cloned().with_context(|| format!("{flow} is not in {status}"))
}

/// What it says of a partition.
pub(super) fn partition_status<'a>(
    flow: &'a Value,
    topic: &str,
    partition: i32,
) -> anyhow::Result<&'a Value> {
    let partitions = flow["partitions"].as_array().context("a flow without partitions")?;
    let found = partitions.iter().find(|own| own["topic"] == topic && own["partition"] == partition);
    found.with_context(|| format!("{topic}[{partition}] is not in {flow}"))
}

/// Waits until a partition stands still, and gives why.
pub(super) async fn paused(
    process: &mut Tidegate,
    topic: &str,
    partition: i32,
    is_meant: impl Fn(&Value) -> bool,
) -> Value {
    let what = format!("{topic}[{partition}] to pause");
    let paused = eventually(&what, ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let flow = flow_status(process, FLOW).await?;
        let paused = partition_status(&flow, topic, partition)?["paused"].clone();
        anyhow::ensure!(!paused.is_null() && is_meant(&paused), "{flow}");
        Ok(paused)
    });
    match paused.await {
        Ok(paused) => paused,
        Err(problem) => panic!("{problem:#}\n{}", process.log_tail()),
    }
}
