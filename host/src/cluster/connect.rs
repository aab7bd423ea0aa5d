//! From a flow's connection settings to those of a wire client.

use std::time::Duration;

use tidegate_wire::client::ClientOptions;

use crate::config::ConnectionConfig;

/// "Never" for an idle connection: a hundred years, which no clock overflows by.
const NEVER: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Options of a client called `client_id`; what the configuration does not speak of keeps the wire's defaults.
pub fn client_options(
    bootstrap_servers: &[String],
    client_id: &str,
    connection: &ConnectionConfig,
) -> ClientOptions {
    ClientOptions {
        bootstrap_servers: bootstrap_servers.to_vec(),
        client_id: client_id.to_owned(),
        request_timeout: connection.request_timeout,
        metadata_max_age: connection.metadata_max_age,
        reconnect_backoff: connection.reconnect_backoff,
        reconnect_backoff_max: connection.reconnect_backoff_max,
        connections_idle_max: connection.connections_idle_max.unwrap_or(NEVER),
        connection_setup_timeout: connection.connection_setup_timeout,
        send_buffer_bytes: connection.send_buffer_bytes,
        receive_buffer_bytes: connection.receive_buffer_bytes,
        ..ClientOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_kept_where_never_is_said() {
        let idle_max = |connections_idle_max| {
            let connection = ConnectionConfig { connections_idle_max, ..ConnectionConfig::default() };
            client_options(&[], "A->B", &connection).connections_idle_max
        };
        assert_eq!(idle_max(None), NEVER);
        assert_eq!(idle_max(Some(Duration::from_secs(5))), Duration::from_secs(5));
    }
}
