//! The producer's identity: how a process gets one.

use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, InitProducerIdRequest, InitProducerIdResponse};

use crate::client::Client;
use crate::error::WireError;

/// Tries before [`init_producer_id`] gives up; with the waits between them some 17 s, in which a coordinator has loaded.
const INIT_ATTEMPTS_MAX: u32 = 20;
/// Wait before the second try; doubled up to [`INIT_WAIT_MAX`].
const INIT_WAIT: Duration = Duration::from_millis(100);
/// Longest wait between two tries.
const INIT_WAIT_MAX: Duration = Duration::from_secs(1);
/// Means nothing without a transactional id, but must be positive.
const TRANSACTION_TIMEOUT_MS: i32 = 60_000;

/// A producer id and its first epoch, as a broker gave them. An id is never given twice, so a process that starts anew
/// starts at epoch 0 and sequence 0 for every partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerIdentity {
    /// Producer id.
    pub id: i64,
    /// Epoch; each lane counts on from here by itself.
    pub epoch: i16,
}

/// Asks any broker for a new identity, for a producer without transactions. Errors that pass by themselves (a loading
/// coordinator, a broker that restarts) are waited out within a bound; then the last one is given.
pub async fn init_producer_id(client: &Client) -> Result<ProducerIdentity, WireError> {
    let mut wait = INIT_WAIT;
    for _ in 1..INIT_ATTEMPTS_MAX {
        match ask_once(client).await {
            Err(error) if error.is_retriable() => tokio::time::sleep(wait).await,
            result => return result,
        }
        wait = (wait * 2).min(INIT_WAIT_MAX);
    }
    ask_once(client).await
}

async fn ask_once(client: &Client) -> Result<ProducerIdentity, WireError> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(TRANSACTION_TIMEOUT_MS);
    identity_of(&client.call_any(request).await?)
}

fn identity_of(response: &InitProducerIdResponse) -> Result<ProducerIdentity, WireError> {
    match ResponseError::try_from_code(response.error_code) {
        None => Ok(ProducerIdentity { id: response.producer_id.0, epoch: response.producer_epoch }),
        Some(error) => Err(WireError::Refused {
            address: "of the cluster".into(),
            api: ApiKey::InitProducerId,
            error,
            message: remedy(error).map(str::to_owned),
        }),
    }
}

fn remedy(error: ResponseError) -> Option<&'static str> {
    match error {
        ResponseError::ClusterAuthorizationFailed => {
            Some("grant IDEMPOTENT_WRITE on the cluster, or WRITE on any topic from Kafka 2.8 on")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_from_the_answer() {
        let response = InitProducerIdResponse::default().with_producer_id(4711.into()).with_producer_epoch(2);
        assert_eq!(identity_of(&response), Ok(ProducerIdentity { id: 4711, epoch: 2 }));
    }

    #[test]
    fn a_loading_coordinator_is_waited_for_and_a_missing_right_is_not() {
        let check = |error: ResponseError, is_retriable: bool, text: &str| {
            let response = InitProducerIdResponse::default().with_error_code(error.code());
            let error = identity_of(&response).unwrap_err();
            assert_eq!((error.is_retriable(), error.to_string().as_str()), (is_retriable, text));
        };
        check(
            ResponseError::CoordinatorLoadInProgress,
            true,
            "broker of the cluster refused InitProducerId: CoordinatorLoadInProgress",
        );
        check(
            ResponseError::ClusterAuthorizationFailed,
            false,
            "broker of the cluster refused InitProducerId: ClusterAuthorizationFailed (grant IDEMPOTENT_WRITE on the \
             cluster, or WRITE on any topic from Kafka 2.8 on)",
        );
    }
}
