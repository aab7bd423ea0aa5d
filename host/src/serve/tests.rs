use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::rates::Rates;
use super::view::StatusView;
use super::{Watched, bind, metrics, ready};
use crate::names::{ClusterAlias, FlowName, Slot, SourceOffset, SourcePartition, TopicName};
use crate::status::{
    Changeover, FlowState, PartitionStats, Paused, PluginFigures, PluginSource, Registry, Tier, TimeHistogram,
};

fn registry() -> (Arc<Registry>, Arc<PartitionStats>) {
    let registry = Arc::new(Registry::default());
    let name = FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") };
    let flow = registry.flow(&name);
    let stats = Arc::new(PartitionStats::new(TopicName::parse("east.orders").unwrap(), Slot(7)));
    let partition = SourcePartition { topic: TopicName::parse("orders").unwrap(), partition: 3 };
    flow.add_partition(partition, Arc::clone(&stats));
    (registry, stats)
}

#[test]
fn status_shows_ends_positions_lag_rates_and_tiers() {
    let (registry, stats) = registry();
    let start = Instant::now();
    let mut rates = Rates::default();
    rates.sample(&registry.snapshot(), start);
    stats.position.store(80, Ordering::Relaxed);
    stats.source_end.store(100, Ordering::Relaxed);
    stats.delivered(Tier::Merge, 80, 8_000);
    rates.sample(&registry.snapshot(), start + Duration::from_secs(2));
    let view = StatusView::new(&registry.snapshot(), &rates, Duration::from_secs(9));
    let flow = &view.flows[0];
    assert_eq!((flow.name.as_str(), flow.state.as_str(), flow.lag_records), ("east->west", "starting", 20));
    let partition = &flow.partitions[0];
    assert_eq!(
        (partition.source_end, partition.position, partition.lag_records),
        (Some(100), Some(80), Some(20))
    );
    assert_eq!((partition.records, partition.bytes, partition.batches.merge), (80, 8_000, 1));
    assert_eq!((partition.records_per_second, partition.bytes_per_second), (40.0, 4_000.0));
}

#[test]
fn metrics_name_flow_topic_and_partition() {
    let (registry, stats) = registry();
    stats.delivered(Tier::Pass, 5, 500);
    stats.position.store(5, Ordering::Relaxed);
    let text = metrics::text(&registry).unwrap();
    let labels = r#"{flow="east->west",topic="orders",target_topic="east.orders",partition="3"}"#;
    for line in [
        format!("tidegate_records_total{labels} 5"),
        format!("tidegate_copied_bytes_total{labels} 500"),
        format!("tidegate_position_offset{labels} 5"),
        r#"tidegate_flow_state{flow="east->west",state="starting"} 1"#.to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line} in\n{text}");
    }
    assert!(!text.contains("tidegate_lag_records{"), "a lag that is not known is not shown");
}

#[test]
fn metrics_tell_what_plugins_do() {
    let (registry, stats) = registry();
    stats.dropped.store(4, Ordering::Relaxed);
    stats.quarantined.store(2, Ordering::Relaxed);
    stats.set_changeover(Changeover { generation: 3, first_offset: Some(SourceOffset(7)) });
    let paused = Paused {
        at_ms: 1,
        offset: SourceOffset(9),
        plugin: "mask".into(),
        generation: 3,
        reason: "is no JSON".into(),
    };
    stats.set_paused(Some(paused));
    let name = FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") };
    registry.flow(&name).set_plugins(PluginSource::new(|| {
        vec![PluginFigures {
            name: "mask".into(),
            version: "0.2.1".into(),
            digest: "ab".into(),
            generation: 3,
            calls: 5,
            faults: vec![("trap", 1), ("deadline", 0)],
            call_seconds: TimeHistogram { buckets: vec![(0.001, 2), (0.01, 1)], sum_seconds: 0.5, count: 5 },
            memory_bytes: 65_536,
            counters: vec![("masked_fields".into(), 8)],
            ..PluginFigures::default()
        }]
    }));
    let text = metrics::text(&registry).unwrap();
    let partition = "{flow=\"east->west\",topic=\"orders\",target_topic=\"east.orders\",partition=\"3\"}";
    let plugin = "flow=\"east->west\",plugin=\"mask\"";
    for line in [
        format!("tidegate_records_dropped_total{partition} 4"),
        format!("tidegate_records_changed_total{partition} 0"),
        format!("tidegate_records_quarantined_total{partition} 2"),
        format!("tidegate_partition_paused{partition} 1"),
        format!("tidegate_partition_generation{partition} 3"),
        format!("tidegate_plugin_calls_total{{{plugin}}} 5"),
        format!("tidegate_plugin_faults_total{{{plugin},kind=\"trap\"}} 1"),
        format!("tidegate_plugin_counter_total{{{plugin},counter=\"masked_fields\"}} 8"),
        format!("tidegate_plugin_call_seconds_count{{{plugin}}} 5"),
        format!("tidegate_plugin_call_seconds_bucket{{le=\"0.01\",{plugin}}} 3"),
        format!("tidegate_plugin_call_seconds_bucket{{le=\"+Inf\",{plugin}}} 5"),
        format!("tidegate_plugin_memory_bytes{{{plugin}}} 65536"),
        format!("tidegate_plugin_info{{{plugin},version=\"0.2.1\",digest=\"ab\",generation=\"3\"}} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line} in\n{text}");
    }
    stats.set_paused(None);
    let text = metrics::text(&registry).unwrap();
    assert!(text.lines().any(|found| found == format!("tidegate_partition_paused{partition} 0")));
}

#[tokio::test]
async fn readiness_names_the_flow_that_is_not_ready() {
    let (registry, _stats) = registry();
    let watched = Watched::new(Arc::clone(&registry));
    let (code, text) = ready(axum::extract::State(Arc::clone(&watched))).await;
    assert_eq!((code.as_u16(), text.as_str()), (503, "not ready: east->west is starting\n"));
    let name = FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") };
    registry.flow(&name).set_state(FlowState::Running);
    let (code, text) = ready(axum::extract::State(watched)).await;
    assert_eq!((code.as_u16(), text.as_str()), (200, "ready\n"));
}

#[tokio::test]
async fn only_loopback_is_served_without_a_token_file() {
    let problem = bind("0.0.0.0:8642".parse().unwrap(), false).await.unwrap_err().to_string();
    assert_eq!(
        problem,
        "tidegate.http.listen = 0.0.0.0:8642 is not a loopback address; others are served with a token alone: set \
         tidegate.http.token.file, or listen on 127.0.0.1:8642"
    );
}
