//! Runs a plugin natively, without a host: batches are built by hand, go through the same words as on WebAssembly, and
//! the edits are applied as the host does it. Parts that [`needs`](crate::Records::needs) does not name are hidden, so a
//! test finds a need that was forgotten.
//!
//! ```
//! use tidegate_plugin::records::{Edit, Needs, Record};
//! use tidegate_plugin::testing::{self, Batch, Judged};
//! use tidegate_plugin::{Link, Plugin, Problem, Records};
//!
//! struct NoTombstones;
//!
//! impl Plugin for NoTombstones {
//!     fn init(_link: Link, _settings: &str) -> Result<Self, Vec<Problem>> {
//!         Ok(Self)
//!     }
//! }
//!
//! impl Records for NoTombstones {
//!     fn needs(&self) -> Needs {
//!         Needs::nothing()
//!     }
//!
//!     fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
//!         if record.is_tombstone() {
//!             edit.drop();
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut plugin: NoTombstones = testing::start("{}")?;
//! let batch = Batch::new("orders", 0)
//!     .base_offset(100)
//!     .record(|record| record.key("a").value("1").header("region", "eu"))
//!     .record(|record| record.key("a"));
//!
//! let outcome = testing::run(&mut plugin, &batch);
//!
//! assert_eq!(outcome.kept_offsets(), [100]);
//! assert_eq!(outcome.records[1], Judged::Dropped);
//! # Ok::<(), Vec<Problem>>(())
//! ```

mod apply;
mod batch;
mod record;

pub use batch::Batch;
pub use record::OwnedRecord;

use crate::records::{Answer, Needs, edit_batch};
use crate::{Link, Plugin, Problem, Records};

/// The flow that tests run in: `east->west`.
pub fn link() -> Link {
    Link {
        name: "east->west".to_owned(),
        source_cluster: "east".to_owned(),
        target_cluster: "west".to_owned(),
    }
}

/// An instance for the flow `east->west`, as the host starts it: `init`, then `self_test`, whose error is a problem at
/// no place. The host checks the settings by the plugin's JSON Schema before that; this does not.
pub fn start<P: Plugin>(settings: &str) -> Result<P, Vec<Problem>> {
    let plugin = P::init(link(), settings)?;
    plugin.self_test().map_err(|message| vec![Problem::new("", message)])?;
    Ok(plugin)
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It goes on, changed or not.
    Kept(OwnedRecord),
    /// It is not replicated.
    Dropped,
    /// The plugin can't judge it, for this reason.
    Rejected(String),
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For each record of the batch, in order.
    pub records: Vec<Judged>,
}

impl Outcome {
    /// The records that go on.
    pub fn kept(&self) -> Vec<&OwnedRecord> {
        self.records
            .iter()
            .filter_map(|judged| match judged {
                Judged::Kept(record) => Some(record),
                Judged::Dropped | Judged::Rejected(_) => None,
            })
            .collect()
    }

    /// The offsets of the records that go on.
    pub fn kept_offsets(&self) -> Vec<i64> {
        self.kept().into_iter().map(|record| record.offset).collect()
    }

    /// Why records were rejected, in order.
    pub fn reasons(&self) -> Vec<&str> {
        self.records
            .iter()
            .filter_map(|judged| match judged {
                Judged::Rejected(reason) => Some(reason.as_str()),
                Judged::Kept(_) | Judged::Dropped => None,
            })
            .collect()
    }
}

/// Gives the batch to the plugin in one call and applies what it answers.
///
/// # Panics
/// Where the host would see a fault: the answer is against the contract (a splice beyond a value that was not asked
/// for), or the plugin itself panics.
#[track_caller]
pub fn run<P: Records>(plugin: &mut P, batch: &Batch) -> Outcome {
    let mut answer = Answer::new();
    let needs: Needs = plugin.needs();
    let words = batch.words(&needs);
    edit_batch(plugin, &words.view(batch), &mut answer);
    match apply::apply(&batch.records, &answer.data, &answer.ops) {
        Ok(records) => Outcome { records },
        Err(fault) => panic!("the host would not take the plugin's answer: {fault}"),
    }
}

#[cfg(test)]
mod tests;
