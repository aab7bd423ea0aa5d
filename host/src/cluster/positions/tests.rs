use bytes::{BufMut, BytesMut};
use tidegate_wire::batch::{BatchBuilder, Codec};

use super::*;
use crate::names::TopicName;
use crate::offsets::{position_key, position_value};

const SLOT_COUNT: i32 = 25;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

fn partition(name: &str, number: i32) -> SourcePartition {
    SourcePartition { topic: TopicName::parse(name).unwrap(), partition: number }
}

/// A log of one slot that is read as it is written.
struct Log {
    slot: Slot,
    next_offset: i64,
    positions: Positions,
    decompressor: Decompressor,
    from_offset: i64,
}

/// Key and value of a record.
type Pair = (Vec<u8>, Option<Vec<u8>>);

impl Log {
    fn new(slot: Slot) -> Self {
        let positions = Positions::new(ClusterAlias::new("A"), SLOT_COUNT);
        Self { slot, next_offset: 100, positions, decompressor: Decompressor::new(1 << 20), from_offset: 0 }
    }

    /// The slot that holds the position of `t-0`.
    fn of_t() -> Self {
        Self::new(slot_of(&position_key(&ClusterAlias::new("A"), &partition("t", 0)), SLOT_COUNT))
    }

    fn append(&mut self, codec: Codec, attributes: i16, producer_id: i64, records: &[Pair]) {
        let mut builder = BatchBuilder::new();
        builder.start(codec);
        for (key, value) in records {
            builder.push_parts(Some(key), value.as_deref(), &[], 1);
        }
        let mut batch = builder.finish().unwrap().to_batch();
        batch.header.base_offset = self.next_offset;
        batch.header.attributes |= attributes;
        batch.header.producer_id = producer_id;
        batch.header.crc = batch.header.compute_crc(&batch.payload());
        let mut bytes = BytesMut::new();
        bytes.put_slice(&batch.header.encode());
        bytes.put_slice(&batch.payload());
        let batch = Batch::parse(bytes.freeze()).unwrap();
        self.next_offset = batch.header.next_offset();
        self.positions.take(self.slot, &batch, self.from_offset, &mut self.decompressor).unwrap();
    }

    fn plain(&mut self, records: &[Pair]) {
        self.append(Codec::None, 0, -1, records);
    }

    fn transactional(&mut self, producer_id: i64, records: &[Pair]) {
        self.append(Codec::None, TRANSACTIONAL, producer_id, records);
    }

    fn marker(&mut self, producer_id: i64, is_commit: bool) {
        let key = vec![0, 0, 0, u8::from(is_commit)];
        self.append(Codec::None, TRANSACTIONAL | CONTROL, producer_id, &[(key, Some(vec![0; 6]))]);
    }

    fn found(self) -> Vec<(String, i64)> {
        let found = self.positions.finish();
        found.into_iter().map(|(partition, offset)| (partition.to_string(), offset.0)).collect()
    }
}

fn stored(offset: i64) -> Pair {
    (position_key(&ClusterAlias::new("A"), &partition("t", 0)), Some(position_value(SourceOffset(offset))))
}

fn t_at(offset: i64) -> Vec<(String, i64)> {
    vec![("t-0".to_owned(), offset)]
}

#[test]
fn the_last_record_of_a_key_counts_whatever_the_codec() {
    for codec in Codec::ALL {
        let mut log = Log::of_t();
        log.append(codec, 0, -1, &[stored(1), stored(9), stored(7)]);
        assert_eq!(log.found(), t_at(7), "{codec:?}");
    }
}

#[test]
fn a_tombstone_takes_a_position_back() {
    let mut log = Log::of_t();
    log.plain(&[stored(1)]);
    log.plain(&[(stored(0).0, None)]);
    assert_eq!(log.found(), []);
    let mut log = Log::of_t();
    log.plain(&[stored(1), (stored(0).0, None), stored(3)]);
    assert_eq!(log.found(), t_at(3));
}

#[test]
fn what_is_not_ours_is_passed_over() {
    let mut log = Log::of_t();
    let value = Some(b"{\"offset\":5}".to_vec());
    log.plain(&[
        (b"[\"MirrorHeartbeatConnector\",{\"sourceClusterAlias\":\"A\"}]".to_vec(), value.clone()),
        (position_key(&ClusterAlias::new("C"), &partition("t", 0)), value.clone()),
        // Hashes to another slot.
        (position_key(&ClusterAlias::new("A"), &partition("t", 1)), value),
        (stored(0).0, Some(b"no json".to_vec())),
    ]);
    assert_eq!(log.found(), []);
}

#[test]
fn positions_of_transactions_count_when_they_are_committed() {
    let mut log = Log::of_t();
    log.plain(&[stored(1)]);
    log.transactional(7, &[stored(2)]);
    log.transactional(8, &[stored(3)]);
    log.marker(8, false);
    log.marker(7, true);
    log.transactional(9, &[stored(4)]);
    assert_eq!(log.found(), t_at(2));
}

#[test]
fn a_late_commit_does_not_undo_what_was_stored_behind_it() {
    let mut log = Log::of_t();
    log.transactional(7, &[stored(2)]);
    log.plain(&[stored(5)]);
    log.marker(7, true);
    assert_eq!(log.found(), t_at(5));
}

#[test]
fn a_marker_without_records_ends_nothing() {
    let mut log = Log::of_t();
    log.marker(7, false);
    log.plain(&[stored(5)]);
    log.marker(7, true);
    assert_eq!(log.found(), t_at(5));
}

#[test]
fn a_batch_that_begins_before_the_position_is_cut() {
    let mut log = Log::of_t();
    log.from_offset = 101;
    log.plain(&[stored(5)]);
    assert_eq!(log.found(), []);
}

#[test]
fn a_damaged_batch_is_told() {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::None);
    let (key, value) = stored(5);
    builder.push_parts(Some(&key), value.as_deref(), &[], 1);
    let mut batch = builder.finish().unwrap().to_batch();
    batch.header.crc ^= 1;
    let batch = Batch::parse([&batch.header.encode()[..], &batch.payload()[..]].concat().into()).unwrap();
    let mut log = Log::of_t();
    let slot = log.slot;
    let taken = log.positions.take(slot, &batch, 0, &mut log.decompressor);
    assert!(taken.unwrap_err().to_string().to_lowercase().contains("crc"));
}
