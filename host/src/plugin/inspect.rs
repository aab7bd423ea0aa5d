//! Reads which names a module imports and exports, before any of it is compiled or run.

use wasmparser::{Encoding, Parser, Payload};

/// The package of the contract, as it stands in the names of its interfaces.
const PACKAGE: &str = "tidegate:plugin/";
/// How WebAssembly begins, modules and components alike.
const MAGIC: &[u8] = b"\0asm";
/// Interfaces of any `0.1.x` fit; the contract's rules see to that.
const VERSION: &str = "0.1";

/// An interface of the contract that a plugin can export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interface {
    Lifecycle,
    TopicNaming,
    Selection,
    AclMapping,
    Records,
}

impl Interface {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::TopicNaming => "topic-naming",
            Self::Selection => "selection",
            Self::AclMapping => "acl-mapping",
            Self::Records => "records",
        }
    }
}

/// The names at a component's boundary.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Boundary {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

/// Why there is no boundary to look at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoComponent {
    /// A module as Rust and C compilers write it before the component linker had it.
    CoreModule,
    /// No WebAssembly, or a broken file.
    Malformed(String),
}

/// What the contract's rules say about an imported or exported name.
#[derive(Debug, PartialEq, Eq)]
enum Name<'a> {
    /// Of a version that this host serves: the interface's bare name.
    Served(&'a str),
    /// Of the contract, but of another version.
    OtherVersion,
    /// Not of the contract.
    Foreign,
}

/// Something at the boundary that this host does not serve.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unserved<'a> {
    Import(&'a str),
    Version(&'a str),
}

impl Boundary {
    /// Reads the outermost component's imports and exports; what lies within can reach only those.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, NoComponent> {
        let malformed = |error: wasmparser::BinaryReaderError| NoComponent::Malformed(error.to_string());
        if !bytes.starts_with(MAGIC) {
            return Err(NoComponent::Malformed("it does not begin as WebAssembly does".to_owned()));
        }
        let mut boundary = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(malformed)? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(NoComponent::CoreModule);
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(imports) if depth == 0 => {
                    for import in imports {
                        boundary.imports.push(import.map_err(malformed)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 0 => {
                    for export in exports {
                        boundary.exports.push(export.map_err(malformed)?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(boundary)
    }

    /// The first thing that this host does not serve: an import that is not `host`, or another version of the
    /// contract on either side. Exports outside the contract are nobody's business.
    pub(super) fn unserved(&self) -> Option<Unserved<'_>> {
        let import = self.imports.iter().find_map(|name| match classify(name) {
            Name::Served("host") => None,
            Name::OtherVersion => Some(Unserved::Version(name)),
            Name::Served(_) | Name::Foreign => Some(Unserved::Import(name)),
        });
        let export = || self.exports.iter().find(|name| classify(name) == Name::OtherVersion);
        import.or_else(|| export().map(|name| Unserved::Version(name)))
    }

    pub(super) fn offers(&self, interface: Interface) -> bool {
        self.exports.iter().any(|name| classify(name) == Name::Served(interface.name()))
    }

    /// The bare names of the contract's interfaces among the exports.
    pub(super) fn offered(&self) -> Vec<&str> {
        let served = |name| match classify(name) {
            Name::Served(interface) => Some(interface),
            Name::OtherVersion | Name::Foreign => None,
        };
        self.exports.iter().filter_map(|name| served(name)).collect()
    }
}

/// Splits `tidegate:plugin/host@0.1.7`. A pre-release is another version: it promises nothing.
fn classify(name: &str) -> Name<'_> {
    let Some(interface) = name.strip_prefix(PACKAGE) else { return Name::Foreign };
    let Some((interface, version)) = interface.split_once('@') else { return Name::OtherVersion };
    let patch = version.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix('.'));
    match patch {
        Some(patch) if !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()) => {
            Name::Served(interface)
        }
        _ => Name::OtherVersion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_by_package_and_version() {
        let check = |name: &str, kind: Name<'_>| assert_eq!(classify(name), kind, "{name}");
        check("tidegate:plugin/host@0.1.0", Name::Served("host"));
        check("tidegate:plugin/topic-naming@0.1.12", Name::Served("topic-naming"));
        check("tidegate:plugin/host@0.2.0", Name::OtherVersion);
        check("tidegate:plugin/host@0.10.0", Name::OtherVersion);
        check("tidegate:plugin/host@0.1", Name::OtherVersion);
        check("tidegate:plugin/host@0.1.", Name::OtherVersion);
        check("tidegate:plugin/host@0.1.0-rc.1", Name::OtherVersion);
        check("tidegate:plugin/host", Name::OtherVersion);
        check("wasi:io/streams@0.2.6", Name::Foreign);
        check("tidegate:plugins/host@0.1.0", Name::Foreign);
        check("host", Name::Foreign);
    }

    #[test]
    fn only_the_host_may_be_imported() {
        let check = |imports: &[&str], exports: &[&str], unserved: Option<Unserved<'_>>| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let boundary = Boundary { imports: owned(imports), exports: owned(exports) };
            assert_eq!(boundary.unserved(), unserved, "{imports:?} {exports:?}");
        };
        check(&[], &[], None);
        check(&["tidegate:plugin/host@0.1.3"], &["tidegate:plugin/records@0.1.0", "extra"], None);
        check(&["env"], &[], Some(Unserved::Import("env")));
        check(
            &["tidegate:plugin/host@0.1.0", "tidegate:plugin/records@0.1.0"],
            &[],
            Some(Unserved::Import("tidegate:plugin/records@0.1.0")),
        );
        check(&["tidegate:plugin/host@0.2.0"], &[], Some(Unserved::Version("tidegate:plugin/host@0.2.0")));
        check(
            &[],
            &["tidegate:plugin/lifecycle@1.0.0"],
            Some(Unserved::Version("tidegate:plugin/lifecycle@1.0.0")),
        );
    }

    #[test]
    fn files_that_are_no_component_are_recognised() {
        let malformed = |bytes: &[u8]| match Boundary::read(bytes) {
            Err(NoComponent::Malformed(message)) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(Boundary::read(b"\0asm\x01\0\0\0"), Err(NoComponent::CoreModule));
        assert_eq!(Boundary::read(b"\0asm\x0d\0\x01\0"), Ok(Boundary::default()));
        assert_eq!(malformed(b"#!/bin/sh\n"), "it does not begin as WebAssembly does");
        assert_eq!(malformed(b""), "it does not begin as WebAssembly does");
        assert_eq!(malformed(b"\0asm\x0d\0"), "unexpected end-of-file (at offset 0x4)");
    }
}
