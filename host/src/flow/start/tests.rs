//! Ways back, and starts against brokers in memory that say no or nothing.

use std::path::Path;

use tidegate_embedded::{ApiKey, Cluster, ClusterOptions, Effect, Fault, ResponseError};
use tokio::sync::watch;

use super::*;
use crate::config::{LoadOptions, ProcessOverrides, load_bytes};
use crate::control::Action;

fn name(text: &str) -> FlowName {
    let (source, target) = text.split_once("->").unwrap();
    FlowName { source: ClusterAlias::new(source), target: ClusterAlias::new(target) }
}

#[test]
fn ways_back_are_found_over_any_number_of_flows() {
    let check = |flows: &[&str], expected: bool| {
        let flows: Vec<FlowName> = flows.iter().map(|text| name(text)).collect();
        assert_eq!(leads(&flows, &ClusterAlias::new("B"), &ClusterAlias::new("A")), expected, "{flows:?}");
    };
    check(&["A->B"], false);
    check(&["A->B", "B->A"], true);
    check(&["A->B", "B->C"], false);
    check(&["A->B", "B->C", "C->A"], true);
    check(&["C->D", "D->A", "A->B", "B->C"], true);
    // Round in circles beside it.
    check(&["A->B", "B->C", "C->B", "C->D", "A->C"], false);
}

#[test]
fn a_way_back_that_other_processes_serve_counts() {
    let file = "clusters = A, B, C\nbootstrap.servers = x:1\nA->B.enabled = true\nB->C.enabled = true\n\
                C->A.enabled = true\n";
    let options =
        LoadOptions { clusters: Some(vec![ClusterAlias::new("B")]), ..options(Path::new("/cache")) };
    let config = load_bytes("t", file.as_bytes(), Path::new("/"), &options).unwrap().config;
    assert_eq!(config.flows.len(), 1);
    assert!(has_way_back(&config, &name("A->B")));
}

fn options(cache_dir: &Path) -> LoadOptions {
    let flags = ProcessOverrides {
        cache_dir: Some(cache_dir.display().to_string()),
        start_timeout_ms: Some("5000".to_owned()),
        ..ProcessOverrides::default()
    };
    LoadOptions { flags, ..LoadOptions::default() }
}

/// Two clusters of one broker, with topic `orders` on A, and the file's flow A->B.
struct Stage {
    source: Cluster,
    target: Cluster,
    config: Config,
    engine: Engine,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn build(lines: &str) -> Self {
        let start = |id: &str| {
            Cluster::start(ClusterOptions { cluster_id: id.to_owned(), ..ClusterOptions::default() })
        };
        let (source, target) = (start("a").await.unwrap(), start("b").await.unwrap());
        source.create_topic("orders", 1, &[("cleanup.policy", "compact")]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = format!(
            "clusters = A, B\nA.bootstrap.servers = {}\nB.bootstrap.servers = {}\nA->B.enabled = true\n\
             replication.factor = 1\nreconnect.backoff.max.ms = 50\n{lines}",
            source.bootstrap_servers(),
            target.bootstrap_servers()
        );
        let config = load_bytes("t", file.as_bytes(), folder.path(), &options(folder.path())).unwrap().config;
        Self { source, target, config, engine: Engine::new(None).unwrap(), folder }
    }

    async fn look(&self) -> Result<Plan, FlowFailure> {
        look_once(&self.config.flows[0], &self.config, &self.engine).await
    }

    /// Runs the flow until it fails.
    async fn failure(&self) -> FlowFailure {
        let setting = FlowSetting {
            flow: self.config.flows[0].clone(),
            process: self.config.process.clone(),
            clusters: self.config.clusters.clone(),
            registry: Arc::default(),
            engine: self.engine.clone(),
            orders: std::sync::Arc::default(),
            node: Arc::new(NodeIdentity::acquire(self.folder.path()).unwrap()),
            reverse_is_enabled: false,
        };
        let (_order, stop) = watch::channel(false);
        crate::flow::run(setting, stop).await.unwrap_err()
    }
}

const ONE_REPLICA: &str = "offset.storage.replication.factor = 1\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_created_with_the_settings_of_its_source_also_when_they_are_not_kept_alike() {
    let stage = Stage::build("sync.topic.configs.enabled = false\n").await;
    let plan = stage.look().await.unwrap();
    let settings = plan.actions.iter().find_map(|action| match action {
        Action::CreateTopic { settings, .. } => Some(settings.clone()),
        _ => None,
    });
    assert_eq!(settings.unwrap(), [("cleanup.policy".to_owned(), "compact".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_look_that_is_cut_off_is_made_again() {
    let stage = Stage::build(ONE_REPLICA).await;
    // The first request finds the cluster; a look then asks the broker, and the bootstrap server after it.
    let cut = Fault::new(Effect::CutBefore).api(ApiKey::Metadata).after(1).times(4);
    let fault = stage.source.faults().add(cut);
    assert_eq!(stage.look().await.unwrap().topic_map.len(), 1);
    assert_eq!(stage.source.faults().hits(fault), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_never_answers_the_first_look_is_unavailable() {
    let stage = Stage::build(ONE_REPLICA).await;
    stage.source.faults().add(Fault::new(Effect::CutBefore).api(ApiKey::Metadata).after(1));
    let failure = stage.failure().await;
    assert!(matches!(failure, FlowFailure::Unavailable { waited_s: 5, .. }), "{failure}");
    let text = failure.to_string();
    assert!(
        text.starts_with(
            "flow A->B: could not list the topics of cluster \"A\": no broker of the cluster answered"
        ),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn more_replicas_of_positions_than_brokers_are_refused_with_the_way_out() {
    let stage = Stage::build("offset.storage.replication.factor = 3\n").await;
    let failure = stage.failure().await;
    assert!(matches!(failure, FlowFailure::Refused(_)), "{failure:?}");
    let text = failure.to_string();
    let (start, way_out) = (
        "could not create positions topic \"mm2-offsets.A.internal\" on target \"B\": InvalidReplicationFactor",
        "; set offset.storage.replication.factor to at most the number of brokers, or add brokers",
    );
    assert!(text.starts_with(start) && text.ends_with(way_out), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_target_does_not_allow_is_told_as_that() {
    for (api, error) in [
        (ApiKey::CreateTopics, ResponseError::TopicAuthorizationFailed),
        (ApiKey::CreateTopics, ResponseError::ClusterAuthorizationFailed),
        (ApiKey::FindCoordinator, ResponseError::GroupAuthorizationFailed),
    ] {
        let stage = Stage::build(ONE_REPLICA).await;
        stage.target.faults().add(Fault::new(Effect::Error(error)).api(api));
        let failure = stage.failure().await;
        assert!(matches!(failure, FlowFailure::NotAllowed(_)), "{api:?} {error:?}: {failure:?}");
    }
}
