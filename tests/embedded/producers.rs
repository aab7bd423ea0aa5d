//! A broker that has forgotten our producer, or believes that a batch is missing.

use tidegate_embedded::{ApiKey, Effect, Fault, ResponseError};

use super::{FaultOn, Pair, TARGET_TOPIC};

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_producer_begins_a_new_epoch() {
    use ResponseError::{InvalidProducerEpoch, OutOfOrderSequenceNumber, UnknownProducerId};
    for error in [UnknownProducerId, OutOfOrderSequenceNumber, InvalidProducerEpoch] {
        let pair = Pair::start(1).await;
        let fault =
            Fault::new(Effect::Error(error)).api(ApiKey::Produce).topic(TARGET_TOPIC).after(2).times(1);
        pair.copies_whole_in_spite_of(&[FaultOn::Target(fault)]).await;
    }
}
