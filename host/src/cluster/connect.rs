//! From a flow's connection settings to those of a wire client.

use tidegate_wire::client::ClientOptions;

use crate::config::ConnectionConfig;

/// Options of a client called `client_id`; what the configuration does not speak of keeps the wire's defaults.
pub fn client_options(
    bootstrap_servers: &[String],
    client_id: &str,
    connection: &ConnectionConfig,
) -> ClientOptions {
    let defaults = ClientOptions::default();
    ClientOptions {
        bootstrap_servers: bootstrap_servers.to_vec(),
        client_id: client_id.to_owned(),
        request_timeout: connection.request_timeout,
        metadata_max_age: connection.metadata_max_age,
        reconnect_backoff: connection.reconnect_backoff,
        reconnect_backoff_max: connection.reconnect_backoff_max,
        connections_idle_max: connection.connections_idle_max.unwrap_or(defaults.connections_idle_max),
        connection_setup_timeout: connection.connection_setup_timeout,
        send_buffer_bytes: connection.send_buffer_bytes,
        receive_buffer_bytes: connection.receive_buffer_bytes,
        ..defaults
    }
}
