//! From a request's bytes to an answer's bytes: decode, let faults have their say, serve, encode.

mod cluster_info;
mod configs;
mod coordinator;
mod fetch;
mod group_admin;
mod group_membership;
mod group_offsets;
mod list_offsets;
mod metadata;
mod produce;
mod producer_id;
mod topics;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::BytesMut;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};

use crate::call::{Call, Serve};
use crate::connection::{Frame, Reply, framed};
use crate::faults::{Injected, RequestFacts};
use crate::state::Shared;
use crate::versions::SPOKEN;

/// Serves one request.
pub(crate) async fn dispatch(
    shared: &Arc<Shared>,
    node: i32,
    peer: SocketAddr,
    frame: Frame,
) -> anyhow::Result<Reply> {
    let with = Surroundings { shared, node, peer };
    match frame.api {
        ApiKey::Produce => answer::<ProduceRequest>(with, frame).await,
        ApiKey::Fetch => answer::<FetchRequest>(with, frame).await,
        ApiKey::ListOffsets => answer::<ListOffsetsRequest>(with, frame).await,
        ApiKey::Metadata => answer::<MetadataRequest>(with, frame).await,
        ApiKey::OffsetCommit => answer::<OffsetCommitRequest>(with, frame).await,
        ApiKey::OffsetFetch => answer::<OffsetFetchRequest>(with, frame).await,
        ApiKey::FindCoordinator => answer::<FindCoordinatorRequest>(with, frame).await,
        ApiKey::JoinGroup => answer::<JoinGroupRequest>(with, frame).await,
        ApiKey::Heartbeat => answer::<HeartbeatRequest>(with, frame).await,
        ApiKey::LeaveGroup => answer::<LeaveGroupRequest>(with, frame).await,
        ApiKey::SyncGroup => answer::<SyncGroupRequest>(with, frame).await,
        ApiKey::DescribeGroups => answer::<DescribeGroupsRequest>(with, frame).await,
        ApiKey::ListGroups => answer::<ListGroupsRequest>(with, frame).await,
        ApiKey::ApiVersions => answer::<ApiVersionsRequest>(with, frame).await,
        ApiKey::CreateTopics => answer::<CreateTopicsRequest>(with, frame).await,
        ApiKey::DeleteTopics => answer::<DeleteTopicsRequest>(with, frame).await,
        ApiKey::DeleteRecords => answer::<DeleteRecordsRequest>(with, frame).await,
        ApiKey::InitProducerId => answer::<InitProducerIdRequest>(with, frame).await,
        ApiKey::OffsetForLeaderEpoch => answer::<OffsetForLeaderEpochRequest>(with, frame).await,
        ApiKey::DescribeConfigs => answer::<DescribeConfigsRequest>(with, frame).await,
        ApiKey::AlterConfigs => answer::<AlterConfigsRequest>(with, frame).await,
        ApiKey::CreatePartitions => answer::<CreatePartitionsRequest>(with, frame).await,
        ApiKey::DeleteGroups => answer::<DeleteGroupsRequest>(with, frame).await,
        ApiKey::IncrementalAlterConfigs => answer::<IncrementalAlterConfigsRequest>(with, frame).await,
        ApiKey::OffsetDelete => answer::<OffsetDeleteRequest>(with, frame).await,
        ApiKey::DescribeCluster => answer::<DescribeClusterRequest>(with, frame).await,
        other => bail!("{other:?} is not spoken here"),
    }
}

struct Surroundings<'a> {
    shared: &'a Arc<Shared>,
    node: i32,
    peer: SocketAddr,
}

async fn answer<R: Serve>(with: Surroundings<'_>, frame: Frame) -> anyhow::Result<Reply> {
    let Frame { api, version, correlation_id, client_id, mut body } = frame;
    let request = R::decode(&mut body, version)
        .with_context(|| format!("could not read a {api:?} v{version} request"))?;
    let touched = request.touched();
    let facts = RequestFacts { api, node: with.node, client_id: &client_id, touched: &touched };
    let injected = with.shared.faults.decide(&facts);
    if !injected.delay.is_zero() {
        tokio::time::sleep(injected.delay).await;
    }
    move_leaders(with.shared, &injected);
    if injected.cut_before {
        return Ok(Reply::Close);
    }
    let wants_answer = request.wants_answer();
    let call = Call {
        shared: Arc::clone(with.shared),
        node: with.node,
        version,
        client_id,
        client_host: format!("/{}", with.peer.ip()),
        injected,
    };
    let response = request.serve(&call).await;
    if call.injected.cut_after {
        return Ok(Reply::Close);
    }
    if !wants_answer {
        return Ok(if R::must_close(&response) { Reply::Close } else { Reply::Silence });
    }
    match encode(&response, version, correlation_id) {
        Ok(encoded) => cut_short(encoded, &call.injected),
        Err(error) => {
            // A field that this version does not have: our own mistake, never the client's.
            tracing::error!(?api, version, error = format!("{error:#}"), "answer could not be written");
            Ok(Reply::Close)
        }
    }
}

fn move_leaders(shared: &Shared, injected: &Injected) {
    for (touched, to) in &injected.moves {
        let mut state = shared.lock();
        let count = state.topics.get(&touched.topic).map_or(0, |topic| topic.partitions.len());
        let all = 0..i32::try_from(count).unwrap_or(i32::MAX);
        for partition in all.filter(|partition| touched.partition.is_none_or(|wanted| wanted == *partition)) {
            if let Err(refusal) = state.move_leader(&touched.topic, partition, *to) {
                tracing::warn!(topic = touched.topic, partition, ?refusal, "leader not moved");
            }
        }
    }
}

/// An answer's header and body, and where the body begins.
struct Encoded {
    bytes: BytesMut,
    body_start: usize,
}

fn encode<A: Encodable + HeaderVersion>(
    answer: &A,
    version: i16,
    correlation_id: i32,
) -> anyhow::Result<Encoded> {
    let mut bytes = BytesMut::new();
    let header = ResponseHeader::default().with_correlation_id(correlation_id);
    header.encode(&mut bytes, A::header_version(version))?;
    let body_start = bytes.len();
    answer.encode(&mut bytes, version)?;
    Ok(Encoded { bytes, body_start })
}

fn cut_short(mut encoded: Encoded, injected: &Injected) -> anyhow::Result<Reply> {
    if let Some(body_bytes_max) = injected.body_bytes_max {
        encoded.bytes.truncate(encoded.body_start.saturating_add(body_bytes_max));
    }
    let mut frame = framed(&encoded.bytes)?;
    match injected.frame_bytes_max {
        None => Ok(Reply::Frame(frame)),
        Some(frame_bytes_max) => {
            frame.truncate(frame_bytes_max);
            Ok(Reply::LastBytes(frame))
        }
    }
}

/// The answer to an ApiVersions request of a version that is not known: version 0, the error, and the range
/// of ApiVersions itself, so that the client can ask again (KIP-511).
pub(crate) fn unsupported_api_versions(correlation_id: i32) -> anyhow::Result<BytesMut> {
    let own = SPOKEN.iter().filter(|spoken| spoken.api == ApiKey::ApiVersions);
    let answer = ApiVersionsResponse::default()
        .with_error_code(ResponseError::UnsupportedVersion.code())
        .with_api_keys(own.map(api_version).collect());
    framed(&encode(&answer, 0, correlation_id)?.bytes)
}

fn api_version(spoken: &crate::versions::Spoken) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(spoken.api as i16)
        .with_min_version(spoken.min)
        .with_max_version(spoken.max)
}

impl Serve for ApiVersionsRequest {
    async fn serve(self, call: &Call) -> ApiVersionsResponse {
        let error = call.injected(crate::call::Part::Whole).map_or(0, |(error, _)| error.code());
        ApiVersionsResponse::default()
            .with_error_code(error)
            .with_api_keys(SPOKEN.iter().map(api_version).collect())
    }
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
