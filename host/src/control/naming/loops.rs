//! Finds cycles by name, as MirrorMaker 2 does: a topic that came from the target, directly or over other clusters, does
//! not go back there. Where a topic came from is read off its name by the policy's inverse under each cluster's alias.

use super::{HEARTBEATS, Naming};
use crate::names::ClusterAlias;

/// A name tells of at most so many hops; one that tells of more is not followed further.
const HOPS_COUNT_MAX: usize = 16;

impl Naming {
    /// The target's alias if the topic's name says that it came from there.
    ///
    /// A name that an inverse leaves as it is (IdentityReplicationPolicy) says nothing about where it came from.
    pub(super) fn loop_origin(&mut self, topic: &str) -> Result<Option<ClusterAlias>, String> {
        let target = self.flow.target.clone();
        for (origin, _) in self.ancestors(topic)? {
            if origin == target {
                return Ok(Some(origin));
            }
        }
        Ok(None)
    }

    /// Whether the topic holds heartbeats, its own cluster's or copies of another's.
    pub(super) fn is_heartbeats(&mut self, topic: &str) -> Result<bool, String> {
        Ok(topic == HEARTBEATS || self.ancestors(topic)?.iter().any(|(_, name)| name == HEARTBEATS))
    }

    /// Every cluster that the name says it passed, with what it was called there.
    fn ancestors(&mut self, topic: &str) -> Result<Vec<(ClusterAlias, String)>, String> {
        let mut found: Vec<(ClusterAlias, String)> = Vec::new();
        let mut looked_at = 0;
        let mut names = vec![topic.to_owned()];
        while let Some(name) = names.pop() {
            for (origin, upstream) in self.origins(&name)? {
                let ancestor = (origin, upstream);
                if ancestor.1 != name && !found.contains(&ancestor) {
                    names.push(ancestor.1.clone());
                    found.push(ancestor);
                }
            }
            looked_at += 1;
            if looked_at == HOPS_COUNT_MAX {
                break;
            }
        }
        Ok(found)
    }

    /// The clusters that could have given this name, with the name there.
    fn origins(&mut self, name: &str) -> Result<Vec<(ClusterAlias, String)>, String> {
        let mut origins = Vec::new();
        if let Some(upstream) = self.own.to_source(name)? {
            origins.push((self.flow.source.clone(), upstream));
        }
        for (alias, naming) in &mut self.others {
            if let Some(upstream) = naming.to_source(name)? {
                origins.push((alias.clone(), upstream));
            }
        }
        Ok(origins)
    }
}
