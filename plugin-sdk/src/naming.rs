//! The capability `topic_naming`: what a topic is called on the target cluster.

use crate::Plugin;

/// Names topics. Both functions are pure: the host asks once a topic and keeps the answer, and any instance must
/// give the same one.
///
/// The host refuses a name that Kafka would not take, that is internal, that another topic has already, or for
/// which `to_source` does not lead back.
pub trait TopicNaming: Plugin {
    /// The name on the target of the source's `topic`; an error (lower case, no full stop) keeps the topic from
    /// being replicated and is shown to the operator.
    fn to_target(&self, topic: &str) -> Result<String, String>;

    /// The inverse: which topic of the source cluster a name on the target stands for. `None` if
    /// [`to_target`](Self::to_target) never makes that name. The host finds loops with it, also by asking about
    /// names of other flows.
    fn to_source(&self, topic: &str) -> Option<String>;
}
