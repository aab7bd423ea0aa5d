//! Changes the headers of records by rules, in order: set, add, rename, remove, keep only.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod rule;
mod template;

#[cfg(test)]
mod tests;

use tidegate_plugin::records::{Batch, Edit, Needs, Record};
use tidegate_plugin::settings::Value;
use tidegate_plugin::{Link, Plugin, Problem, Records, plugin};
use tidegate_setting_tables::{Table, read};

use rule::{Names, Rules};
use template::Template;

/// More rules than this are refused: each is looked at for each record.
const RULE_COUNT_MAX: usize = 256;

/// Applies its rules to each record.
#[derive(Debug)]
pub struct HeaderRules {
    rules: Rules,
}

impl Plugin for HeaderRules {
    const NAME: Option<&'static str> = Some("header-rules");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(include_str!("../schema.json"));

    fn init(link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        read(settings, |table| {
            let mut rules = Rules::default();
            let mut count = 0;
            let list = table.tables("rules", |rule| {
                count += 1;
                take_rule(rule, &link, &mut rules)
            });
            if list.is_none_or(|_| count == 0) {
                table.object_to("rules", "must list at least one rule");
            }
            if count > RULE_COUNT_MAX {
                table.object_to("rules", format!("has {count} rules, at most {RULE_COUNT_MAX} are taken"));
            }
            Self { rules }
        })
    }
}

impl Records for HeaderRules {
    fn needs(&self) -> Needs {
        self.rules.needs()
    }

    fn begin(&mut self, batch: &Batch<'_>) {
        self.rules.begin(batch.topic(), batch.partition());
    }

    fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
        self.rules.apply(record, edit);
        Ok(())
    }
}

fn take_rule(table: &mut Table<'_>, link: &Link, rules: &mut Rules) -> Option<()> {
    let Some(action) = table.required_choice("action", &["set", "add", "rename", "remove", "keep-only"])
    else {
        table.forget(&["name", "value", "to", "names"]);
        return None;
    };
    match action {
        "set" => {
            let (name, value) = name_and_value(table, link)?;
            rules.set(name, value);
        }
        "add" => {
            let (name, value) = name_and_value(table, link)?;
            rules.add(name, value);
        }
        "rename" => {
            let (old, new) = (table.required_string("name"), table.required_string("to"));
            rules.rename(old?, new?);
        }
        "remove" => rules.remove(names(table)?),
        _ => rules.keep_only(names(table)?),
    }
    Some(())
}

/// A value is a text with places, or null; it must be there, so that null is meant.
fn name_and_value(table: &mut Table<'_>, link: &Link) -> Option<(String, Option<Template>)> {
    let name = table.required_string("name");
    let value = match table.value("value") {
        None => return table.missing("value"),
        Some(Value::Null) => None,
        Some(Value::String(text)) => match Template::parse(&text, link) {
            Ok(template) => Some(template),
            Err(message) => {
                table.object_to("value", message);
                return None;
            }
        },
        Some(_) => {
            table.object_to("value", "must be a string or null");
            return None;
        }
    };
    Some((name?, value))
}

fn names(table: &mut Table<'_>) -> Option<Names> {
    let Some(list) = table.strings("names") else {
        table.object_to("names", "must list the names");
        return None;
    };
    let mut names = Names::default();
    for (index, name) in list.iter().enumerate() {
        if let Err(message) = names.add(name) {
            table.object_to(&format!("names/{index}"), message);
        }
    }
    Some(names)
}

plugin!(HeaderRules: records);
