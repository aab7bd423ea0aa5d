//! A start that can't succeed says why and leaves with the exit code that scripts wait for.

use std::time::Duration;

use tidegate_tests::port::free_port;
use tidegate_tests::{FlowFile, Tidegate, shared};

use crate::scenario::Scenario;

/// The bounded wait for clusters (2 s in these files) and a little more.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_do_not_answer_end_the_start_with_69() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    let file = FlowFile::with_servers("silent", &nobody, &nobody).set("tidegate.start.timeout.ms", "2000");
    let file = file.write(directory.path()).unwrap();
    let mut process = Tidegate::start(&file, &[]).unwrap();
    let code = process.ended(REFUSAL_DEADLINE).await.unwrap();
    let log = process.log_text();
    assert_eq!(code, 69, "{log}");
    assert!(log.contains(&nobody), "it does not say which address: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_file_is_told_key_by_key_with_0() {
    let directory = tempfile::tempdir().unwrap();
    let file = FlowFile::with_servers("good", "127.0.0.1:1", "127.0.0.1:2").topics("orders");
    let file = file.write(directory.path()).unwrap();
    let finished = Tidegate::command(&["check", file.to_str().unwrap()], REFUSAL_DEADLINE).await.unwrap();
    assert_eq!(finished.code, 0, "{}", finished.output);
    assert!(finished.output.contains("good->target.topics"), "{}", finished.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_is_refused_with_78_and_all_its_problems() {
    let directory = tempfile::tempdir().unwrap();
    let file = FlowFile::with_servers("bad", "127.0.0.1:1", "127.0.0.1:2")
        .set("replication.factor", "many")
        .set_for_flow("topics", "orders[");
    let file = file.write(directory.path()).unwrap();
    for command in ["check", "run"] {
        let finished = Tidegate::command(&[command, file.to_str().unwrap()], REFUSAL_DEADLINE).await.unwrap();
        assert_eq!(finished.code, 78, "{}", finished.output);
        for part in ["replication.factor", "many", "orders["] {
            assert!(finished.output.contains(part), "{command} does not tell {part}: {}", finished.output);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_there_and_a_wrong_command_have_their_own_codes() {
    let finished = Tidegate::command(&["check", "/nowhere/mm2.properties"], REFUSAL_DEADLINE).await.unwrap();
    assert_eq!(finished.code, 78, "{}", finished.output);
    let finished = Tidegate::command(&["copy", "everything"], REFUSAL_DEADLINE).await.unwrap();
    assert_eq!(finished.code, 64, "{}", finished.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_from_a_cluster_to_itself_under_the_same_names_is_refused() {
    let Some(clusters) = shared::clusters().await else { return };
    let scenario = Scenario::new("mirror", clusters.target, clusters.target, |file| {
        file.topics("anything").identity_names()
    });
    let mut process = scenario.run();
    let code = process.ended(REFUSAL_DEADLINE).await.unwrap();
    let log = process.log_text();
    assert_eq!(code, 78, "{log}");
    assert!(log.contains("are one cluster"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_metrics_and_status_answer() {
    let Some(clusters) = shared::clusters().await else { return };
    let scenario =
        Scenario::new("health", clusters.source, clusters.target, |file| file.topics("nothing-yet"));
    let mut process = scenario.run();
    let ready = tidegate_tests::eventually("the process to be ready", REFUSAL_DEADLINE, async || {
        process.still_runs()?;
        process.http_get("/health/ready").await
    });
    ready.await.unwrap();
    process.http_get("/health/live").await.unwrap();
    assert!(process.http_get("/metrics").await.unwrap().contains("tidegate_flow_state"));
    assert!(process.http_get("/api/v1/status").await.unwrap().contains("health->target"));
    crate::scenario::stops(process).await;
}
