//! Metrics of a flow's plugins.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::FlowCollector;
use crate::status::{FlowSnapshot, PluginFigures, TimeHistogram};

type Count = (&'static str, &'static str, fn(&PluginFigures) -> u64);

/// Plain totals: name, what it counts, where it stands.
const COUNTS: [Count; 5] = [
    ("tidegate_plugin_calls", "Calls for records", |plugin| plugin.calls),
    ("tidegate_plugin_records", "Records that the plugin was shown", |plugin| plugin.records),
    ("tidegate_plugin_records_dropped", "Records that the plugin dropped", |plugin| plugin.dropped),
    ("tidegate_plugin_records_changed", "Records that the plugin changed", |plugin| plugin.changed),
    ("tidegate_plugin_records_rejected", "Records that the plugin rejected", |plugin| plugin.rejected),
];

impl FlowCollector {
    /// All metrics of plugins.
    pub(super) fn plugins(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, what, value) in COUNTS {
            let kind = ConstCounter::new(0_u64).metric_type();
            let mut family = encoder.encode_descriptor(name, what, None, kind)?;
            for (flow, plugin) in self.plugin_figures() {
                ConstCounter::new(value(plugin)).encode(family.encode_family(&labels(flow, plugin))?)?;
            }
        }
        self.plugin_details(encoder)?;
        self.plugin_times(encoder)?;
        self.plugin_gauges(encoder)
    }

    fn plugin_figures(&self) -> impl Iterator<Item = (&FlowSnapshot, &PluginFigures)> {
        self.flows.iter().flat_map(|flow| flow.plugins.iter().map(move |plugin| (flow, plugin)))
    }

    /// Totals with a label of their own: faults by kind, and what the plugin itself counts.
    fn plugin_details(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstCounter::new(0_u64).metric_type();
        let what = "Calls without a usable answer, by what went wrong";
        let mut family = encoder.encode_descriptor("tidegate_plugin_faults", what, None, kind)?;
        for (flow, plugin) in self.plugin_figures() {
            for (fault, count) in &plugin.faults {
                let labels = [labels(flow, plugin).as_slice(), &[("kind", (*fault).to_owned())]].concat();
                ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
            }
        }
        let what = "What the plugin itself counts, by its name for it";
        let mut family = encoder.encode_descriptor("tidegate_plugin_counter", what, None, kind)?;
        for (flow, plugin) in self.plugin_figures() {
            for (name, count) in &plugin.counters {
                let labels = [labels(flow, plugin).as_slice(), &[("counter", name.clone())]].concat();
                ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn plugin_times(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let what = "How long the plugin's calls took";
        let (name, unit) = ("tidegate_plugin_call", Some(&Unit::Seconds));
        let mut family = encoder.encode_descriptor(name, what, unit, MetricType::Histogram)?;
        for (flow, plugin) in self.plugin_figures() {
            Times(&plugin.call_seconds).encode(family.encode_family(&labels(flow, plugin))?)?;
        }
        Ok(())
    }

    fn plugin_gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = ConstGauge::new(0_i64).metric_type();
        let what = "Memory of the plugin's instances together";
        let (name, unit) = ("tidegate_plugin_memory", Some(&Unit::Bytes));
        let mut family = encoder.encode_descriptor(name, what, unit, kind)?;
        for (flow, plugin) in self.plugin_figures() {
            let bytes = i64::try_from(plugin.memory_bytes).unwrap_or(i64::MAX);
            ConstGauge::new(bytes).encode(family.encode_family(&labels(flow, plugin))?)?;
        }
        let what = "The plugins that a flow uses now: version, digest and generation as labels, always 1";
        let mut family = encoder.encode_descriptor("tidegate_plugin_info", what, None, kind)?;
        for (flow, plugin) in self.plugin_figures() {
            let own = [
                ("version", plugin.version.clone()),
                ("digest", plugin.digest.clone()),
                ("generation", plugin.generation.to_string()),
            ];
            let labels = [labels(flow, plugin).as_slice(), &own].concat();
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn labels(flow: &FlowSnapshot, plugin: &PluginFigures) -> [(&'static str, String); 2] {
    [("flow", flow.name.to_string()), ("plugin", plugin.name.clone())]
}

/// A histogram of times as the text format wants it: its last bucket takes all.
struct Times<'a>(&'a TimeHistogram);

impl EncodeMetric for Times<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let TimeHistogram { buckets, sum_seconds, count } = self.0;
        let within: u64 = buckets.iter().map(|(_, count)| count).sum();
        let mut buckets = buckets.clone();
        buckets.push((f64::INFINITY, count.saturating_sub(within)));
        encoder.encode_histogram::<NoLabelSet>(*sum_seconds, *count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
