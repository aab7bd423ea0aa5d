//! The host's side of the contract: one module a version, each of them the only place that knows its generated types.
//! What the rest of this folder handles are plain types (`AclRule`, `SelectionTopic`, `BatchWords`), made from the newest
//! version's at the call.
//!
//! There is one version. The next (`plugin-sdk/wit/0.2.0`) gets a module `v0_2` here, a second set of exports in
//! `instance.rs`, and a word in `inspect.rs` that its interfaces are served; `v0_1` stays as long as 0.1 is served.

/// plugin-sdk/wit/0.1.0, which serves plugins that were built against any 0.1.x.
pub(super) mod v0_1 {
    wasmtime::component::bindgen!({
        path: "../plugin-sdk/wit/0.1.0",
        inline: "package tidegate:served;
            world every-capability {
                import tidegate:plugin/host@0.1.0;
                export tidegate:plugin/lifecycle@0.1.0;
                export tidegate:plugin/topic-naming@0.1.0;
                export tidegate:plugin/selection@0.1.0;
                export tidegate:plugin/acl-mapping@0.1.0;
                export tidegate:plugin/records@0.1.0;
            }",
        // What is asked is lent: a batch's bytes are copied once, into the plugin's memory.
        ownership: Borrowing { duplicate_if_necessary: true },
    });

    pub(in crate::plugin) use self::tidegate::plugin::host;
    pub(in crate::plugin) use exports::tidegate::plugin::{
        acl_mapping, lifecycle, records, selection, topic_naming,
    };
}

pub(super) use v0_1::{acl_mapping, host, lifecycle, records, selection, topic_naming};
