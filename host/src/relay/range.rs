//! What to do when a position lies outside the source's log. Pure. MirrorMaker 2 resets in silence; here the range that
//! is affected is said with its numbers.

use crate::config::OffsetReset;
use crate::names::SourceOffset;

/// Where to go on, and what to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// Go on at this offset; the sentence says what that means.
    GoOn {
        /// Next offset to copy.
        at: SourceOffset,
        /// What happened.
        because: String,
    },
    /// `auto.offset.reset=none`: stay, and say why.
    Stay {
        /// What happened and the way out.
        because: String,
    },
}

/// Decides for a partition whose next offset is `position` while its log holds `earliest..latest`.
pub fn decide(
    position: SourceOffset,
    earliest: SourceOffset,
    latest: SourceOffset,
    reset: OffsetReset,
) -> OutOfRange {
    if (earliest..=latest).contains(&position) {
        let because = format!("the position {position} lies in the source's log again");
        return OutOfRange::GoOn { at: position, because };
    }
    let what = describe(position, earliest, latest);
    let at = match reset {
        OffsetReset::Earliest => earliest,
        OffsetReset::Latest => latest,
        OffsetReset::None => {
            let because = format!(
                "{what}; auto.offset.reset=none keeps the partition here: set it to earliest or latest to go on"
            );
            return OutOfRange::Stay { because };
        }
    };
    let word = match reset {
        OffsetReset::Latest => "latest",
        _ => "earliest",
    };
    let left_out = at.0 - earliest.0;
    let left_out = if left_out > 0 {
        format!("; records {earliest}..={} are left out", at.0 - 1)
    } else {
        String::new()
    };
    OutOfRange::GoOn { at, because: format!("{what}; going on at {at} (auto.offset.reset={word}){left_out}") }
}

fn describe(position: SourceOffset, earliest: SourceOffset, latest: SourceOffset) -> String {
    if position < earliest {
        let last_lost = earliest.0 - 1;
        format!(
            "the source's retention overtook the copy: records {position}..={last_lost} are gone from the source"
        )
    } else {
        format!(
            "the source's log ends at {latest}, before the position {position}: the topic was truncated or made anew"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_is_in_range_again_stays() {
        let at = SourceOffset(150);
        let decision = decide(at, SourceOffset(100), SourceOffset(200), OffsetReset::None);
        let because = "the position 150 lies in the source's log again".to_owned();
        assert_eq!(decision, OutOfRange::GoOn { at, because });
    }

    #[test]
    fn the_lost_range_is_said_exactly() {
        let check = |position, reset, expected: OutOfRange| {
            let decision = decide(SourceOffset(position), SourceOffset(100), SourceOffset(200), reset);
            assert_eq!(decision, expected);
        };
        let gone = "the source's retention overtook the copy: records 40..=99 are gone from the source";
        check(
            40,
            OffsetReset::Earliest,
            OutOfRange::GoOn {
                at: SourceOffset(100),
                because: format!("{gone}; going on at 100 (auto.offset.reset=earliest)"),
            },
        );
        check(
            40,
            OffsetReset::None,
            OutOfRange::Stay {
                because: format!(
                    "{gone}; auto.offset.reset=none keeps the partition here: set it to earliest or latest to go on"
                ),
            },
        );
        check(
            300,
            OffsetReset::Latest,
            OutOfRange::GoOn {
                at: SourceOffset(200),
                because:
                    "the source's log ends at 200, before the position 300: the topic was truncated or made \
                          anew; going on at 200 (auto.offset.reset=latest); records 100..=199 are left out"
                        .to_owned(),
            },
        );
    }
}
