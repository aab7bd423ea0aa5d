//! Which source offsets are settled. Pure: no clock, no sockets.
//!
//! Spans of source offsets are opened in offset order when their batches are read, and settle in any order when they
//! are delivered or dropped. The safe offset moves over the settled prefix only, so it never passes a record that is
//! still on its way (invariant I1).

use std::collections::VecDeque;

use crate::names::SourceOffset;

/// A span of offsets that was opened; handed back to settle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// Progress of one source partition.
#[derive(Debug)]
pub struct Progress {
    safe: SourceOffset,
    last_opened: SourceOffset,
    /// Number of the span at the front of `open`.
    front: u64,
    open: VecDeque<OpenSpan>,
}

#[derive(Debug)]
struct OpenSpan {
    /// `last_opened` before this one.
    start: SourceOffset,
    next: SourceOffset,
    settled: bool,
    /// All before this offset is settled, if all before the span is.
    partly: Option<SourceOffset>,
}

impl Progress {
    /// Starts at `first`: all before it counts as settled.
    pub fn new(first: SourceOffset) -> Self {
        Self { safe: first, last_opened: first, front: 0, open: VecDeque::new() }
    }

    /// First source offset that is not settled: all before it are delivered or dropped. Never goes back; one more
    /// than what is stored as the position, since MirrorMaker 2 stores the last settled offset.
    pub fn safe_offset(&self) -> SourceOffset {
        self.safe
    }

    /// The end of the span that was opened last: where reading goes on if all that is not opened is thrown away.
    pub fn last_opened(&self) -> SourceOffset {
        self.last_opened
    }

    /// Opens the span that ends before `next`. Spans are opened in the order of the source; a span that ends where
    /// the one before ended (or earlier) is legal and moves nothing.
    pub fn open(&mut self, next: SourceOffset) -> Span {
        let start = self.last_opened;
        self.last_opened = self.last_opened.max(next);
        self.open.push_back(OpenSpan { start, next, settled: false, partly: None });
        Span(self.front + self.open.len() as u64 - 1)
    }

    /// Opens a span that has nothing to deliver (control batches, aborted transactions, dropped records).
    pub fn skip(&mut self, next: SourceOffset) {
        let span = self.open(next);
        self.settle(span);
    }

    /// Forgets a span of which nothing was delivered, and those after it, which may hold nothing that is on its way:
    /// reading goes on where the span began.
    pub fn retract(&mut self, span: Span) {
        let index = span.0.checked_sub(self.front).and_then(|index| usize::try_from(index).ok());
        let Some((index, entry)) = index.and_then(|index| Some((index, self.open.get(index)?))) else {
            return;
        };
        debug_assert!(
            !entry.settled && entry.partly.is_none(),
            "a span that is delivered can't be taken back"
        );
        self.last_opened = entry.start;
        self.open.truncate(index);
    }

    /// The head of a span, up to `end`, is delivered: of a batch that was split, the pieces before the first that is not.
    pub fn settle_part(&mut self, span: Span, end: SourceOffset) {
        let index = span.0.checked_sub(self.front).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.open.get_mut(index)) {
            entry.partly = entry.partly.max(Some(end.min(entry.next)));
            self.advance();
        }
    }

    /// Marks a span as delivered or dropped. A span that is settled already stays so.
    pub fn settle(&mut self, span: Span) {
        let Some(index) = span.0.checked_sub(self.front) else { return };
        let Some(entry) = usize::try_from(index).ok().and_then(|index| self.open.get_mut(index)) else {
            return;
        };
        entry.settled = true;
        self.advance();
    }

    fn advance(&mut self) {
        while let Some(first) = self.open.front()
            && first.settled
        {
            self.safe = self.safe.max(first.next);
            self.open.pop_front();
            self.front += 1;
        }
        if let Some(partly) = self.open.front().and_then(|first| first.partly) {
            self.safe = self.safe.max(partly);
        }
    }

    /// Spans that are not settled, or wait behind one that is not.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_position_never_passes_an_unsettled_record() {
        let mut progress = Progress::new(SourceOffset(5));
        let first = progress.open(SourceOffset(10));
        let second = progress.open(SourceOffset(20));
        progress.settle(second);
        assert_eq!(progress.safe_offset(), SourceOffset(5));
        progress.settle(first);
        assert_eq!(progress.safe_offset(), SourceOffset(20));
        assert_eq!(progress.open_count(), 0);
    }

    #[test]
    fn a_part_counts_once_all_before_it_is_settled() {
        let mut progress = Progress::new(SourceOffset(0));
        let first = progress.open(SourceOffset(10));
        let second = progress.open(SourceOffset(20));
        progress.settle_part(second, SourceOffset(15));
        assert_eq!(progress.safe_offset(), SourceOffset(0));
        progress.settle(first);
        assert_eq!(progress.safe_offset(), SourceOffset(15));
        progress.settle_part(second, SourceOffset(12));
        progress.settle_part(second, SourceOffset(99));
        assert_eq!(progress.safe_offset(), SourceOffset(20), "no further than the span");
        progress.settle(second);
        assert_eq!(progress.open_count(), 0);
    }

    #[test]
    fn dropped_records_move_the_safe_offset() {
        let mut progress = Progress::new(SourceOffset(0));
        progress.skip(SourceOffset(7));
        assert_eq!(progress.safe_offset(), SourceOffset(7));
        let open = progress.open(SourceOffset(9));
        progress.skip(SourceOffset(12));
        assert_eq!(progress.safe_offset(), SourceOffset(7));
        progress.settle(open);
        progress.settle(open);
        assert_eq!(progress.safe_offset(), SourceOffset(12));
    }

    #[test]
    fn what_is_taken_back_is_read_again_and_holds_the_position() {
        let mut progress = Progress::new(SourceOffset(0));
        let first = progress.open(SourceOffset(10));
        let second = progress.open(SourceOffset(20));
        progress.skip(SourceOffset(25));
        progress.retract(second);
        assert_eq!(progress.last_opened(), SourceOffset(10));
        progress.settle(first);
        assert_eq!(progress.safe_offset(), SourceOffset(10));
        let again = progress.open(SourceOffset(15));
        progress.settle(again);
        assert_eq!((progress.safe_offset(), progress.open_count()), (SourceOffset(15), 0));
    }

    proptest! {
        #[test]
        fn the_safe_offset_is_the_end_of_the_settled_prefix(
            lengths in proptest::collection::vec(1i64..50, 1..40),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 0..60),
        ) {
            let mut progress = Progress::new(SourceOffset(0));
            let mut next = 0;
            let mut spans = Vec::new();
            for length in &lengths {
                next += length;
                spans.push((progress.open(SourceOffset(next)), next, false));
            }
            for pick in order {
                let index = pick.index(spans.len());
                progress.settle(spans[index].0);
                spans[index].2 = true;
                let prefix = spans.iter().take_while(|span| span.2).last().map_or(0, |span| span.1);
                prop_assert_eq!(progress.safe_offset(), SourceOffset(prefix));
            }
        }
    }
}
