//! What MirrorMaker 2 does although no key asks for it, and Tidegate does not do yet. It is told once for a file, with the
//! keys that silence it, so that nobody finds out at a failover.

use super::layers::Layer;
use super::problem::Problem;
use super::settings::Settings;
use super::topology::Topology;
use super::values;
use crate::names::FlowName;

/// A thing that is on by default.
struct AbsentDefault {
    /// Its `<name>.enabled` is the switch; a negative `<name>.interval.seconds` switches it off, too.
    name: &'static str,
    /// What does not happen, and what that means.
    absence: &'static str,
}

const ABSENT_DEFAULTS: [AbsentDefault; 5] = [
    AbsentDefault {
        name: "emit.offset-syncs",
        absence: "no offset syncs are written, so nothing can translate a consumer group's offsets to the target",
    },
    AbsentDefault {
        name: "emit.checkpoints",
        absence: "no checkpoints are written, so the positions that consumer groups need after a failover are missing there",
    },
    AbsentDefault { name: "sync.topic.acls", absence: "access rules of topics are not copied" },
    AbsentDefault {
        name: "sync.topic.configs",
        absence: "topic settings that change after a topic was created are not synced",
    },
    AbsentDefault {
        name: "emit.heartbeats",
        absence: "no heartbeats are written, so whoever watches the flow by them sees it as dead",
    },
];

/// One warning about all that is not switched off.
pub(super) fn warn(settings: &mut Settings, topology: &Topology) {
    let mut absences = Vec::new();
    let mut switches = Vec::new();
    for absent in &ABSENT_DEFAULTS {
        let flows: Vec<String> = topology
            .served
            .iter()
            .filter(|flow| is_on(settings, flow, absent.name))
            .map(ToString::to_string)
            .collect();
        if flows.is_empty() {
            continue;
        }
        let is_whole = flows.len() == topology.served.len();
        let which = if is_whole { String::new() } else { format!(" (for {})", flows.join(", ")) };
        absences.push(format!("{}{which}", absent.absence));
        switches.push(format!("{}.enabled", absent.name));
    }
    if !absences.is_empty() {
        settings.warnings.push(Problem::of_file(format!(
            "MirrorMaker 2 does by default what Tidegate does not do yet: {}; where that will do, say so with {} = false",
            absences.join("; "),
            switches.join(", ")
        )));
    }
}

/// Whether MirrorMaker 2 would do it. What can't be read is refused elsewhere.
fn is_on(settings: &Settings, flow: &FlowName, name: &str) -> bool {
    let value = |end: &str| {
        let keys = Layer::Option.keys(flow, &format!("{name}.{end}"));
        keys.into_iter().find_map(|key| settings.peek(&key))
    };
    let is_switched_off = value("enabled").is_some_and(|value| values::boolean(value) == Ok(false));
    let is_never = value("interval.seconds").is_some_and(|value| values::seconds(value) == Ok(None));
    !is_switched_off && !is_never
}
