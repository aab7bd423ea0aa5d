//! One plugin over one batch: calls, and after a fault the search for the records that cause it.
//!
//! A call that fails is tried once more on a fresh instance. If it fails again, its records are asked about in smaller and
//! smaller calls until a guilty one stands alone and has failed twice; the others are edited as usual. Where a fault pauses
//! the partition only the first guilty record matters, so it is looked for by halving what may hold it; else all are found. A
//! plugin that goes on failing is not asked for ever: see [`FAULTED_CALL_COUNT_MAX`](super::FAULTED_CALL_COUNT_MAX).

use std::ops::{ControlFlow, Range};

use crate::config::OnFault;
use crate::plugin::fault::Fault;
use crate::record::RecordSet;

use super::Place;
use super::stage::{Buffers, FAULTED_CALL_COUNT_MAX, FAULTED_CALL_COUNT_MIN, Stage, Trouble};

/// A record that a plugin failed on or rejected.
#[derive(Debug)]
pub(super) struct Guilty {
    pub(super) index: usize,
    pub(super) is_reject: bool,
    pub(super) reason: String,
}

/// What one plugin did to a batch, beside its edits.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// With `on.fault = quarantine`: they are dropped from the set. In rising order.
    pub(super) quarantined: Vec<Guilty>,
    /// Nothing from this record on counts.
    pub(super) halt: Option<Guilty>,
    /// With `on.fault = pass` or `drop`: how many went that way, and the first of them.
    let_go_count: u64,
    first_let_go: Option<Guilty>,
}

/// Break: the batch is judged to its end, or halted.
type Going = ControlFlow<()>;

pub(super) struct Search<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) buffers: &'a mut Buffers,
    pub(super) place: Place<'a>,
    pub(super) base: &'a [u8],
    pub(super) records: &'a mut RecordSet,
    /// Records from here on are not this plugin's.
    pub(super) end: usize,
    pub(super) faulted_call_count: u32,
    pub(super) answered_call_count: u32,
    pub(super) verdicts: Verdicts,
}

impl Search<'_> {
    pub(super) fn run(mut self) -> Verdicts {
        let mut at = 0;
        while at < self.end {
            let next = self.stage.fill(self.buffers, self.records, self.base, at..self.end);
            if self.call(at..next).is_break() {
                break;
            }
            at = next;
        }
        let was_exhausted = self.is_exhausted();
        let max = &mut self.stage.faulted_call_count_max;
        *max = match (was_exhausted, self.answered_call_count) {
            (true, 0) => (*max / 2).max(FAULTED_CALL_COUNT_MIN),
            // It does not fail always: with a bound that is too low to find a single guilty record all its neighbours would be
            // judged with it, in each batch anew.
            (true, _) => (*max * 2).min(FAULTED_CALL_COUNT_MAX),
            (false, _) => FAULTED_CALL_COUNT_MAX,
        };
        self.stage.let_go_of_memory();
        if let Some(first) = self.verdicts.first_let_go.take() {
            let offset = super::question::offset(self.records, first.index);
            self.stage.tell_let_go(self.place, offset, &first.reason, self.verdicts.let_go_count);
        }
        self.verdicts
    }

    /// The question for `range` is in the buffers.
    fn call(&mut self, range: Range<usize>) -> Going {
        match self.ask_twice(&range)? {
            Ok(()) => Going::Continue(()),
            Err(fault) if self.stage.plugin.on_fault == OnFault::Pause => self.find_first(range, fault),
            Err(fault) => self.find_all(range, fault),
        }
    }

    /// Asks the question in the buffers, once more if it fails, and does what is answered. The inner error is the second fault.
    fn ask_twice(&mut self, range: &Range<usize>) -> ControlFlow<(), Result<(), Fault>> {
        match self.ask(range)? {
            Ok(()) => ControlFlow::Continue(Ok(())),
            Err(_) => self.ask(range),
        }
    }

    fn ask(&mut self, range: &Range<usize>) -> ControlFlow<(), Result<(), Fault>> {
        let Some(first) = self.buffers.question.first() else { return ControlFlow::Continue(Ok(())) };
        match self.stage.ask(self.buffers, self.records, self.base, self.place) {
            Ok(answer) => {
                self.answered_call_count += 1;
                let Buffers { question, plan } = &mut *self.buffers;
                plan.apply(&answer, self.records, self.base, &question.shown);
                for (shown, reason) in plan.rejected(&answer) {
                    let guilty = Guilty {
                        index: question.shown[shown] as usize,
                        is_reject: true,
                        reason: crate::plugin::journal::one_line(reason),
                    };
                    judge(self.stage.plugin.on_fault, guilty, self.records, &mut self.verdicts)?;
                }
                ControlFlow::Continue(Ok(()))
            }
            Err(Trouble::Fault(fault)) => {
                self.faulted_call_count += 1;
                ControlFlow::Continue(Err(fault))
            }
            Err(Trouble::NoInstance(error)) => {
                debug_assert!(range.contains(&first));
                let reason = format!("no instance could be started: {error}");
                self.verdicts.halt = Some(Guilty { index: first, is_reject: false, reason });
                ControlFlow::Break(())
            }
        }
    }

    /// Asks about `range` alone.
    fn try_range(&mut self, range: &Range<usize>) -> ControlFlow<(), Result<(), Fault>> {
        self.stage.fill(self.buffers, self.records, self.base, range.clone());
        self.ask(range)
    }

    /// `range`, whose question is in the buffers, failed twice. Halts at its first guilty record; what is before it is edited.
    fn find_first(&mut self, range: Range<usize>, mut fault: Fault) -> Going {
        let mut suspects = range.clone();
        let mut failed_alone = true;
        loop {
            let Some(middle) = self.buffers.question.middle() else {
                // The suspect stands alone.
                if !failed_alone {
                    match self.ask_twice(&suspects)? {
                        Ok(()) => {}
                        Err(alone) => return self.condemn(alone),
                    }
                    // It was none. What is left of the range may hold one, or the plugin fails now and then.
                    suspects = suspects.end..range.end;
                    match self.try_range(&suspects)? {
                        Ok(()) => return Going::Continue(()),
                        Err(again) => fault = again,
                    }
                    continue;
                }
                return self.condemn(fault);
            };
            if self.is_exhausted() {
                return self.condemn_rest(&fault);
            }
            failed_alone = false;
            match self.try_range(&(suspects.start..middle))? {
                Ok(()) => suspects.start = middle,
                Err(earlier) => {
                    fault = earlier;
                    suspects.end = middle;
                }
            }
            self.stage.fill(self.buffers, self.records, self.base, suspects.clone());
        }
    }

    /// `range`, whose question is in the buffers, failed. Judges all its guilty records; the others are edited.
    fn find_all(&mut self, range: Range<usize>, fault: Fault) -> Going {
        let Some(middle) = self.buffers.question.middle() else {
            return self.condemn(fault);
        };
        for half in [range.start..middle, middle..range.end] {
            self.stage.fill(self.buffers, self.records, self.base, half.clone());
            if self.is_exhausted() {
                return self.condemn_rest(&fault);
            }
            let stands_alone = self.buffers.question.middle().is_none();
            let answered = if stands_alone { self.ask_twice(&half)? } else { self.ask(&half)? };
            if let Err(fault) = answered {
                self.find_all(half, fault)?;
            }
        }
        Going::Continue(())
    }

    fn is_exhausted(&self) -> bool {
        self.faulted_call_count >= self.stage.faulted_call_count_max
    }

    /// The record that the question in the buffers is about.
    fn condemn(&mut self, fault: Fault) -> Going {
        let Some(index) = self.buffers.question.first() else { return Going::Continue(()) };
        let guilty = Guilty { index, is_reject: false, reason: fault.to_string() };
        judge(self.stage.plugin.on_fault, guilty, self.records, &mut self.verdicts)
    }

    /// All records from the first one in the buffers to the end of the batch.
    fn condemn_rest(&mut self, fault: &Fault) -> Going {
        let Some(first) = self.buffers.question.first() else { return Going::Continue(()) };
        let reason = format!(
            "{fault}; {} calls failed in this batch, so its remaining records are judged together",
            self.faulted_call_count
        );
        for index in first..self.end {
            if !self.records.record(self.base, index).is_dropped {
                let guilty = Guilty { index, is_reject: false, reason: reason.clone() };
                judge(self.stage.plugin.on_fault, guilty, self.records, &mut self.verdicts)?;
            }
        }
        Going::Break(())
    }
}

/// Does with a guilty record what the flow says.
fn judge(on_fault: OnFault, guilty: Guilty, records: &mut RecordSet, verdicts: &mut Verdicts) -> Going {
    match on_fault {
        OnFault::Pause => {
            verdicts.halt = Some(guilty);
            return Going::Break(());
        }
        OnFault::Pass | OnFault::Drop => {
            if on_fault == OnFault::Drop {
                records.drop_record(guilty.index);
            }
            verdicts.let_go_count += 1;
            verdicts.first_let_go.get_or_insert(guilty);
        }
        OnFault::Quarantine => {
            records.drop_record(guilty.index);
            verdicts.quarantined.push(guilty);
        }
    }
    Going::Continue(())
}
