//! Connections between the producer and the brokers: each in order, cut at any moment. What was on a cut connection is
//! lost, or is still read by the broker some time later.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;

use super::super::{CallId, ProduceCall};
use super::broker::Cluster;
use super::dice::Dice;
use crate::error::NodeId;

#[derive(Debug)]
struct Request {
    call: CallId,
    version: i16,
    body: Bytes,
}

#[derive(Debug, Default)]
struct Connection {
    /// Not yet read by the broker.
    requests: VecDeque<Request>,
    /// Read, the answer is on its way.
    answers: VecDeque<(CallId, Bytes)>,
}

#[derive(Debug, Default)]
pub(super) struct Network {
    open: BTreeMap<NodeId, Connection>,
    /// Requests of cut connections that their brokers will still read.
    ghosts: Vec<(NodeId, VecDeque<Request>)>,
    pub(super) cuts: usize,
    pub(super) ghosts_read: usize,
}

impl Network {
    pub(super) fn send(&mut self, call: &ProduceCall) {
        let request = Request { call: call.id, version: call.version, body: call.parts.concat().into() };
        self.open.entry(call.node).or_default().requests.push_back(request);
    }

    pub(super) fn in_flight(&self, node: NodeId) -> usize {
        self.open.get(&node).map_or(0, |c| c.requests.len() + c.answers.len())
    }

    /// A broker reads its next request.
    pub(super) fn broker_reads(
        &mut self,
        node: NodeId,
        cluster: &mut Cluster,
        now: Instant,
        dice: &mut Dice,
    ) {
        let Some(connection) = self.open.get_mut(&node) else { return };
        let Some(request) = connection.requests.pop_front() else { return };
        let answer = cluster.produce(node, &request.body, request.version, now, dice);
        connection.answers.push_back((request.call, answer));
    }

    /// The next answer arrives.
    pub(super) fn answer(&mut self, node: NodeId) -> Option<(CallId, Bytes)> {
        self.open.get_mut(&node)?.answers.pop_front()
    }

    /// The connection is lost; gives the calls that were on it, oldest first.
    pub(super) fn cut(&mut self, node: NodeId, dice: &mut Dice) -> Vec<CallId> {
        let Some(connection) = self.open.remove(&node) else { return Vec::new() };
        let answered = connection.answers.iter().map(|(call, _)| *call);
        let calls: Vec<CallId> = answered.chain(connection.requests.iter().map(|r| r.call)).collect();
        self.cuts += usize::from(!calls.is_empty());
        let mut arrived = connection.requests;
        arrived.truncate(dice.below(arrived.len() + 1));
        self.ghosts.push((node, arrived));
        calls
    }

    /// Nobody reads what was on cut connections.
    pub(super) fn let_ghosts_go(&mut self) {
        self.ghosts.clear();
    }

    /// A broker reads a request of a connection that is long gone; nobody hears its answer.
    pub(super) fn ghost_is_read(&mut self, cluster: &mut Cluster, now: Instant, dice: &mut Dice) {
        self.ghosts.retain(|(_, requests)| !requests.is_empty());
        if self.ghosts.is_empty() {
            return;
        }
        let index = dice.below(self.ghosts.len());
        let (node, requests) = &mut self.ghosts[index];
        if let Some(request) = requests.pop_front() {
            cluster.produce(*node, &request.body, request.version, now, dice);
            self.ghosts_read += 1;
        }
    }
}
