//! A broker for tests that does what the test says, byte by byte.

use std::future::Future;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse};
use kafka_protocol::protocol::Encodable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::versions::our_range;

/// A listening socket.
pub(crate) struct Stub {
    pub(crate) address: Arc<str>,
    listener: TcpListener,
}

/// A connection of the client under test.
pub(crate) struct StubConnection {
    pub(crate) stream: TcpStream,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation: i32,
    pub(crate) client_id: String,
    pub(crate) body: Bytes,
}

impl Stub {
    pub(crate) async fn start() -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string().into();
        Stub { address, listener }
    }

    /// The next connection, before anything was said.
    pub(crate) async fn accept(&self) -> StubConnection {
        let (stream, _) = self.listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        StubConnection { stream }
    }

    /// The next connection, with ApiVersions answered: it serves all that we speak.
    pub(crate) async fn accept_negotiated(&self) -> StubConnection {
        let mut connection = self.accept().await;
        let asked = connection.asked().await.expect("a client begins with ApiVersions");
        assert_eq!(asked.api, ApiKey::ApiVersions);
        connection.answer(&asked, &all_versions()).await;
        connection
    }

    /// Serves every connection for ever; `answer` gives the body, or none to close the connection.
    pub(crate) fn serve<F>(self, answer: impl Fn(Asked) -> F + Clone + Send + 'static) -> Arc<str>
    where
        F: Future<Output = Option<Vec<u8>>> + Send,
    {
        let address = Arc::clone(&self.address);
        tokio::spawn(async move {
            loop {
                let mut connection = self.accept().await;
                let answer = answer.clone();
                tokio::spawn(async move {
                    while let Some(asked) = connection.asked().await {
                        let body = match asked.api {
                            ApiKey::ApiVersions => Some(body(&all_versions(), asked.version)),
                            _ => answer(asked.clone()).await,
                        };
                        let Some(body) = body else { return };
                        connection.answer_with(&asked, &body).await;
                    }
                });
            }
        });
        address
    }
}

impl StubConnection {
    /// The next request; none when the client has closed.
    pub(crate) async fn asked(&mut self) -> Option<Asked> {
        let size = self.stream.read_i32().await.ok()?;
        let mut frame = vec![0; size as usize];
        self.stream.read_exact(&mut frame).await.ok()?;
        let mut frame = Bytes::from(frame);
        let api = ApiKey::try_from(frame.get_i16()).unwrap();
        let version = frame.get_i16();
        let correlation = frame.get_i32();
        let name_bytes = frame.get_i16() as usize;
        let client_id = String::from_utf8(frame.split_to(name_bytes).to_vec()).unwrap();
        if api.request_header_version(version) >= 2 {
            assert_eq!(frame.get_u8(), 0);
        }
        Some(Asked { api, version, correlation, client_id, body: frame })
    }

    pub(crate) async fn answer(&mut self, asked: &Asked, answer: &impl Encodable) {
        self.answer_with(asked, &body(answer, asked.version)).await;
    }

    pub(crate) async fn answer_with(&mut self, asked: &Asked, body: &[u8]) {
        self.send(&frame(asked, body)).await;
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // The client may have closed already; what it saw is what the test looks at.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Whether the client closes without another request.
    pub(crate) async fn is_closed(&mut self) -> bool {
        matches!(self.stream.read_u8().await, Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof)
    }
}

/// A whole answer with size and header.
pub(crate) fn frame(asked: &Asked, body: &[u8]) -> Vec<u8> {
    let flexible = asked.api.response_header_version(asked.version) >= 1;
    let mut frame = Vec::new();
    frame.put_i32((4 + usize::from(flexible) + body.len()) as i32);
    frame.put_i32(asked.correlation);
    if flexible {
        frame.put_u8(0);
    }
    frame.put_slice(body);
    frame
}

pub(crate) fn body(answer: &impl Encodable, version: i16) -> Vec<u8> {
    let mut body = Vec::new();
    answer.encode(&mut body, version).unwrap();
    body
}

/// All that we speak, and old metadata for requests that tests write by hand.
pub(crate) fn all_versions() -> ApiVersionsResponse {
    let apis = [
        ApiKey::Produce,
        ApiKey::Fetch,
        ApiKey::ListOffsets,
        ApiKey::Metadata,
        ApiKey::OffsetFetch,
        ApiKey::FindCoordinator,
        ApiKey::CreateTopics,
        ApiKey::ApiVersions,
    ];
    versions(
        &apis.map(|api| (api, if api == ApiKey::Metadata { 0 } else { our_range(api).0 }, our_range(api).1)),
    )
}

pub(crate) fn versions(ranges: &[(ApiKey, i16, i16)]) -> ApiVersionsResponse {
    let api_keys = ranges.iter().map(|(api, min, max)| {
        ApiVersion::default().with_api_key(*api as i16).with_min_version(*min).with_max_version(*max)
    });
    ApiVersionsResponse::default().with_api_keys(api_keys.collect())
}

pub(crate) fn unsupported_version() -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(ResponseError::UnsupportedVersion.code())
}
