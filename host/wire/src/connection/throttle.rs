//! How long an answer asks us to be silent (KIP-219): the broker answers at once and mutes the connection; a client that goes on
//! sending only fills its socket. Pure.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

/// More than this is not obeyed: quotas are computed over windows of some 10 s, so a longer wish is a broker's mistake, and
/// requests behind it would all time out.
pub const THROTTLE_MS_MAX: u32 = 60_000;

/// The wait that this answer's `throttle_time_ms` asks for.
pub(crate) fn wait(api: ApiKey, version: i16, body: &Bytes) -> Duration {
    let wished_ms = match place(api, version) {
        Place::First => body.first_chunk::<4>().map_or(0, |field| i32::from_be_bytes(*field)),
        Place::Last => body.last_chunk::<4>().map_or(0, |field| i32::from_be_bytes(*field)),
        Place::Nowhere => 0,
    };
    Duration::from_millis(u64::from(u32::try_from(wished_ms).unwrap_or(0).min(THROTTLE_MS_MAX)))
}

/// Where the field stands in an answer's body.
enum Place {
    First,
    Last,
    Nowhere,
}

/// Nearly all answers begin with the field. Versions from before KIP-219 had their throttling done by the broker before the
/// answer was sent, so their field asks for nothing.
fn place(api: ApiKey, version: i16) -> Place {
    let obeyed_from = match api {
        // The answer to Produce ends with it up to version 8; flexible versions put a byte behind it.
        ApiKey::Produce => return if (6..=8).contains(&version) { Place::Last } else { Place::Nowhere },
        ApiKey::Fetch => 8,
        ApiKey::Metadata => 6,
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => 4,
        ApiKey::ListOffsets | ApiKey::JoinGroup | ApiKey::CreateTopics => 3,
        ApiKey::FindCoordinator
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::SyncGroup
        | ApiKey::DescribeGroups
        | ApiKey::ListGroups
        | ApiKey::DeleteTopics
        | ApiKey::DescribeConfigs => 2,
        ApiKey::DeleteRecords
        | ApiKey::InitProducerId
        | ApiKey::AddPartitionsToTxn
        | ApiKey::AddOffsetsToTxn
        | ApiKey::EndTxn
        | ApiKey::TxnOffsetCommit
        | ApiKey::DescribeAcls
        | ApiKey::CreateAcls
        | ApiKey::DeleteAcls
        | ApiKey::AlterConfigs
        | ApiKey::CreatePartitions
        | ApiKey::DescribeLogDirs
        | ApiKey::DeleteGroups => 1,
        ApiKey::IncrementalAlterConfigs
        | ApiKey::ElectLeaders
        | ApiKey::AlterPartitionReassignments
        | ApiKey::ListPartitionReassignments
        | ApiKey::DescribeClientQuotas
        | ApiKey::AlterClientQuotas
        | ApiKey::DescribeUserScramCredentials
        | ApiKey::AlterUserScramCredentials
        | ApiKey::DescribeCluster
        | ApiKey::DescribeProducers
        | ApiKey::DescribeTransactions
        | ApiKey::ListTransactions
        | ApiKey::ConsumerGroupHeartbeat
        | ApiKey::ConsumerGroupDescribe
        | ApiKey::DescribeTopicPartitions => 0,
        _ => return Place::Nowhere,
    };
    if version >= obeyed_from { Place::First } else { Place::Nowhere }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::{CreateTopicsResponse, FetchResponse, MetadataResponse, ProduceResponse};
    use kafka_protocol::protocol::Encodable;

    use super::*;

    fn check(api: ApiKey, version: i16, answer: &impl Encodable, wanted_ms: u64) {
        let mut body = Vec::new();
        answer.encode(&mut body, version).unwrap();
        assert_eq!(wait(api, version, &body.into()), Duration::from_millis(wanted_ms), "{api:?} {version}");
    }

    #[test]
    fn the_wish_is_found_in_every_version_that_means_it() {
        for version in 4..=12 {
            let answer = FetchResponse::default().with_throttle_time_ms(1234);
            check(ApiKey::Fetch, version, &answer, if version >= 8 { 1234 } else { 0 });
        }
        for version in 3..=8 {
            let answer = ProduceResponse::default().with_throttle_time_ms(77);
            check(ApiKey::Produce, version, &answer, if version >= 6 { 77 } else { 0 });
        }
        check(ApiKey::Metadata, 12, &MetadataResponse::default().with_throttle_time_ms(5), 5);
        check(ApiKey::CreateTopics, 7, &CreateTopicsResponse::default().with_throttle_time_ms(5), 5);
    }

    #[test]
    fn the_wish_is_bounded_and_never_negative() {
        for (wished, obeyed) in [(i32::MAX, THROTTLE_MS_MAX as u64), (-1, 0), (i32::MIN, 0)] {
            check(ApiKey::Fetch, 12, &FetchResponse::default().with_throttle_time_ms(wished), obeyed);
        }
        assert_eq!(wait(ApiKey::Fetch, 12, &Bytes::from_static(b"abc")), Duration::ZERO);
    }
}
