//! A request on its way through the queue, and what comes back.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::WireError;

/// Writes the body for the version that was negotiated.
pub(crate) type Encode = Box<dyn FnOnce(i16) -> Result<Bytes, WireError> + Send>;

/// What stands behind the request header.
pub(crate) enum Content {
    /// Written when the version is known, in the connection's task.
    Encode(Encode),
    /// Written before, for this version; the parts are never copied.
    Parts { version: i16, parts: Vec<Bytes> },
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Content::Encode(_) => "Encode",
            Content::Parts { .. } => "Parts",
        })
    }
}

/// One queued request.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) api: ApiKey,
    pub(crate) content: Content,
    pub(crate) queued_at: Instant,
    pub(crate) reply: oneshot::Sender<Result<Answer, WireError>>,
}

impl Outgoing {
    pub(crate) fn new(
        api: ApiKey,
        content: Content,
    ) -> (Outgoing, oneshot::Receiver<Result<Answer, WireError>>) {
        let (reply, receiver) = oneshot::channel();
        (Outgoing { api, content, queued_at: Instant::now(), reply }, receiver)
    }

    /// Tells the caller. That it went away is its own affair.
    pub(crate) fn fail(self, error: WireError) {
        let _ = self.reply.send(Err(error));
    }
}

/// An answer's body with what is needed to read it.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) address: Arc<str>,
    pub(crate) version: i16,
    /// Behind the response header.
    pub(crate) body: Bytes,
}
