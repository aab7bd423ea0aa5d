//! Write policies for the Tidegate replicator as WebAssembly plugins.
//!
//! A plugin is a type that implements [`Plugin`] (how it starts) and one trait for each question that it answers
//! (today [`TopicNaming`]: what a topic is called on the target cluster). [`plugin!`] turns it into a component.
//! A complete one, which puts a fixed text before each name:
//!
//! ```
//! use tidegate_plugin::settings::Settings;
//! use tidegate_plugin::{Link, Plugin, Problem, TopicNaming, plugin};
//!
//! struct Prefix {
//!     prefix: String,
//! }
//!
//! impl Plugin for Prefix {
//!     fn init(link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
//!         let mut settings = Settings::parse(settings)?;
//!         let prefix = settings.string("prefix");
//!         settings.finish()?; // tells of fields with a wrong type and of fields that nobody asked for
//!         Ok(Self { prefix: prefix.unwrap_or(format!("{}-", link.source_cluster)) })
//!     }
//! }
//!
//! impl TopicNaming for Prefix {
//!     fn to_target(&self, topic: &str) -> Result<String, String> {
//!         Ok(format!("{}{topic}", self.prefix))
//!     }
//!
//!     fn to_source(&self, topic: &str) -> Option<String> {
//!         Some(topic.strip_prefix(&self.prefix)?.to_owned())
//!     }
//! }
//!
//! plugin!(Prefix: topic_naming);
//!
//! // Natively it is a type like any other, so tests need no WebAssembly.
//! let link = Link { name: "east->west".into(), source_cluster: "east".into(), target_cluster: "west".into() };
//! let prefix = Prefix::init(link, r#"{"prefix": "copy-of-"}"#)?;
//! assert_eq!(prefix.to_target("orders"), Ok("copy-of-orders".to_owned()));
//! assert_eq!(prefix.to_source("copy-of-orders"), Some("orders".to_owned()));
//! # Ok::<(), Vec<Problem>>(())
//! ```
//!
//! What the host promises and asks for is in `wit/` (the contract) and in README.md (the same in words, and how to
//! build a plugin).

mod acl;
mod lifecycle;
mod naming;
mod selection;

pub mod host;
pub mod records;
pub mod settings;

#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;

/// Compiles the README's plugin.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use acl::{Acl, AclMapping, Pattern, Permission, ResourceKind};
pub use lifecycle::{Link, Plugin, Problem};
pub use naming::TopicNaming;
pub use records::{Batch, Edit, Needs, Record, Records};
pub use selection::{Selection, Topic};

/// Makes a component of a type: `plugin!(MyPolicy: topic_naming);`, once in the crate.
///
/// Behind the colon stand the capabilities, each a trait that the type implements: `topic_naming` is
/// [`TopicNaming`]. What is not named is not exported, and the host never asks for it. Natively nothing is
/// exported; only the traits are checked.
#[macro_export]
macro_rules! plugin {
    ($plugin:ty: $($capability:ident),+ $(,)?) => {
        const _: () = {
            $($crate::__check_capability!($capability, $plugin);)+
        };

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            ::std::thread_local! {
                static INSTANCE: $crate::component::Instance<$plugin> =
                    const { $crate::component::Instance::new() };
            }

            impl $crate::component::lifecycle::Guest for Component {
                fn describe() -> $crate::component::lifecycle::About {
                    $crate::component::describe::<$plugin>(
                        ::core::env!("CARGO_PKG_NAME"),
                        ::core::env!("CARGO_PKG_VERSION"),
                    )
                }

                fn init(
                    link: $crate::component::lifecycle::Link,
                    config: ::std::string::String,
                ) -> ::core::result::Result<(), ::std::vec::Vec<$crate::component::lifecycle::Problem>> {
                    INSTANCE.with(|instance| instance.init(link, config))
                }

                fn self_test() -> ::core::result::Result<(), ::std::string::String> {
                    INSTANCE.with(|instance| instance.with(<$plugin as $crate::Plugin>::self_test))
                }
            }

            $crate::component::generated_lifecycle::export!(
                Component with_types_in $crate::component::generated_lifecycle
            );

            $($crate::__export_capability!($capability, $plugin, Component, INSTANCE);)+
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __check_capability {
    (topic_naming, $plugin:ty) => {{
        const fn is_topic_naming<P: $crate::TopicNaming>() {}
        is_topic_naming::<$plugin>();
    }};
    (selection, $plugin:ty) => {{
        const fn is_selection<P: $crate::Selection>() {}
        is_selection::<$plugin>();
    }};
    (acl_mapping, $plugin:ty) => {{
        const fn is_acl_mapping<P: $crate::AclMapping>() {}
        is_acl_mapping::<$plugin>();
    }};
    (records, $plugin:ty) => {{
        const fn is_records<P: $crate::Records>() {}
        is_records::<$plugin>();
    }};
    ($other:ident, $plugin:ty) => {
        ::core::compile_error!(::core::concat!(
            "no capability is called `",
            ::core::stringify!($other),
            "`; there is: records, selection, acl_mapping, topic_naming"
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_capability {
    (topic_naming, $plugin:ty, $component:ident, $instance:ident) => {
        impl $crate::component::topic_naming::Guest for $component {
            fn to_target(
                topic: ::std::string::String,
            ) -> ::core::result::Result<::std::string::String, ::std::string::String> {
                $instance.with(|instance| {
                    instance.with(|plugin| <$plugin as $crate::TopicNaming>::to_target(plugin, &topic))
                })
            }

            fn to_source(topic: ::std::string::String) -> ::core::option::Option<::std::string::String> {
                $instance.with(|instance| {
                    instance.with(|plugin| <$plugin as $crate::TopicNaming>::to_source(plugin, &topic))
                })
            }
        }

        $crate::component::generated_topic_naming::export!(
            $component with_types_in $crate::component::generated_topic_naming
        );
    };
    (selection, $plugin:ty, $component:ident, $instance:ident) => {
        impl $crate::component::selection::Guest for $component {
            fn topics(
                topics: ::std::vec::Vec<$crate::component::selection::Topic>,
            ) -> ::core::result::Result<::std::vec::Vec<bool>, ::std::string::String> {
                $instance.with(|instance| instance.select_topics(topics))
            }

            fn groups(
                groups: ::std::vec::Vec<::std::string::String>,
            ) -> ::core::result::Result<::std::vec::Vec<bool>, ::std::string::String> {
                $instance.with(|instance| {
                    instance.with(|plugin| <$plugin as $crate::Selection>::groups(plugin, &groups))
                })
            }
        }

        $crate::component::generated_selection::export!(
            $component with_types_in $crate::component::generated_selection
        );
    };
    (acl_mapping, $plugin:ty, $component:ident, $instance:ident) => {
        impl $crate::component::acl_mapping::Guest for $component {
            fn map_acls(
                acls: ::std::vec::Vec<$crate::component::acl_mapping::Acl>,
            ) -> ::core::result::Result<
                ::std::vec::Vec<::std::vec::Vec<$crate::component::acl_mapping::Acl>>,
                ::std::string::String,
            > {
                $instance.with(|instance| instance.map_acls(acls))
            }
        }

        $crate::component::generated_acl_mapping::export!(
            $component with_types_in $crate::component::generated_acl_mapping
        );
    };
    (records, $plugin:ty, $component:ident, $instance:ident) => {
        impl $crate::component::records::Guest for $component {
            fn needs() -> $crate::component::records::Needed {
                $instance.with(|instance| instance.needs())
            }

            fn process(
                batch: $crate::component::records::Batch,
            ) -> ::core::result::Result<$crate::component::records::Edits, ::std::string::String> {
                $instance.with(|instance| instance.process(batch))
            }
        }

        $crate::component::generated_records::export!(
            $component with_types_in $crate::component::generated_records
        );
    };
    ($other:ident, $plugin:ty, $component:ident, $instance:ident) => {};
}
