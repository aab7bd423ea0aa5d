//! What the figures were measured on.

use std::fs;

use serde_json::{Value, json};

/// Processors, memory and kernel.
pub(crate) fn facts() -> Value {
    let first_line = |path: &str, start: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
        line.split_once(':').map_or(line.clone(), |(_, value)| value.trim().to_owned())
    };
    json!({
        "processor": first_line("/proc/cpuinfo", "model name"),
        "processor_count": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": first_line("/proc/meminfo", "MemTotal"),
        "kernel": first_line("/proc/sys/kernel/osrelease", ""),
        "load_before": first_line("/proc/loadavg", ""),
    })
}
