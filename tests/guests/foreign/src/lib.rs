//! A record plugin that wants to know the time from somebody who is not the host: no host runs it.

#![cfg(target_arch = "wasm32")]

use exports::tidegate::plugin::lifecycle::{self, About, Link, Problem};
use exports::tidegate::plugin::records::{self, Batch, Edits, Needed, Parts};

mod bindings {
    wit_bindgen::generate!({
        path: "../../../plugin-sdk/wit/0.1.0",
        inline: "package example:foreign@1.0.0;
            interface clock {
                now: func() -> u64;
            }
            world foreign {
                import clock;
                include tidegate:plugin/record-transform@0.1.0;
            }",
        world: "example:foreign/foreign",
        generate_all,
    });
}
use bindings::exports;

struct Foreign;

impl lifecycle::Guest for Foreign {
    fn describe() -> About {
        About { name: "foreign".to_owned(), version: "0.1.0".to_owned(), config_schema: None }
    }

    fn init(_link: Link, _config: String) -> Result<(), Vec<Problem>> {
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        Ok(())
    }
}

impl records::Guest for Foreign {
    fn needs() -> Needed {
        Needed { parts: Parts::empty(), header_names: Vec::new() }
    }

    fn process(_batch: Batch) -> Result<Edits, String> {
        if bindings::example::foreign::clock::now() == 0 {
            return Err("there is no time".to_owned());
        }
        Ok(Edits { data: Vec::new(), ops: Vec::new() })
    }
}

bindings::export!(Foreign with_types_in bindings);
