//! Clusters that scenarios share: a start takes seconds and both cores. They are started when the first scenario asks,
//! and their keepers (see `process`) end them with the test process. A scenario that stops or kills a broker has its own.

use tokio::sync::OnceCell;

use crate::kafka::{KafkaCluster, KafkaOptions, KafkaVersion};
use crate::skip;

/// A source and a target.
#[derive(Debug, Clone, Copy)]
pub struct Clusters {
    /// Where the records are.
    pub source: &'static KafkaCluster,
    /// Where they go.
    pub target: &'static KafkaCluster,
}

static SOURCE: OnceCell<KafkaCluster> = OnceCell::const_new();
static OLD_SOURCE: OnceCell<KafkaCluster> = OnceCell::const_new();
static TARGET: OnceCell<KafkaCluster> = OnceCell::const_new();

/// Two clusters of today, or `None` (told loudly) where they can't run.
///
/// # Panics
/// When they can run but don't come up, or with `CI=true` where they can't run.
pub async fn clusters() -> Option<Clusters> {
    pair(&SOURCE, KafkaVersion::V4_3_1).await
}

/// An old cluster and one of today, or `None` (told loudly) where they can't run.
///
/// # Panics
/// When they can run but don't come up, or with `CI=true` where they can't run.
pub async fn old_and_new() -> Option<Clusters> {
    pair(&OLD_SOURCE, KafkaVersion::V2_7_1).await
}

/// A cluster that the scenario may stop and kill, or `None` (told loudly) where none can run.
///
/// # Panics
/// When it can run but does not come up, or with `CI=true` where it can't run.
pub async fn own_cluster() -> Option<KafkaCluster> {
    if let Some(why) = why_not(KafkaVersion::V4_3_1).await {
        skip::skipped(&why);
        return None;
    }
    // Kafka's own default again: a group must outlive a broker that is away for some seconds.
    let session = ("group.consumer.session.timeout.ms".to_owned(), "45000".to_owned());
    Some(
        started(KafkaVersion::V4_3_1, KafkaOptions { properties: vec![session], ..KafkaOptions::default() })
            .await,
    )
}

async fn pair(source: &'static OnceCell<KafkaCluster>, version: KafkaVersion) -> Option<Clusters> {
    for version in [version, KafkaVersion::V4_3_1] {
        if let Some(why) = why_not(version).await {
            skip::skipped(&why);
            return None;
        }
    }
    let source = source.get_or_init(|| started(version, KafkaOptions::default())).await;
    let target = TARGET.get_or_init(|| started(KafkaVersion::V4_3_1, KafkaOptions::default())).await;
    Some(Clusters { source, target })
}

async fn why_not(version: KafkaVersion) -> Option<String> {
    let why = tokio::task::spawn_blocking(move || skip::why_not(version)).await;
    why.expect("asking for Java does not panic")
}

async fn started(version: KafkaVersion, options: KafkaOptions) -> KafkaCluster {
    match KafkaCluster::start(version, options).await {
        Ok(cluster) => cluster,
        Err(error) => panic!("could not start Kafka {version}: {error:#}"),
    }
}
