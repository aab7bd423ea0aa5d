//! Where a key belongs: `A->B.topics` to a flow, `A.bootstrap.servers` to a cluster, the others to the top level.

use std::collections::BTreeSet;

use crate::names::{ClusterAlias, FlowName};

/// Where a key belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The top level.
    Top,
    /// A cluster of `clusters`.
    Cluster(ClusterAlias),
    /// An ordered pair of clusters of `clusters`.
    Flow(FlowName),
    /// It has the form of a flow's key, but this alias is not in `clusters`.
    UnknownAlias(String),
    /// `A->A.…`: no flow.
    SameEnds,
}

/// A key's scope and what is behind it.
pub(super) fn split<'a>(key: &'a str, aliases: &BTreeSet<ClusterAlias>) -> (Scope, &'a str) {
    match key.split_once("->") {
        Some((source, behind)) => split_flow(key, source, behind, aliases),
        None => match longest_prefix(key, aliases) {
            Some((alias, rest)) => (Scope::Cluster(alias.clone()), rest),
            None => (Scope::Top, key),
        },
    }
}

fn split_flow<'a>(
    key: &'a str,
    source: &str,
    behind: &'a str,
    aliases: &BTreeSet<ClusterAlias>,
) -> (Scope, &'a str) {
    let Some((target, rest)) = longest_prefix(behind, aliases) else {
        let (target, rest) = behind.split_once('.').unwrap_or((behind, ""));
        return (Scope::UnknownAlias(target.to_owned()), rest);
    };
    let source = ClusterAlias::new(source);
    if !aliases.contains(&source) {
        // `x.A->B.topics`: the arrow is within something else.
        let is_plain = !source.as_str().is_empty();
        return match is_plain {
            true => (Scope::UnknownAlias(source.to_string()), rest),
            false => (Scope::Top, key),
        };
    }
    match source == *target {
        true => (Scope::SameEnds, rest),
        false => (Scope::Flow(FlowName { source, target: target.clone() }), rest),
    }
}

/// Aliases may hold dots; the longest that fits is meant.
fn longest_prefix<'k, 'a>(
    key: &'k str,
    aliases: &'a BTreeSet<ClusterAlias>,
) -> Option<(&'a ClusterAlias, &'k str)> {
    aliases
        .iter()
        .filter_map(|alias| Some((alias, key.strip_prefix(alias.as_str())?.strip_prefix('.')?)))
        .max_by_key(|(alias, _)| alias.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_find_their_place() {
        let aliases: BTreeSet<ClusterAlias> = ["A", "us", "us.east"].map(ClusterAlias::new).into();
        let check = |key: &str, scope: Scope, rest: &str| {
            assert_eq!(split(key, &aliases), (scope, rest), "{key}");
        };
        let flow = |source: &str, target: &str| {
            Scope::Flow(FlowName { source: ClusterAlias::new(source), target: ClusterAlias::new(target) })
        };
        check("topics", Scope::Top, "topics");
        check("A.consumer.x", Scope::Cluster(ClusterAlias::new("A")), "consumer.x");
        check("us.east.x", Scope::Cluster(ClusterAlias::new("us.east")), "x");
        check("us.west.x", Scope::Cluster(ClusterAlias::new("us")), "west.x");
        check("A->us.east.topics", flow("A", "us.east"), "topics");
        check("us.east->A.topics", flow("us.east", "A"), "topics");
        check("A->C.topics", Scope::UnknownAlias("C".into()), "topics");
        check("C->A.topics", Scope::UnknownAlias("C".into()), "topics");
        check("A->A.topics", Scope::SameEnds, "topics");
        check("->A.topics", Scope::Top, "->A.topics");
    }
}
