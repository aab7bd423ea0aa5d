//! A naming plugin as somebody would write one: puts the settings' `prefix` before each name.

use tidegate_plugin::settings::Settings;
use tidegate_plugin::{Link, Plugin, Problem, TopicNaming, plugin};

/// The plugin.
#[derive(Debug)]
pub struct Rename {
    prefix: String,
}

impl Plugin for Rename {
    const NAME: Option<&'static str> = Some("rename");

    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::parse(settings)?;
        let prefix = settings.string("prefix").unwrap_or_default();
        if prefix.is_empty() {
            settings.object_to("/prefix", "must be set, and not empty");
        }
        settings.finish()?;
        Ok(Self { prefix })
    }
}

impl TopicNaming for Rename {
    fn to_target(&self, topic: &str) -> Result<String, String> {
        Ok(format!("{}{topic}", self.prefix))
    }

    fn to_source(&self, topic: &str) -> Option<String> {
        let rest = topic.strip_prefix(&self.prefix)?;
        (!rest.is_empty()).then(|| rest.to_owned())
    }
}

plugin!(Rename: topic_naming);
