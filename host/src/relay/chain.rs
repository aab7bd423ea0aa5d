//! What the relay asks of a flow's chain of record plugins. The chain itself is the plugin floor's; tests put plain Rust in
//! its place.

use crate::names::TopicName;
use crate::plugin::{Chain, Edited, Place};
use crate::record::RecordSet;

/// A chain of one generation, the worker's own.
pub(super) trait RecordChain {
    /// The generation's number.
    fn generation(&self) -> u64;

    /// Whether any plugin of it edits records of the topic. Asked once a partition and generation.
    fn applies_to(&self, topic: &TopicName) -> bool;

    /// Shows the records to the plugins and does to the set what they want. What can't be answered for is said per record.
    fn edit(&mut self, place: Place<'_>, base: &[u8], records: &mut RecordSet) -> Edited;
}

impl RecordChain for Chain {
    fn generation(&self) -> u64 {
        Chain::generation(self)
    }

    fn applies_to(&self, topic: &TopicName) -> bool {
        !self.is_empty() && Chain::applies_to(self, topic)
    }

    fn edit(&mut self, place: Place<'_>, base: &[u8], records: &mut RecordSet) -> Edited {
        Chain::edit(self, place, base, records)
    }
}

#[cfg(test)]
pub(super) mod plain;
