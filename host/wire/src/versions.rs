//! Which version of each request a broker and we speak (KIP-35, KIP-511). Pure; the exchange itself is
//! `connection::handshake`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::messages::{ApiKey, ApiVersionsResponse};

use crate::error::WireError;

/// From Fetch 13 on topics are named by id, which brokers before 3.1 lack; 12 serves 2.7 to 4.x.
pub const FETCH_VERSION_MAX: i16 = 12;
/// Produce 9 is flexible and 13 names topics by id; 8 has all that an idempotent producer needs (per-record errors) and serves
/// 2.4 to 4.x.
pub const PRODUCE_VERSION_MAX: i16 = 8;
/// From 10 on offsets are committed and fetched by topic id; the codec writes no newer requests than these two.
const GROUP_OFFSETS_VERSION_MAX: i16 = 9;
/// 6 is for two-phase commit (KIP-939), which the codec does not write.
const INIT_PRODUCER_ID_VERSION_MAX: i16 = 5;
/// Below 4 a metadata request creates the topics that it asks for.
pub const METADATA_VERSION_MIN: i16 = 4;

/// What one broker answered to ApiVersions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiVersions {
    ranges: BTreeMap<i16, (i16, i16)>,
    finalized_features: BTreeMap<String, i16>,
}

impl ApiVersions {
    /// Lowest and highest version of `api` that the broker serves; none if it does not know it.
    pub fn range(&self, api: ApiKey) -> Option<(i16, i16)> {
        self.ranges.get(&(api as i16)).copied()
    }

    /// The cluster's level of a feature (KIP-584), for instance `group.version` 1 where the new group protocol is on. None
    /// before Kafka 2.7 and for features that are off.
    pub fn finalized_feature(&self, name: &str) -> Option<i16> {
        self.finalized_features.get(name).copied()
    }

    /// The highest version that both sides speak.
    pub fn negotiate(&self, address: &Arc<str>, api: ApiKey) -> Result<i16, WireError> {
        let ours = our_range(api);
        let theirs = self.range(api);
        if let Some((min, max)) = theirs {
            let version = ours.1.min(max);
            if version >= ours.0.max(min) {
                return Ok(version);
            }
        }
        Err(unsupported(address, api, theirs, ours))
    }

    /// Whether `version` of `api` may be sent to this broker.
    pub fn check(&self, address: &Arc<str>, api: ApiKey, version: i16) -> Result<(), WireError> {
        match self.range(api) {
            Some((min, max)) if (min..=max).contains(&version) => Ok(()),
            theirs => Err(unsupported(address, api, theirs, (version, version))),
        }
    }

    /// For tests and stand-ins: a broker that serves just these.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (ApiKey, i16, i16)>) -> Self {
        let ranges = ranges.into_iter().map(|(api, min, max)| (api as i16, (min, max))).collect();
        ApiVersions { ranges, finalized_features: BTreeMap::new() }
    }
}

impl From<&ApiVersionsResponse> for ApiVersions {
    fn from(answer: &ApiVersionsResponse) -> Self {
        let ranges = answer
            .api_keys
            .iter()
            .map(|version| (version.api_key, (version.min_version, version.max_version)))
            .collect();
        let finalized_features = answer
            .finalized_features
            .iter()
            .map(|feature| (feature.name.to_string(), feature.max_version_level))
            .collect();
        ApiVersions { ranges, finalized_features }
    }
}

/// The versions that this program may send: what the codec knows, less what would change a meaning we rely on.
pub fn our_range(api: ApiKey) -> (i16, i16) {
    let known = api.valid_versions();
    match api {
        ApiKey::Fetch => (known.min, FETCH_VERSION_MAX),
        ApiKey::Produce => (known.min, PRODUCE_VERSION_MAX),
        ApiKey::Metadata => (METADATA_VERSION_MIN, known.max),
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => (known.min, GROUP_OFFSETS_VERSION_MAX),
        ApiKey::InitProducerId => (known.min, INIT_PRODUCER_ID_VERSION_MAX),
        _ => (known.min, known.max),
    }
}

fn unsupported(address: &Arc<str>, api: ApiKey, theirs: Option<(i16, i16)>, ours: (i16, i16)) -> WireError {
    let remedy = match theirs {
        None => "this broker is too old for it",
        Some((min, _)) if min > ours.1 => "use a newer Tidegate for this broker",
        Some(_) => "use brokers from Kafka 2.7.1 on",
    };
    WireError::Unsupported {
        address: Arc::clone(address),
        api,
        broker: theirs.map_or("no version".to_owned(), span),
        ours: span(ours),
        remedy,
    }
}

fn span((min, max): (i16, i16)) -> String {
    if min == max { format!("version {min}") } else { format!("versions {min} to {max}") }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::*;
    use kafka_protocol::protocol::Request;

    use super::*;

    fn check(api: ApiKey, theirs: Option<(i16, i16)>, wanted: Result<i16, &str>) {
        let ranges = theirs.map(|(min, max)| (api, min, max));
        let negotiated = ApiVersions::from_ranges(ranges).negotiate(&Arc::from("b:9092"), api);
        assert_eq!(negotiated.map_err(|error| error.to_string()), wanted.map_err(str::to_owned));
    }

    fn writable<R: Request>(_: R) {
        let api = ApiKey::try_from(R::KEY).unwrap();
        let (min, max) = our_range(api);
        assert!(R::VERSIONS.min <= min && max <= R::VERSIONS.max, "{api:?} {min} to {max}");
    }

    #[test]
    fn no_version_is_negotiated_that_the_codec_can_not_write() {
        writable(ProduceRequest::default());
        writable(FetchRequest::default());
        writable(ListOffsetsRequest::default());
        writable(MetadataRequest::default());
        writable(ApiVersionsRequest::default());
        writable(FindCoordinatorRequest::default());
        writable(OffsetCommitRequest::default());
        writable(OffsetFetchRequest::default());
        writable(OffsetDeleteRequest::default());
        writable(InitProducerIdRequest::default());
        writable(AddPartitionsToTxnRequest::default());
        writable(AddOffsetsToTxnRequest::default());
        writable(TxnOffsetCommitRequest::default());
        writable(EndTxnRequest::default());
        writable(CreateTopicsRequest::default());
        writable(CreatePartitionsRequest::default());
        writable(DeleteTopicsRequest::default());
        writable(DeleteRecordsRequest::default());
        writable(DescribeConfigsRequest::default());
        writable(IncrementalAlterConfigsRequest::default());
        writable(DescribeAclsRequest::default());
        writable(CreateAclsRequest::default());
        writable(DeleteAclsRequest::default());
        writable(DescribeClusterRequest::default());
        writable(ListGroupsRequest::default());
        writable(DescribeGroupsRequest::default());
        writable(ConsumerGroupDescribeRequest::default());
        writable(ConsumerGroupHeartbeatRequest::default());
        writable(DeleteGroupsRequest::default());
    }

    #[test]
    fn the_highest_common_version_is_spoken() {
        // What 2.7.1 and 4.3.1 answered.
        check(ApiKey::Fetch, Some((0, 12)), Ok(12));
        check(ApiKey::Fetch, Some((4, 18)), Ok(12));
        check(ApiKey::Produce, Some((0, 8)), Ok(8));
        check(ApiKey::Produce, Some((0, 13)), Ok(8));
        check(ApiKey::Metadata, Some((0, 9)), Ok(9));
        check(ApiKey::Metadata, Some((0, 13)), Ok(13));
        check(ApiKey::ListOffsets, Some((1, 11)), Ok(10));
    }

    #[test]
    fn without_a_common_version_the_error_says_who_is_too_old() {
        check(
            ApiKey::Metadata,
            Some((0, 3)),
            Err(
                "broker b:9092 speaks Metadata in versions 0 to 3, this program needs versions 4 to 13; use brokers from Kafka 2.7.1 on",
            ),
        );
        check(
            ApiKey::Produce,
            Some((9, 15)),
            Err(
                "broker b:9092 speaks Produce in versions 9 to 15, this program needs versions 3 to 8; use a newer Tidegate for this broker",
            ),
        );
        check(
            ApiKey::DescribeCluster,
            None,
            Err(
                "broker b:9092 speaks DescribeCluster in no version, this program needs versions 0 to 2; this broker is too old for it",
            ),
        );
    }

    #[test]
    fn a_prebuilt_version_is_checked() {
        let versions = ApiVersions::from_ranges([(ApiKey::Produce, 3, 8)]);
        let address = Arc::from("b:9092");
        assert_eq!(versions.check(&address, ApiKey::Produce, 8), Ok(()));
        let error = versions.check(&address, ApiKey::Produce, 9).unwrap_err();
        assert_eq!(
            error.to_string(),
            "broker b:9092 speaks Produce in versions 3 to 8, this program needs version 9; use brokers from Kafka 2.7.1 on"
        );
        assert!(!error.is_retriable());
    }
}
