use std::sync::Arc;

use tidegate_wire::batch::{Batch, BatchBuilder, BatchHeader, Codec};
use tidegate_wire::produce::OutBatch;
use tokio::time::{Duration, Instant};

use super::{Condition, RelayLane, SendRules, Workshop};
use crate::names::{ClusterAlias, FlowName, Slot, SourceOffset, SourcePartition, TopicName};
use crate::relay::chain::plain::PlainChain;
use crate::relay::transform::Transform;
use crate::status::{PartitionStats, Tier};

const AS_IT_COMES: SendRules = SendRules { compression: None, batch_bytes_max: None };

fn lane(first: i64) -> RelayLane {
    let topic = TopicName::parse("t").unwrap();
    let stats = Arc::new(PartitionStats::new(TopicName::parse("A.t").unwrap(), Slot(0)));
    let source = SourcePartition { topic, partition: 0 };
    RelayLane::new(1, source, Slot(0), Some(SourceOffset(first)), stats)
}

/// A batch of `count` records of `value_bytes` each, as it lies in a log at `base_offset`.
fn batch(base_offset: i64, count: usize, value_bytes: usize) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::None);
    for _ in 0..count {
        builder.push_parts(None, Some(&vec![7; value_bytes]), &[], 1);
    }
    let built = builder.finish().unwrap();
    let header = BatchHeader { base_offset, ..built.header };
    let whole = [&header.encode()[..], &built.payload].concat();
    Batch::parse(whole.into()).unwrap()
}

/// The next batch while no plugin has any say.
fn next_batch(lane: &mut RelayLane, rules: SendRules) -> Option<OutBatch> {
    let flow = FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") };
    let mut workshop =
        Workshop { transform: &mut Transform::default(), chain: &mut PlainChain::empty(), flow: &flow };
    lane.next_batch(usize::MAX, rules, &mut workshop).unwrap()
}

/// Sends all that waits; answers (tag, record count) in order.
fn send_all(lane: &mut RelayLane, rules: SendRules) -> Vec<(u64, i32)> {
    let mut sent = Vec::new();
    while let Some(out) = next_batch(lane, rules) {
        sent.push((out.tag, out.header.record_count));
    }
    sent
}

fn tiers(lane: &RelayLane) -> [u64; 3] {
    [Tier::Pass, Tier::Merge, Tier::Rewrite]
        .map(|tier| lane.stats.batches[tier as usize].load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn a_batch_that_waits_alone_passes_and_a_backlog_of_small_ones_merges() {
    let mut lane = lane(0);
    lane.push(batch(0, 2, 10));
    let alone = send_all(&mut lane, AS_IT_COMES);
    assert_eq!(alone, [(1, 2)]);
    for base in [2, 4, 6] {
        lane.push(batch(base, 2, 10));
    }
    let merged = send_all(&mut lane, AS_IT_COMES);
    assert_eq!(merged, [(2, 6)]);
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0));
    lane.acknowledged(2).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0), "the batch before it is not settled");
    lane.acknowledged(1).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(8));
    assert_eq!(tiers(&lane), [1, 1, 0]);
    assert_eq!(lane.unsettled_bytes, 0);
}

#[test]
fn large_batches_never_merge() {
    let mut lane = lane(0);
    lane.push(batch(0, 2, 100_000));
    lane.push(batch(2, 2, 100_000));
    assert_eq!(send_all(&mut lane, AS_IT_COMES), [(1, 2), (2, 2)]);
}

#[test]
fn a_merge_keeps_to_its_bound() {
    let mut lane = lane(0);
    for base in 0..20 {
        lane.push(batch(base, 1, 100_000));
    }
    let counts: Vec<i32> = send_all(&mut lane, AS_IT_COMES).iter().map(|sent| sent.1).collect();
    assert_eq!(counts, [10, 10]);
}

#[test]
fn what_needs_no_delivery_moves_the_position_in_its_turn() {
    let mut lane = lane(0);
    lane.push_nothing(SourceOffset(3));
    assert_eq!(lane.progress.safe_offset(), SourceOffset(3), "nothing is before it");
    lane.push(batch(3, 2, 10));
    lane.push_nothing(SourceOffset(9));
    assert_eq!(lane.progress.safe_offset(), SourceOffset(3));
    let sent = send_all(&mut lane, AS_IT_COMES);
    assert_eq!(lane.progress.safe_offset(), SourceOffset(3));
    lane.acknowledged(sent[0].0).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(9));
    assert_eq!(lane.fetch_offset, SourceOffset(9));
}

#[test]
fn a_batch_that_lies_before_the_position_whole_is_settled_without_sending() {
    let mut lane = lane(5);
    lane.push(batch(3, 4, 10));
    assert_eq!(send_all(&mut lane, AS_IT_COMES), [(1, 2)], "offsets 5 and 6 only");
    lane.acknowledged(1).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(7));
    assert_eq!(tiers(&lane), [0, 0, 1]);
}

#[test]
fn pieces_of_a_large_batch_settle_in_order() {
    let mut lane = lane(0);
    lane.push(batch(0, 8, 1_000));
    let rules = SendRules { compression: None, batch_bytes_max: Some(2_500) };
    let sent = send_all(&mut lane, rules);
    assert_eq!(sent.iter().map(|piece| piece.1).collect::<Vec<_>>(), [2, 2, 2, 2]);
    lane.acknowledged(sent[1].0).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0), "the piece before it is not settled");
    lane.acknowledged(sent[0].0).unwrap();
    lane.acknowledged(sent[2].0).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(6), "what is delivered of it is not repeated");
    lane.acknowledged(sent[3].0).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(8));
    assert!(lane.is_idle());
}

#[test]
fn a_refused_batch_splits_in_its_place_and_a_single_record_does_not() {
    let mut lane = lane(0);
    lane.push(batch(0, 2, 10));
    let sent = send_all(&mut lane, AS_IT_COMES);
    let mut transform = Transform::default();
    let pieces = lane.split(sent[0].0, &mut transform).unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.header.record_count).collect::<Vec<_>>(), [1, 1]);
    let problem = lane.split(pieces[0].tag, &mut transform).unwrap_err();
    assert_eq!(problem.to_string(), "it is a single record");
    lane.acknowledged(pieces[1].tag).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0), "the first piece is still on its way");
    lane.acknowledged(pieces[0].tag).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(2));
}

#[test]
fn what_is_thrown_away_is_fetched_again() {
    let mut lane = lane(0);
    lane.push(batch(0, 2, 200_000));
    lane.push(batch(2, 2, 200_000));
    next_batch(&mut lane, AS_IT_COMES).unwrap();
    lane.fetching = Some(1);
    let before = lane.unsettled_bytes;
    let freed = lane.clear_queue();
    assert_eq!(before - freed, lane.unsettled_bytes);
    assert_eq!(lane.fetch_offset, SourceOffset(2));
    assert_eq!(lane.fetching, None, "the answer of a fetch from a later offset would leave a gap");
    assert!(!lane.has_waiting());
    assert!(!lane.is_idle());
}

#[test]
fn a_paused_or_leaving_partition_sends_nothing_new() {
    let mut lane = lane(0);
    lane.push(batch(0, 2, 10));
    let now = Instant::now();
    for condition in [Condition::Paused { until: now + Duration::from_secs(1) }, Condition::Draining] {
        lane.condition = condition;
        assert!(send_all(&mut lane, AS_IT_COMES).is_empty());
        assert!(!lane.may_fetch(usize::MAX, now));
    }
    lane.condition = Condition::Moving;
    assert_eq!(send_all(&mut lane, AS_IT_COMES).len(), 1);
}

#[test]
fn a_partition_over_its_share_is_not_fetched() {
    let mut lane = lane(0);
    let now = Instant::now();
    assert!(lane.may_fetch(1, now), "an empty partition may always be fetched");
    lane.push(batch(0, 1, 100));
    assert!(!lane.may_fetch(1_000, now), "its target has no leader");
    lane.is_led = true;
    assert!(!lane.may_fetch(100, now));
    assert!(lane.may_fetch(1_000, now));
    lane.is_refused = true;
    assert!(!lane.may_fetch(1_000, now), "its target does not take what it has");
    lane.is_refused = false;
    lane.quiet_until = Some(now + Duration::from_millis(1));
    assert!(!lane.may_fetch(1_000, now));
}

#[test]
fn a_refused_size_bounds_what_follows() {
    let mut lane = lane(0);
    for base in 0..6 {
        lane.push(batch(base, 1, 60_000));
    }
    lane.learn_bound(400_000);
    let counts: Vec<i32> = send_all(&mut lane, AS_IT_COMES).iter().map(|sent| sent.1).collect();
    assert_eq!(counts, [3, 3]);
}

#[test]
fn a_topic_that_was_made_anew_is_recognised_by_its_id() {
    let mut lane = lane(0);
    assert!(!lane.is_another_topic(None));
    assert!(!lane.is_another_topic(Some([1; 16])));
    assert!(!lane.is_another_topic(None), "an answer without an id says nothing");
    assert!(!lane.is_another_topic(Some([1; 16])));
    assert!(lane.is_another_topic(Some([2; 16])));
    assert!(!lane.is_another_topic(Some([2; 16])));
}
