//! The APIs and versions that this broker speaks: what ApiVersions answers, no more and no less.

use kafka_protocol::messages::ApiKey;

/// One API and its lowest and highest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) api: ApiKey,
    pub(crate) min: i16,
    pub(crate) max: i16,
}

const fn spoken(api: ApiKey, min: i16, max: i16) -> Spoken {
    Spoken { api, min, max }
}

/// Upper ends: Produce before v10 and Fetch before v13, for from there on answers carry leader hints
/// (KIP-951) or name topics by id; OffsetCommit before v9, OffsetFetch before v9 and no
/// ConsumerGroupHeartbeat, for those are the new group protocol (KIP-848).
pub(crate) const SPOKEN: &[Spoken] = &[
    spoken(ApiKey::Produce, 3, 9),
    spoken(ApiKey::Fetch, 4, 12),
    spoken(ApiKey::ListOffsets, 1, 7),
    spoken(ApiKey::Metadata, 0, 12),
    spoken(ApiKey::OffsetCommit, 2, 8),
    spoken(ApiKey::OffsetFetch, 1, 8),
    spoken(ApiKey::FindCoordinator, 0, 4),
    spoken(ApiKey::JoinGroup, 0, 9),
    spoken(ApiKey::Heartbeat, 0, 4),
    spoken(ApiKey::LeaveGroup, 0, 5),
    spoken(ApiKey::SyncGroup, 0, 5),
    spoken(ApiKey::DescribeGroups, 0, 5),
    spoken(ApiKey::ListGroups, 0, 5),
    spoken(ApiKey::ApiVersions, 0, 4),
    spoken(ApiKey::CreateTopics, 2, 7),
    spoken(ApiKey::DeleteTopics, 1, 6),
    spoken(ApiKey::DeleteRecords, 0, 2),
    spoken(ApiKey::InitProducerId, 0, 4),
    spoken(ApiKey::OffsetForLeaderEpoch, 2, 4),
    spoken(ApiKey::DescribeConfigs, 1, 4),
    spoken(ApiKey::AlterConfigs, 0, 2),
    spoken(ApiKey::CreatePartitions, 0, 3),
    spoken(ApiKey::DeleteGroups, 0, 2),
    spoken(ApiKey::IncrementalAlterConfigs, 0, 1),
    spoken(ApiKey::OffsetDelete, 0, 0),
    spoken(ApiKey::DescribeCluster, 0, 1),
];

/// Whether a request of this version can be served.
pub(crate) fn speaks(api: ApiKey, version: i16) -> bool {
    SPOKEN.iter().any(|spoken| spoken.api == api && (spoken.min..=spoken.max).contains(&version))
}
