//! Write policies for the Tidegate replicator as WebAssembly plugins.
//!
//! A plugin is a type that implements [`Plugin`] (how it starts) and one trait for each question that it answers:
//! [`Records`] (which records pass, and what changes in them), [`Selection`] (which topics and groups are
//! replicated), [`AclMapping`] (what an access rule becomes) and [`TopicNaming`] (what a topic is called on the target
//! cluster). [`plugin!`] turns it into a component. A complete one, which lets only records of some regions pass:
//!
//! ```
//! use tidegate_plugin::settings::Settings;
//! use tidegate_plugin::{Edit, Link, Needs, Plugin, Problem, Record, Records, plugin};
//!
//! struct RegionOnly {
//!     header: String,
//!     regions: Vec<String>,
//! }
//!
//! impl Plugin for RegionOnly {
//!     fn init(_link: Link, settings: &str) -> Result<Self, Vec<Problem>> {
//!         let mut settings = Settings::parse(settings)?;
//!         let header = settings.string("header").unwrap_or("region".to_owned());
//!         let regions = settings.strings("regions").unwrap_or_default();
//!         if regions.is_empty() {
//!             settings.object_to("/regions", "must name at least one region");
//!         }
//!         settings.finish()?; // tells of fields with a wrong type and of fields that nobody asked for
//!         Ok(Self { header, regions })
//!     }
//! }
//!
//! impl Records for RegionOnly {
//!     fn needs(&self) -> Needs {
//!         Needs::nothing().header(&self.header)
//!     }
//!
//!     fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
//!         let Some(region) = record.header(&self.header) else {
//!             return Err("has no region".to_owned()); // can't be judged: the operator's `on.fault` decides
//!         };
//!         if !self.regions.iter().any(|allowed| allowed.as_bytes() == region) {
//!             edit.drop();
//!         }
//!         Ok(())
//!     }
//! }
//!
//! plugin!(RegionOnly: records);
//!
//! // Natively it is a type like any other, so tests need neither WebAssembly nor a host.
//! use tidegate_plugin::testing::{self, Batch};
//!
//! let mut plugin: RegionOnly = testing::start(r#"{"regions": ["eu"]}"#)?;
//! let outcome = testing::run(
//!     &mut plugin,
//!     &Batch::new("orders", 0)
//!         .record(|record| record.key("1").value("…").header("region", "eu"))
//!         .record(|record| record.key("2").value("…").header("region", "us"))
//!         .record(|record| record.key("3").value("…")),
//! );
//! assert_eq!(outcome.kept_offsets(), [0]);
//! assert_eq!(outcome.reasons(), ["has no region"]);
//! # Ok::<(), Vec<Problem>>(())
//! ```
//!
//! What the host promises and asks for is in `wit/` (the contract) and in README.md (the same in words, a tutorial, and
//! what things cost).
//!
//! # Features
//! - `allocator` (default): the plugin's memory is managed by talc, which is 7 KB smaller than what std brings. Off, the
//!   plugin may set a `#[global_allocator]` of its own.
//! - `serde`: `settings::from_json` reads settings into types.

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

/// Makes a component of a type: `plugin!(MyPolicy: records, topic_naming);`, once in the crate.
///
/// Behind the colon stand the capabilities, one or more of those, each a trait that the type implements: `records` is
/// [`Records`], `selection` is [`Selection`], `acl_mapping` is [`AclMapping`], `topic_naming` is [`TopicNaming`]. What
/// is not named is not exported, and the host never asks for it. Natively nothing is exported; only the traits are
/// checked.
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
