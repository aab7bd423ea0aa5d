//! Maps principals and hosts of access rules, and drops rules. No rule becomes wider than it was on the source.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod map;
mod settings;
mod wider;

#[cfg(test)]
mod tests;

use tidegate_plugin::{Acl, AclMapping, Link, Plugin, Problem, plugin};

use map::Rules;

/// Maps access rules.
#[derive(Debug)]
pub struct AclMap {
    rules: Rules,
}

impl Plugin for AclMap {
    const NAME: Option<&'static str> = Some("acl-map");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(include_str!("../schema.json"));

    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        settings::read_settings(settings).map(|rules| Self { rules })
    }
}

impl AclMapping for AclMap {
    fn map(&self, acl: &Acl) -> Result<Vec<Acl>, String> {
        Ok(self.rules.map(acl)?.into_iter().collect())
    }
}

plugin!(AclMap: acl_mapping);
