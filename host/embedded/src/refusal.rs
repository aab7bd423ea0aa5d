//! An answer that says no: Kafka's error code and, where the protocol has a place for it, a sentence.

use kafka_protocol::error::ResponseError;
use kafka_protocol::protocol::StrBytes;

/// Why a part of a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error: ResponseError,
    pub(crate) message: Option<String>,
}

impl Refusal {
    pub(crate) fn new(error: ResponseError, message: impl Into<String>) -> Refusal {
        Refusal { error, message: Some(message.into()) }
    }

    pub(crate) fn code(&self) -> i16 {
        self.error.code()
    }

    pub(crate) fn wire_message(&self) -> Option<StrBytes> {
        self.message.clone().map(StrBytes::from_string)
    }
}

impl From<ResponseError> for Refusal {
    fn from(error: ResponseError) -> Refusal {
        Refusal { error, message: None }
    }
}

/// The error code of an outcome; 0 is Kafka's "no error".
pub(crate) fn code_of<T>(outcome: &Result<T, Refusal>) -> i16 {
    outcome.as_ref().err().map_or(0, Refusal::code)
}
