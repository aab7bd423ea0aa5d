//! Which clusters there are, which flows are enabled, and which of them run here.

use std::collections::{BTreeMap, BTreeSet};

use super::flow_config::ClusterConfig;
use super::problem::Problem;
use super::settings::Settings;
use super::values::{boolean, closest, list};
use crate::names::{ClusterAlias, FlowName, TopicName};

/// The clusters and flows of a file.
pub(super) struct Topology {
    /// `clusters`.
    pub(super) aliases: BTreeSet<ClusterAlias>,
    /// `S->T.enabled = true`, wherever it runs.
    pub(super) enabled: Vec<FlowName>,
    /// Those of them that run here.
    pub(super) served: Vec<FlowName>,
}

impl Topology {
    pub(super) fn read(settings: &mut Settings, clusters: Option<&[ClusterAlias]>) -> Self {
        let aliases = aliases(settings);
        let pairs = aliases.iter().flat_map(|source| {
            aliases.iter().map(move |target| FlowName { source: source.clone(), target: target.clone() })
        });
        let pairs: Vec<FlowName> = pairs.filter(|flow| flow.source != flow.target).collect();
        let (enabled, others): (Vec<FlowName>, Vec<FlowName>) =
            pairs.into_iter().partition(|flow| is_enabled(settings, flow));
        check_targets(settings, &aliases, clusters);
        let is_served = |flow: &&FlowName| clusters.is_none_or(|targets| targets.contains(&flow.target));
        let served: Vec<FlowName> = enabled.iter().filter(is_served).cloned().collect();
        let topology = Self { aliases, enabled, served };
        if !topology.aliases.is_empty() {
            topology.check(settings);
            warn_of_heartbeats(settings, &others);
        }
        topology
    }

    fn check(&self, settings: &mut Settings) {
        if self.enabled.is_empty() {
            let mut aliases = self.aliases.iter().map(ClusterAlias::as_str);
            let (source, target) = (aliases.next().unwrap_or("A"), aliases.next().unwrap_or("B"));
            settings.problems.push(Problem::of_file(format!(
                "no flow is enabled; write {source}->{target}.enabled = true for each flow that is meant"
            )));
        } else if self.served.is_empty() {
            let targets: BTreeSet<&str> = self.enabled.iter().map(|flow| flow.target.as_str()).collect();
            let targets: Vec<&str> = targets.into_iter().collect();
            settings.problems.push(Problem::of_file(format!(
                "--clusters leaves no flow to run here; the enabled flows have the targets {}",
                targets.join(", ")
            )));
        }
    }
}

fn aliases(settings: &mut Settings) -> BTreeSet<ClusterAlias> {
    const KEY: &str = "clusters";
    let Some(found) = settings.strongest(&[KEY.to_owned()], "") else {
        settings.problems.push(Problem {
            key: Some(KEY.into()),
            ..Problem::of_file("is missing; list the aliases of all clusters, as in clusters = A, B")
        });
        return BTreeSet::new();
    };
    let aliases: BTreeSet<ClusterAlias> =
        list(&found.value).into_iter().filter(|alias| !alias.is_empty()).map(ClusterAlias::new).collect();
    if aliases.len() < 2 {
        settings.refuse(KEY, "a flow needs two clusters; list the aliases of all, as in clusters = A, B");
    }
    for alias in &aliases {
        if let Err(illegal) = TopicName::parse(&format!("mm2-offsets.{alias}.internal")) {
            let text =
                format!("the alias \"{alias}\" makes an illegal name for the positions topic: {illegal}");
            settings.refuse_quoting(KEY, text);
        }
    }
    aliases
}

/// MirrorMaker 2 looks at this key twice, once with the blanks around it and once without, and does not agree with itself.
fn is_enabled(settings: &mut Settings, flow: &FlowName) -> bool {
    let Some(found) = settings.strongest(&[format!("{flow}.enabled")], &flow.to_string()) else {
        return false;
    };
    match boolean(&found.value) {
        Ok(true) if !found.value.eq_ignore_ascii_case("true") => {
            let text = "a blank behind the value makes MirrorMaker 2 read it as false in one place and as true in another; \
                        remove it";
            settings.refuse(&found.key, text);
            true
        }
        Ok(enabled) => enabled,
        Err(text) => {
            settings.refuse(&found.key, text);
            false
        }
    }
}

fn check_targets(
    settings: &mut Settings,
    aliases: &BTreeSet<ClusterAlias>,
    clusters: Option<&[ClusterAlias]>,
) {
    for target in clusters.unwrap_or_default().iter().filter(|target| !aliases.contains(target)) {
        settings.problems.push(Problem {
            line: None,
            key: Some("--clusters".into()),
            found: Some(target.to_string()),
            text: "is not among the file's clusters; aliases stand divided by blanks, without commas".into(),
            closest: closest(target.as_str(), aliases.iter().map(ClusterAlias::as_str)).map(str::to_owned),
        });
    }
}

/// MirrorMaker 2 also runs flows that are not enabled, for their heartbeats alone.
fn warn_of_heartbeats(settings: &mut Settings, others: &[FlowName]) {
    let key = |flow: &FlowName| format!("{flow}.emit.heartbeats.enabled");
    let emits = |flow: &&FlowName| {
        let value = settings.peek(&key(flow)).or_else(|| settings.peek("emit.heartbeats.enabled"));
        value.is_none_or(|value| value.eq_ignore_ascii_case("true"))
    };
    let for_heartbeats: Vec<String> = others.iter().filter(emits).map(ToString::to_string).collect();
    if !for_heartbeats.is_empty() {
        settings.warnings.push(Problem::of_file(format!(
            "MirrorMaker 2 would run {} for heartbeats alone; Tidegate writes no heartbeats yet and does not run what is \
             not enabled; set emit.heartbeats.enabled = false where none are wanted",
            for_heartbeats.join(", ")
        )));
    }
}

/// Every cluster's place. A cluster of a flow that runs must have one.
pub(super) fn clusters(
    settings: &mut Settings,
    topology: &Topology,
) -> BTreeMap<ClusterAlias, ClusterConfig> {
    let mut clusters = BTreeMap::new();
    for alias in &topology.aliases {
        let flow = topology.served.iter().find(|flow| flow.source == *alias || flow.target == *alias);
        let key = format!("{alias}.bootstrap.servers");
        let keys = [key.clone(), "bootstrap.servers".to_owned()];
        let mut bootstrap_servers = Vec::new();
        if let Some(flow) = flow {
            match settings.strongest(&keys, alias.as_str()) {
                Some(found) => match bootstrap_list(&found.value) {
                    Ok(servers) => bootstrap_servers = servers,
                    Err(text) => settings.refuse_quoting(&found.key, text),
                },
                None => settings.problems.push(Problem {
                    key: Some(key),
                    ..Problem::of_file(format!("is missing; {flow} needs it, as in host1:9092,host2:9092"))
                }),
            }
        }
        clusters.insert(alias.clone(), ClusterConfig { alias: alias.clone(), bootstrap_servers });
    }
    clusters
}

/// `host:port` or `[v6]:port`, each with an optional `PLAINTEXT://` before it.
pub(super) fn bootstrap_list(value: &str) -> Result<Vec<String>, String> {
    let servers: Vec<&str> = list(value).into_iter().filter(|server| !server.is_empty()).collect();
    if servers.is_empty() {
        return Err("wants at least one host:port".into());
    }
    servers.into_iter().map(bootstrap_server).collect()
}

fn bootstrap_server(server: &str) -> Result<String, String> {
    let wants = |what: &str| format!("\"{server}\" {what}");
    let address = match server.split_once("://") {
        Some((scheme, address)) if scheme.eq_ignore_ascii_case("plaintext") => address,
        Some(_) => return Err(wants("asks for another protocol than PLAINTEXT, which is not yet honoured")),
        None => server,
    };
    let Some((host, port)) = address.rsplit_once(':') else {
        return Err(wants("has no port; wants host:port, as in kafka1:9092"));
    };
    let is_port =
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    if !is_port {
        return Err(wants("has no port from 1 to 65535; wants host:port, as in kafka1:9092"));
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_host = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_' | ':' | '%')
    };
    if bare.is_empty() || !bare.chars().all(is_host) {
        return Err(wants("has no host; wants host:port, as in kafka1:9092"));
    }
    if bare.contains(':') && bare == host {
        return Err(wants("is an IPv6 address without brackets; write [address]:port"));
    }
    Ok(address.to_owned())
}
