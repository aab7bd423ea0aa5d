//! Every key that MirrorMaker 2 and its clients know, and what Tidegate makes of it. Keys that are honoured are read
//! elsewhere; a table says so with [`Plan::Read`], so that a mistyped key finds its neighbour.

mod clients;
mod flow_options;
mod worker;

pub(super) use clients::{ADMIN, CONSUMER, PRODUCER};
pub(super) use flow_options::FLOW_OPTIONS;
pub(super) use worker::{GLOBAL, WORKER};

use super::values::Kind;

/// What becomes of a key that nobody read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Honoured where it counts.
    Read,
    /// Not yet: what is missing.
    NotYet(&'static str),
    /// Something near to it happens.
    Mapped(&'static str),
    /// Nothing happens, for this reason.
    Ignored(&'static str),
    /// Honoured with one of these values; any other stops the start, for this reason.
    Only(&'static [&'static str], &'static str),
    /// It stops the start.
    Refused(&'static str),
}

/// A key below its prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The name; one that ends in `.` stands for all that begin with it.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) plan: Plan,
}

const fn key(name: &'static str, kind: Kind, plan: Plan) -> Known {
    Known { name, kind, plan }
}

/// The entry for `name`, exact before prefix.
pub(super) fn find(tables: &[&'static [Known]], name: &str) -> Option<&'static Known> {
    let all = || tables.iter().flat_map(|table| table.iter());
    let is_prefix = |known: &&Known| known.name.ends_with('.') && name.starts_with(known.name);
    all().find(|known| known.name == name).or_else(|| all().find(is_prefix))
}

/// What clients need to reach a cluster, MirrorMaker 2's "client properties", less `bootstrap.servers`.
pub(super) fn is_security(name: &str) -> bool {
    name == "security.protocol" || name.starts_with("ssl.") || name.starts_with("sasl.")
}

/// Worker settings that hold from the top level too, where they are stronger than the cluster's.
pub(super) const WORKER_PREFIXES_AT_TOP: [&str; 9] = [
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
];

/// Tidegate's own keys of a flow, at the top level for every flow.
pub(super) const TIDEGATE_FLOW: [&str; 4] = [
    "tidegate.naming.module",
    "tidegate.naming.settings",
    "tidegate.naming.deadline.ms",
    "tidegate.naming.memory.mb",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_key_stands_twice_in_a_table() {
        for table in [FLOW_OPTIONS, GLOBAL, WORKER, CONSUMER, PRODUCER, ADMIN] {
            let names: BTreeSet<&str> = table.iter().map(|known| known.name).collect();
            assert_eq!(names.len(), table.len());
        }
    }
}
