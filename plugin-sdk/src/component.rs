//! What exists on WebAssembly alone: the generated bindings, and the glue between them and the traits.
//!
//! One world a capability, each in a module of its own and named differently: the export macros of the worlds are
//! called by [`plugin!`](crate::plugin) as asked for, and what is not called leaves no trace in the component.

mod acls;
mod batches;
mod topics;

use std::cell::RefCell;

use crate::host::Level;
use crate::records::Answer;
use crate::{Link, Plugin, Problem};

pub use generated_acl_mapping::exports::tidegate::plugin::acl_mapping;
pub use generated_lifecycle::exports::tidegate::plugin::lifecycle;
pub(crate) use generated_lifecycle::tidegate::plugin::host;
pub use generated_records::exports::tidegate::plugin::records;
pub use generated_selection::exports::tidegate::plugin::selection;
pub use generated_topic_naming::exports::tidegate::plugin::topic_naming;

#[expect(missing_docs, reason = "generated; the words are in the contract")]
pub mod generated_lifecycle {
    wit_bindgen::generate!({
        path: "wit/0.1.0",
        inline: "package tidegate:sdk;
            world sdk-lifecycle {
                import tidegate:plugin/host@0.1.0;
                export tidegate:plugin/lifecycle@0.1.0;
            }",
        pub_export_macro: true,
        generate_all,
    });
}

#[expect(missing_docs, reason = "generated; the words are in the contract")]
pub mod generated_topic_naming {
    wit_bindgen::generate!({
        path: "wit/0.1.0",
        inline: "package tidegate:sdk;
            world sdk-topic-naming {
                export tidegate:plugin/topic-naming@0.1.0;
            }",
        pub_export_macro: true,
        generate_all,
    });
}

#[expect(missing_docs, reason = "generated; the words are in the contract")]
pub mod generated_selection {
    wit_bindgen::generate!({
        path: "wit/0.1.0",
        inline: "package tidegate:sdk;
            world sdk-selection {
                export tidegate:plugin/selection@0.1.0;
            }",
        pub_export_macro: true,
        generate_all,
    });
}

#[expect(missing_docs, reason = "generated; the words are in the contract")]
pub mod generated_acl_mapping {
    wit_bindgen::generate!({
        path: "wit/0.1.0",
        inline: "package tidegate:sdk;
            world sdk-acl-mapping {
                export tidegate:plugin/acl-mapping@0.1.0;
            }",
        pub_export_macro: true,
        generate_all,
    });
}

#[expect(missing_docs, reason = "generated; the words are in the contract")]
pub mod generated_records {
    wit_bindgen::generate!({
        path: "wit/0.1.0",
        inline: "package tidegate:sdk;
            world sdk-records {
                export tidegate:plugin/records@0.1.0;
            }",
        pub_export_macro: true,
        generate_all,
    });
}

/// A third of what the allocator of std weighs, and faster. An instance has one thread.
#[cfg(all(feature = "allocator", not(target_feature = "atomics")))]
#[global_allocator]
static MEMORY: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// The plugin's one instance; empty until the host calls `init`.
pub struct Instance<P> {
    plugin: RefCell<Option<P>>,
    answer: RefCell<Answer>,
}

impl<P: Plugin> Instance<P> {
    #[expect(clippy::new_without_default, reason = "only `plugin!` makes one, in a constant")]
    pub const fn new() -> Self {
        Self { plugin: RefCell::new(None), answer: RefCell::new(Answer::new()) }
    }

    pub fn init(&self, link: lifecycle::Link, config: String) -> Result<(), Vec<lifecycle::Problem>> {
        log_panics();
        let link = Link {
            name: link.name,
            source_cluster: link.source_cluster,
            target_cluster: link.target_cluster,
        };
        let plugin = match P::init(link, &config) {
            Ok(plugin) => plugin,
            Err(problems) => {
                let mut told = Vec::new();
                told.extend(problems.into_iter().map(to_wit));
                return Err(told);
            }
        };
        match self.plugin.borrow_mut().replace(plugin) {
            None => Ok(()),
            Some(_) => Err(vec![to_wit(Problem::new("", "init was called twice on one instance"))]),
        }
    }

    pub fn with<T>(&self, ask: impl FnOnce(&P) -> T) -> T {
        ask(self.plugin.borrow().as_ref().expect(INIT_COMES_FIRST))
    }
}

const INIT_COMES_FIRST: &str = "the host calls init before anything but describe";

pub fn describe<P: Plugin>(crate_name: &str, crate_version: &str) -> lifecycle::About {
    log_panics();
    lifecycle::About {
        name: P::NAME.unwrap_or(crate_name).to_owned(),
        version: crate_version.to_owned(),
        config_schema: P::SETTINGS_SCHEMA.map(str::to_owned),
    }
}

fn to_wit(problem: Problem) -> lifecycle::Problem {
    lifecycle::Problem { at: problem.at, message: problem.message }
}

/// A panic becomes a bare `unreachable` on WebAssembly; its text and place would be lost. The words are those that std
/// would print; joined by hand they are less code.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let mut message = String::from("panicked");
        if let Some(place) = panic.location() {
            for part in
                [" at ", place.file(), ":", &place.line().to_string(), ":", &place.column().to_string()]
            {
                message.push_str(part);
            }
        }
        message.push_str(":\n");
        message.push_str(panic.payload_as_str().unwrap_or_default());
        crate::host::log(Level::Error, &message);
    }));
}
