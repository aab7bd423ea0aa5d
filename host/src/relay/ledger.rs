//! Positions: what is stored for a slot, what must be stored next. The bytes are `offsets/`'s.
//!
//! A slot's positions are one partition of MirrorMaker 2's offsets topic and one lane of the worker's producer. At most
//! one batch of them is on its way; it is made of the safe offsets at the moment when it is sent, after the
//! acknowledgements that they stand for (invariants I1, I3).

use std::collections::BTreeMap;

use tidegate_wire::batch::{BatchBuilder, Codec};
use tidegate_wire::produce::OutBatch;
use tokio::time::Instant;

use crate::names::{ClusterAlias, Slot, SourceOffset, SourcePartition};
use crate::offsets::{position_key, position_value};

/// The positions of one slot.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) slot: Slot,
    stored: BTreeMap<SourcePartition, SourceOffset>,
    on_its_way: Option<(u64, Vec<(SourcePartition, SourceOffset)>)>,
    /// A batch of positions shall go with the next request.
    wanted: bool,
    /// The target refused positions; none are sent before this instant.
    quiet_until: Option<Instant>,
    next_tag: u64,
}

impl Ledger {
    pub(super) fn new(slot: Slot) -> Self {
        Self {
            slot,
            stored: BTreeMap::new(),
            on_its_way: None,
            wanted: false,
            quiet_until: None,
            next_tag: 0,
        }
    }

    /// Notes what is stored at the start, as first offset to read.
    pub(super) fn loaded(&mut self, partition: SourcePartition, next: SourceOffset) {
        self.stored.insert(partition, next);
    }

    /// A partition is let go.
    pub(super) fn forget(&mut self, partition: &SourcePartition) {
        self.stored.remove(partition);
    }

    /// Whether `safe` is news. Offset 0 is none: there is no record before it that a position could name.
    pub(super) fn is_news(&self, partition: &SourcePartition, safe: SourceOffset) -> bool {
        safe.0 > 0 && self.stored.get(partition) != Some(&safe)
    }

    /// Asks for a batch of positions.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether a batch shall be sent and none is on its way.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.wanted && self.on_its_way.is_none() && self.quiet_until.is_none_or(|until| until <= now)
    }

    /// When positions may be sent again after a refusal.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.quiet_until.filter(|_| self.wanted)
    }

    /// Whether all is stored, as far as was asked for.
    pub(super) fn is_quiet(&self) -> bool {
        !self.wanted && self.on_its_way.is_none()
    }

    /// The batch of those of `positions` that are news. None when there is none. A position names the last settled
    /// record, as MirrorMaker 2 writes it, so it is one less than the safe offset.
    pub(super) fn batch(
        &mut self,
        source: &ClusterAlias,
        positions: impl Iterator<Item = (SourcePartition, SourceOffset)>,
        now_ms: i64,
        builder: &mut BatchBuilder,
    ) -> Option<OutBatch> {
        self.wanted = false;
        self.quiet_until = None;
        let news: Vec<_> = positions.filter(|(partition, safe)| self.is_news(partition, *safe)).collect();
        if news.is_empty() {
            return None;
        }
        builder.start(Codec::None);
        for (partition, safe) in &news {
            let key = position_key(source, partition);
            let value = position_value(SourceOffset(safe.0 - 1));
            builder.push_parts(Some(&key), Some(&value), &[], now_ms);
        }
        let built = builder.finish().ok()?;
        self.next_tag += 1;
        self.on_its_way = Some((self.next_tag, news));
        Some(OutBatch { header: built.header, payload: built.payload, tag: self.next_tag })
    }

    /// The batch `tag` is stored.
    pub(super) fn stored(&mut self, tag: u64) {
        if let Some((_, positions)) = self.on_its_way.take_if(|(sent, _)| *sent == tag) {
            self.stored.extend(positions);
        }
    }

    /// The batch `tag` was refused for good; its positions are news again, and none are sent before `until`.
    pub(super) fn refused(&mut self, tag: u64, until: Instant) {
        self.on_its_way.take_if(|(sent, _)| *sent == tag);
        self.quiet_until = Some(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::TopicName;

    fn partition(number: i32) -> SourcePartition {
        SourcePartition { topic: TopicName::parse("t").unwrap(), partition: number }
    }

    fn batch(ledger: &mut Ledger, positions: &[(i32, i64)]) -> Option<OutBatch> {
        let positions = positions.iter().map(|(number, safe)| (partition(*number), SourceOffset(*safe)));
        ledger.batch(&ClusterAlias::new("A"), positions, 5, &mut BatchBuilder::new())
    }

    #[test]
    fn only_news_is_stored_and_only_after_its_acknowledgement() {
        let mut ledger = Ledger::new(Slot(0));
        ledger.loaded(partition(0), SourceOffset(10));
        ledger.want();
        assert!(ledger.is_ready(Instant::now()));
        let sent = batch(&mut ledger, &[(0, 10), (1, 7), (2, 0)]).unwrap();
        assert_eq!(sent.header.record_count, 1);
        assert!(ledger.is_news(&partition(1), SourceOffset(7)));
        ledger.want();
        assert!(!ledger.is_ready(Instant::now()), "one batch at a time");
        ledger.stored(sent.tag);
        assert!(!ledger.is_news(&partition(1), SourceOffset(7)));
        assert!(batch(&mut ledger, &[(0, 10), (1, 7)]).is_none());
        assert!(ledger.is_quiet());
    }

    #[test]
    fn refused_positions_are_news_again() {
        let mut ledger = Ledger::new(Slot(0));
        let sent = batch(&mut ledger, &[(1, 7)]).unwrap();
        let now = Instant::now();
        let until = now + std::time::Duration::from_secs(1);
        ledger.refused(sent.tag, until);
        assert!(ledger.is_news(&partition(1), SourceOffset(7)));
        assert!(ledger.is_quiet());
        ledger.want();
        assert!(!ledger.is_ready(now), "a target that refuses is not asked without end");
        assert_eq!(ledger.next_wake(), Some(until));
        assert!(ledger.is_ready(until));
    }
}
