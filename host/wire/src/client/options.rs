//! Settings of a client; each is one of Kafka's own.

use std::time::Duration;

use crate::connection::ConnectionOptions;
use crate::error::WireError;
use crate::metadata::BrokerAddress;
use crate::transport::TransportOptions;

/// How to find and speak with a cluster. The defaults are Kafka's, unless said otherwise.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// host:port of some brokers (`bootstrap.servers`); tried in this order.
    pub bootstrap_servers: Vec<String>,
    /// Name in the brokers' logs, quotas and metrics (`client.id`).
    pub client_id: String,
    /// Bound on one answer (`request.timeout.ms`), 30 s. After it the connection is closed.
    pub request_timeout: Duration,
    /// When metadata counts as old (`metadata.max.age.ms`), 5 min. Nothing is refreshed by itself.
    pub metadata_max_age: Duration,
    /// First wait before a broker is connected to again (`reconnect.backoff.ms`), 50 ms.
    pub reconnect_backoff: Duration,
    /// What it doubles up to (`reconnect.backoff.max.ms`), 1 s.
    pub reconnect_backoff_max: Duration,
    /// Idle connections are closed after this (`connections.max.idle.ms`), 9 min: before the broker's 10.
    pub connections_idle_max: Duration,
    /// Bound on connecting (`socket.connection.setup.timeout.ms`), 10 s.
    pub connection_setup_timeout: Duration,
    /// Written and not answered requests per connection (`max.in.flight.requests.per.connection`), 5: what the broker remembers of an
    /// idempotent producer.
    pub in_flight_max: usize,
    /// The socket's send buffer (`send.buffer.bytes`). None leaves it to the system's tuning, which Kafka's fixed 128 KiB would
    /// switch off.
    pub send_buffer_bytes: Option<usize>,
    /// The socket's receive buffer (`receive.buffer.bytes`); none as above.
    pub receive_buffer_bytes: Option<usize>,
    /// Larger answers are malformed, 256 MiB. Above the 50 MiB of `fetch.max.bytes` by far, since a first batch may exceed
    /// that.
    pub response_bytes_max: usize,
    /// Idle answer buffers that are kept for their next use, 16.
    pub pooled_buffer_count_max: usize,
    /// Their bytes together, 32 MiB.
    pub pooled_buffer_bytes_max: usize,
    /// Decides the jitter of reconnects; none takes one by chance.
    pub backoff_seed: Option<u64>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            bootstrap_servers: Vec::new(),
            client_id: "tidegate".to_owned(),
            request_timeout: Duration::from_secs(30),
            metadata_max_age: Duration::from_secs(300),
            reconnect_backoff: Duration::from_millis(50),
            reconnect_backoff_max: Duration::from_secs(1),
            connections_idle_max: Duration::from_secs(540),
            connection_setup_timeout: Duration::from_secs(10),
            in_flight_max: 5,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            response_bytes_max: 256 * 1024 * 1024,
            pooled_buffer_count_max: 16,
            pooled_buffer_bytes_max: 32 * 1024 * 1024,
            backoff_seed: None,
        }
    }
}

impl ClientOptions {
    /// The bootstrap servers, read. An entry may itself hold several, separated by commas.
    pub(super) fn bootstrap(&self) -> Result<Vec<BrokerAddress>, WireError> {
        let entries = self.bootstrap_servers.iter().flat_map(|entry| entry.split(','));
        let written = entries.map(str::trim).filter(|entry| !entry.is_empty());
        let addresses = written.map(BrokerAddress::parse).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() {
            let reason = "there is none".to_owned();
            return Err(WireError::Address { text: String::new(), reason });
        }
        Ok(addresses)
    }

    pub(super) fn connection(&self) -> ConnectionOptions {
        ConnectionOptions {
            client_id: self.client_id.clone(),
            request_timeout: self.request_timeout,
            reconnect_backoff: self.reconnect_backoff,
            reconnect_backoff_max: self.reconnect_backoff_max,
            connections_idle_max: self.connections_idle_max,
            in_flight_max: self.in_flight_max,
            response_bytes_max: self.response_bytes_max,
            transport: TransportOptions {
                connection_setup_timeout: self.connection_setup_timeout,
                send_buffer_bytes: self.send_buffer_bytes,
                receive_buffer_bytes: self.receive_buffer_bytes,
            },
        }
    }
}
