//! A selection plugin as somebody would write one: takes topics and groups whose name holds the settings' `word`.

use tidegate_plugin::settings::Settings;
use tidegate_plugin::{Link, Plugin, Problem, Selection, Topic, plugin};

/// The plugin.
#[derive(Debug)]
pub struct Selective {
    word: String,
}

impl Plugin for Selective {
    const NAME: Option<&'static str> = Some("selective");

    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::parse(settings)?;
        let word = settings.string("word").unwrap_or_default();
        if word.is_empty() {
            settings.object_to("/word", "must be set, and not empty");
        }
        settings.finish()?;
        Ok(Self { word })
    }
}

impl Selection for Selective {
    fn topics(&self, topics: &[Topic]) -> Result<Vec<bool>, String> {
        Ok(topics.iter().map(|topic| topic.name.contains(&self.word)).collect())
    }

    fn groups(&self, groups: &[String]) -> Result<Vec<bool>, String> {
        Ok(groups.iter().map(|group| group.contains(&self.word)).collect())
    }
}

plugin!(Selective: selection);
