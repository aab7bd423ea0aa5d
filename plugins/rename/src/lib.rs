//! Names topics by a table and by patterns. The way back is proven when the plugin starts, or the settings are refused.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod extent;
mod inverse;
mod names;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tidegate_patterns::{Rewrite, WholeMatch};
use tidegate_plugin::{Link, Plugin, Problem, TopicNaming, plugin};
use tidegate_setting_tables::{Table, escape, read};

use inverse::Inverse;
use names::{Names, Otherwise, Pattern, check_name};

/// More patterns than this are refused: each is tried on each name.
const PATTERN_COUNT_MAX: usize = 256;

/// Renames topics.
#[derive(Debug)]
pub struct Rename {
    names: Names,
}

impl Plugin for Rename {
    const NAME: Option<&'static str> = Some("rename");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(include_str!("../schema.json"));

    fn init(link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        read(settings, |table| {
            let topics = take_topics(table);
            let patterns = table.tables("patterns", take_pattern).unwrap_or_default();
            if patterns.len() > PATTERN_COUNT_MAX {
                let message =
                    format!("are {} patterns, at most {PATTERN_COUNT_MAX} are taken", patterns.len());
                table.object_to("patterns", message);
            }
            let separator = table.string("separator").unwrap_or(".".to_owned());
            let prefix = link.source_cluster + &separator;
            let otherwise = match table.choice("otherwise", &["prefix", "keep", "refuse"]) {
                "keep" => Otherwise::Keep { heartbeats_prefix: prefix },
                "refuse" => Otherwise::Refuse,
                _ => Otherwise::Prefix(prefix),
            };
            Self { names: Names::new(topics, patterns, otherwise) }
        })
    }
}

impl TopicNaming for Rename {
    fn to_target(&self, topic: &str) -> Result<String, String> {
        self.names.to_target(topic)
    }

    fn to_source(&self, topic: &str) -> Option<String> {
        self.names.to_source(topic)
    }
}

/// Old names and new ones; no two topics may get one name.
fn take_topics(table: &mut Table<'_>) -> BTreeMap<String, String> {
    let mut topics = BTreeMap::new();
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (old, new) in table.string_table("topics") {
        let at = format!("topics/{}", escape(&old));
        for name in [&old, &new] {
            if let Err(message) = check_name(name) {
                table.object_to(&at, message);
            }
        }
        if let Some(owner) = owners.get(&new) {
            table.object_to(
                &at,
                format!("\"{owner}\" is called \"{new}\" already; each needs a name of its own"),
            );
        }
        owners.insert(new.clone(), old.clone());
        topics.insert(old, new);
    }
    topics
}

fn take_pattern(table: &mut Table<'_>) -> Option<Pattern> {
    let (expression, to) = (table.required_string("match"), table.required_string("to"));
    let (expression, to) = (expression?, to?);
    let matches = match WholeMatch::new(&expression) {
        Ok(matches) => matches,
        Err(message) => {
            table.object_to("match", message);
            return None;
        }
    };
    let proven = Rewrite::new(matches, &to).and_then(|rewrite| {
        let inverse = Inverse::prove(&expression, &to, rewrite.template().pieces())?;
        Ok(Pattern { rewrite, inverse })
    });
    match proven {
        Ok(pattern) => Some(pattern),
        Err(message) => {
            table.object_to("", message);
            None
        }
    }
}

plugin!(Rename: topic_naming);
