//! Chains of a real module: one that misbehaves as its settings say (tests/guests/rogue).

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::stand_in::{Plain, kept, numbered, topics};
use super::topic;
use crate::config::{OnFault, PluginConfig, PluginModule};
use crate::plugin::chain::{Chain, Edited, Place};
use crate::plugin::component_build::ComponentBuild;
use crate::plugin::{Engine, Generation, Link, LoadedPlugin};
use crate::record::RecordSet;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(None).unwrap());

/// Built once, in the folder where the build script made the built-in plugins.
static ROGUE: LazyLock<PluginModule> = LazyLock::new(|| {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target_folder = Path::new(env!("OUT_DIR")).join("plugins");
    let components = ComponentBuild { workspace, target_folder }.run(&["tidegate-rogue-guest"]);
    PluginModule::File(components.unwrap_or_else(|problem| panic!("{problem}")).remove(0))
});

/// A busy machine must not make a good plugin late.
const PATIENT: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

fn rogue(mode: &str, on_fault: OnFault, deadline: Duration) -> Arc<LoadedPlugin> {
    let config = PluginConfig {
        name: "rogue".to_owned(),
        module: ROGUE.clone(),
        sha256: None,
        settings_json: format!("{{\"mode\": {mode:?}}}"),
        topics: topics(&[".*"]),
        on_fault,
        deadline,
        memory_bytes: 16 << 20,
    };
    let link = Link {
        name: "east->west".to_owned(),
        source_cluster: "east".to_owned(),
        target_cluster: "west".to_owned(),
    };
    Arc::new(LoadedPlugin::load(&ENGINE, &config, &link).unwrap())
}

/// 40 records of which the tenth and the last one are poisonous.
fn plain() -> Plain {
    let value = |number: usize| if number == 9 || number == 39 { "{poison}" } else { "{}" };
    Plain::of((0..40).map(|number| numbered(number, value(number).as_bytes())).collect())
}

fn edit(plugins: Vec<Arc<LoadedPlugin>>) -> (Edited, RecordSet) {
    let plain = plain();
    let mut chain = Chain::start(&Arc::new(Generation { number: 3, plugins })).unwrap();
    let mut records = plain.set();
    let edited = chain.edit(Place { topic: &topic(), partition: 3 }, &plain.base, &mut records);
    (edited, records)
}

#[test]
fn a_module_drops_what_it_wants_to_and_the_rest_is_untouched() {
    let plugin = rogue("drop-poison", OnFault::Pause, PATIENT);
    let (edited, records) = edit(vec![Arc::clone(&plugin)]);
    assert_eq!(edited, Edited::default());
    let plain = plain();
    let kept = kept(&records, &plain.base);
    assert_eq!(kept.len(), 38);
    assert!(!kept.contains_key(&109) && !kept.contains_key(&139));
    let stats = plugin.stats.snapshot();
    assert_eq!((stats.records, stats.dropped, stats.changed, stats.rejected), (40, 2, 0, 0));

    let (_, records) = edit(vec![rogue("none", OnFault::Pause, PATIENT)]);
    assert!(!records.is_changed());
}

/// The messages are the plugin's, each at the lone record that caused it.
#[test]
fn each_kind_of_fault_hurts_the_guilty_records_alone() {
    let check = |mode: &str, deadline: Duration, reason: &str| {
        let plugin = rogue(mode, OnFault::Quarantine, deadline);
        let (edited, records) = edit(vec![plugin]);
        assert_eq!(edited.halt, None, "{mode}");
        let offsets: Vec<i64> = edited.quarantined.iter().map(|condemned| condemned.offset.0).collect();
        assert_eq!(offsets, [109, 139], "{mode}");
        assert_eq!(records.kept_count(), 38, "{mode}");
        let first = &edited.quarantined[0];
        assert_eq!((&*first.plugin, first.generation), ("rogue", 3), "{mode}");
        assert!(first.reason.contains(reason), "{mode}: {}", first.reason);
    };
    check("trap-on-poison", PATIENT, "broke down in ");
    check("loop-on-poison", SHORT, "took longer than 100 ms for ");
    check("eat-on-poison", PATIENT, "needs more than 16777216 bytes of memory for ");
    check("reject-poison", PATIENT, "it is poisonous");
    check("record-out-of-range", PATIENT, "edit 0 is for record 1, but 1 were shown");
    check("unknown-code", PATIENT, "edit 0 has code 99, which does not exist");
    check("half-an-edit", PATIENT, "3 words of edits, not a multiple of 6");
    check("span-outside", PATIENT, "points at bytes 4000000000..8000000000 of an answer of 0");
    check("splice-outside", PATIENT, "replaces bytes 4000000000..4000000001 of a value of 8");
    check("name-of-no-text", PATIENT, "edit 0 (set header) has a text that is not UTF-8");
}

#[test]
fn a_module_that_always_fails_stops_at_the_first_record() {
    for mode in ["trap-always", "error-always"] {
        let (edited, records) = edit(vec![rogue(mode, OnFault::Pause, PATIENT)]);
        assert_eq!(edited.halt.map(|halt| halt.offset.0), Some(100), "{mode}");
        assert!(!records.is_changed(), "{mode}");
    }
}
