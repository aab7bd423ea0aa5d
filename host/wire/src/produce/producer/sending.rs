//! How a request comes about: a round over the lanes of a broker, then its bytes.

use std::time::Instant;

use bytes::Bytes;

use super::super::lane::Turn;
use super::super::request::{
    PARTITION_OVERHEAD_BYTES, REQUEST_OVERHEAD_BYTES, RequestBatch, TOPIC_OVERHEAD_BYTES, encode_request,
};
use super::{BatchSource, Call, CallBatch, CallId, Lane, ProduceCall, Producer};
use crate::batch::{HEADER_BYTES, ProducerFields, produce_header};
use crate::error::NodeId;

/// One lane's turn in a request that is being built.
struct Pick {
    id: CallId,
    lane: Lane,
    node: NodeId,
    now: Instant,
    room_bytes: usize,
    is_first: bool,
}

impl Producer {
    /// The next request for `node`, with at most one batch of each lane; `None` if there is no room or nothing to send.
    /// Requests must be written to a broker in the order in which they come from here, over one connection at a time.
    pub fn next_request(
        &mut self,
        node: NodeId,
        now: Instant,
        source: &mut dyn BatchSource,
    ) -> Option<ProduceCall> {
        let state = self.nodes.get_mut(&node).filter(|n| n.in_flight < self.options.in_flight_max)?;
        let (lanes, start) = (std::mem::take(&mut state.lanes), state.start);
        let id = CallId(self.next_call);
        let mut batches = Vec::new();
        let first_served = self.pick_all(id, node, now, (&lanes, start), source, &mut batches);
        let state = self.nodes.get_mut(&node)?;
        state.lanes = lanes;
        // The lane behind the first one comes first next time: so each lane is the first at some time, also one
        // whose batches fit into no request beside others.
        state.start = first_served? + 1;
        state.in_flight += 1;
        self.next_call += 1;
        Some(self.assemble(id, node, batches))
    }

    /// Goes once round the lanes of a broker until the request is full; gives the place of the first that takes part.
    fn pick_all(
        &mut self,
        id: CallId,
        node: NodeId,
        now: Instant,
        (lanes, start): (&[Lane], usize),
        source: &mut dyn BatchSource,
        batches: &mut Vec<CallBatch>,
    ) -> Option<usize> {
        let mut first_served = None;
        let mut room_bytes = self.options.request_bytes_max.saturating_sub(REQUEST_OVERHEAD_BYTES);
        for index in (0..lanes.len()).map(|step| (start + step) % lanes.len()) {
            let pick =
                Pick { id, lane: lanes[index], node, now, room_bytes, is_first: first_served.is_none() };
            let Some(used_bytes) = self.pick(pick, source, batches) else { continue };
            first_served.get_or_insert(index);
            room_bytes = room_bytes.saturating_sub(used_bytes);
            if room_bytes <= HEADER_BYTES + PARTITION_OVERHEAD_BYTES {
                break;
            }
        }
        first_served
    }

    /// Lets one lane put a batch into the request; gives the bytes that it takes there.
    fn pick(
        &mut self,
        pick: Pick,
        source: &mut dyn BatchSource,
        batches: &mut Vec<CallBatch>,
    ) -> Option<usize> {
        let state = self.lanes.get_mut(pick.lane.0)?.as_mut()?;
        let name_bytes = self.topics[state.topic].len();
        let overhead_bytes = PARTITION_OVERHEAD_BYTES + TOPIC_OVERHEAD_BYTES + name_bytes;
        let batch_bytes_max = pick.room_bytes.saturating_sub(overhead_bytes);
        let index = match state.turn(pick.node, pick.now) {
            Turn::Nothing => return None,
            Turn::Send(index) => index,
            Turn::TakeNew => state.push(source.next(pick.lane, batch_bytes_max)?),
        };
        let batch_bytes = state.batch_bytes(index);
        if batch_bytes > batch_bytes_max && !pick.is_first {
            return None;
        }
        let sent = state.send(index, pick.id, pick.node, pick.now);
        let fields = ProducerFields {
            producer_id: sent.identity.id,
            producer_epoch: sent.identity.epoch,
            base_sequence: sent.sequence,
        };
        let header = produce_header(&sent.batch.header, fields);
        let payload = sent.batch.payload.clone();
        let (topic, partition) = (state.topic, state.partition);
        self.picked.push(RequestBatch { topic, partition, header, payload });
        batches.push(CallBatch { topic, partition, lane: pick.lane, is_answered: false });
        Some(overhead_bytes + batch_bytes)
    }

    fn assemble(&mut self, id: CallId, node: NodeId, mut batches: Vec<CallBatch>) -> ProduceCall {
        self.picked.sort_unstable_by_key(|batch| (batch.topic, batch.partition));
        batches.sort_unstable_by_key(|batch| (batch.topic, batch.partition));
        let topics = &self.topics;
        let parts = encode_request(self.options.acks_timeout_ms, &self.picked, |topic| &topics[topic]);
        self.picked.clear();
        let version = self.options.version;
        let call = ProduceCall {
            id,
            node,
            version,
            batches: batches.len(),
            bytes: parts.iter().map(Bytes::len).sum(),
            parts,
        };
        self.calls.push(Call { id, node, version, batches });
        call
    }
}
