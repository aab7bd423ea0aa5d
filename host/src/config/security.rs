//! TLS and SASL are not there yet, so whoever asks for them is refused: Tidegate never connects in plain text where
//! more was asked for. What counts is what each client of a flow would be told in MirrorMaker 2: the strongest of its
//! keys. Looked at before all other keys, wherever in the file it stands.

use super::key_shape::{self, Scope};
use super::settings::{Found, Settings};
use super::topology::Topology;
use super::values::{closest, trim};
use crate::names::{ClusterAlias, FlowName};

const PROTOCOL: &str = "security.protocol";
const PROTOCOLS: [&str; 4] = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// Judges the `security.protocol` of every client that runs here.
pub(super) fn check(settings: &mut Settings, topology: &Topology) {
    let mut asked_for_more = false;
    for flow in &topology.served {
        for (cluster, keys) in clients(flow) {
            if let Some(found) = settings.strongest(&keys, cluster.as_str()) {
                asked_for_more |= !is_plain(settings, &found);
            }
        }
    }
    // MirrorMaker 2 checks this one even where stronger keys hide it.
    if let Some(value) = settings.peek(PROTOCOL).map(str::to_owned)
        && !is_protocol(&value)
    {
        asked_for_more |= !is_plain(settings, &Found { key: PROTOCOL.to_owned(), value });
    }
    if !asked_for_more {
        warn_of_credentials(settings, topology);
    }
}

/// The clients of a flow and the keys of their `security.protocol`, the strongest first. A cluster's own setting, and the
/// top level's, is copied to its clients before the flow is asked: `S->T.consumer.security.protocol` is weaker than both.
fn clients(flow: &FlowName) -> [(&ClusterAlias, Vec<String>); 5] {
    let (source, target) = (&flow.source, &flow.target);
    let keys = |at_flow: Option<&str>, cluster: &ClusterAlias, client: &str, weaker: &[&str]| {
        let of_cluster =
            [format!("{cluster}.{client}{PROTOCOL}"), format!("{cluster}.{PROTOCOL}"), PROTOCOL.to_owned()];
        let of_flow = |prefix: &&str| format!("{flow}.{prefix}{PROTOCOL}");
        at_flow
            .iter()
            .map(of_flow)
            .chain(of_cluster)
            .chain(weaker.iter().map(of_flow))
            .collect::<Vec<String>>()
    };
    [
        (source, keys(Some("source.consumer."), source, "consumer.", &["consumer.", "source.cluster."])),
        (source, keys(Some("source.admin."), source, "admin.", &["admin.", "source.cluster."])),
        (target, keys(Some("target.admin."), target, "admin.", &["admin.", "target.cluster."])),
        // The writer of the data and the member of the group are the worker's.
        (target, keys(Some("producer.override."), target, "producer.", &[])),
        (target, keys(None, target, "", &[])),
    ]
}

fn is_protocol(value: &str) -> bool {
    PROTOCOLS.iter().any(|protocol| protocol.eq_ignore_ascii_case(trim(value)))
}

/// False when more than plain text is asked for.
fn is_plain(settings: &mut Settings, found: &Found) -> bool {
    let value = trim(&found.value);
    if value.eq_ignore_ascii_case("PLAINTEXT") {
        return true;
    }
    if is_protocol(value) {
        settings.refuse(
            &found.key,
            "TLS and SASL are not yet honoured, and Tidegate never connects in plain text where more was asked for; name a \
             PLAINTEXT listener, or stay with MirrorMaker 2 for this flow",
        );
    } else {
        let closest = closest(value, PROTOCOLS.into_iter()).map(str::to_owned);
        settings.refuse_with(&found.key, format!("wants one of {}", PROTOCOLS.join(", ")), closest);
    }
    false
}

fn warn_of_credentials(settings: &mut Settings, topology: &Topology) {
    let credentials: Vec<String> = settings
        .entries()
        .filter(|entry| is_credential(&entry.key) && is_in_effect(&entry.key, topology))
        .map(|entry| entry.key.clone())
        .collect();
    for key in credentials {
        let text =
            "does nothing while security.protocol is PLAINTEXT, its default; the connection is in plain text";
        settings.warn(&key, text, None);
    }
}

fn is_in_effect(key: &str, topology: &Topology) -> bool {
    match key_shape::split(key, &topology.aliases) {
        // Not the top level's `consumer.sasl.…`, which MirrorMaker 2 never reads.
        (Scope::Top, name) => name.starts_with("ssl.") || name.starts_with("sasl."),
        (Scope::Cluster(alias), _) => {
            topology.served.iter().any(|flow| flow.source == alias || flow.target == alias)
        }
        (Scope::Flow(flow), _) => topology.served.contains(&flow),
        (Scope::UnknownAlias(_) | Scope::SameEnds, _) => false,
    }
}

/// What says who we are, or whom we trust; settings that are only tuning are left out.
fn is_credential(key: &str) -> bool {
    const CREDENTIALS: [&str; 6] = [
        "sasl.jaas.config",
        "sasl.mechanism",
        "ssl.keystore.location",
        "ssl.keystore.key",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
    ];
    CREDENTIALS
        .iter()
        .any(|name| key.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.')))
}
