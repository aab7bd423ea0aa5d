//! A plugin built against a later 0.1.x, whose new host function it does not call.

#![cfg(target_arch = "wasm32")]

use bindings::exports::tidegate::plugin::lifecycle::{self, About, Link, Problem};
use bindings::exports::tidegate::plugin::topic_naming;

mod bindings {
    wit_bindgen::generate!({
        inline: "package tidegate:plugin@0.1.9;
            interface host {
                enum level { debug, info, warn, error }
                log: func(level: level, message: string);
                count: func(name: string, by: u64);
                weigh: func(what: string) -> u64;
            }
            interface lifecycle {
                record about { name: string, version: string, config-schema: option<string> }
                record link { name: string, source-cluster: string, target-cluster: string }
                record problem { at: string, message: string }
                describe: func() -> about;
                init: func(link: link, config: string) -> result<_, list<problem>>;
                self-test: func() -> result<_, string>;
            }
            interface topic-naming {
                to-target: func(topic: string) -> result<string, string>;
                to-source: func(topic: string) -> option<string>;
            }
            world skew {
                import host;
                export lifecycle;
                export topic-naming;
            }",
    });
}

struct Skew;

impl lifecycle::Guest for Skew {
    fn describe() -> About {
        About { name: "skew".to_owned(), version: "0.1.0".to_owned(), config_schema: None }
    }

    fn init(_link: Link, _config: String) -> Result<(), Vec<Problem>> {
        bindings::tidegate::plugin::host::count("started", 1);
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        Ok(())
    }
}

impl topic_naming::Guest for Skew {
    fn to_target(topic: String) -> Result<String, String> {
        Ok(topic)
    }

    fn to_source(topic: String) -> Option<String> {
        Some(topic)
    }
}

bindings::export!(Skew with_types_in bindings);
