//! The hooks of a flow that its control loop asks: who names topics, who narrows their choice, who maps access rules.

use super::naming::Naming;
use super::selection::Selector;
use crate::plugin::{AclPlugin, AclRule, SelectionPlugin, SelectionTopic};

/// A plugin that narrows what the file's lists chose, or a stand-in in tests. Errors are faults.
pub trait Selecting: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// For each topic, in order, whether it may go.
    fn topics(&mut self, topics: &[SelectionTopic]) -> Result<Vec<bool>, String>;
    /// For each consumer group, in order, whether it may go.
    fn groups(&mut self, groups: &[String]) -> Result<Vec<bool>, String>;
}

/// A plugin that maps access rules, or a stand-in in tests. Errors are faults.
pub trait AccessMapping: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// What each rule becomes, in order.
    fn map(&mut self, rules: &[AclRule]) -> Result<Vec<Vec<AclRule>>, String>;
}

/// A plugin under the name that the file gives it.
struct Named<P> {
    name: String,
    plugin: P,
}

impl Selecting for Named<SelectionPlugin> {
    fn name(&self) -> &str {
        &self.name
    }

    fn topics(&mut self, topics: &[SelectionTopic]) -> Result<Vec<bool>, String> {
        self.plugin.topics(topics).map_err(|fault| fault.to_string())
    }

    fn groups(&mut self, groups: &[String]) -> Result<Vec<bool>, String> {
        self.plugin.groups(groups).map_err(|fault| fault.to_string())
    }
}

impl AccessMapping for Named<AclPlugin> {
    fn name(&self) -> &str {
        &self.name
    }

    fn map(&mut self, rules: &[AclRule]) -> Result<Vec<Vec<AclRule>>, String> {
        self.plugin.map(rules).map_err(|fault| fault.to_string())
    }
}

/// All hooks of one generation but the one for records.
pub struct Policies {
    pub(super) naming: Naming,
    pub(super) selector: Selector,
    pub(super) mappings: Vec<Box<dyn AccessMapping>>,
    pub(super) wants_quarantine: bool,
}

impl Policies {
    /// A flow without plugins beside its naming.
    pub fn new(naming: Naming) -> Self {
        Self { naming, selector: Selector::default(), mappings: Vec::new(), wants_quarantine: false }
    }

    /// What names topics.
    pub fn naming(&mut self) -> &mut Naming {
        &mut self.naming
    }

    /// Adds a plugin that selects, behind those that are there: each sees what the one before left.
    #[must_use]
    pub fn selecting(self, name: &str, plugin: SelectionPlugin) -> Self {
        self.selecting_by(Box::new(Named { name: name.to_owned(), plugin }))
    }

    /// Adds a plugin that maps access rules, behind those that are there: each sees what the one before made of them.
    #[must_use]
    pub fn mapping(self, name: &str, plugin: AclPlugin) -> Self {
        self.mapping_by(Box::new(Named { name: name.to_owned(), plugin }))
    }

    /// Says that some plugin puts records into quarantine, so that the topic for them is made.
    #[must_use]
    pub fn wanting_quarantine(mut self, wants_quarantine: bool) -> Self {
        self.wants_quarantine = wants_quarantine;
        self
    }

    pub(super) fn selecting_by(mut self, plugin: Box<dyn Selecting>) -> Self {
        self.selector.add(plugin);
        self
    }

    pub(super) fn mapping_by(mut self, plugin: Box<dyn AccessMapping>) -> Self {
        self.mappings.push(plugin);
        self
    }
}

impl From<Naming> for Policies {
    fn from(naming: Naming) -> Self {
        Self::new(naming)
    }
}
