//! The byte stream to a broker: plain TCP today. TLS is a second variant of [`Transport`], made in `Transport::secure`;
//! SASL is an exchange of frames in `connection::handshake`, between ApiVersions and the first request. Nothing else
//! knows what carries the bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};

use crate::error::WireError;

/// What reads answers.
pub type ReadHalf = OwnedReadHalf;
/// What writes requests.
pub type WriteHalf = OwnedWriteHalf;

/// A name with more addresses than this is tried only so far.
const RESOLVED_ADDRESSES_MAX: usize = 8;

/// How to connect.
#[derive(Debug, Clone)]
pub struct TransportOptions {
    /// Bound on resolving, connecting and securing together (Kafka's `socket.connection.setup.timeout.ms`).
    pub connection_setup_timeout: Duration,
    /// The socket's send buffer (`send.buffer.bytes`); none leaves it to the system.
    pub send_buffer_bytes: Option<usize>,
    /// The socket's receive buffer (`receive.buffer.bytes`); none leaves it to the system.
    pub receive_buffer_bytes: Option<usize>,
}

/// An open byte stream to a broker.
#[derive(Debug)]
pub enum Transport {
    /// TCP as it is.
    Plain(TcpStream),
}

impl Transport {
    /// Connects to `address` (host:port), trying every address that the name has, in time or not at all.
    pub async fn open(address: &Arc<str>, options: &TransportOptions) -> Result<Transport, WireError> {
        let unreachable = |reason: String| WireError::Unreachable { address: Arc::clone(address), reason };
        let opening = async {
            let stream = connect_any(address, options).await?;
            Transport::secure(stream, address).await
        };
        match tokio::time::timeout(options.connection_setup_timeout, opening).await {
            Ok(opened) => opened.map_err(|error| unreachable(error.to_string())),
            Err(_) => {
                let timeout_ms = options.connection_setup_timeout.as_millis();
                Err(unreachable(format!("no connection within {timeout_ms} ms")))
            }
        }
    }

    /// Where the TLS handshake belongs: the stream is connected and nothing of Kafka has been said.
    async fn secure(stream: TcpStream, _address: &str) -> io::Result<Transport> {
        Ok(Transport::Plain(stream))
    }

    /// Both directions, to be used at the same time.
    pub fn split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Transport::Plain(stream) => stream.into_split(),
        }
    }
}

async fn connect_any(address: &str, options: &TransportOptions) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for resolved in tokio::net::lookup_host(address).await?.take(RESOLVED_ADDRESSES_MAX) {
        match connect_one(resolved, options).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn connect_one(resolved: SocketAddr, options: &TransportOptions) -> io::Result<TcpStream> {
    let socket = if resolved.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Buffers must be set before connecting: the TCP window's scale is fixed by the handshake.
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(u32::try_from(bytes).unwrap_or(u32::MAX))?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        socket.set_recv_buffer_size(u32::try_from(bytes).unwrap_or(u32::MAX))?;
    }
    let stream = socket.connect(resolved).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
