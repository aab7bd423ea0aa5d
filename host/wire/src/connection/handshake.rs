//! The first exchange on a new connection: ApiVersions, by KIP-511 in version 3 and, if the broker does not know that, in the version
//! that it names or 0. A SASL handshake belongs behind it, before the connection serves requests.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::{Encodable, StrBytes};
use tokio::io::AsyncWriteExt;

use crate::error::WireError;
use crate::transport::{ReadHalf, WriteHalf};
use crate::versions::ApiVersions;

use super::decode::decode_answer;
use super::frame::Frame;
use super::reader::AnswerReader;
use super::request::Answer;

/// Brokers from 2.4 on speak it; later versions add nothing that is used here.
const VERSION_FIRST: i16 = 3;
const CORRELATION: i32 = 0;

/// The two directions of a fresh stream.
pub(crate) struct Fresh<'a> {
    pub(crate) address: &'a Arc<str>,
    pub(crate) client_id: &'a str,
    pub(crate) reader: &'a mut AnswerReader,
    pub(crate) read_half: &'a mut ReadHalf,
    pub(crate) write_half: &'a mut WriteHalf,
}

impl Fresh<'_> {
    /// Asks what the broker speaks.
    pub(crate) async fn negotiate(&mut self) -> Result<ApiVersions, WireError> {
        let answer = self.ask(VERSION_FIRST).await?;
        if answer.error_code != ResponseError::UnsupportedVersion.code() {
            return self.accept(&answer);
        }
        // Brokers before 2.4 name no version with this error.
        let named = answer.api_keys.iter().find(|version| version.api_key == ApiKey::ApiVersions as i16);
        let version = named.map_or(0, |version| version.max_version.clamp(0, VERSION_FIRST));
        let answer = self.ask(version).await?;
        self.accept(&answer)
    }

    fn accept(&self, answer: &ApiVersionsResponse) -> Result<ApiVersions, WireError> {
        match ResponseError::try_from_code(answer.error_code) {
            None => Ok(ApiVersions::from(answer)),
            Some(error) => Err(WireError::Refused {
                address: Arc::clone(self.address),
                api: ApiKey::ApiVersions,
                error,
                message: None,
            }),
        }
    }

    async fn ask(&mut self, version: i16) -> Result<ApiVersionsResponse, WireError> {
        let body = encode(version)?;
        let frame = Frame::new(ApiKey::ApiVersions, version, CORRELATION, self.client_id, vec![body]);
        let mut frame = frame.ok_or_else(|| unwritable(version, "the frame is too large".to_owned()))?;
        let written = self.write_half.write_all_buf(&mut frame).await;
        written.map_err(|error| self.closed(error.to_string()))?;
        let mut answer = match self.reader.next(self.read_half).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.closed(error.to_string())),
        };
        // The header of this one answer has version 0 for all times, so that it can be read before anything is known.
        let header = answer.split_to(4);
        if header[..] != CORRELATION.to_be_bytes() {
            return Err(
                self.closed("its first answer belongs to no request; is this a Kafka broker?".to_owned())
            );
        }
        // An unknown version is answered in version 0.
        let refused = answer.starts_with(&ResponseError::UnsupportedVersion.code().to_be_bytes());
        let version = if refused { 0 } else { version };
        decode_answer(
            ApiKey::ApiVersions,
            &Answer { address: Arc::clone(self.address), version, body: answer },
        )
    }

    fn closed(&self, reason: String) -> WireError {
        WireError::Closed { address: Arc::clone(self.address), api: ApiKey::ApiVersions, reason }
    }
}

/// The request's body. From version 3 on a broker refuses one that does not say which software asks.
pub(super) fn encode(version: i16) -> Result<Bytes, WireError> {
    let mut request = ApiVersionsRequest::default();
    if version >= 3 {
        request = request
            .with_client_software_name(StrBytes::from_static_str("tidegate"))
            .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    }
    let mut body = BytesMut::new();
    request.encode(&mut body, version).map_err(|error| unwritable(version, error.to_string()))?;
    Ok(body.freeze())
}

fn unwritable(version: i16, reason: String) -> WireError {
    WireError::Unwritable { api: ApiKey::ApiVersions, version, reason }
}
