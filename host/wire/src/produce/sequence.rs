//! Sequence numbers of a producer's records: 0, 1, … 2³¹−1, 0, 1, ….

/// The sequence number `records` behind `sequence`, wrapping from 2³¹−1 to 0 as the broker counts
/// (`DefaultRecordBatch.incrementSequence`).
pub(super) fn sequence_after(sequence: i32, records: i32) -> i32 {
    let next = i64::from(sequence) + i64::from(records);
    (next & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_behind_the_largest_to_zero() {
        let check = |sequence, records, expected| assert_eq!(sequence_after(sequence, records), expected);
        check(0, 1, 1);
        check(7, 5, 12);
        check(i32::MAX - 1, 1, i32::MAX);
        check(i32::MAX, 1, 0);
        check(i32::MAX - 2, 5, 2);
        check(i32::MAX, i32::MAX, i32::MAX - 1);
    }
}
