//! What becomes of a rule: dropped, or for another principal and another host.

use std::collections::BTreeMap;

use tidegate_patterns::{Rewrite, WholeMatch};
use tidegate_plugin::{Acl, Permission, ResourceKind};

use crate::wider;

/// Names by table and, behind it, by the first pattern that covers one.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) table: BTreeMap<String, String>,
    pub(crate) patterns: Vec<Rewrite>,
}

impl Mapping {
    /// Patterns are not for what stands for everyone or everywhere: `User:*` is no user called `*`.
    fn apply(&self, text: &str, is_wildcard: bool) -> Option<String> {
        if let Some(to) = self.table.get(text) {
            return Some(to.clone());
        }
        if is_wildcard {
            return None;
        }
        self.patterns.iter().find_map(|pattern| pattern.apply(text))
    }
}

/// Which rules a drop rule is for: all of its tests must hold.
#[derive(Debug, Default)]
pub(crate) struct Drop {
    pub(crate) kind: Option<ResourceKind>,
    pub(crate) operation: Option<String>,
    pub(crate) principal: Option<Text>,
    pub(crate) host: Option<Text>,
    pub(crate) name: Option<Text>,
}

/// A test of a text.
#[derive(Debug)]
pub(crate) enum Text {
    Is(String),
    Matches(WholeMatch),
}

impl Text {
    fn holds(&self, text: &str) -> bool {
        match self {
            Self::Is(whole) => whole == text,
            Self::Matches(expression) => expression.covers(text),
        }
    }
}

impl Drop {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { kind, operation, principal, host, name } = self;
        kind.is_none() && operation.is_none() && principal.is_none() && host.is_none() && name.is_none()
    }

    fn is_for(&self, acl: &Acl) -> bool {
        let holds = |test: &Option<Text>, text: &str| test.as_ref().is_none_or(|test| test.holds(text));
        self.kind.is_none_or(|kind| kind == acl.kind)
            && self.operation.as_ref().is_none_or(|operation| *operation == acl.operation)
            && holds(&self.principal, &acl.principal)
            && holds(&self.host, &acl.host)
            && holds(&self.name, &acl.name)
    }
}

/// All of the plugin's settings.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) drops: Vec<Drop>,
    pub(crate) principals: Mapping,
    pub(crate) hosts: Mapping,
    /// Whether a rule goes whose principal is neither in the table nor covered by a pattern.
    pub(crate) is_unmatched_dropped: bool,
}

impl Rules {
    /// What the rule becomes; `None` is dropped. A rule that denies is never dropped: without it others would let in
    /// more. An error is a sentence for the operator.
    pub(crate) fn map(&self, acl: &Acl) -> Result<Option<Acl>, String> {
        let may_drop = acl.permission == Permission::Allow;
        if may_drop && self.drops.iter().any(|drop| drop.is_for(acl)) {
            return Ok(None);
        }
        let principal = self.principals.apply(&acl.principal, wider::is_everyone(&acl.principal));
        if may_drop && self.is_unmatched_dropped && principal.is_none() {
            return Ok(None);
        }
        let host = self.hosts.apply(&acl.host, wider::is_everywhere(&acl.host));
        let mapped = Acl {
            principal: principal.unwrap_or_else(|| acl.principal.clone()),
            host: host.unwrap_or_else(|| acl.host.clone()),
            ..acl.clone()
        };
        wider::check(acl, &mapped)?;
        Ok(Some(mapped))
    }
}
