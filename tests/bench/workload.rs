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
    /// What is done to each record on its way; in MirrorMaker 2 a stock transformation does the same.
    pub(crate) policy: Policy,
    /// Wanted: CPU time for each record, as a part of MirrorMaker 2's.
    pub(crate) cpu_ratio_max: Option<f64>,
}

/// What a flow does to records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Nothing: the plain copy.
    None,
    /// Looks at a header of each record and keeps them all.
    KeepAll,
    /// Puts one more header on each record.
    AddHeader,
}

/// The headers of each record where there is a policy; the first decides.
pub(crate) const HEADERS: [(&str, &str); 3] =
    [("region", "eu"), ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00"), ("schema", "orders-v7")];

impl Policy {
    /// The lines of a file that MirrorMaker 2 obeys.
    pub(crate) fn transformations(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Policy::None => &[],
            Policy::KeepAll => &[
                ("transforms", "keep"),
                ("transforms.keep.type", "org.apache.kafka.connect.transforms.Filter"),
                ("transforms.keep.predicate", "has"),
                ("transforms.keep.negate", "true"),
                ("predicates", "has"),
                ("predicates.has.type", "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"),
                ("predicates.has.name", "region"),
            ],
            Policy::AddHeader => &[
                ("transforms", "mark"),
                ("transforms.mark.type", "org.apache.kafka.connect.transforms.InsertHeader"),
                ("transforms.mark.header", "copied-by"),
                ("transforms.mark.value.literal", "bench"),
                // MirrorMaker 2's own converter takes bytes only, and the transformation makes a string.
                ("header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
            ],
        }
    }

    /// The lines of a file that Tidegate obeys.
    pub(crate) fn plugins(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Policy::None => &[],
            Policy::KeepAll => &[
                ("tidegate.plugins", "keep"),
                ("tidegate.plugin.keep.module", "builtin:region-filter"),
                (
                    "tidegate.plugin.keep.settings",
                    r#"{"conditions":[{"by":"header","name":"region","allow":["eu","us"]}]}"#,
                ),
            ],
            Policy::AddHeader => &[
                ("tidegate.plugins", "mark"),
                ("tidegate.plugin.mark.module", "builtin:header-rules"),
                (
                    "tidegate.plugin.mark.settings",
                    r#"{"rules":[{"action":"add","name":"copied-by","value":"bench"}]}"#,
                ),
            ],
        }
    }
}

impl Workload {
    pub(crate) fn topic(&self) -> String {
        format!("bench-{}", self.name)
    }
}

/// All of them.
pub(crate) const WORKLOADS: [Workload; 8] = [
    Workload {
        name: "none256",
        title: "1 KiB, none, 256 KiB batches",
        value_bytes: 1024,
        codec: "none",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        policy: Policy::None,
        cpu_ratio_max: Some(0.04),
    },
    Workload {
        name: "lz4",
        title: "1 KiB, lz4, 256 KiB batches",
        value_bytes: 1024,
        codec: "lz4",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        policy: Policy::None,
        cpu_ratio_max: Some(0.04),
    },
    Workload {
        name: "none16",
        title: "1 KiB, none, 16 KiB batches",
        value_bytes: 1024,
        codec: "none",
        batch_bytes: 16_384,
        record_count: 1_000_000,
        policy: Policy::None,
        cpu_ratio_max: Some(0.15),
    },
    Workload {
        name: "small",
        title: "100 B, lz4, 256 KiB batches",
        value_bytes: 100,
        codec: "lz4",
        batch_bytes: 262_144,
        record_count: 5_000_000,
        policy: Policy::None,
        cpu_ratio_max: Some(0.03),
    },
    Workload {
        name: "filter",
        title: "1 KiB, none, header filter that keeps all",
        value_bytes: 1024,
        codec: "none",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        policy: Policy::KeepAll,
        cpu_ratio_max: Some(0.06),
    },
    Workload {
        name: "filterlz4",
        title: "1 KiB, lz4, header filter that keeps all",
        value_bytes: 1024,
        codec: "lz4",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        policy: Policy::KeepAll,
        cpu_ratio_max: None,
    },
    Workload {
        name: "filterzstd",
        title: "1 KiB, zstd, header filter that keeps all",
        value_bytes: 1024,
        codec: "zstd",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        policy: Policy::KeepAll,
        cpu_ratio_max: None,
    },
    Workload {
        name: "header",
        title: "1 KiB, lz4, one header added to each record",
        value_bytes: 1024,
        codec: "lz4",
        batch_bytes: 262_144,
        record_count: 1_000_000,
        policy: Policy::AddHeader,
        cpu_ratio_max: Some(0.2),
    },
];
