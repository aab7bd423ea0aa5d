//! One client connection: frames in, frames out, strictly one request after the other. A real broker does the
//! same (it mutes a connection until the answer is written), so answers come in the order of the requests,
//! and a waiting fetch holds up what comes behind it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader};
use kafka_protocol::protocol::Decodable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api;
use crate::state::Shared;
use crate::versions;

/// Largest request (`socket.request.max.bytes`, Kafka's default).
pub(crate) const REQUEST_BYTES_MAX: usize = 100 << 20;
/// Read into the frame buffer at a time, so that a lying length allocates nothing by itself.
const READ_STEP_BYTES: usize = 64 << 10;

/// A request whose header has been read.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) client_id: String,
    pub(crate) body: Bytes,
}

/// What to do with the connection after a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Send this frame (length field included) and go on.
    Frame(BytesMut),
    /// Send this much and hang up.
    LastBytes(BytesMut),
    /// Nothing to send; go on.
    Silence,
    /// Hang up.
    Close,
}

/// Serves a connection until the client leaves, sends nonsense, or a fault cuts it.
pub(crate) async fn run(shared: Arc<Shared>, node: i32, mut stream: TcpStream, peer: SocketAddr) {
    if let Err(error) = serve(&shared, node, &mut stream, peer).await {
        tracing::debug!(node, %peer, error = format!("{error:#}"), "connection closed by the broker");
    }
}

async fn serve(
    shared: &Arc<Shared>,
    node: i32,
    stream: &mut TcpStream,
    peer: SocketAddr,
) -> anyhow::Result<()> {
    stream.set_nodelay(true).context("could not set TCP_NODELAY")?;
    let mut buffer = BytesMut::new();
    while let Some(request) = read_frame(stream, &mut buffer).await? {
        let reply = match parse(request)? {
            Parsed::Request(frame) => api::dispatch(shared, node, peer, frame).await?,
            Parsed::ApiVersionsTooNew { correlation_id } => {
                Reply::Frame(api::unsupported_api_versions(correlation_id)?)
            }
        };
        match reply {
            Reply::Frame(bytes) => stream.write_all(&bytes).await.context("could not write an answer")?,
            Reply::LastBytes(bytes) => {
                stream.write_all(&bytes).await.context("could not write a cut answer")?;
                return Ok(());
            }
            Reply::Silence => {}
            Reply::Close => return Ok(()),
        }
    }
    Ok(())
}

/// The next request without its length field; `None` at a clean end.
async fn read_frame(stream: &mut TcpStream, buffer: &mut BytesMut) -> anyhow::Result<Option<Bytes>> {
    let length = loop {
        if let Some(mut head) = buffer.get(..4) {
            break head.get_i32();
        }
        if !read_more(stream, buffer).await? {
            return if buffer.is_empty() { Ok(None) } else { bail!("end of stream in a request's length") };
        }
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= REQUEST_BYTES_MAX);
    let Some(length) = length else { bail!("request length is not within 0..={REQUEST_BYTES_MAX} bytes") };
    while buffer.len() < 4 + length {
        if !read_more(stream, buffer).await? {
            bail!("end of stream within a request: {} of {length} bytes", buffer.len() - 4);
        }
    }
    buffer.advance(4);
    Ok(Some(buffer.split_to(length).freeze()))
}

async fn read_more(stream: &mut TcpStream, buffer: &mut BytesMut) -> anyhow::Result<bool> {
    buffer.reserve(READ_STEP_BYTES);
    Ok(stream.read_buf(buffer).await.context("could not read a request")? > 0)
}

enum Parsed {
    Request(Frame),
    /// KIP-511: an ApiVersions request of an unknown version gets an answer in version 0.
    ApiVersionsTooNew {
        correlation_id: i32,
    },
}

/// Reads a request's header. Like a real broker, refuses unknown APIs and versions by hanging up: there is no
/// format in which an error could be sent.
fn parse(mut request: Bytes) -> anyhow::Result<Parsed> {
    if request.len() < 8 {
        bail!("request of {} bytes is shorter than its header", request.len());
    }
    let mut peek = &request[..8];
    let (key, version, correlation_id) = (peek.get_i16(), peek.get_i16(), peek.get_i32());
    let Ok(api) = ApiKey::try_from(key) else { bail!("unknown API key {key}") };
    if !versions::speaks(api, version) {
        if api == ApiKey::ApiVersions {
            return Ok(Parsed::ApiVersionsTooNew { correlation_id });
        }
        bail!("{api:?} version {version} is not spoken here");
    }
    let header = RequestHeader::decode(&mut request, api.request_header_version(version))
        .with_context(|| format!("could not read the header of a {api:?} request"))?;
    let client_id = header.client_id.map(|id| id.to_string()).unwrap_or_default();
    Ok(Parsed::Request(Frame { api, version, correlation_id, client_id, body: request }))
}

/// Puts the length field in front.
pub(crate) fn framed(header_and_body: &[u8]) -> anyhow::Result<BytesMut> {
    let length = i32::try_from(header_and_body.len()).context("answer is larger than 2 GiB")?;
    let mut frame = BytesMut::with_capacity(header_and_body.len() + 4);
    frame.put_i32(length);
    frame.put_slice(header_and_body);
    Ok(frame)
}
