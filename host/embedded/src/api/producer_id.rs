//! InitProducerId for idempotent producers.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use crate::call::{Call, Part, Serve};

impl Serve for InitProducerIdRequest {
    /// A producer without a transactional id always gets a new id with epoch 0, even if it names an old one:
    /// that is what Kafka's `TransactionCoordinator.handleInitProducerId` does.
    async fn serve(self, call: &Call) -> InitProducerIdResponse {
        let outcome = call.attempt(Part::Whole, || match self.transactional_id {
            // There is no transaction coordinator here; of the errors that a client does not retry, this one
            // says so most nearly.
            Some(_) => Err(ResponseError::TransactionalIdAuthorizationFailed.into()),
            None => Ok(call.shared.lock().new_producer_id()),
        });
        match outcome {
            Ok(id) => {
                InitProducerIdResponse::default().with_producer_id(ProducerId(id)).with_producer_epoch(0)
            }
            Err(refusal) => InitProducerIdResponse::default()
                .with_error_code(refusal.code())
                .with_producer_id(ProducerId(-1))
                .with_producer_epoch(-1),
        }
    }
}
