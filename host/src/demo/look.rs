//! A look at a running demo, as plain values.

use std::sync::Arc;
use std::time::Duration;

use tidegate_embedded::Cluster;
use tokio::time::Instant;

use super::{PARTITIONS, TARGET_TOPIC, TOPIC};
use crate::serve::Watched;
use crate::serve::view::{FlowView, TierView};

/// How the demo stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Since the start.
    pub elapsed: Duration,
    /// The flow's state, as status spells it.
    pub state: String,
    /// Records that lie on the source.
    pub source_records: u64,
    /// Records that lie on the target.
    pub target_records: u64,
    /// Records that came to the target, per second since the last look.
    pub records_per_second: f64,
    /// Bytes that the target acknowledged, per second since the last look.
    pub bytes_per_second: f64,
    /// Batches by what happened to them.
    pub batches: TierView,
    /// From the start until the first record lay on the target.
    pub first_copied_after: Option<Duration>,
    /// What the flow complains of.
    pub trouble: Option<String>,
}

impl Look {
    /// Records that are not over there yet. Both ends are read at one moment, from the clusters themselves.
    pub fn lag_records(&self) -> u64 {
        self.source_records.saturating_sub(self.target_records)
    }
}

/// Looks at both clusters and at what the flow says of itself.
pub(super) struct Observer<'a> {
    east: &'a Cluster,
    west: &'a Cluster,
    watched: Arc<Watched>,
    started: Instant,
    first_copied_after: Option<Duration>,
    /// Time, target records and acknowledged bytes of the last look.
    before: (Instant, u64, u64),
}

impl<'a> Observer<'a> {
    pub(super) fn new(east: &'a Cluster, west: &'a Cluster, watched: Arc<Watched>, started: Instant) -> Self {
        Self { east, west, watched, started, first_copied_after: None, before: (started, 0, 0) }
    }

    pub(super) fn first_copied_after(&self) -> Option<Duration> {
        self.first_copied_after
    }

    /// Notes the time if a record has come for the first time.
    pub(super) fn note_first(&mut self) {
        if self.first_copied_after.is_none() && record_count(self.west, TARGET_TOPIC) > 0 {
            self.first_copied_after = Some(self.started.elapsed());
        }
    }

    pub(super) fn has_caught_up(&self) -> bool {
        let end = |cluster: &Cluster, topic, partition| cluster.end_offset(topic, partition);
        (0..PARTITIONS)
            .all(|partition| end(self.west, TARGET_TOPIC, partition) >= end(self.east, TOPIC, partition))
    }

    /// A look whose rates are those of the whole time, since the last step says little once the orders have ended.
    pub(super) fn last_look(&mut self) -> Look {
        self.before = (self.started, 0, 0);
        self.look()
    }

    pub(super) fn look(&mut self) -> Look {
        self.note_first();
        let now = Instant::now();
        let flow = self.watched.view().flows.into_iter().next();
        let partitions = flow.iter().flat_map(|flow| &flow.partitions);
        let mut batches = TierView { pass: 0, merge: 0, rewrite: 0 };
        let mut bytes = 0;
        for partition in partitions {
            bytes += partition.bytes;
            batches.pass += partition.batches.pass;
            batches.merge += partition.batches.merge;
            batches.rewrite += partition.batches.rewrite;
        }
        // The target first: what comes in between is lag, never a negative one.
        let target_records = record_count(self.west, TARGET_TOPIC);
        let source_records = record_count(self.east, TOPIC);
        let (then, records_before, bytes_before) =
            std::mem::replace(&mut self.before, (now, target_records, bytes));
        Look {
            elapsed: now - self.started,
            state: flow.as_ref().map_or_else(|| "starting".to_owned(), |flow| flow.state.clone()),
            source_records,
            target_records,
            records_per_second: per_second(target_records, records_before, now - then),
            bytes_per_second: per_second(bytes, bytes_before, now - then),
            batches,
            first_copied_after: self.first_copied_after,
            trouble: flow.as_ref().and_then(trouble),
        }
    }
}

fn record_count(cluster: &Cluster, topic: &str) -> u64 {
    // The logs start at 0 and have no gaps: neither transactions nor compaction happen here.
    (0..PARTITIONS).map(|partition| cluster.end_offset(topic, partition).unsigned_abs()).sum()
}

fn per_second(now: u64, before: u64, step: Duration) -> f64 {
    let seconds = step.as_secs_f64();
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}

fn trouble(flow: &FlowView) -> Option<String> {
    let refusal = flow.refusals.first().map(|refusal| format!("refused: {refusal}"));
    refusal.or_else(|| flow.last_error.as_ref().map(|error| error.message.clone()))
}
