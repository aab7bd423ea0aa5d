//! The capability `selection`: which topics and consumer groups are replicated.

use crate::Plugin;

/// A topic of the source cluster, as the host asks about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// Its name on the source.
    pub name: String,
    /// How many partitions it has now.
    pub partition_count: u32,
    /// Whether Kafka itself keeps it for its own use, such as `__consumer_offsets`.
    pub is_internal: bool,
    /// Its settings, those that differ from the cluster's defaults: key and value.
    pub settings: Vec<(String, String)>,
}

/// Selects topics and groups. Pure: any instance gives the same answer. The host asks at each refresh, and only
/// about what the topic and group lists of the configuration chose: a plugin narrows them and can't widen them.
///
/// An error (lower case, no full stop) selects nothing new and is shown to the operator; what was replicated before
/// goes on.
pub trait Selection: Plugin {
    /// One answer for each topic, in order: whether it is replicated. More or fewer answers are a fault.
    fn topics(&self, topics: &[Topic]) -> Result<Vec<bool>, String>;

    /// One answer for each consumer group, in order. Unless written, all of them.
    fn groups(&self, groups: &[String]) -> Result<Vec<bool>, String> {
        Ok(vec![true; groups.len()])
    }
}
