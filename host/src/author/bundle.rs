//! Files that the binary carries; the list is written by the build script.

include!(concat!(env!("OUT_DIR"), "/bundle.rs"));
