//! Records and bytes per second, from two looks at plain totals. The relay only counts.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use crate::names::{FlowName, SourcePartition};
use crate::status::FlowSnapshot;

/// Weight of the newest step in the average: a change shows within some seconds and a single pause doesn't hide it.
const NEWEST_WEIGHT: f64 = 0.4;

/// How fast one partition goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Records acknowledged per second.
    pub records_per_second: f64,
    /// Bytes acknowledged per second, as sent.
    pub bytes_per_second: f64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    records: u64,
    bytes: u64,
    at: Instant,
    /// None until it was seen twice.
    rate: Option<Rate>,
}

/// Rates of all partitions of this process.
#[derive(Debug, Default)]
pub struct Rates {
    seen: HashMap<(FlowName, SourcePartition), Seen>,
}

impl Rates {
    /// Looks at the totals. Partitions that are gone are forgotten.
    pub fn sample(&mut self, flows: &[FlowSnapshot], now: Instant) {
        let mut seen = HashMap::with_capacity(self.seen.len());
        for flow in flows {
            for (partition, stats) in &flow.partitions {
                let key = (flow.name.clone(), partition.clone());
                let records = stats.records.load(Ordering::Relaxed);
                let bytes = stats.bytes.load(Ordering::Relaxed);
                let rate = self.seen.get(&key).map(|before| before.next(records, bytes, now));
                seen.insert(key, Seen { records, bytes, at: now, rate });
            }
        }
        self.seen = seen;
    }

    /// The rate of a partition; zero until it was seen twice.
    pub fn of(&self, flow: &FlowName, partition: &SourcePartition) -> Rate {
        self.seen.get(&(flow.clone(), partition.clone())).and_then(|seen| seen.rate).unwrap_or_default()
    }
}

impl Seen {
    fn next(&self, records: u64, bytes: u64, now: Instant) -> Rate {
        let seconds = (now - self.at).as_secs_f64();
        if seconds <= 0.0 {
            return self.rate.unwrap_or_default();
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate is shown with a few digits")]
        let step = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
        let step = Rate {
            records_per_second: step(records, self.records),
            bytes_per_second: step(bytes, self.bytes),
        };
        let Some(rate) = self.rate else { return step };
        let mix = |old: f64, new: f64| {
            let mixed = old.mul_add(1.0 - NEWEST_WEIGHT, new * NEWEST_WEIGHT);
            if mixed < 0.05 { 0.0 } else { mixed }
        };
        Rate {
            records_per_second: mix(rate.records_per_second, step.records_per_second),
            bytes_per_second: mix(rate.bytes_per_second, step.bytes_per_second),
        }
    }
}
