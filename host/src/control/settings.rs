//! Which settings of a source topic its copy is created with; MirrorMaker 2's choice.

use crate::cluster::{ConfigEntry, ConfigOrigin};
use crate::config::{FlowConfig, Undecided};

/// The settings that go into the creation of the copy, by name.
///
/// What the broker's `server.properties` says stays at home, defaults too unless `use.defaults.from = source`; what was
/// set on brokers while they run goes with the topic, as in MirrorMaker 2.
pub fn copied_settings(
    entries: &[ConfigEntry],
    flow: &FlowConfig,
) -> Result<Vec<(String, String)>, Undecided> {
    let mut settings = Vec::new();
    for entry in entries {
        if entry.is_read_only || entry.is_sensitive || !is_copied_origin(entry.origin, flow) {
            continue;
        }
        let Some(value) = &entry.value else { continue };
        if flow.config_properties_exclude.accepts(&entry.name)? {
            settings.push((entry.name.clone(), value.clone()));
        }
    }
    settings.sort();
    Ok(settings)
}

fn is_copied_origin(origin: ConfigOrigin, flow: &FlowConfig) -> bool {
    match origin {
        ConfigOrigin::Topic | ConfigOrigin::DynamicBroker => true,
        ConfigOrigin::Default => flow.use_defaults_from_source,
        ConfigOrigin::StaticBroker | ConfigOrigin::Unknown(_) => false,
    }
}
