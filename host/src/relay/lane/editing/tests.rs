use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_wire::batch::{Batch, BatchBuilder, BatchHeader, BuiltBatch, Codec, Decompressor};
use tidegate_wire::produce::OutBatch;
use tokio::time::Instant;

use crate::names::{ClusterAlias, FlowName, Slot, SourceOffset, SourcePartition, TopicName};
use crate::offsets::quarantine::QuarantineNote;
use crate::relay::chain::RecordChain;
use crate::relay::chain::plain::{PlainChain, Verdict};
use crate::relay::lane::{Condition, RelayLane, SendRules, Workshop};
use crate::relay::quarantine::TooLarge;
use crate::relay::transform::Transform;
use crate::status::{Changeover, PartitionStats, Paused, Tier};

pub(super) const AS_IT_COMES: SendRules = SendRules { compression: None, batch_bytes_max: None };

/// A partition whose next offset is `first`.
pub(super) fn lane(first: i64) -> RelayLane {
    let topic = TopicName::parse("t").unwrap();
    let stats = Arc::new(PartitionStats::new(TopicName::parse("A.t").unwrap(), Slot(0)));
    let source = SourcePartition { topic, partition: 4 };
    RelayLane::new(1, source, Slot(0), Some(SourceOffset(first)), stats)
}

/// A batch of `count` records, each with its offset as value, as it lies in a log.
pub(super) fn batch(base_offset: i64, count: i64, codec: Codec) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.start(codec);
    for offset in base_offset..base_offset + count {
        builder.push_parts(None, Some(offset.to_string().as_bytes()), &[(b"h", Some(b"1"))], 1_000 + offset);
    }
    as_stored(&builder.finish().unwrap(), base_offset)
}

pub(super) fn as_stored(built: &BuiltBatch, base_offset: i64) -> Batch {
    let header = BatchHeader { base_offset, ..built.header };
    Batch::parse([&header.encode()[..], &built.payload].concat().into()).unwrap()
}

/// Values of the records of a batch.
pub(super) fn values(header: BatchHeader, payload: &[u8]) -> Vec<String> {
    let batch = Batch::parse([&header.encode()[..], payload].concat().into()).unwrap();
    let mut decompressor = Decompressor::default();
    let records = decompressor.records(&batch).unwrap();
    records.map(|record| String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap()).collect()
}

pub(super) fn next_batch(lane: &mut RelayLane, chain: &mut dyn RecordChain) -> Option<OutBatch> {
    let flow = FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") };
    let mut workshop = Workshop { transform: &mut Transform::default(), chain, flow: &flow };
    lane.next_batch(usize::MAX, AS_IT_COMES, &mut workshop).unwrap()
}

/// Sends all that may go: for each batch its tag and values.
fn send_all(lane: &mut RelayLane, chain: &mut dyn RecordChain) -> Vec<(u64, Vec<String>)> {
    let mut sent = Vec::new();
    while let Some(out) = next_batch(lane, chain) {
        sent.push((out.tag, values(out.header, &out.payload)));
    }
    sent
}

fn sent_values(lane: &mut RelayLane, chain: &mut dyn RecordChain) -> Vec<String> {
    let sent = send_all(lane, chain);
    for (tag, _) in &sent {
        lane.acknowledged(*tag).unwrap();
    }
    sent.into_iter().flat_map(|(_, values)| values).collect()
}

fn counts(lane: &RelayLane) -> [u64; 3] {
    let stats = &lane.stats;
    [&stats.changed, &stats.dropped, &stats.quarantined].map(|count| count.load(Ordering::Relaxed))
}

fn tiers(lane: &RelayLane) -> [u64; 3] {
    [Tier::Pass, Tier::Merge, Tier::Rewrite]
        .map(|tier| lane.stats.batches[tier as usize].load(Ordering::Relaxed))
}

#[test]
fn a_batch_that_no_plugin_touches_goes_on_byte_for_byte() {
    for codec in Codec::ALL {
        let mut lane = lane(0);
        let mut chain = PlainChain::new(1, |_| Verdict::Keep);
        lane.use_chain(&chain);
        let source = batch(0, 5, codec);
        lane.push(source.clone());
        let out = next_batch(&mut lane, &mut chain).unwrap();
        assert_eq!((out.header, &out.payload), (source.header, &source.payload()));
        assert_eq!(*chain.shown.borrow(), [0, 1, 2, 3, 4]);
        lane.acknowledged(out.tag).unwrap();
        assert_eq!((lane.progress.safe_offset(), tiers(&lane)), (SourceOffset(5), [1, 0, 0]));
    }
}

#[test]
fn edits_go_out_in_the_sources_codec_and_every_time_is_kept() {
    for codec in Codec::ALL {
        let mut lane = lane(0);
        let mut chain = PlainChain::new(1, |offset| match offset {
            1 => Verdict::Drop,
            2 => Verdict::Set(b"two".to_vec()),
            _ => Verdict::Keep,
        });
        lane.use_chain(&chain);
        lane.push(batch(0, 4, codec));
        let out = next_batch(&mut lane, &mut chain).unwrap();
        assert_eq!(out.header.codec().unwrap(), codec);
        assert_eq!(values(out.header, &out.payload), ["0", "two", "3"]);
        assert_eq!((out.header.base_timestamp, out.header.max_timestamp), (1_000, 1_003));
        assert_eq!(lane.first_offset(out.tag), None, "its records have no consecutive offsets");
        lane.acknowledged(out.tag).unwrap();
        assert_eq!(lane.progress.safe_offset(), SourceOffset(4));
        assert_eq!((counts(&lane), tiers(&lane)), ([1, 1, 0], [0, 0, 1]));
        assert_eq!(lane.unsettled_bytes, 0);
    }
}

#[test]
fn dropped_records_move_the_safe_offset() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |_| Verdict::Drop);
    lane.use_chain(&chain);
    for base in (0..100).step_by(10) {
        lane.push(batch(base, 10, Codec::Lz4));
    }
    lane.push_nothing(SourceOffset(105));
    assert!(send_all(&mut lane, &mut chain).is_empty());
    assert_eq!(lane.progress.safe_offset(), SourceOffset(105));
    assert_eq!((lane.unsettled_bytes, counts(&lane)), (0, [0, 100, 0]));
    assert_eq!(lane.stats.position.load(Ordering::Relaxed), 105);
}

#[test]
fn records_before_the_position_are_shown_to_no_plugin() {
    let mut lane = lane(7);
    let mut chain = PlainChain::new(1, |_| Verdict::Keep);
    lane.use_chain(&chain);
    lane.push(batch(5, 5, Codec::Zstd));
    assert_eq!(sent_values(&mut lane, &mut chain), ["7", "8", "9"]);
    assert_eq!(*chain.shown.borrow(), [7, 8, 9]);
    assert_eq!(lane.progress.safe_offset(), SourceOffset(10));
}

#[test]
fn a_backlog_of_small_batches_is_one_batch_after_the_edits() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |offset| if offset % 3 == 0 { Verdict::Drop } else { Verdict::Keep });
    lane.use_chain(&chain);
    for base in [0, 3, 6] {
        lane.push(batch(base, 3, Codec::Gzip));
    }
    let sent = send_all(&mut lane, &mut chain);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].1, ["1", "2", "4", "5", "7", "8"]);
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0));
    lane.acknowledged(sent[0].0).unwrap();
    assert_eq!(lane.progress.safe_offset(), SourceOffset(9));
}

#[test]
fn batches_of_which_little_is_left_join_whatever_their_size() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |offset| if offset % 20 == 0 { Verdict::Keep } else { Verdict::Drop });
    lane.use_chain(&chain);
    for base in (0..6_000).step_by(1_000) {
        lane.push(batch(base, 1_000, Codec::Lz4));
    }
    let sent = send_all(&mut lane, &mut chain);
    assert_eq!(sent.iter().map(|(_, values)| values.len()).collect::<Vec<_>>(), [300]);
}

#[test]
fn a_halt_lets_what_is_before_it_go_and_nothing_behind_it() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(3, |offset| if offset == 6 { Verdict::Halt } else { Verdict::Keep });
    lane.use_chain(&chain);
    lane.is_led = true;
    lane.push(batch(0, 4, Codec::Snappy));
    lane.push(batch(4, 4, Codec::Snappy));
    lane.push(batch(8, 4, Codec::Snappy));
    assert_eq!(sent_values(&mut lane, &mut chain), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(lane.progress.safe_offset(), SourceOffset(6), "the guilty record is not passed");
    assert_eq!(lane.unsettled_bytes, 0, "what waits behind it takes nothing from others");
    assert!(!lane.may_fetch(usize::MAX, Instant::now()));
    let Paused { at_ms, .. } = lane.stats.paused().unwrap();
    let expected = Paused {
        at_ms,
        offset: SourceOffset(6),
        plugin: "plain".into(),
        generation: 3,
        reason: "does not like 6".into(),
    };
    assert_eq!(lane.stats.paused(), Some(expected));
    // Resumed, the same record is asked for again.
    assert!(lane.unhalt());
    assert!(!lane.unhalt(), "once");
    assert_eq!(lane.stats.paused(), None);
    assert!(lane.may_fetch(usize::MAX, Instant::now()));
    assert_eq!(lane.fetch_offset, SourceOffset(6));
    lane.push(batch(4, 4, Codec::Snappy));
    assert!(sent_values(&mut lane, &mut chain).is_empty());
    assert_eq!(lane.stats.paused().unwrap().offset, SourceOffset(6));
    // Another chain lets it go on.
    let mut other = PlainChain::new(4, |_| Verdict::Keep);
    let changeover = lane.use_chain(&other);
    assert_eq!(changeover, Changeover { generation: 4, first_offset: Some(SourceOffset(6)) });
    lane.push(batch(4, 4, Codec::Snappy));
    assert_eq!(sent_values(&mut lane, &mut other), ["6", "7"]);
    assert_eq!(lane.stats.paused(), None);
}

#[test]
fn a_halt_at_the_first_record_settles_what_was_dropped_before_it() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |offset| if offset == 2 { Verdict::Halt } else { Verdict::Drop });
    lane.use_chain(&chain);
    lane.push(batch(0, 4, Codec::None));
    assert!(send_all(&mut lane, &mut chain).is_empty());
    assert_eq!(lane.progress.safe_offset(), SourceOffset(2));
    assert!(lane.is_idle(), "it can be let go");
}

#[test]
fn a_halted_partition_does_not_jump_over_the_guilty_record() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |offset| if offset == 2 { Verdict::Halt } else { Verdict::Keep });
    lane.use_chain(&chain);
    lane.push(batch(0, 4, Codec::None));
    lane.condition = Condition::Jumping { to: SourceOffset(90) };
    assert_eq!(sent_values(&mut lane, &mut chain), ["0", "1"]);
    assert_eq!(lane.condition, Condition::Moving, "where to go on is worked out again, from offset 2");
    assert_eq!(lane.fetch_offset, SourceOffset(2));
}

#[test]
fn nothing_passes_a_quarantined_record_before_it_is_written() {
    let mut lane = lane(0);
    let mut chain =
        PlainChain::new(7, |offset| if offset == 1 { Verdict::Quarantine } else { Verdict::Keep });
    lane.use_chain(&chain);
    lane.push(batch(0, 3, Codec::Lz4));
    lane.push(batch(3, 3, Codec::Lz4));
    lane.push_nothing(SourceOffset(9));
    assert!(send_all(&mut lane, &mut chain).is_empty());
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0));
    assert!(!lane.is_idle(), "it is not let go before the record is written");
    let (batches, _) = lane.quarantine_to_write().unwrap();
    assert!(lane.quarantine_to_write().is_none(), "written once");
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].records, [(SourceOffset(1), "plain".into())]);
    let stored = as_stored(&batches[0].batch, 0);
    let mut decompressor = Decompressor::default();
    let record = decompressor.records(&stored).unwrap().next().unwrap().unwrap();
    assert_eq!((record.key, record.value), (None, Some(&b"1"[..])));
    let headers: Vec<_> = record.headers.iter().collect();
    let (note, own) = QuarantineNote::read(&headers).unwrap();
    assert_eq!(headers[..own], [(&b"h"[..], Some(&b"1"[..]))]);
    let expected = QuarantineNote {
        flow: "A->B".into(),
        topic: TopicName::parse("t").unwrap(),
        partition: 4,
        offset: SourceOffset(1),
        timestamp_ms: 1_001,
        plugin: "plain".into(),
        version: "1.0.0".into(),
        digest: "d1".into(),
        generation: 7,
        reason: "does not like 1".into(),
    };
    assert_eq!(note, expected);
    // Another chain that comes meanwhile begins behind what was edited.
    let mut other = PlainChain::new(8, |_| Verdict::Drop);
    assert_eq!(lane.use_chain(&other).first_offset, Some(SourceOffset(3)));
    assert!(send_all(&mut lane, &mut other).is_empty());
    lane.quarantined(AS_IT_COMES, &mut Transform::default());
    assert_eq!(sent_values(&mut lane, &mut other), ["0", "2"]);
    assert_eq!(lane.progress.safe_offset(), SourceOffset(9));
    assert_eq!(counts(&lane), [0, 3, 1]);
    assert_eq!(lane.unsettled_bytes, 0);
}

#[test]
fn a_batch_that_is_quarantined_whole_is_settled_once_it_is_written() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |_| Verdict::Quarantine);
    lane.use_chain(&chain);
    lane.push(batch(0, 3, Codec::None));
    assert!(send_all(&mut lane, &mut chain).is_empty());
    assert_eq!(lane.progress.safe_offset(), SourceOffset(0));
    lane.quarantined(AS_IT_COMES, &mut Transform::default());
    assert_eq!((lane.progress.safe_offset(), lane.unsettled_bytes), (SourceOffset(3), 0));
}

#[test]
fn a_record_too_large_for_quarantine_stops_the_partition_and_is_not_lost() {
    let mut lane = lane(0);
    let mut chain =
        PlainChain::new(5, |offset| if offset == 1 { Verdict::Quarantine } else { Verdict::Keep });
    lane.use_chain(&chain);
    lane.push(batch(0, 3, Codec::None));
    lane.push_nothing(SourceOffset(4));
    assert!(send_all(&mut lane, &mut chain).is_empty());
    lane.use_chain(&PlainChain::new(6, |_| Verdict::Keep));
    let refused = TooLarge { offset: SourceOffset(1), plugin: "plain".into(), reason: "too large".into() };
    lane.quarantine_refused(refused);
    assert_eq!(lane.stats.paused().unwrap().offset, SourceOffset(1));
    assert_eq!((lane.progress.safe_offset(), lane.fetch_offset), (SourceOffset(0), SourceOffset(0)));
    assert_eq!((lane.unsettled_bytes, lane.is_idle()), (0, true));
    let expected = Changeover { generation: 6, first_offset: Some(SourceOffset(0)) };
    assert_eq!(lane.stats.changeover(), Some(expected), "the new generation edits it after all");
}

#[test]
fn what_a_chain_edited_once_is_never_edited_again() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |offset| Verdict::Set(format!("{offset} by 1").into_bytes()));
    lane.use_chain(&chain);
    lane.push(batch(0, 2, Codec::Zstd));
    let out = next_batch(&mut lane, &mut chain).unwrap();
    lane.push(batch(2, 2, Codec::Zstd));
    let mut other = PlainChain::new(2, |offset| Verdict::Set(format!("{offset} by 2").into_bytes()));
    assert_eq!(lane.use_chain(&other).first_offset, Some(SourceOffset(2)));
    // Refused and split: its pieces are what the first chain made of it.
    let pieces = lane.split(out.tag, &mut Transform::default()).unwrap();
    let pieces: Vec<_> = pieces.iter().flat_map(|piece| values(piece.header, &piece.payload)).collect();
    assert_eq!(pieces, ["0 by 1", "1 by 1"]);
    assert_eq!(send_all(&mut lane, &mut other)[0].1, ["2 by 2", "3 by 2"]);
    assert_eq!(*other.shown.borrow(), [2, 3]);
}

#[test]
fn an_idle_partition_notes_the_change_at_once() {
    let mut lane = lane(12);
    let changeover = lane.use_chain(&PlainChain::new(9, |_| Verdict::Keep));
    assert_eq!(changeover, Changeover { generation: 9, first_offset: Some(SourceOffset(12)) });
    assert_eq!(lane.stats.changeover(), Some(changeover));
}

#[test]
fn a_partition_without_a_position_notes_the_change_when_it_has_one() {
    let topic = TopicName::parse("t").unwrap();
    let stats = Arc::new(PartitionStats::new(TopicName::parse("A.t").unwrap(), Slot(0)));
    let source = SourcePartition { topic, partition: 0 };
    let mut lane = RelayLane::new(1, source, Slot(0), None, stats);
    assert_eq!(lane.use_chain(&PlainChain::new(2, |_| Verdict::Keep)).first_offset, None);
    lane.start_at(SourceOffset(30));
    let expected = Changeover { generation: 2, first_offset: Some(SourceOffset(30)) };
    assert_eq!(lane.stats.changeover(), Some(expected));
}

#[test]
fn a_partition_that_only_drops_lets_others_have_their_turn() {
    let mut lane = lane(0);
    let mut chain = PlainChain::new(1, |_| Verdict::Drop);
    lane.use_chain(&chain);
    let value = vec![7; 1024 * 1024];
    for base in 0..8 {
        let mut builder = BatchBuilder::new();
        builder.push_parts(None, Some(&value), &[], 1);
        lane.push(as_stored(&builder.finish().unwrap(), base));
    }
    assert!(next_batch(&mut lane, &mut chain).is_none());
    assert!(lane.takes_another_turn() && lane.has_waiting());
    assert!(next_batch(&mut lane, &mut chain).is_none());
    assert!(!lane.takes_another_turn() && !lane.has_waiting());
    assert_eq!(lane.progress.safe_offset(), SourceOffset(8));
}
