//! The hook that edits records: an instance for one worker. Retries, halving and what happens to a guilty record are the
//! chain's.

use std::sync::Arc;

use super::contract::records::{Batch, Parts};
use super::fault::Fault;
use super::instance::{Instance, Question};
use super::journal::one_line;
use super::records::{Answer, BatchWords, Needed, RecordsCall};
use super::stats::PluginStats;

/// A plugin that wants more headers than this can ask for all.
const HEADER_NAME_COUNT_MAX: usize = 256;
const HEADER_NAME_BYTES_MAX: usize = 1024;

/// An instance of a plugin that edits records. After a fault it is of no use and must be dropped.
pub struct RecordsInstance {
    instance: Instance,
    stats: Arc<PluginStats>,
    /// What the figures know of.
    noted_bytes: usize,
}

impl RecordsInstance {
    pub(super) fn new(instance: Instance, stats: Arc<PluginStats>) -> Self {
        let mut made = Self { instance, stats, noted_bytes: 0 };
        made.note_memory();
        made
    }

    fn note_memory(&mut self) {
        let now_bytes = self.instance.memory_bytes();
        if now_bytes != self.noted_bytes {
            self.stats.note_memory(self.noted_bytes, now_bytes);
            self.noted_bytes = now_bytes;
        }
    }
}

impl RecordsCall for RecordsInstance {
    fn process(&mut self, batch: &BatchWords<'_>) -> Result<Answer, Fault> {
        let answer = self.instance.process(batch);
        self.note_memory();
        answer
    }

    fn memory_bytes(&self) -> usize {
        self.instance.memory_bytes()
    }
}

impl Drop for RecordsInstance {
    fn drop(&mut self) {
        self.stats.note_memory(self.noted_bytes, 0);
    }
}

impl Instance {
    pub(super) fn needs(&mut self) -> Result<Needed, Fault> {
        let question = Question::Needs;
        let needed = self.ask(question, |exports, store| exports.records()?.call_needs(store))?;
        let name_bytes_max = needed.header_names.iter().map(String::len).max().unwrap_or(0);
        if needed.header_names.len() > HEADER_NAME_COUNT_MAX || name_bytes_max > HEADER_NAME_BYTES_MAX {
            let message = format!(
                "{} header names, the longest of {name_bytes_max} bytes; at most {HEADER_NAME_COUNT_MAX} of \
                 {HEADER_NAME_BYTES_MAX} bytes",
                needed.header_names.len()
            );
            return Err(self.bad_answer(question, one_line(&message)));
        }
        Ok(Needed {
            key: needed.parts.contains(Parts::KEY),
            value: needed.parts.contains(Parts::VALUE),
            headers: needed.parts.contains(Parts::HEADERS),
            timestamps: needed.parts.contains(Parts::TIMESTAMPS),
            header_names: needed.header_names,
        })
    }

    fn process(&mut self, batch: &BatchWords<'_>) -> Result<Answer, Fault> {
        let question = Question::Records {
            topic: batch.topic,
            partition: batch.partition,
            base_offset: batch.base_offset,
            count: batch.count,
        };
        let lent = Batch {
            topic: batch.topic,
            partition: batch.partition,
            base_offset: batch.base_offset,
            count: batch.count,
            data: batch.data,
            rec_words: batch.rec_words,
            recs: batch.recs,
            headers: batch.headers,
            timestamps: batch.timestamps,
        };
        match self.ask(question, |exports, store| exports.records()?.call_process(store, lent))? {
            Ok(edits) => Ok(Answer { data: edits.data, ops: edits.ops }),
            Err(message) => Err(self.declined(question, &message)),
        }
    }
}
