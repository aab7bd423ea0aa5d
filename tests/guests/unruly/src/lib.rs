//! A naming plugin that misbehaves on request. The topic that it is asked about, or a field of its settings, says
//! how; any other topic keeps its name.

use std::cell::Cell;
use std::hint::black_box;

use tidegate_plugin::host::{self, Level};
use tidegate_plugin::settings::Settings;
use tidegate_plugin::{Link, Plugin, Problem, TopicNaming, plugin};

/// The plugin.
#[derive(Debug)]
pub struct Unruly {
    fails_self_test: bool,
    answer_count: Cell<u32>,
}

impl Plugin for Unruly {
    const NAME: Option<&'static str> = Some("unruly");

    /// `"init"`: `panic`, `loop` or `object`; `"self_test"`: false to fail it.
    fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::parse(settings)?;
        match settings.string("init").as_deref() {
            Some("panic") => panic!("asked to"),
            Some("loop") => spin(),
            Some("object") => {
                settings.object_to("/init", "must be something else");
                settings.object_to("", "must be fewer");
            }
            _ => {}
        }
        let fails_self_test = settings.boolean("self_test") == Some(false);
        settings.finish()?;
        Ok(Self { fails_self_test, answer_count: Cell::new(0) })
    }

    fn self_test(&self) -> Result<(), String> {
        if self.fails_self_test { Err("asked to".to_owned()) } else { Ok(()) }
    }
}

impl TopicNaming for Unruly {
    fn to_target(&self, topic: &str) -> Result<String, String> {
        match topic {
            "loop" => spin(),
            "eat" => eat(),
            "panic" => panic!("no name for {topic}"),
            "panic-on-a-used-instance" if self.answer_count.get() > 0 => panic!("used"),
            "trap" => trap(),
            "dive" => dive(1),
            "long" => return Ok("x".repeat(5000)),
            "refuse" => return Err("not this one,\nnever".to_owned()),
            "chatter" => chatter(),
            _ => {}
        }
        self.answer_count.set(self.answer_count.get() + 1);
        Ok(topic.to_owned())
    }

    fn to_source(&self, topic: &str) -> Option<String> {
        Some(topic.to_owned())
    }
}

fn spin() {
    loop {
        black_box(());
    }
}

fn eat() {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Without last words.
fn trap() {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
}

fn dive(depth: u64) {
    let frame = black_box([depth; 64]);
    if frame[0] == 0 {
        return;
    }
    dive(frame[1] + 1);
    black_box(frame);
}

fn chatter() {
    for index in 0..100 {
        host::log(Level::Info, &format!("line {index}"));
        host::count(&format!("counter-{index}"), index);
    }
}

plugin!(Unruly: topic_naming);
