//! MirrorMaker 2's `DefaultReplicationPolicy` as a plugin: `orders` of the cluster `east` is called `east.orders`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use tidegate_plugin::settings::Settings;
use tidegate_plugin::{Link, Plugin, Problem, TopicNaming, plugin};

/// Puts the source cluster's alias and the separator before each name.
#[derive(Debug)]
pub struct DefaultPolicy {
    prefix: String,
}

impl Plugin for DefaultPolicy {
    const NAME: Option<&'static str> = Some("default-policy");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(
        r#"{"type":"object","properties":{"separator":{"type":"string","default":"."}},"additionalProperties":false}"#,
    );

    fn init(link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::parse(settings)?;
        let separator = settings.string("separator");
        settings.finish()?;
        Ok(Self { prefix: link.source_cluster + separator.as_deref().unwrap_or(".") })
    }
}

impl TopicNaming for DefaultPolicy {
    fn to_target(&self, topic: &str) -> Result<String, String> {
        Ok(format!("{}{topic}", self.prefix))
    }

    /// The true inverse. Kafka's class splits the name at the separator and compares the first piece with the
    /// alias; it gives the same answer, but for three kinds of names that it makes and can't take apart (so that
    /// they go round in circles there): of an alias that holds the separator, of a topic that is nothing but
    /// separators, and any name under an empty separator.
    fn to_source(&self, topic: &str) -> Option<String> {
        let rest = topic.strip_prefix(&self.prefix)?;
        (!rest.is_empty()).then(|| rest.to_owned())
    }
}

plugin!(DefaultPolicy: topic_naming);

#[cfg(test)]
mod tests;
