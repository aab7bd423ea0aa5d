//! The records of one batch as a flat index: what was read, and what edits made of it. Pure.
//!
//! ```text
//! batch's body ──push──▶ RecordSet ──record(i)──▶ RecordNow   as it stands after the edits so far
//!                          ▲    └────original(i)─▶ RecordNow   as it was read
//!                          └─ edit(i), drop_record(i), restore_from(i)
//! ```
//!
//! Nothing is copied from the batch's body: the set keeps positions in it, and in an arena of its own for the bytes that
//! edits brought. Its buffers are kept from batch to batch, so a record costs no allocation.

mod editor;
mod now;
mod owned;
mod set;
mod span;

pub use editor::{AnswerBytes, Editor};
pub use now::{HeadersNow, RecordNow};
pub use owned::{Laid, OwnedBatch, OwnedRecord};
pub use set::{OutOfBase, RecordParts, RecordSet};

#[cfg(test)]
mod tests;
