//! A Produce request (versions 3 to 8, whose bytes are the same) as pieces for one vectored write: what we write is
//! joined into as few pieces as possible, payloads are slices of what was received and are never copied.

use bytes::{BufMut, Bytes, BytesMut};

use crate::batch::HEADER_BYTES;

/// Wait for all in-sync replicas; an idempotent producer must.
const ACKS_ALL: i16 = -1;
/// Transactional id (null), acks, timeout, count of topics.
pub(super) const REQUEST_OVERHEAD_BYTES: usize = 2 + 2 + 4 + 4;
/// Length of the name, count of partitions; the name comes on top.
pub(super) const TOPIC_OVERHEAD_BYTES: usize = 2 + 4;
/// Partition, length of the records.
pub(super) const PARTITION_OVERHEAD_BYTES: usize = 4 + 4;

/// One batch of a request.
#[derive(Debug)]
pub(super) struct RequestBatch {
    /// Which topic; batches of a topic must stand together.
    pub(super) topic: usize,
    /// Its partition.
    pub(super) partition: i32,
    /// The patched header.
    pub(super) header: [u8; HEADER_BYTES],
    /// What follows the header.
    pub(super) payload: Bytes,
}

/// Encodes the body of a request. `topic_name` gives the name of a batch's topic. An empty payload is allowed and joins
/// its neighbours' pieces.
pub(super) fn encode_request<'n>(
    acks_timeout_ms: i32,
    batches: &[RequestBatch],
    topic_name: impl Fn(usize) -> &'n str,
) -> Vec<Bytes> {
    let mut pieces = BytesMut::with_capacity(small_bytes(batches, &topic_name));
    let mut parts = Vec::with_capacity(2 * batches.len() + 1);
    pieces.put_i16(-1); // transactional id: null
    pieces.put_i16(ACKS_ALL);
    pieces.put_i32(acks_timeout_ms);
    let topics = || batches.chunk_by(|a, b| a.topic == b.topic);
    pieces.put_i32(count(topics().count()));
    for topic in topics() {
        put_name(&mut pieces, topic_name(topic[0].topic));
        pieces.put_i32(count(topic.len()));
        for batch in topic {
            pieces.put_i32(batch.partition);
            pieces.put_i32(count(HEADER_BYTES + batch.payload.len()));
            pieces.put_slice(&batch.header);
            if !batch.payload.is_empty() {
                parts.push(pieces.split().freeze());
                parts.push(batch.payload.clone());
            }
        }
    }
    if !pieces.is_empty() {
        parts.push(pieces.freeze());
    }
    parts
}

/// Bytes of everything but the payloads.
fn small_bytes<'n>(batches: &[RequestBatch], topic_name: impl Fn(usize) -> &'n str) -> usize {
    let topics = batches.chunk_by(|a, b| a.topic == b.topic);
    let names: usize = topics.map(|topic| TOPIC_OVERHEAD_BYTES + topic_name(topic[0].topic).len()).sum();
    REQUEST_OVERHEAD_BYTES + names + batches.len() * (PARTITION_OVERHEAD_BYTES + HEADER_BYTES)
}

/// Topic names have at most 249 bytes; a longer one could exist on no broker, and is cut so that the frame stays sound
/// and the broker says UNKNOWN_TOPIC_OR_PARTITION.
fn put_name(pieces: &mut BytesMut, name: &str) {
    let bytes = &name.as_bytes()[..name.len().min(i16::MAX as usize)];
    pieces.put_i16(bytes.len() as i16);
    pieces.put_slice(bytes);
}

/// A count or length as Kafka writes it. A frame of 2 GiB can't be sent anyway, the connection refuses it.
fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::ProduceRequest;
    use kafka_protocol::protocol::Decodable;

    const NAMES: [&str; 2] = ["orders", "payments"];

    fn batch(topic: usize, partition: i32, fill: u8, payload_bytes: usize) -> RequestBatch {
        let payload = Bytes::from(vec![fill; payload_bytes]);
        RequestBatch { topic, partition, header: [fill; HEADER_BYTES], payload }
    }

    fn joined(parts: &[Bytes]) -> Bytes {
        parts.concat().into()
    }

    #[test]
    fn the_request_reads_back_in_every_version() {
        let batches = [batch(0, 3, 1, 100), batch(0, 4, 2, 5), batch(1, 0, 3, 70_000)];
        let parts = encode_request(1234, &batches, |topic| NAMES[topic]);
        for version in 3..=8 {
            let mut body = joined(&parts);
            let request = ProduceRequest::decode(&mut body, version).unwrap();
            assert!(body.is_empty(), "version {version}");
            assert_eq!((request.acks, request.timeout_ms, request.transactional_id), (-1, 1234, None));
            let found: Vec<(String, i32, Bytes)> = request
                .topic_data
                .iter()
                .flat_map(|topic| {
                    topic.partition_data.iter().map(|data| {
                        (topic.name.to_string(), data.index, data.records.clone().unwrap_or_default())
                    })
                })
                .collect();
            let sent: Vec<(String, i32, Bytes)> = batches
                .iter()
                .map(|batch| {
                    let records = [&batch.header[..], &batch.payload[..]].concat();
                    (NAMES[batch.topic].to_owned(), batch.partition, records.into())
                })
                .collect();
            assert_eq!(found, sent);
            assert_eq!(request.topic_data.len(), 2);
        }
    }

    #[test]
    fn payloads_are_not_copied_and_small_pieces_are_joined() {
        let batches = [batch(0, 0, 1, 10), batch(0, 1, 2, 0), batch(1, 0, 3, 10)];
        let parts = encode_request(1, &batches, |topic| NAMES[topic]);
        assert_eq!(parts.len(), 4);
        assert_eq!(parts[1].as_ptr(), batches[0].payload.as_ptr());
        assert_eq!(parts[3].as_ptr(), batches[2].payload.as_ptr());
    }

    #[test]
    fn the_pieces_take_exactly_the_room_that_was_reserved() {
        let batches = [batch(0, 0, 1, 10), batch(1, 1, 2, 20)];
        let parts = encode_request(1, &batches, |topic| NAMES[topic]);
        let bytes: usize = parts.iter().map(Bytes::len).sum();
        assert_eq!(bytes, small_bytes(&batches, |topic| NAMES[topic]) + 30);
    }
}
