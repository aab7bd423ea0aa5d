//! The one table that says what each of Kafka's error codes means for a batch that was to be appended.

use kafka_protocol::ResponseError;

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// Send the same bytes again, in order.
    Retry {
        /// The leader may be elsewhere.
        needs_metadata: bool,
        /// The error can come after the append, so the batch may be in the log.
        may_be_in_log: bool,
    },
    /// As `Retry`, but a bounded number of times, then `Fatal`.
    RetryBounded,
    /// The sequence number does not follow what the broker has. For the first unacked batch of a lane: the broker's state
    /// is not ours, a new epoch is needed. For a later one: its predecessor is missing; send again in order.
    OutOfOrder,
    /// The broker has seen a newer epoch of this producer id: a new epoch is needed, wherever in the lane.
    StaleEpoch,
    /// The batch is in the log already.
    Duplicate,
    /// Sending the same bytes again will not help; the caller decides.
    Fatal,
}

/// Refused before the append.
const REFUSED: ErrorClass = ErrorClass::Retry { needs_metadata: false, may_be_in_log: false };
/// May have been appended.
const UNCERTAIN: ErrorClass = ErrorClass::Retry { needs_metadata: false, may_be_in_log: true };
/// The leader is elsewhere; said before the append, or while an appended batch waited for its followers.
const MOVED: ErrorClass = ErrorClass::Retry { needs_metadata: true, may_be_in_log: true };

/// Classes `error`.
pub(super) fn classify(error: ResponseError) -> ErrorClass {
    use ResponseError as E;
    match error {
        // The leadership moved, also between append and answer (DelayedProduce.tryComplete).
        E::NotLeaderOrFollower => MOVED,
        // An election is under way.
        E::LeaderNotAvailable => MOVED,
        // No such partition yet (metadata of a new topic spreads for some 100 ms), or no longer. Whether it comes back is
        // the caller's to know: it sees the event.
        E::UnknownTopicOrPartition => MOVED,
        // The disk of this replica failed; another one takes over.
        E::KafkaStorageError => MOVED,
        // A disconnect that the broker itself met on the way.
        E::NetworkException => MOVED,
        // Epoch and id checks of newer Produce versions and of the replica layer.
        E::FencedLeaderEpoch | E::UnknownLeaderEpoch => MOVED,
        E::UnknownTopicId | E::InconsistentTopicId => MOVED,
        E::ReplicaNotAvailable | E::BrokerNotAvailable => MOVED,
        // Appended, but the followers did not follow in time.
        E::RequestTimedOut => UNCERTAIN,
        // Too few in-sync replicas, seen before the append.
        E::NotEnoughReplicas => REFUSED,
        // Too few in-sync replicas, seen after the append.
        E::NotEnoughReplicasAfterAppend => UNCERTAIN,
        // A quota that answers instead of delaying.
        E::ThrottlingQuotaExceeded => REFUSED,
        // Something unforeseen inside the broker, at any point. Kafka's own producer gives up here and loses the batch; we
        // keep trying and say so.
        E::UnknownServerError => UNCERTAIN,
        // The checksum was wrong on arrival (a bad cable is worth a resend), or a keyless record for a compacted topic on
        // old brokers (a resend never helps): hence the bound.
        E::CorruptMessage => ErrorClass::RetryBounded,
        // A gap before this batch, or the broker lost or trimmed its state.
        E::OutOfOrderSequenceNumber => ErrorClass::OutOfOrder,
        // The broker has no state of this producer id here (old brokers: after retention removed its last record).
        E::UnknownProducerId => ErrorClass::OutOfOrder,
        // An older epoch than the newest seen; PRODUCER_FENCED is what brokers before 2.7 call it.
        E::InvalidProducerEpoch | E::ProducerFenced => ErrorClass::StaleEpoch,
        // In the log, but too long ago for the broker to say where.
        E::DuplicateSequenceNumber => ErrorClass::Duplicate,
        // Larger than the topic's max.message.bytes: the caller splits.
        E::MessageTooLarge => ErrorClass::Fatal,
        // Larger than the topic's segment.bytes: the caller splits.
        E::RecordListTooLarge => ErrorClass::Fatal,
        // Outside message.timestamp.{before,after}.max.ms; record errors say which.
        E::InvalidTimestamp => ErrorClass::Fatal,
        // Refused by validation (no key in a compacted topic, bad count …); record errors say which.
        E::InvalidRecord => ErrorClass::Fatal,
        // Neither codec nor format will change by waiting.
        E::UnsupportedCompressionType | E::UnsupportedForMessageFormat => ErrorClass::Fatal,
        // An operator must grant something; then `retry`.
        E::TopicAuthorizationFailed
        | E::ClusterAuthorizationFailed
        | E::TransactionalIdAuthorizationFailed
        | E::SaslAuthenticationFailed
        | E::SecurityDisabled => ErrorClass::Fatal,
        // A name that Kafka does not take.
        E::InvalidTopicException => ErrorClass::Fatal,
        // The request is not what the broker wants: our fault, or a policy's.
        E::InvalidRequest
        | E::InvalidRequiredAcks
        | E::UnsupportedVersion
        | E::PolicyViolation
        | E::InvalidConfig => ErrorClass::Fatal,
        // Transactions only.
        E::InvalidTxnState
        | E::InvalidProducerIdMapping
        | E::ConcurrentTransactions
        | E::TransactionCoordinatorFenced
        | E::TransactionAbortable => ErrorClass::Fatal,
        // Codes that Produce has no business with, or that are newer than this table: as Kafka marks them.
        other if other.is_retriable() => MOVED,
        _ => ErrorClass::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_class_that_its_reason_asks_for() {
        use ResponseError as E;
        let check = |error, class| assert_eq!(classify(error), class, "{error}");
        for moved in [E::NotLeaderOrFollower, E::UnknownTopicOrPartition, E::KafkaStorageError] {
            check(moved, MOVED);
        }
        check(E::RequestTimedOut, UNCERTAIN);
        check(E::NotEnoughReplicas, REFUSED);
        check(E::NotEnoughReplicasAfterAppend, UNCERTAIN);
        check(E::UnknownServerError, UNCERTAIN);
        check(E::CorruptMessage, ErrorClass::RetryBounded);
        check(E::OutOfOrderSequenceNumber, ErrorClass::OutOfOrder);
        check(E::UnknownProducerId, ErrorClass::OutOfOrder);
        check(E::InvalidProducerEpoch, ErrorClass::StaleEpoch);
        check(E::ProducerFenced, ErrorClass::StaleEpoch);
        check(E::DuplicateSequenceNumber, ErrorClass::Duplicate);
        for fatal in [
            E::MessageTooLarge,
            E::RecordListTooLarge,
            E::InvalidTimestamp,
            E::InvalidRecord,
            E::TopicAuthorizationFailed,
            E::ClusterAuthorizationFailed,
        ] {
            check(fatal, ErrorClass::Fatal);
        }
    }

    #[test]
    fn what_kafka_calls_retriable_is_never_fatal_at_once() {
        for error in (-1..=200).filter_map(ResponseError::try_from_code) {
            assert!(!error.is_retriable() || classify(error) != ErrorClass::Fatal, "{error}");
        }
    }

    #[test]
    fn an_unknown_code_fails_the_batch() {
        assert_eq!(classify(ResponseError::Unknown(9999)), ErrorClass::Fatal);
    }
}
