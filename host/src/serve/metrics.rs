//! Prometheus metrics, read from the registry when they are asked for: a partition that is let go is gone from the next
//! answer, and the relay does nothing for a metric but count.

mod plugins;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry as MetricRegistry, Unit};

use super::view::state_word;
use crate::names::SourcePartition;
use crate::status::{FlowSnapshot, FlowState, PartitionStats, Registry};

/// All metrics as OpenMetrics text.
pub(super) fn text(registry: &Arc<Registry>) -> Result<String, fmt::Error> {
    let mut metrics = MetricRegistry::default();
    metrics.register_collector(Box::new(FlowCollector { flows: registry.snapshot() }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &metrics)?;
    Ok(text)
}

#[derive(Debug)]
struct FlowCollector {
    flows: Vec<FlowSnapshot>,
}

const STATES: [FlowState; 5] = [
    FlowState::Starting,
    FlowState::Running,
    FlowState::WaitingForMirrorMaker,
    FlowState::Stopping,
    FlowState::Failed,
];

const TIERS: [&str; 3] = ["pass", "merge", "rewrite"];

impl Collector for FlowCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.flow_states(&mut encoder)?;
        self.flow_gauge(&mut encoder, "tidegate_flow_slots", "Slots that this process owns", |flow| {
            i64::try_from(flow.slots.len()).unwrap_or(i64::MAX)
        })?;
        self.flow_gauge(&mut encoder, "tidegate_flow_refusals", "What the last plan would not do", |flow| {
            i64::try_from(flow.refusals.len()).unwrap_or(i64::MAX)
        })?;
        let what = "The longest time that batches waited for a worker to change plugins, in microseconds";
        self.flow_gauge(&mut encoder, "tidegate_flow_chain_wait_microseconds", what, |flow| {
            i64::try_from(flow.chain_wait_max.as_micros()).unwrap_or(i64::MAX)
        })?;
        self.partition_counter(
            &mut encoder,
            "tidegate_records",
            None,
            "Records acknowledged by the target",
            |stats| stats.records.load(Ordering::Relaxed),
        )?;
        let what = "Bytes of batches acknowledged by the target, as sent";
        self.partition_counter(&mut encoder, "tidegate_copied", Some(&Unit::Bytes), what, |stats| {
            stats.bytes.load(Ordering::Relaxed)
        })?;
        self.batches(&mut encoder)?;
        self.edits(&mut encoder)?;
        self.plugins(&mut encoder)?;
        self.partition_gauge(
            &mut encoder,
            "tidegate_lag_records",
            "Offsets between position and source end",
            |stats| stats.lag_records().map(|lag| i64::try_from(lag).unwrap_or(i64::MAX)),
        )?;
        let known = |value: i64| (value >= 0).then_some(value);
        self.partition_gauge(
            &mut encoder,
            "tidegate_position_offset",
            "First offset that is not settled",
            |stats| known(stats.position.load(Ordering::Relaxed)),
        )?;
        self.partition_gauge(
            &mut encoder,
            "tidegate_source_end_offset",
            "End offset of the source",
            |stats| known(stats.source_end.load(Ordering::Relaxed)),
        )
    }
}

impl FlowCollector {
    fn flow_states(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = ConstGauge::new(0_i64);
        let what = "Where the flow stands: 1 for its state, 0 for the others";
        let mut family = encoder.encode_descriptor("tidegate_flow_state", what, None, gauge.metric_type())?;
        for flow in &self.flows {
            for state in STATES {
                let labels = [("flow", flow.name.to_string()), ("state", state_word(state).to_owned())];
                let value = ConstGauge::new(i64::from(flow.state == state));
                value.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn flow_gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        what: &str,
        value: impl Fn(&FlowSnapshot) -> i64,
    ) -> Result<(), fmt::Error> {
        let mut family = encoder.encode_descriptor(name, what, None, ConstGauge::new(0_i64).metric_type())?;
        for flow in &self.flows {
            let labels = [("flow", flow.name.to_string())];
            ConstGauge::new(value(flow)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn partitions(&self) -> impl Iterator<Item = (&FlowSnapshot, &SourcePartition, &Arc<PartitionStats>)> {
        self.flows
            .iter()
            .flat_map(|flow| flow.partitions.iter().map(move |(partition, stats)| (flow, partition, stats)))
    }

    fn partition_counter(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        unit: Option<&Unit>,
        what: &str,
        value: impl Fn(&PartitionStats) -> u64,
    ) -> Result<(), fmt::Error> {
        let mut family =
            encoder.encode_descriptor(name, what, unit, ConstCounter::new(0_u64).metric_type())?;
        for (flow, partition, stats) in self.partitions() {
            let labels = labels(flow, partition, stats);
            ConstCounter::new(value(stats)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// What the flow's chain did, by partition.
    fn edits(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let what = "Records that plugins dropped";
        self.partition_counter(encoder, "tidegate_records_dropped", None, what, |stats| {
            stats.dropped.load(Ordering::Relaxed)
        })?;
        let what = "Records that plugins changed and that were sent so";
        self.partition_counter(encoder, "tidegate_records_changed", None, what, |stats| {
            stats.changed.load(Ordering::Relaxed)
        })?;
        let what = "Records that went to the quarantine topic instead of the target";
        self.partition_counter(encoder, "tidegate_records_quarantined", None, what, |stats| {
            stats.quarantined.load(Ordering::Relaxed)
        })?;
        let what = "1 while a plugin's fault or refusal stops the partition, else 0";
        self.partition_gauge(encoder, "tidegate_partition_paused", what, |stats| {
            Some(i64::from(stats.paused().is_some()))
        })?;
        let what = "The generation of plugins that edits the partition";
        self.partition_gauge(encoder, "tidegate_partition_generation", what, |stats| {
            stats.changeover().map(|changeover| i64::try_from(changeover.generation).unwrap_or(i64::MAX))
        })
    }

    fn batches(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let what = "Batches acknowledged by the target, by what happened to them";
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut family = encoder.encode_descriptor("tidegate_batches", what, None, kind)?;
        for (flow, partition, stats) in self.partitions() {
            for (tier, count) in TIERS.iter().zip(&stats.batches) {
                let mut labels = labels(flow, partition, stats).to_vec();
                labels.push(("tier", (*tier).to_owned()));
                ConstCounter::new(count.load(Ordering::Relaxed)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn partition_gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        what: &str,
        value: impl Fn(&PartitionStats) -> Option<i64>,
    ) -> Result<(), fmt::Error> {
        let mut family = encoder.encode_descriptor(name, what, None, ConstGauge::new(0_i64).metric_type())?;
        for (flow, partition, stats) in self.partitions() {
            if let Some(value) = value(stats) {
                ConstGauge::new(value).encode(family.encode_family(&labels(flow, partition, stats))?)?;
            }
        }
        Ok(())
    }
}

fn labels(
    flow: &FlowSnapshot,
    partition: &SourcePartition,
    stats: &PartitionStats,
) -> [(&'static str, String); 4] {
    [
        ("flow", flow.name.to_string()),
        ("topic", partition.topic.to_string()),
        ("target_topic", stats.target_topic.to_string()),
        ("partition", partition.partition.to_string()),
    ]
}
