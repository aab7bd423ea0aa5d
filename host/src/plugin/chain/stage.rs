//! One plugin of a chain, with the instance that one worker has of it.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{OnFault, TopicFilter};
use crate::names::{SourceOffset, TopicName};
use crate::plugin::edits::{EditCounts, EditPlan, Shown};
use crate::plugin::fault::Fault;
use crate::plugin::load::LoadError;
use crate::plugin::records::{Answer, CallFigures, Needed, RecordsCall, RecordsSource};
use crate::record::RecordSet;

use super::Place;
use super::question::{Question, Wanted};

/// Calls of one plugin that may fail in one batch. Finding one guilty record of 500 takes about 12; with the default deadline
/// so many endless loops take 3 s.
pub const FAULTED_CALL_COUNT_MAX: u32 = 64;
/// For a plugin that used up its failures in the batch before and answered nothing, the bound is halved from batch to batch, down
/// to this; once it answers something, the bound is doubled as long as it is used up.
pub const FAULTED_CALL_COUNT_MIN: u32 = 4;

/// Records that `on.fault` lets pass or drops are told of at most this often; those between are counted.
const LET_GO_TOLD_EVERY: Duration = Duration::from_millis(10_000);

/// A plugin as a chain needs it.
#[derive(Clone)]
pub struct ChainPlugin {
    /// Its name in the configuration.
    pub name: String,
    /// The module's version.
    pub version: String,
    /// The module's SHA-256.
    pub digest: String,
    /// Where it applies.
    pub topics: TopicFilter,
    /// What becomes of a record on which it fails or that it rejects.
    pub on_fault: OnFault,
    /// What an instance may have.
    pub memory_bytes: usize,
    /// What it wants to be shown.
    pub needed: Needed,
    /// Makes its instances.
    pub source: Arc<dyn RecordsSource>,
}

impl ChainPlugin {
    /// A topic that the lists can't be decided on is one that the plugin sees: what it keeps back must not pass it by.
    pub(super) fn applies_to(&self, topic: &TopicName) -> bool {
        self.topics.accepts(topic.as_str()).unwrap_or(true)
    }
}

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    Fault(Fault),
    /// No record is to blame.
    NoInstance(LoadError),
}

/// Buffers that all stages of a chain use in turn.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) question: Question,
    pub(super) plan: EditPlan,
}

pub(super) struct Stage {
    pub(super) plugin: ChainPlugin,
    wanted: Wanted,
    instance: Option<Running>,
    pub(super) faulted_call_count_max: u32,
    /// When records that `on.fault` let go were last told of, and how many there were since.
    told_at: Option<Instant>,
    untold_count: u64,
}

struct Running {
    call: Box<dyn RecordsCall>,
    fresh_bytes: usize,
}

impl Stage {
    pub(super) fn start(plugin: ChainPlugin) -> Result<Self, LoadError> {
        let instance = Some(Running::start(&plugin)?);
        let wanted = Wanted::new(&plugin.needed);
        Ok(Self {
            plugin,
            wanted,
            instance,
            faulted_call_count_max: FAULTED_CALL_COUNT_MAX,
            told_at: None,
            untold_count: 0,
        })
    }

    /// As it stands in sentences.
    pub(super) fn label(&self) -> String {
        format!("{:?} {}", self.plugin.name, self.plugin.version)
    }

    /// Writes the question for the first records of `range`. Answers where the next begins.
    pub(super) fn fill(
        &self,
        buffers: &mut Buffers,
        records: &RecordSet,
        base: &[u8],
        range: Range<usize>,
    ) -> usize {
        buffers.question.fill(&self.wanted, records, base, range)
    }

    /// Asks the question in `buffers` and checks the answer. After a fault the instance is gone.
    pub(super) fn ask(
        &mut self,
        buffers: &mut Buffers,
        records: &RecordSet,
        base: &[u8],
        place: Place<'_>,
    ) -> Result<Answer, Trouble> {
        let mut running = match self.instance.take() {
            Some(running) => running,
            None => Running::start(&self.plugin).map_err(Trouble::NoInstance)?,
        };
        let started_at = Instant::now();
        let answer = self.checked(running.call.as_mut(), buffers, records, base, place);
        let counts = if answer.is_ok() { buffers.plan.counts() } else { EditCounts::default() };
        self.plugin.source.note(&CallFigures {
            records: buffers.question.shown.len() as u64,
            dropped: counts.dropped,
            changed: counts.changed,
            rejected: counts.rejected,
            elapsed: started_at.elapsed(),
            memory_bytes: running.call.memory_bytes(),
            fault: answer.as_ref().err(),
        });
        if answer.is_ok() {
            self.instance = Some(running);
        }
        answer.map_err(Trouble::Fault)
    }

    fn checked(
        &self,
        call: &mut dyn RecordsCall,
        buffers: &mut Buffers,
        records: &RecordSet,
        base: &[u8],
        place: Place<'_>,
    ) -> Result<Answer, Fault> {
        let words = buffers.question.words(place);
        let answer = call.process(&words)?;
        let shown = Shown { records, base, indices: &buffers.question.shown };
        buffers.plan.check(&answer, shown).map_err(|flaw| Fault::BadAnswer {
            plugin: self.label(),
            question: words.to_string(),
            message: flaw.to_string(),
        })?;
        Ok(answer)
    }

    /// No other trace than a count is left of records that pass a policy, or are dropped, because it failed on them or rejected
    /// them, so the log says it: once a while.
    pub(super) fn tell_let_go(&mut self, place: Place<'_>, offset: SourceOffset, reason: &str, count: u64) {
        self.untold_count += count;
        let is_pause_over = self.told_at.is_none_or(|at| at.elapsed() >= LET_GO_TOLD_EVERY);
        if !is_pause_over {
            return;
        }
        self.told_at = Some(Instant::now());
        let records = std::mem::take(&mut self.untold_count);
        let what = match self.plugin.on_fault {
            OnFault::Drop => "records dropped that a plugin failed on or rejected",
            _ => "records passed unchanged that a plugin failed on or rejected",
        };
        tracing::warn!(plugin = %self.plugin.name, topic = %place.topic, partition = place.partition, %offset, reason, records, "{what}");
    }

    /// Between batches: an instance that has used up half of what it may grow by is let go, since its memory never shrinks.
    pub(super) fn let_go_of_memory(&mut self) {
        let limit_bytes = self.plugin.memory_bytes;
        self.instance.take_if(|running| {
            let fresh_bytes = running.fresh_bytes.min(limit_bytes);
            running.call.memory_bytes() > fresh_bytes + (limit_bytes - fresh_bytes) / 2
        });
    }
}

impl Running {
    fn start(plugin: &ChainPlugin) -> Result<Self, LoadError> {
        let call = plugin.source.start()?;
        let fresh_bytes = call.memory_bytes();
        Ok(Self { call, fresh_bytes })
    }
}
