//! The idempotent producer as a state machine without input and output: it is asked for requests, told the answers, and
//! reports what became of every batch. Sockets, metadata and clocks belong to the caller.
//!
//! What it promises for each lane (one partition of the target):
//!
//! * Batches lie in the log in the order in which they were given, each at least once; exactly once unless an
//!   [`ProduceEvent::EpochBumped`] (or [`ProduceEvent::IdentityExhausted`]) said otherwise.
//! * Every batch is reported as acked exactly once, or as failed and then held until the caller decides.
//! * After an error nothing is sent until everything in flight has come back; then all that is not acked goes again, from
//!   the first, with the same bytes.
//!
//! Three rules of real brokers shape it (`ProducerAppendInfo`, `ProducerStateEntry` in Kafka's source):
//!
//! * A broker remembers the last [`LANE_BATCHES_MAX`] batches of a producer per partition. A resend is recognised only
//!   among them, so no more than that may be unacked.
//! * A broker without any state of the producer takes **any** first sequence number. If the first batch of a lane is
//!   refused (a leader that has just been named says NOT_LEADER_OR_FOLLOWER) and a second one is already on its way, the
//!   second one is taken and the order is lost. So a lane sends one batch at a time until the broker has shown by an ack
//!   that it knows the producer.
//! * Several errors come after the append (REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER while waiting for followers). Such
//!   a batch may be in the log; its number may not be given to other bytes within the same epoch.

mod answer;
mod class;
mod event;
mod identity;
mod lane;
mod numbering;
mod once;
mod options;
mod producer;
mod request;
mod sequence;
#[cfg(test)]
mod simulation;

pub use answer::{AnswerError, RecordError};
pub use event::ProduceEvent;
pub use identity::{ProducerIdentity, init_producer_id};
pub use lane::LANE_BATCHES_MAX;
pub use once::{OnceError, produce_once};
pub use options::{PRODUCE_VERSION, ProducerOptions};
pub use producer::{BatchSource, CallId, Lane, LaneBusy, OutBatch, ProduceCall, Producer};
