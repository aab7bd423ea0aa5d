//! What is never printed (invariant I10): values whose key, or address, speaks of a secret.

/// What stands in a secret's place.
pub(super) const HIDDEN: &str = "(hidden)";

/// Words in a key that make its value a secret. `inter.worker.key.size` and the like are none.
const WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "jaas",
    "token",
    "credential",
    "private",
    "ssl.key",
    "keystore.key",
    "api.key",
    "auth.user.info",
];

/// Keys that sound like a secret and are the place of one.
const PLACES: [&str; 2] = ["tidegate.http.token.file", "TIDEGATE_HTTP_TOKEN_FILE"];

/// Whether the value must not be printed.
pub(super) fn is_secret(key: &str, value: &str) -> bool {
    if PLACES.contains(&key) {
        return false;
    }
    // A plugin's settings are one JSON object under one key; what is in them counts.
    speaks_of_secret(key)
        || (key.ends_with(".settings") && speaks_of_secret(value))
        || holds_password_in_address(value)
}

fn speaks_of_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// `https://user:password@host/`.
fn holds_password_in_address(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', ',', ' ']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// The value as it may be printed.
pub(super) fn printable(key: &str, value: &str) -> String {
    if is_secret(key, value) { HIDDEN.to_owned() } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_keys_and_addresses() {
        for (key, value, expected) in [
            ("A.sasl.jaas.config", "x", true),
            ("ssl.key.password", "x", true),
            ("A.ssl.keystore.key", "x", true),
            ("B.producer.override.sasl.login.secret", "x", true),
            ("a.sasl.oauthbearer.token", "x", true),
            ("A.schema.url", "https://me:pw@host/", true),
            ("A.schema.url", "https://me@host/x:y@z", false),
            ("tidegate.naming.settings", "{\"apiToken\":\"x\"}", true),
            ("tidegate.naming.settings", "{\"separator\":\".\"}", false),
            ("tidegate.http.token.file", "/run/token", false),
            ("A->B.topics", "password-resets", false),
            ("inter.worker.key.size", "1", false),
        ] {
            assert_eq!(is_secret(key, value), expected, "{key} = {value}");
        }
    }
}
