//! A client that sends what it is told, in the version that it is told.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiKey, MetadataRequest, MetadataResponse, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Cluster;

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    pub(crate) async fn connect(cluster: &Cluster, node: i32) -> Client {
        let port = cluster.port(node).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        Client { stream, correlation_id: 0 }
    }

    /// Sends a request without waiting for the answer; gives its correlation id.
    pub(crate) async fn send<R: Request>(&mut self, request: &R, version: i16) -> i32 {
        self.correlation_id += 1;
        let frame = request_frame(request, version, self.correlation_id);
        self.stream.write_all(&frame).await.unwrap();
        self.correlation_id
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame without its length; `None` if the broker has hung up.
    pub(crate) async fn receive(&mut self) -> Option<Bytes> {
        let length = self.stream.read_i32().await.ok()?;
        let mut body = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(Bytes::from(body))
    }

    /// All bytes until the broker hangs up.
    pub(crate) async fn receive_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    /// Request and answer; `None` if the broker has hung up.
    pub(crate) async fn try_call<R: Request>(&mut self, request: &R, version: i16) -> Option<R::Response> {
        let correlation_id = self.send(request, version).await;
        let body = self.receive().await?;
        let (answered, answer) = decode::<R>(body, version).unwrap();
        assert_eq!(answered, correlation_id);
        Some(answer)
    }

    pub(crate) async fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.try_call(request, version).await.expect("the broker has hung up")
    }

    pub(crate) async fn metadata(&mut self, topic: &str) -> MetadataResponse {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
        self.call(&MetadataRequest::default().with_topics(Some(vec![topic])), 12).await
    }
}

/// Decodes an answer: its correlation id and itself. All bytes must be used.
pub(crate) fn decode<R: Request>(mut body: Bytes, version: i16) -> anyhow::Result<(i32, R::Response)> {
    let header = ResponseHeader::decode(&mut body, R::Response::header_version(version))?;
    let answer = R::Response::decode(&mut body, version)?;
    anyhow::ensure!(!body.has_remaining(), "{} bytes are left over", body.remaining());
    Ok((header.correlation_id, answer))
}

pub(crate) fn request_frame<R: Request>(request: &R, version: i16, correlation_id: i32) -> BytesMut {
    let mut body = BytesMut::new();
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str("plain")));
    let api = ApiKey::try_from(R::KEY).unwrap();
    header.encode(&mut body, api.request_header_version(version)).unwrap();
    request.encode(&mut body, version).unwrap();
    let mut frame = BytesMut::new();
    frame.put_i32(i32::try_from(body.len()).unwrap());
    frame.extend_from_slice(&body);
    frame
}

pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

pub(crate) fn text(word: &str) -> StrBytes {
    StrBytes::from_string(word.to_owned())
}
