//! Lets records leave by header, key, topic or JSON field. What can't be read does not leave.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod condition;

#[cfg(test)]
mod tests;

use tidegate_json_fields::Paths;
use tidegate_plugin::records::{Edit, Needs, Record};
use tidegate_plugin::{Link, Plugin, Problem, Records, plugin};
use tidegate_setting_tables::{Table, read};

use condition::{Condition, Listed, Missing, Place, Scratch, Verdict};

/// More conditions than this are refused: each is judged for each record.
const CONDITION_COUNT_MAX: usize = 64;

/// Keeps the records that its conditions allow.
#[derive(Debug)]
pub struct RegionFilter {
    conditions: Vec<Condition>,
    /// All conditions must allow a record; else one is enough.
    must_all_allow: bool,
    /// A record that can't be judged is rejected, so that the operator's `on.fault` decides; else it is dropped.
    is_unreadable_rejected: bool,
    /// A record without a value passes the conditions on fields.
    are_tombstones_kept: bool,
    scratch: Scratch,
}

/// What becomes of a record.
enum Decision {
    Keep,
    Drop,
    /// The condition that can't judge it, and why.
    Unreadable(usize, Missing),
}

impl Plugin for RegionFilter {
    const NAME: Option<&'static str> = Some("region-filter");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(include_str!("../schema.json"));

    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        read(settings, |table| {
            let conditions = table.tables("conditions", take_condition);
            if conditions.as_ref().is_none_or(Vec::is_empty) {
                table.object_to("conditions", "must list at least one condition that is right");
            }
            let conditions = conditions.unwrap_or_default();
            if conditions.len() > CONDITION_COUNT_MAX {
                let message =
                    format!("has {} conditions, at most {CONDITION_COUNT_MAX} are taken", conditions.len());
                table.object_to("conditions", message);
            }
            Self {
                conditions,
                must_all_allow: table.choice("match", &["all", "any"]) == "all",
                is_unreadable_rejected: table.choice("unreadable", &["drop", "reject"]) == "reject",
                are_tombstones_kept: table.choice("tombstones", &["drop", "keep"]) == "keep",
                scratch: Scratch::default(),
            }
        })
    }
}

impl Records for RegionFilter {
    fn needs(&self) -> Needs {
        self.conditions.iter().fold(Needs::nothing(), |needs, condition| match &condition.place {
            Place::Header(name) => needs.header(name.as_str()),
            Place::Key => needs.key(),
            Place::Topic => needs,
            Place::Field { .. } => needs.value(),
        })
    }

    fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
        match self.decide(record) {
            Decision::Keep => Ok(()),
            Decision::Unreadable(index, missing) if self.is_unreadable_rejected => {
                Err(self.conditions.get(index).map(|condition| condition.reason(missing)).unwrap_or_default())
            }
            Decision::Drop | Decision::Unreadable(..) => {
                edit.drop();
                Ok(())
            }
        }
    }
}

impl RegionFilter {
    /// A refusal outweighs what can't be read: the record would not leave anyway. With `any` one condition that allows
    /// outweighs both.
    fn decide(&mut self, record: &Record<'_>) -> Decision {
        let mut unreadable = None;
        for (index, condition) in self.conditions.iter().enumerate() {
            match condition.judge(record, &mut self.scratch) {
                Verdict::Allowed if self.must_all_allow => {}
                Verdict::Allowed => return Decision::Keep,
                Verdict::Refused if self.must_all_allow => return Decision::Drop,
                Verdict::Refused => {}
                Verdict::Unreadable(Missing::Tombstone) if self.are_tombstones_kept => {
                    if !self.must_all_allow {
                        return Decision::Keep;
                    }
                }
                Verdict::Unreadable(missing) => unreadable = unreadable.or(Some((index, missing))),
            }
        }
        match unreadable {
            Some((index, missing)) => Decision::Unreadable(index, missing),
            None if self.must_all_allow => Decision::Keep,
            None => Decision::Drop,
        }
    }
}

fn take_condition(table: &mut Table<'_>) -> Option<Condition> {
    let Some(by) = table.required_choice("by", &["header", "key", "topic", "field"]) else {
        table.forget(&["name", "path", "allow", "deny"]);
        return None;
    };
    let place = match by {
        "header" => table.required_string("name").map(Place::Header),
        "key" => Some(Place::Key),
        "topic" => Some(Place::Topic),
        _ => table.required_string("path").and_then(|path| take_field(table, path)),
    };
    let (allow, deny) = (listed(table, "allow"), listed(table, "deny"));
    if allow.is_none() && deny.is_none() {
        table.object_to("", "has neither \"allow\" nor \"deny\", one of them is needed");
        return None;
    }
    // A list that came out empty by mistake would let everything leave.
    if allow.is_none() && deny.as_ref().is_some_and(Vec::is_empty) {
        table.object_to("deny", "denies nothing, and there is no \"allow\" beside it");
        return None;
    }
    Some(Condition { place: place?, allow, deny: deny.unwrap_or_default() })
}

fn take_field(table: &mut Table<'_>, path: String) -> Option<Place> {
    let mut paths = Paths::new();
    match paths.add(&path, false) {
        Ok(_) => Some(Place::Field { path, paths }),
        Err(message) => {
            table.object_to("path", message);
            None
        }
    }
}

fn listed(table: &mut Table<'_>, name: &'static str) -> Option<Vec<Listed>> {
    let texts = table.strings(name)?;
    let mut list = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match Listed::parse(text) {
            Ok(listed) => list.push(listed),
            Err(message) => table.object_to(&format!("{name}/{index}"), message),
        }
    }
    Some(list)
}

plugin!(RegionFilter: records);
