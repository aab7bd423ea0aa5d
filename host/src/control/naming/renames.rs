//! What another naming would do to topics that are copied already.

use std::fmt;

use serde::Serialize;

use super::{Naming, TopicAnswer};
use crate::names::TopicName;

/// What a topic would be called from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewName {
    /// Another name.
    Named(TopicName),
    /// None: why it would not be copied any more.
    Refused(String),
    /// None: it would count as internal, or as none of the flow's topics.
    Left,
}

/// A topic that is copied already and that another naming would call otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rename {
    /// The source topic.
    pub topic: TopicName,
    /// Where its records are.
    pub from: TopicName,
    /// Where its next records would go.
    pub to: NewName,
}

impl fmt::Display for Rename {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, from, to } = self;
        match to {
            NewName::Named(to) => write!(
                formatter,
                "topic \"{topic}\" is copied to \"{from}\" and would go on in \"{to}\" from its stored positions: its records \
                 so far stay in \"{from}\" and are not copied again"
            ),
            NewName::Refused(why) => write!(
                formatter,
                "topic \"{topic}\" is copied to \"{from}\" and would not be copied any more; what is there stays ({why})"
            ),
            NewName::Left => write!(
                formatter,
                "topic \"{topic}\" is copied to \"{from}\" and would not be copied any more; what is there stays"
            ),
        }
    }
}

/// What `new` would rename of `copied` topics, which `old` has named. A topic that `old` does not copy is none of it.
pub fn renames<'a>(
    old: &mut Naming,
    new: &mut Naming,
    copied: impl Iterator<Item = &'a TopicName>,
) -> Vec<Rename> {
    let mut renames = Vec::new();
    for topic in copied {
        let TopicAnswer::Copy(named) = old.answer(topic) else { continue };
        let from = named.target;
        let to = match new.answer(topic) {
            TopicAnswer::Copy(named) if named.target == from => continue,
            TopicAnswer::Copy(named) => NewName::Named(named.target),
            TopicAnswer::Refuse(refusal) => NewName::Refused(refusal.text),
            TopicAnswer::Leave | TopicAnswer::LeftOut(_) => NewName::Left,
        };
        renames.push(Rename { topic: topic.clone(), from, to });
    }
    renames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::fixture::{Table, flow, naming, prefix_naming, topic};

    #[test]
    fn only_what_is_called_otherwise_is_a_rename() {
        let flow = flow("topics = orders, bills, kept, other");
        let mut old = prefix_naming(&flow);
        let table = [("orders", "eu.orders"), ("bills", "!private"), ("kept", "A.kept"), ("other", "x")];
        let mut new = naming(&flow, Table(Box::leak(Box::new(table))));
        let copied = ["orders", "bills", "kept", "strange"].map(topic);
        let found: Vec<String> =
            renames(&mut old, &mut new, copied.iter()).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "topic \"orders\" is copied to \"A.orders\" and would go on in \"eu.orders\" from its stored positions: its \
                 records so far stay in \"A.orders\" and are not copied again",
                "topic \"bills\" is copied to \"A.bills\" and would not be copied any more; what is there stays (topic \"bills\" \
                 of cluster \"A\" is not copied: naming plugin \"table\" refuses it: private; change the plugin or its settings, \
                 or add the topic to topics.exclude)",
            ]
        );
    }

    #[test]
    fn the_same_naming_renames_nothing() {
        let flow = flow("");
        let copied = ["orders", "bills"].map(topic);
        assert_eq!(renames(&mut prefix_naming(&flow), &mut prefix_naming(&flow), copied.iter()), []);
    }
}
