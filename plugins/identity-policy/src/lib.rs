//! MirrorMaker 2's `IdentityReplicationPolicy` as a plugin: topics keep their names.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use tidegate_plugin::settings::Settings;
use tidegate_plugin::{Link, Plugin, Problem, TopicNaming, plugin};

/// Keeps all names but those of heartbeats.
#[derive(Debug)]
pub struct IdentityPolicy {
    /// Alias and separator; heartbeats of several clusters would fall into one topic without it.
    heartbeats_prefix: String,
}

/// As Kafka's class looks at it: the end of the name decides, with or without a separator before it.
fn is_like_heartbeats(topic: &str) -> bool {
    topic.ends_with("heartbeats")
}

impl Plugin for IdentityPolicy {
    const NAME: Option<&'static str> = Some("identity-policy");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(
        r#"{"type":"object","properties":{"separator":{"type":"string","default":"."}},"additionalProperties":false}"#,
    );

    fn init(link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::parse(settings)?;
        let separator = settings.string("separator");
        settings.finish()?;
        Ok(Self { heartbeats_prefix: link.source_cluster + separator.as_deref().unwrap_or(".") })
    }
}

impl TopicNaming for IdentityPolicy {
    fn to_target(&self, topic: &str) -> Result<String, String> {
        if is_like_heartbeats(topic) {
            return Ok(format!("{}{topic}", self.heartbeats_prefix));
        }
        Ok(topic.to_owned())
    }

    /// Every other name is its own source, of whatever cluster it is: names end no loop here.
    fn to_source(&self, topic: &str) -> Option<String> {
        if is_like_heartbeats(topic) {
            let rest = topic.strip_prefix(&self.heartbeats_prefix)?;
            return is_like_heartbeats(rest).then(|| rest.to_owned());
        }
        Some(topic.to_owned())
    }
}

plugin!(IdentityPolicy: topic_naming);

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(settings: &str) -> Result<IdentityPolicy, Vec<Problem>> {
        IdentityPolicy::init(
            Link { name: "east->west".into(), source_cluster: "east".into(), target_cluster: "west".into() },
            settings,
        )
    }

    #[test]
    fn names_stay_but_those_of_heartbeats() {
        let check = |settings: &str, topic: &str, target: &str| {
            let policy = policy(settings).unwrap();
            assert_eq!(policy.to_target(topic).unwrap(), target);
            assert_eq!(policy.to_source(target).as_deref(), Some(topic), "inverse of {target:?}");
        };
        check("{}", "orders", "orders");
        check("{}", "east.orders", "east.orders");
        check("{}", "heartbeats.eu", "heartbeats.eu");
        check("{}", "Heartbeats", "Heartbeats");
        check("{}", "heartbeats", "east.heartbeats");
        check("{}", "myheartbeats", "east.myheartbeats");
        check("{}", "west.heartbeats", "east.west.heartbeats");
        check(r#"{"separator":"_"}"#, "heartbeats", "east_heartbeats");
        check(r#"{"separator":""}"#, "heartbeats", "eastheartbeats");
    }

    #[test]
    fn heartbeats_of_other_clusters_have_no_inverse() {
        let policy = policy("{}").unwrap();
        for name in ["heartbeats", "west.heartbeats", "eastheartbeats", "myheartbeats"] {
            assert_eq!(policy.to_source(name), None, "{name:?}");
        }
    }

    #[test]
    fn settings_are_checked() {
        assert_eq!(
            policy(r#"{"separator":null,"x":1}"#).unwrap_err(),
            [
                Problem::new("/separator", "must be a string, not null"),
                Problem::new("/x", "unknown field; there is: separator"),
            ]
        );
    }
}
