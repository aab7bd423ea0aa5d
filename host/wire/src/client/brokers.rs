//! The connections of a client, one per broker that was needed so far.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use crate::backoff::seed_by_chance;
use crate::buffer::BufferPool;
use crate::connection::{Connection, ConnectionOptions};
use crate::error::NodeId;
use crate::metadata::BrokerAddress;

use super::ClientOptions;

#[derive(Debug)]
pub(super) struct Brokers {
    options: Arc<ConnectionOptions>,
    pool: BufferPool,
    runtime: Handle,
    seed: u64,
    connections: Mutex<BTreeMap<NodeId, Connection>>,
}

impl Brokers {
    pub(super) fn new(options: &ClientOptions, runtime: Handle) -> Self {
        Brokers {
            options: Arc::new(options.connection()),
            pool: BufferPool::new(options.pooled_buffer_count_max, options.pooled_buffer_bytes_max),
            runtime,
            seed: options.backoff_seed.unwrap_or_else(seed_by_chance),
            connections: Mutex::default(),
        }
    }

    /// The connection of `node`, which listens at `address`.
    pub(super) fn connection(&self, node: NodeId, address: &BrokerAddress) -> Connection {
        let address = address.to_string();
        let mut connections = self.lock();
        match connections.get(&node) {
            Some(connection) if **connection.address() == *address => connection.clone(),
            _ => {
                let connection = self.start(address.into(), node as u64);
                connections.insert(node, connection.clone());
                connection
            }
        }
    }

    /// A connection of its own, which ends with its handle: for bootstrap servers, whose numbers are not known.
    pub(super) fn passing(&self, address: &BrokerAddress) -> Connection {
        self.start(address.to_string().into(), u64::MAX)
    }

    /// Lets go of brokers that are gone or have moved. Their tasks end once what was sent is answered.
    pub(super) fn retain(&self, brokers: &BTreeMap<NodeId, BrokerAddress>) {
        self.lock().retain(|node, connection| {
            brokers.get(node).is_some_and(|address| *address.to_string() == **connection.address())
        });
    }

    /// How promising a broker is, best first: connected, unknown, failed lately.
    pub(super) fn rank(&self, node: NodeId) -> u8 {
        match self.lock().get(&node) {
            Some(connection) if connection.is_connected() => 0,
            Some(connection) if connection.is_backing_off() => 2,
            _ => 1,
        }
    }

    fn start(&self, address: Arc<str>, salt: u64) -> Connection {
        let seed = self.seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Connection::start(address, Arc::clone(&self.options), self.pool.clone(), seed, &self.runtime)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
