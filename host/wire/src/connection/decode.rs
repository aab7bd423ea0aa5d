//! Reads an answer that may be anything. The codec takes an array's length from the wire and allocates for it before it reads the
//! first element, so a broken length of 2 GiB elements would abort the process. Here the codec reads through [`Checked`], which lets
//! no length pass that is larger than the bytes which are left; the error says at which byte.

use bytes::{Buf, Bytes, TryGetError};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::buf::{ByteBuf, NotEnoughBytesError};
use kafka_protocol::protocol::{Decodable, HeaderVersion, Message};

use crate::error::WireError;

use super::request::Answer;

/// A length below this never hurts, and fields that are no lengths have such values all the time.
const LENGTH_ALWAYS_TAKEN: i32 = 4096;
/// A varint of the protocol has at most so many bytes.
const VARINT_BYTES_MAX: usize = 5;

/// Decodes the body of an answer to `api`.
pub(crate) fn decode_answer<R: Decodable + Message + HeaderVersion>(
    api: ApiKey,
    answer: &Answer,
) -> Result<R, WireError> {
    let flexible = R::header_version(answer.version) >= 1;
    // Lengths are 32-bit integers like any other in versions without varints. A first reading with every suspicious
    // integer cut to one more than what is left fails at a broken length and nowhere else, since no other field decides
    // what comes next.
    if !flexible {
        decode_checked::<R>(api, answer, true)?;
    }
    decode_checked(api, answer, false)
}

fn decode_checked<R: Decodable>(api: ApiKey, answer: &Answer, cut: bool) -> Result<R, WireError> {
    let mut checked = Checked { rest: answer.body.clone(), cut, broken_length: None };
    let decoded = R::decode(&mut checked, answer.version);
    let position = answer.body.len() - checked.rest.len();
    decoded.map_err(|error| {
        let reason = match checked.broken_length {
            Some(length) => format!("a length of {length} is more than the answer has bytes"),
            None => error.to_string().trim_end().to_owned(),
        };
        malformed(api, answer, position, reason)
    })
}

/// The error for what stands at `position` of this answer.
pub(crate) fn malformed(api: ApiKey, answer: &Answer, position: usize, reason: String) -> WireError {
    WireError::Malformed { address: answer.address.clone(), api, position, reason }
}

struct Checked {
    rest: Bytes,
    /// Whether 32-bit integers that can't be lengths are cut to one that fails.
    cut: bool,
    broken_length: Option<i64>,
}

impl Checked {
    /// The length that a varint beginning here would mean, if nothing can be that long. Tag numbers and flags are small, so
    /// whatever takes several bytes and exceeds what is left is broken; the end of a sound varint is sound as well, so
    /// it does no harm to look at every byte.
    fn broken_varint(&self) -> Option<i64> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                // Compact lengths are written plus one.
                return (index > 0 && value > self.rest.len() as u64 + 1).then_some(value as i64 - 1);
            }
        }
        (value > self.rest.len() as u64 + 1).then_some(value as i64 - 1)
    }
}

impl Buf for Checked {
    fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.rest
    }

    fn advance(&mut self, count: usize) {
        self.rest.advance(count);
    }

    fn try_get_u8(&mut self) -> Result<u8, TryGetError> {
        if let Some(length) = self.broken_varint() {
            self.broken_length = Some(length);
            return Err(TryGetError { requested: length as usize, available: self.rest.len() });
        }
        self.rest.try_get_u8()
    }

    fn try_get_i32(&mut self) -> Result<i32, TryGetError> {
        let value = self.rest.try_get_i32()?;
        let left = i32::try_from(self.rest.len()).unwrap_or(i32::MAX);
        if self.cut && value > left && value > LENGTH_ALWAYS_TAKEN {
            return Ok(left.saturating_add(1));
        }
        Ok(value)
    }
}

impl ByteBuf for Checked {
    fn peek_bytes(&mut self, range: std::ops::Range<usize>) -> Bytes {
        self.rest.slice(range)
    }

    fn get_bytes(&mut self, size: usize) -> Bytes {
        self.rest.split_to(size)
    }

    fn try_get_bytes(&mut self, size: usize) -> Result<Bytes, NotEnoughBytesError> {
        if size > self.rest.len() {
            return Err(NotEnoughBytesError);
        }
        Ok(self.rest.split_to(size))
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::find_coordinator_response::Coordinator;
    use kafka_protocol::messages::list_offsets_response::{
        ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
    };
    use kafka_protocol::messages::metadata_response::{
        MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    };
    use kafka_protocol::messages::{
        ApiVersionsResponse, BrokerId, FindCoordinatorResponse, ListOffsetsResponse, MetadataResponse,
        TopicName,
    };
    use kafka_protocol::protocol::{Encodable, StrBytes};
    use proptest::prelude::*;

    use super::*;
    use crate::connection::stub;

    fn answer(body: Vec<u8>, version: i16) -> Answer {
        Answer { address: "b:9092".into(), version, body: body.into() }
    }

    fn metadata() -> MetadataResponse {
        let partition = MetadataResponsePartition::default()
            .with_leader_id(BrokerId(7_000_000))
            .with_replica_nodes(vec![BrokerId(1), BrokerId(2), BrokerId(3)]);
        let topic = MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_static_str("orders"))))
            .with_partitions(vec![partition.clone(), partition]);
        let broker = MetadataResponseBroker::default()
            .with_node_id(BrokerId(i32::MAX))
            .with_host(StrBytes::from_static_str("b"))
            .with_port(65535);
        MetadataResponse::default().with_brokers(vec![broker]).with_topics(vec![topic.clone(), topic])
    }

    fn list_offsets() -> ListOffsetsResponse {
        let partition = ListOffsetsPartitionResponse::default().with_offset(i64::MAX);
        let topic = ListOffsetsTopicResponse::default()
            .with_name(TopicName(StrBytes::from_static_str("orders")))
            .with_partitions(vec![partition; 3]);
        ListOffsetsResponse::default().with_topics(vec![topic])
    }

    fn coordinators() -> FindCoordinatorResponse {
        let found = Coordinator::default().with_host(StrBytes::from_static_str("b"));
        FindCoordinatorResponse::default().with_coordinators(vec![found])
    }

    /// Body, version and how it is decoded, for each answer and version.
    type Case = (Vec<u8>, i16, fn(ApiKey, &Answer) -> Result<(), WireError>);

    fn cases() -> Vec<Case> {
        fn decode<R: Decodable + Message + HeaderVersion>(
            api: ApiKey,
            answer: &Answer,
        ) -> Result<(), WireError> {
            decode_answer::<R>(api, answer).map(drop)
        }
        fn encoded(answer: &impl Encodable, version: i16) -> Vec<u8> {
            stub::body(answer, version)
        }
        let mut cases: Vec<Case> = Vec::new();
        for version in 4..=12 {
            cases.push((encoded(&metadata(), version), version, decode::<MetadataResponse>));
        }
        for version in 1..=10 {
            cases.push((encoded(&list_offsets(), version), version, decode::<ListOffsetsResponse>));
        }
        for version in 4..=6 {
            cases.push((encoded(&coordinators(), version), version, decode::<FindCoordinatorResponse>));
        }
        for version in 0..=4 {
            cases.push((encoded(&stub::all_versions(), version), version, decode::<ApiVersionsResponse>));
        }
        cases
    }

    #[test]
    fn sound_answers_are_read_whatever_their_numbers() {
        let mut wanted = metadata();
        for version in 5..=12 {
            let body = stub::body(&metadata(), version);
            if version < 8 {
                wanted.cluster_authorized_operations = i32::MIN;
            }
            let read: MetadataResponse = decode_answer(ApiKey::Metadata, &answer(body, version)).unwrap();
            assert_eq!((read.brokers, read.topics.len()), (wanted.brokers.clone(), 2), "version {version}");
        }
        for (body, version, decode) in cases() {
            decode(ApiKey::Metadata, &answer(body, version)).unwrap();
        }
    }

    #[test]
    fn a_length_that_nothing_can_have_takes_no_memory() {
        let mut old = stub::body(&list_offsets(), 1);
        old[0..4].copy_from_slice(&i32::MAX.to_be_bytes());
        let error = decode_answer::<ListOffsetsResponse>(ApiKey::ListOffsets, &answer(old, 1));
        assert!(matches!(error, Err(WireError::Malformed { .. })), "{error:?}");
        // Throttle time, then the list's length as a varint.
        let flexible = vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3];
        let error = decode_answer::<ListOffsetsResponse>(ApiKey::ListOffsets, &answer(flexible, 6));
        assert_eq!(
            error.unwrap_err().to_string(),
            "answer of broker b:9092 to ListOffsets is malformed at byte 4: a length of 4294967294 is more than the answer has bytes; see that this address is a Kafka broker's"
        );
    }

    #[test]
    fn an_answer_cut_anywhere_is_an_error() {
        for (body, version, decode) in cases() {
            for length in 0..body.len() {
                let cut = decode(ApiKey::Metadata, &answer(body[..length].to_vec(), version));
                assert!(matches!(cut, Err(WireError::Malformed { .. })), "version {version}, {length} bytes");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_changed_answer_never_panics(
            case in 0..cases().len(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            long in prop::option::of((any::<prop::sample::Index>(), any::<i32>())),
        ) {
            let (mut body, version, decode) = cases().swap_remove(case);
            for (index, byte) in changes {
                let index = index.index(body.len());
                body[index] = byte;
            }
            if let Some((index, number)) = long {
                let index = index.index(body.len().saturating_sub(4).max(1));
                let end = body.len().min(index + 4);
                body[index..end].copy_from_slice(&number.to_be_bytes()[..end - index]);
            }
            let _ = decode(ApiKey::Metadata, &answer(body, version));
        }
    }
}
