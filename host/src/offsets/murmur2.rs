//! Kafka's default partitioner for records with a key: 32-bit MurmurHash2 with a fixed seed, as in
//! `org.apache.kafka.common.utils.Utils.murmur2`. One key must always lie in one partition of the positions topic,
//! else compaction and "the last write wins" mean nothing.

use crate::names::Slot;

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// The hash that Java's clients compute; there it is a signed number with the same bits.
pub fn murmur2(key: &[u8]) -> u32 {
    // Java hashes arrays, so the length always fits an i32; longer keys wrap and are no keys of ours.
    let mut hash = SEED ^ (key.len() as u32);
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> SHIFT;
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed.wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        for (index, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

/// The slot, that is the partition of a positions topic with `slot_count` partitions, that `key` lies in. A count
/// below one counts as one.
pub fn slot_of(key: &[u8], slot_count: i32) -> Slot {
    let positive = (murmur2(key) & 0x7fff_ffff) as i32;
    Slot(positive % slot_count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_java() {
        // The values of org.apache.kafka.common.utils.UtilsTest.testMurmur2.
        let check =
            |text: &str, expected: i32| assert_eq!(murmur2(text.as_bytes()) as i32, expected, "{text:?}");
        check("21", -973_932_308);
        check("foobar", -790_332_482);
        check("a-little-bit-long-string", -985_981_536);
        check("a-little-bit-longer-string", -1_486_304_829);
        check("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971);
        check("abc", 479_470_107);
    }

    #[test]
    fn keys_of_mirror_maker_fall_where_it_puts_them() {
        let check = |key: &str, slot: i32| assert_eq!(slot_of(key.as_bytes(), 25), Slot(slot), "{key}");
        check(r#"["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]"#, 7);
        check(r#"["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]"#, 21);
        check(r#"["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]"#, 0);
    }

    #[test]
    fn a_topic_without_partitions_has_slot_zero() {
        assert_eq!(slot_of(b"key", 0), Slot(0));
        assert_eq!(slot_of(b"key", 1), Slot(0));
    }
}
