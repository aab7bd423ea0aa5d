//! Plugins as the host sees them: the built-in ones, one that misbehaves on request (tests/guests/unruly), and files
//! that are none.

mod hand_made;
mod hooks;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use super::component_build::ComponentBuild;
use super::*;

/// One for all tests: they run beside each other, as flows do.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(None).unwrap());

/// Where no deadline is wanted: the default one is too short for a machine that is busy with other tests.
const PATIENT: Limits = Limits { deadline: Duration::from_secs(30), memory_bytes: 64 << 20 };

/// Built once, in the folder where the build script made the policies.
static UNRULY: LazyLock<ModuleSource> = LazyLock::new(|| {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target_folder = Path::new(env!("OUT_DIR")).join("plugins");
    let components = ComponentBuild { workspace, target_folder }.run(&["tidegate-unruly-guest"]);
    let component = components.unwrap_or_else(|problem| panic!("{problem}")).remove(0);
    ModuleSource::File(component)
});

fn link() -> Link {
    Link {
        name: "east->west".to_owned(),
        source_cluster: "east".to_owned(),
        target_cluster: "west".to_owned(),
    }
}

fn builtin(name: &str, settings: &str) -> NamingPlugin {
    NamingPlugin::load(&ENGINE, &ModuleSource::Builtin(name.to_owned()), &link(), settings, PATIENT).unwrap()
}

fn unruly(limits: Limits) -> NamingPlugin {
    NamingPlugin::load(&ENGINE, &UNRULY, &link(), "{}", limits).unwrap()
}

fn unruly_refusal(settings: &str, limits: Limits) -> String {
    NamingPlugin::load(&ENGINE, &UNRULY, &link(), settings, limits).err().unwrap().to_string()
}

/// Loads `bytes` from a file called `plugin.wasm` and gives the refusal, with the file's folder left out.
fn file_refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugin.wasm");
    fs::write(&path, bytes).unwrap();
    let source = ModuleSource::File(path);
    let refusal = NamingPlugin::load(&ENGINE, &source, &link(), "{}", PATIENT).err().unwrap();
    refusal.to_string().replace(&format!("{}/", folder.path().display()), "")
}

fn fault(plugin: &mut NamingPlugin, topic: &str) -> String {
    plugin.to_target(topic).unwrap_err().to_string()
}

/// Line and column of a panic change with each edit of the guest.
fn without_place(text: &str) -> String {
    let (before, after) = text.split_once("lib.rs:").unwrap();
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    assert!(after.len() >= rest.len() + 4, "{text}");
    format!("{before}lib.rs:L:C:{rest}")
}

#[test]
fn the_default_policy_names_as_mirror_maker_does() {
    let check = |settings: &str, topic: &str, target: &str| {
        let mut plugin = builtin("default-policy", settings);
        assert_eq!(plugin.to_target(topic), Ok(Ok(target.to_owned())));
        assert_eq!(plugin.to_source(target), Ok(Some(topic.to_owned())));
    };
    check("{}", "orders", "east.orders");
    check(r#"{"separator":"_"}"#, "a_b", "east_a_b");
    check(r#"{"separator":"\u002d\u002D"}"#, "west.orders", "east--west.orders");
    check(r#"{"separator":""}"#, "orders", "eastorders");
    assert_eq!(builtin("default-policy", "{}").to_source("west.orders"), Ok(None));
}

#[test]
fn the_identity_policy_keeps_all_names_but_those_of_heartbeats() {
    let check = |topic: &str, target: &str| {
        let mut plugin = builtin("identity-policy", "{}");
        assert_eq!(plugin.to_target(topic), Ok(Ok(target.to_owned())));
        assert_eq!(plugin.to_source(target), Ok(Some(topic.to_owned())));
    };
    check("orders", "orders");
    check("east.orders", "east.orders");
    check("myheartbeats", "east.myheartbeats");
    assert_eq!(builtin("identity-policy", "{}").to_source("heartbeats"), Ok(None));
}

#[test]
fn a_plugin_says_what_it_is() {
    let plugin = builtin("default-policy", "{}");
    let about = plugin.about();

    assert_eq!(about.name, "default-policy");
    assert_eq!(about.version, env!("CARGO_PKG_VERSION"));
    assert!(about.settings_schema.as_deref().is_some_and(|schema| schema.contains("\"separator\"")));
    assert_eq!(about.digest.len(), 64);
    assert_ne!(about.digest, builtin("identity-policy", "{}").about().digest);
}

#[test]
fn one_module_serves_many_links() {
    let source = ModuleSource::Builtin("default-policy".to_owned());
    let module = CompiledModule::load(&ENGINE, &source).unwrap();
    let mut plugins: Vec<NamingPlugin> = (0..100)
        .map(|index| {
            let link = Link { source_cluster: format!("c{index}"), ..link() };
            NamingPlugin::start(&module, &link, "{}", PATIENT).unwrap()
        })
        .collect();

    let again = CompiledModule::load(&ENGINE, &source).unwrap();
    assert!(Arc::ptr_eq(&module.compiled, &again.compiled), "compiled once");
    for (index, plugin) in plugins.iter_mut().enumerate() {
        assert_eq!(plugin.to_source("c42.orders").unwrap().is_some(), index == 42);
    }
}

#[test]
fn plugins_move_between_threads() {
    let mut plugin = builtin("default-policy", "{}");
    let answer = std::thread::spawn(move || plugin.to_target("orders")).join().unwrap();
    assert_eq!(answer, Ok(Ok("east.orders".to_owned())));
}

#[test]
fn an_endless_loop_is_cut_at_its_deadline() {
    let mut plugin = unruly(Limits { deadline: Duration::from_millis(250), ..PATIENT });
    let start = Instant::now();

    assert_eq!(
        fault(&mut plugin, "loop"),
        "plugin \"unruly\" 0.1.0 took longer than 250 ms for to-target(\"loop\"); mend it or give it a longer deadline"
    );
    // Two attempts of 250 ms; the upper bound only says that it ended, on a machine that is busy with other tests.
    assert!(start.elapsed() >= Duration::from_millis(500), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(
        plugin.to_target("orders"),
        Ok(Ok("orders".to_owned())),
        "the next question finds a fresh instance"
    );
}

#[test]
fn deadlines_hold_for_each_call_alone() {
    let mut plugin = unruly(Limits { deadline: Duration::from_millis(400), ..PATIENT });
    let mut blocker = unruly(Limits { deadline: Duration::from_millis(400), ..PATIENT });

    assert_eq!(plugin.to_target("orders"), Ok(Ok("orders".to_owned())));
    // Lets twice the deadline pass on the engine's clock.
    fault(&mut blocker, "loop");
    assert_eq!(plugin.to_target("orders"), Ok(Ok("orders".to_owned())));
}

#[test]
fn a_memory_limit_is_obeyed() {
    let mut plugin = unruly(Limits { memory_bytes: 8 << 20, ..PATIENT });

    assert_eq!(
        fault(&mut plugin, "eat"),
        "plugin \"unruly\" 0.1.0 needs more than 8388608 bytes of memory for to-target(\"eat\"); mend it or give it more"
    );
    assert_eq!(plugin.to_target("orders"), Ok(Ok("orders".to_owned())));
}

#[test]
fn a_plugin_that_is_larger_than_its_memory_does_not_start() {
    assert_eq!(
        unruly_refusal("{}", Limits { memory_bytes: 1 << 16, ..PATIENT }),
        format!(
            "plugin {} needs more than 65536 bytes of memory for its start; mend it or give it more",
            *UNRULY
        )
    );
}

#[test]
fn a_fault_is_tried_again_on_a_fresh_instance() {
    let mut plugin = unruly(PATIENT);
    let topic = "panic-on-a-used-instance";

    // The first answer uses the instance up; each later question panics on it and is answered by the next.
    for _ in 0..3 {
        assert_eq!(plugin.to_target(topic), Ok(Ok(topic.to_owned())));
    }
}

#[test]
fn a_second_fault_is_told_with_the_last_words() {
    let mut plugin = unruly(PATIENT);

    assert_eq!(
        without_place(&fault(&mut plugin, "panic")),
        "plugin \"unruly\" 0.1.0 broke down in to-target(\"panic\"): panicked at tests/guests/unruly/src/lib.rs:L:C: \
         no name for panic (wasm trap: wasm `unreachable` instruction executed)"
    );
    assert_eq!(
        fault(&mut plugin, "trap"),
        "plugin \"unruly\" 0.1.0 broke down in to-target(\"trap\"): wasm trap: wasm `unreachable` instruction executed"
    );
    // Compiled code has its stack in its memory, and runs out of it at address 0.
    assert_eq!(
        fault(&mut plugin, "dive"),
        "plugin \"unruly\" 0.1.0 broke down in to-target(\"dive\"): wasm trap: out of bounds memory access"
    );
    assert_eq!(plugin.to_target("orders"), Ok(Ok("orders".to_owned())));
}

#[test]
fn answers_have_a_bounded_length() {
    assert_eq!(
        fault(&mut unruly(PATIENT), "long"),
        "plugin \"unruly\" 0.1.0 gave no usable answer to to-target(\"long\"): a name of 5000 bytes"
    );
}

#[test]
fn a_topic_that_the_plugin_refuses_is_no_fault() {
    let mut plugin = unruly(PATIENT);
    assert_eq!(plugin.to_target("refuse"), Ok(Err("not this one, never".to_owned())));
}

#[test]
fn lines_carry_plugin_and_flow_and_are_bounded_as_counters_are() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_writer(log.clone()).without_time().with_ansi(false).finish();

    let counters = tracing::subscriber::with_default(subscriber, || {
        let mut plugin = unruly(PATIENT);
        assert_eq!(plugin.to_target("chatter"), Ok(Ok("chatter".to_owned())));
        plugin.counters()
    });

    let lines = log.lines();
    assert!(lines[0].ends_with("plugin says plugin=unruly flow=east->west line=line 0"), "{}", lines[0]);
    // 20 a second; the question takes a few milliseconds, but the machine may be busy.
    let said_count = lines.iter().filter(|line| line.contains("plugin says")).count();
    assert!((20..100).contains(&said_count), "{said_count} lines");
    assert_eq!(lines.iter().filter(|line| line.contains("counts under too many names")).count(), 1);
    assert_eq!(counters.len(), 64);
    assert_eq!(counters.get("counter-63"), Some(&63));
}

#[test]
fn faults_while_starting_are_told() {
    let limits = Limits { deadline: Duration::from_millis(250), ..PATIENT };
    assert_eq!(
        without_place(&unruly_refusal(r#"{"init":"panic"}"#, PATIENT)),
        "plugin \"unruly\" 0.1.0 broke down in init: panicked at tests/guests/unruly/src/lib.rs:L:C: asked to \
         (wasm trap: wasm `unreachable` instruction executed)"
    );
    // A start has more time than a question.
    assert_eq!(
        unruly_refusal(r#"{"init":"loop"}"#, limits),
        "plugin \"unruly\" 0.1.0 took longer than 2000 ms for init; mend it or give it a longer deadline"
    );
    assert_eq!(
        unruly_refusal(r#"{"self_test":false}"#, PATIENT),
        "plugin \"unruly\" 0.1.0 failed its self-test: asked to"
    );
}

#[test]
fn a_start_that_faults_is_tried_on_a_fresh_instance_and_one_that_is_refused_is_not() {
    let tries = |settings: &str| {
        let log = Log::default();
        let subscriber =
            tracing_subscriber::fmt().with_writer(log.clone()).without_time().with_ansi(false).finish();
        tracing::subscriber::with_default(subscriber, || unruly_refusal(settings, PATIENT));
        log.lines().iter().filter(|line| line.contains("plugin fault at its start")).count()
    };
    assert_eq!(tries(r#"{"init":"panic"}"#), 1);
    assert_eq!(tries(r#"{"init":"object"}"#), 0);
    assert_eq!(tries(r#"{"self_test":false}"#), 0);
}

#[test]
fn problems_with_settings_are_told_all_at_once() {
    assert_eq!(
        unruly_refusal(r#"{"init":"object","selftest":true}"#, PATIENT),
        "plugin \"unruly\" 0.1.0 can't work with its settings: /init: must be something else; its settings: must be \
         fewer; /selftest: unknown field; there is: init, self_test"
    );
    assert_eq!(
        unruly_refusal("[1]", PATIENT),
        format!("the settings of plugin {} must be one JSON object: they are an array", *UNRULY)
    );
}

#[test]
fn imports_that_are_not_the_host_are_refused_by_name() {
    assert_eq!(
        file_refusal(&hand_made::component(&["tidegate:plugin/host@0.1.0", "wasi:cli/stderr@0.2.6"], &[])),
        "plugin plugin.wasm imports wasi:cli/stderr@0.2.6, but a plugin gets tidegate:plugin/host@0.1 and nothing \
         else; build it for wasm32-unknown-unknown with linker = \"wasm-component-ld\" in .cargo/config.toml"
    );
    assert_eq!(
        file_refusal(&hand_made::component(&["acme:secrets/store@1.0.0"], &[])),
        "plugin plugin.wasm imports acme:secrets/store@1.0.0, but a plugin gets tidegate:plugin/host@0.1 and nothing \
         else"
    );
}

#[test]
fn other_versions_of_the_contract_are_refused() {
    assert_eq!(
        file_refusal(&hand_made::component(&["tidegate:plugin/host@0.2.0"], &[])),
        "plugin plugin.wasm speaks tidegate:plugin/host@0.2.0, this host speaks tidegate:plugin@0.1; build it with \
         tidegate-plugin 0.1"
    );
}

#[test]
fn missing_exports_are_refused() {
    let host = ["tidegate:plugin/host@0.1.7"];
    assert_eq!(
        file_refusal(&hand_made::component(&host, &[])),
        "plugin plugin.wasm exports no tidegate:plugin/lifecycle@0.1, nor anything else of the contract; is it a \
         plugin of tidegate?"
    );
    assert_eq!(
        file_refusal(&hand_made::component(
            &host,
            &["tidegate:plugin/lifecycle@0.1.0", "tidegate:plugin/records@0.1.0"]
        )),
        "plugin plugin.wasm exports no tidegate:plugin/topic-naming@0.1, only: lifecycle, records"
    );
}

#[test]
fn right_names_with_wrong_types_are_refused() {
    assert_eq!(
        file_refusal(&hand_made::component(
            &["tidegate:plugin/host@0.1.0"],
            &["tidegate:plugin/lifecycle@0.1.0", "tidegate:plugin/topic-naming@0.1.0"]
        )),
        "plugin plugin.wasm does not fit tidegate:plugin@0.1: instance export `tidegate:plugin/lifecycle@0.1.0` does \
         not have export `describe`; build it with tidegate-plugin 0.1.0 or run a later tidegate"
    );
}

#[test]
fn files_that_are_no_component_are_refused() {
    assert_eq!(
        file_refusal(b"(module)"),
        "plugin plugin.wasm is no WebAssembly component: it does not begin as WebAssembly does"
    );
    assert_eq!(
        file_refusal(b"\0asm\x01\0\0\0"),
        "plugin plugin.wasm is a core module, not a component; build it for wasm32-unknown-unknown with linker = \
         \"wasm-component-ld\" in .cargo/config.toml"
    );
    let whole = hand_made::component(&["tidegate:plugin/host@0.1.0"], &[]);
    assert_eq!(
        file_refusal(&whole[..30]),
        "plugin plugin.wasm is no WebAssembly component: unexpected end-of-file (at offset 0xf)"
    );
    let missing = ModuleSource::File(PathBuf::from("/nowhere/plugin.wasm"));
    assert_eq!(
        CompiledModule::load(&ENGINE, &missing).err().unwrap().to_string(),
        "could not read plugin /nowhere/plugin.wasm: No such file or directory (os error 2)"
    );
}

#[test]
fn files_that_are_too_large_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugin.wasm");
    fs::File::create(&path).unwrap().set_len((64 << 20) + 1).unwrap();

    let refusal = CompiledModule::load(&ENGINE, &ModuleSource::File(path.clone())).err().unwrap();

    assert_eq!(
        refusal.to_string(),
        format!(
            "plugin {} has more than 67108864 bytes, which no plugin needs; is it the right file?",
            path.display()
        )
    );
}

#[test]
fn a_dropped_engine_leaves_no_thread() {
    let engine = Engine::new(None).unwrap();
    let source = ModuleSource::Builtin("default-policy".to_owned());
    let mut plugin = NamingPlugin::load(&engine, &source, &link(), "{}", PATIENT).unwrap();
    drop(engine);

    assert_eq!(
        plugin.to_target("orders"),
        Ok(Ok("east.orders".to_owned())),
        "the plugin keeps its engine alive"
    );
    // Joins the ticker's thread; would hang if that missed the word to stop.
    drop(plugin);
}

/// What was logged.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
