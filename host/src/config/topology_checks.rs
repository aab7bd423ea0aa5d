//! What is wrong only when several flows are looked at together.

use std::collections::{BTreeMap, BTreeSet};

use super::absent_defaults;
use super::flow_config::{ClusterConfig, FlowConfig};
use super::naming;
use super::problem::Problem;
use super::settings::Settings;
use super::topology::Topology;
use crate::names::{ClusterAlias, FlowName};

pub(super) fn check(
    settings: &mut Settings,
    topology: &Topology,
    clusters: &BTreeMap<ClusterAlias, ClusterConfig>,
    flows: &[FlowConfig],
) {
    refuse_loops(settings, topology);
    warn_of_shared_topics(settings, topology);
    warn_of_same_servers(settings, topology, clusters);
    refuse_shared_state(settings, flows);
    absent_defaults::warn(settings, topology);
}

/// Under names that stay, nothing but the names would end a loop. Flows that run elsewhere count: the records meet.
fn refuse_loops(settings: &mut Settings, topology: &Topology) {
    let keeping: Vec<&FlowName> =
        topology.enabled.iter().filter(|flow| naming::keeps_names(settings, flow)).collect();
    let mut told: BTreeSet<ClusterAlias> = BTreeSet::new();
    for flow in &keeping {
        if told.contains(&flow.source) {
            continue;
        }
        if let Some(path) = path(&keeping, &flow.target, &flow.source) {
            told.extend(path.iter().cloned());
            let names: Vec<&str> = path.iter().map(ClusterAlias::as_str).collect();
            settings.refuse(
                &format!("{flow}.enabled"),
                format!(
                    "records would run in a circle, {}->{}, because these flows keep topic names and loops are not yet \
                     found by other means; enable one direction only, or name topics with DefaultReplicationPolicy",
                    flow.source,
                    names.join("->")
                ),
            );
        }
    }
}

/// Flows into one target that keep names may meet in one topic. Flows that run elsewhere count here, too.
fn warn_of_shared_topics(settings: &mut Settings, topology: &Topology) {
    let mut keeping: BTreeMap<&ClusterAlias, Vec<&FlowName>> = BTreeMap::new();
    for flow in topology.enabled.iter().filter(|flow| naming::keeps_names(settings, flow)) {
        keeping.entry(&flow.target).or_default().push(flow);
    }
    let meet = |(target, flows): (&ClusterAlias, Vec<&FlowName>)| {
        let names: Vec<String> = flows.iter().map(ToString::to_string).collect();
        let sources: Vec<&str> = flows.iter().map(|flow| flow.source.as_str()).collect();
        Problem::of_file(format!(
            "{} keep topic names, so a topic that exists on more than one of {} is written by several flows on {target}, and \
             its records are mixed; part the flows by their topics, or name topics with DefaultReplicationPolicy",
            names.join(" and "),
            sources.join(", ")
        ))
    };
    let warnings = keeping.into_iter().filter(|(_, flows)| flows.len() > 1).map(meet);
    settings.warnings.extend(warnings);
}

/// The shortest way over `flows`, both ends included.
fn path(flows: &[&FlowName], from: &ClusterAlias, to: &ClusterAlias) -> Option<Vec<ClusterAlias>> {
    let mut ways = vec![vec![from.clone()]];
    let mut seen = BTreeSet::from([from.clone()]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last()?;
            if last == to {
                return Some(way);
            }
            for flow in flows.iter().filter(|flow| flow.source == *last) {
                if seen.insert(flow.target.clone()) {
                    longer.push([way.as_slice(), std::slice::from_ref(&flow.target)].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

/// Cluster ids are compared when the flow starts; here the addresses are.
fn warn_of_same_servers(
    settings: &mut Settings,
    topology: &Topology,
    clusters: &BTreeMap<ClusterAlias, ClusterConfig>,
) {
    for flow in &topology.served {
        let servers = |alias: &ClusterAlias| {
            let servers =
                clusters.get(alias).map(|cluster| cluster.bootstrap_servers.as_slice()).unwrap_or_default();
            servers.iter().map(|server| server.to_ascii_lowercase()).collect::<BTreeSet<String>>()
        };
        let shared: Vec<String> =
            servers(&flow.source).intersection(&servers(&flow.target)).cloned().collect();
        if let Some(server) = shared.first() {
            settings.warnings.push(Problem::of_file(format!(
                "both ends of {flow} are reached at {server}; if they are one cluster, the flow is refused when it starts \
                 unless it changes names"
            )));
        }
    }
}

/// Flows to one target would take each other's slots or positions.
fn refuse_shared_state(settings: &mut Settings, flows: &[FlowConfig]) {
    for (at, flow) in flows.iter().enumerate() {
        for other in flows[..at].iter().filter(|other| other.name.target == flow.name.target) {
            let target = &flow.name.target;
            let shared =
                format!("{} and {} would share it and take each other's work", other.name, flow.name);
            if other.group.id == flow.group.id {
                let text = format!("{shared}; remove it, and each flow has a group of its own");
                settings.refuse(&format!("{target}.group.id"), text);
            }
            if other.positions.topic == flow.positions.topic {
                let keys = ["offset.storage.topic".to_owned(), format!("{target}.offset.storage.topic")];
                let key = keys.iter().find(|key| settings.peek(key).is_some()).unwrap_or(&keys[1]).clone();
                let text = format!("{shared}; remove it, and each flow has a topic of its own");
                settings.refuse(&key, text);
            }
        }
    }
}
