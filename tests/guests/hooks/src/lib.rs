//! A plugin with every hook. Its setting `mode` says how it misbehaves.

use tidegate_plugin::settings::Settings;
use tidegate_plugin::{
    Acl, AclMapping, Edit, Link, Needs, Plugin, Problem, Record, Records, Selection, Topic, TopicNaming,
    plugin,
};

/// The plugin.
#[derive(Debug)]
pub struct Hooks {
    mode: String,
}

impl Plugin for Hooks {
    const NAME: Option<&'static str> = Some("hooks");

    const SETTINGS_SCHEMA: Option<&'static str> = Some(
        r#"{"type": "object", "additionalProperties": false, "properties": {
            "mode": {"type": "string", "maxLength": 20},
            "salt": {"type": "string", "pattern": "^[a-z]+$"},
            "level": {"enum": ["low", "high"]},
            "count": {"type": ["integer", "null"], "minimum": 1}}}"#,
    );

    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::parse(settings)?;
        let mode = settings.string("mode").unwrap_or_default();
        settings.string("salt");
        settings.string("level");
        settings.finish()?;
        Ok(Self { mode })
    }
}

impl TopicNaming for Hooks {
    fn to_target(&self, topic: &str) -> Result<String, String> {
        Ok(topic.to_owned())
    }

    fn to_source(&self, topic: &str) -> Option<String> {
        Some(topic.to_owned())
    }
}

/// Topics with more than one partition or a setting `keep`, groups that begin with `a`.
impl Selection for Hooks {
    fn topics(&self, topics: &[Topic]) -> Result<Vec<bool>, String> {
        match self.mode.as_str() {
            "decline" => return Err("not\ntoday".to_owned()),
            "few" => return Ok(vec![true]),
            "panic" => panic!("no selection"),
            _ => {}
        }
        let is_kept = |topic: &Topic| {
            !topic.is_internal
                && (topic.partition_count > 1 || topic.settings.iter().any(|(name, _)| name == "keep"))
        };
        Ok(topics.iter().map(is_kept).collect())
    }

    fn groups(&self, groups: &[String]) -> Result<Vec<bool>, String> {
        Ok(groups.iter().map(|group| group.starts_with('a')).collect())
    }
}

/// Rules for `User:gone` go, for `User:two` become two, others stay.
impl AclMapping for Hooks {
    fn map(&self, acl: &Acl) -> Result<Vec<Acl>, String> {
        match (self.mode.as_str(), acl.principal.as_str()) {
            ("decline", _) => Err("no rules".to_owned()),
            ("many", _) => Ok(vec![acl.clone(); 65]),
            ("long", _) => Ok(vec![Acl { principal: "x".repeat(5000), ..acl.clone() }]),
            (_, "User:gone") => Ok(Vec::new()),
            (_, "User:two") => {
                let to = |principal: &str| Acl { principal: principal.to_owned(), ..acl.clone() };
                Ok(vec![to("User:one"), to("User:other")])
            }
            _ => Ok(vec![acl.clone()]),
        }
    }
}

/// Drops records whose key is `drop`.
impl Records for Hooks {
    fn needs(&self) -> Needs {
        Needs::nothing().key().header("region")
    }

    fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
        if self.mode == "grow" {
            std::hint::black_box(vec![1_u8; 4 << 20]);
        }
        if record.key() == Some(b"drop") {
            edit.drop();
        }
        Ok(())
    }
}

plugin!(Hooks: topic_naming, selection, acl_mapping, records);
