//! What is never printed (invariant I10). A value is shown only when its key is known and speaks of no secret: a mistyped
//! `sasl.jaas.config` is an unknown key, and so is a line of a password that was broken in two.

use std::collections::BTreeSet;

use super::key_shape;
use super::known::{self, SECURITY};
use super::process;
use crate::names::ClusterAlias;

/// What stands in a secret's place.
pub(super) const HIDDEN: &str = "(hidden)";

/// What stands in the place of a plugin's settings, one JSON object whose fields are the plugin's own.
pub(super) const HIDDEN_OBJECT: &str = "{…}";

/// Words in a key that make its value a secret, known or not.
const WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "jaas",
    "token",
    "credential",
    "private",
    "api.key",
    "auth.user.info",
];

/// A key that sounds like a secret and is the place of one.
const PLACE: &str = process::TOKEN_FILE_KEY;

/// Prefixes of clients' settings, at a flow or a cluster; the longer of two that fit comes first.
pub(super) const CLIENT_PREFIXES: [&str; 15] = [
    "source.consumer.",
    "source.producer.",
    "source.admin.",
    "source.cluster.",
    "target.consumer.",
    "target.producer.",
    "target.admin.",
    "target.cluster.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "consumer.",
    "producer.",
    "admin.",
    "override.",
];

/// Whether the value of a key of the file must not be printed.
pub(super) fn is_secret(key: &str, value: &str, aliases: &BTreeSet<ClusterAlias>) -> bool {
    if holds_user_information(value) {
        return true;
    }
    // An alias may be the first word of MirrorMaker 2's own keys, as `source` is.
    !is_shown(key) && !is_shown(key_shape::split(key, aliases).1)
}

/// Whether the value of `name`, behind its cluster or flow, may be printed.
fn is_shown(name: &str) -> bool {
    if name == PLACE {
        return true;
    }
    let bare = CLIENT_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    match SECURITY.iter().find(|security| security.name == bare) {
        Some(security) => security.is_harmless,
        None => !speaks_of_secret(bare) && (known::is_name(name) || known::is_name(bare)),
    }
}

fn speaks_of_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// `https://user:password@host/`, `user:password@host:9092`, `https://token@host`. The password may hold anything, so the
/// last `@` counts.
pub(super) fn holds_user_information(value: &str) -> bool {
    value.rsplit_once('@').is_some_and(|(before, _)| before.contains(':'))
}

/// The value as it may be printed, when the key lets it.
pub(super) fn printable(is_secret: bool, key: &str, value: &str) -> String {
    // An alias may hold anything, so the key is looked at from its own first word on.
    let own = key.find("tidegate.").map_or(key, |at| &key[at..]);
    let is_settings = known::is_plugin_settings(own);
    match is_secret {
        _ if is_settings => HIDDEN_OBJECT.to_owned(),
        true => HIDDEN.to_owned(),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_keys_that_speak_of_no_secret_are_shown() {
        let aliases: BTreeSet<ClusterAlias> = ["A", "B", "source"].map(ClusterAlias::new).into();
        for (key, value, expected) in [
            ("A.sasl.jaas.config", "x", true),
            ("A.sasl.jass.config", "x", true),
            ("A.consumer.sasl.jass.config", "x", true),
            ("A->B.source.consumer.sasl.password", "x", true),
            ("ssl.key.password", "x", true),
            ("A.ssl.keystore.key", "x", true),
            ("A.ssl.keystore.location", "/k", false),
            ("A.ssl.keystore.locaton", "/k", true),
            ("B.producer.override.sasl.login.secret", "x", true),
            ("a.sasl.oauthbearer.token", "x", true),
            ("A.sasl.oauthbearer.token.endpoint.url", "https://host/", true),
            ("A.sasl.mechanism", "PLAIN", false),
            ("A->B.security.protocol", "SSL", false),
            ("my.pass", "x", true),
            ("A.my.pass", "x", true),
            ("A->C.my.pass", "x", true),
            ("consumer.pass", "x", true),
            ("C.topics", "x", true),
            ("transforms.mask.key", "x", true),
            ("key.converter.basic.auth", "x", true),
            ("config.providers.vault.param.pw", "x", true),
            ("config.providers.vault.class", "Vault", false),
            ("config.providers.f.param.allowed.paths", "/etc", false),
            ("B.offset.storage.min.insync.replicas", "2", false),
            ("offset.storage.pass", "x", true),
            ("A.bootstrap.servers", "PLAINTEXT://me:pw@host:1", true),
            ("A.bootstrap.servers", "me:p@w@host:1", true),
            ("A.bootstrap.servers", "PLAINTEXT://host:1", false),
            ("listeners", "http://token@:8083", true),
            ("listeners", "http://:8083", false),
            ("tidegate.naming.deadline.ms", "5", false),
            ("tidegate.naming.pass", "x", true),
            ("tidegate.http.token.file", "/run/token", false),
            ("tidegate.plugin.mask.module", "mask.wasm", false),
            ("A->B.tidegate.plugin.mask.settings.file", "mask.json", false),
            ("tidegate.plugin.mask.modul", "x", true),
            ("tidegate.plugin.mask.pass", "x", true),
            ("A->B.topics", "password-resets", false),
            ("inter.worker.key.size", "1", false),
            ("source.consumer.fetch.min.bytes", "1", false),
        ] {
            assert_eq!(is_secret(key, value, &aliases), expected, "{key} = {value}");
        }
    }

    #[test]
    fn settings_of_a_plugin_are_never_shown() {
        for value in ["{\"separator\":\".\"}", "{\"pin\":\"hunter2\"}", "hunter2"] {
            assert_eq!(printable(false, "tidegate.naming.settings", value), "{…}");
            assert_eq!(printable(false, "A->B.tidegate.naming.settings", value), "{…}");
            assert_eq!(printable(false, "A->B.tidegate.plugin.mask.settings", value), "{…}");
        }
    }
}
