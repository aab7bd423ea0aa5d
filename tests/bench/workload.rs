//! What is copied.

/// Partitions of every filled topic.
pub(crate) const PARTITION_COUNT: i32 = 6;

/// A topic to copy and what we want to need for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    /// Short name on the command line.
    pub(crate) name: &'static str,
    /// Name in tables.
    pub(crate) title: &'static str,
    pub(crate) value_bytes: usize,
    pub(crate) codec: &'static str,
    /// Size of the source's batches before compression.
    pub(crate) batch_bytes: usize,
    pub(crate) record_count: u64,
    /// Wanted: CPU time for each record, as a part of MirrorMaker 2's.
    pub(crate) cpu_ratio_max: f64,
}

impl Workload {
    pub(crate) fn topic(&self) -> String {
        format!("bench-{}", self.name)
    }
}

/// All of them.
pub(crate) const WORKLOADS: [Workload; 4] = [
    Workload {
        name: "none256",
        title: "1 KiB, none, 256 KiB batches",
        value_bytes: 1024,
        codec: "none",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        cpu_ratio_max: 0.04,
    },
    Workload {
        name: "lz4",
        title: "1 KiB, lz4, 256 KiB batches",
        value_bytes: 1024,
        codec: "lz4",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        cpu_ratio_max: 0.04,
    },
    Workload {
        name: "none16",
        title: "1 KiB, none, 16 KiB batches",
        value_bytes: 1024,
        codec: "none",
        batch_bytes: 16_384,
        record_count: 1_000_000,
        cpu_ratio_max: 0.15,
    },
    Workload {
        name: "small",
        title: "100 B, lz4, 256 KiB batches",
        value_bytes: 100,
        codec: "lz4",
        batch_bytes: 262_144,
        record_count: 5_000_000,
        cpu_ratio_max: 0.03,
    },
];
