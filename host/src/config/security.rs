//! TLS and SASL are not there yet, so whoever asks for them is refused: Tidegate never connects in plain text where
//! more was asked for. Looked at before all other keys, wherever in the file it stands.

use super::key_shape::{self, Scope};
use super::report::Fate;
use super::settings::Settings;
use super::topology::Topology;
use super::values::{closest, trim};

const PROTOCOL: &str = "security.protocol";
const PROTOCOLS: [&str; 4] = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// Judges every `security.protocol` that reaches a cluster of a flow that runs here.
pub(super) fn check(settings: &mut Settings, topology: &Topology) {
    let mut asked_for_more = false;
    let in_effect: Vec<(String, String)> = settings
        .entries()
        .filter(|entry| is_in_effect(&entry.key, topology))
        .map(|entry| (entry.key.clone(), entry.value.clone()))
        .collect();
    for (key, value) in in_effect.iter().filter(|(key, _)| is_protocol(key)) {
        asked_for_more |= !judge_protocol(settings, key, trim(value));
    }
    if asked_for_more {
        return;
    }
    for (key, _) in in_effect.iter().filter(|(key, _)| is_credential(key)) {
        let text =
            "does nothing while security.protocol is PLAINTEXT, its default; the connection is in plain text";
        settings.warn(key, text, None);
    }
}

/// False when more than plain text is asked for.
fn judge_protocol(settings: &mut Settings, key: &str, value: &str) -> bool {
    match PROTOCOLS.iter().find(|protocol| protocol.eq_ignore_ascii_case(value)) {
        Some(&"PLAINTEXT") => {
            settings.judge(key, Fate::Honoured, "");
            return true;
        }
        Some(_) => settings.refuse(
            key,
            "TLS and SASL are not yet honoured, and Tidegate never connects in plain text where more was asked for; name a \
             PLAINTEXT listener, or stay with MirrorMaker 2 for this flow",
        ),
        None => {
            let closest = closest(value, PROTOCOLS.into_iter()).map(str::to_owned);
            settings.refuse_with(key, format!("wants one of {}", PROTOCOLS.join(", ")), closest);
        }
    }
    false
}

fn is_in_effect(key: &str, topology: &Topology) -> bool {
    match key_shape::split(key, &topology.aliases).0 {
        Scope::Top => true,
        Scope::Cluster(alias) => {
            topology.served.iter().any(|flow| flow.source == alias || flow.target == alias)
        }
        Scope::Flow(flow) => topology.served.contains(&flow),
        Scope::UnknownAlias(_) | Scope::SameEnds => false,
    }
}

fn is_protocol(key: &str) -> bool {
    key.strip_suffix(PROTOCOL).is_some_and(|before| before.is_empty() || before.ends_with('.'))
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
