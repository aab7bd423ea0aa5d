//! The host's side of plugin-sdk/wit/0.1.0, generated. A later version of the contract gets a module beside this one.

wasmtime::component::bindgen!({
    path: "../plugin-sdk/wit/0.1.0",
    world: "topic-namer",
});

pub(super) use self::tidegate::plugin::host;
pub(super) use exports::tidegate::plugin::{lifecycle, topic_naming};
