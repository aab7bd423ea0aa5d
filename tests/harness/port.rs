//! Free ports for servers that must come back on the same port.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports that are handed out. They lie below the range from which Linux takes the local ports of outgoing
/// connections (32768 and up): while a broker is down, a client's connection must not sit on its port.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;

/// A port of the loopback address that is free now. Another process may still take it before it is used, so the
/// starter of a server tries again with another one.
///
/// # Errors
/// When every port of the range is taken.
pub fn free_port() -> anyhow::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two test processes begin at different places, so that they rarely meet.
    let start = (std::process::id() as u16).wrapping_mul(131) % COUNT;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (start + step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no free port between {FIRST} and {} on 127.0.0.1", FIRST + COUNT)
}
