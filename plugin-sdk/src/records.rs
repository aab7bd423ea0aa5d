//! The capability `records`: filter and change records.
//!
//! The host sends whole batches as plain bytes and words; the types here are views of them and a writer of the
//! answer. Nothing is allocated for a record.

mod answer;
mod batch;
mod edit;
mod needs;

pub use batch::{Batch, Headers, Record};
pub use edit::Edit;
pub use needs::Needs;

pub(crate) use answer::Answer;
pub(crate) use batch::RECORD_WORD_COUNT;
pub(crate) use needs::HeaderNeeds;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use {
    answer::{Code, NULL_LENGTH, OP_WORD_COUNT},
    batch::{HAS_KEY, HAS_VALUE},
};

use crate::Plugin;

/// Filters and changes records.
///
/// ```
/// use tidegate_plugin::records::{Edit, Needs, Record};
/// use tidegate_plugin::{Link, Plugin, Problem, Records};
///
/// /// Takes records without a key for broken, and says in each other where it was copied.
/// struct Stamp {
///     flow: String,
/// }
///
/// impl Plugin for Stamp {
///     fn init(link: Link, _settings: &str) -> Result<Self, Vec<Problem>> {
///         Ok(Self { flow: link.name })
///     }
/// }
///
/// impl Records for Stamp {
///     fn needs(&self) -> Needs {
///         Needs::nothing() // whether there is a key is known without it
///     }
///
///     fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
///         if !record.has_key() {
///             return Err("has no key".to_owned());
///         }
///         edit.set_header("copied-by", Some(self.flow.as_bytes()));
///         Ok(())
///     }
/// }
/// ```
pub trait Records: Plugin {
    /// Which parts of a record the plugin looks at; the host sends no others, and what is not sent costs nothing.
    /// Asked once, after `init`. Unless written, everything.
    ///
    /// What can be *changed* does not depend on it: a plugin may set a header or a value that it never saw.
    fn needs(&self) -> Needs {
        Needs::all()
    }

    /// Called before the records of each batch, to prepare what is the same for all of them. A batch of the source
    /// may come in several pieces.
    fn begin(&mut self, batch: &Batch<'_>) {
        let _ = batch;
    }

    /// Looks at one record and says what becomes of it; without a word it passes unchanged.
    ///
    /// An error is a [`reject`](Edit::reject): the plugin can't judge this record, and what then happens to it is the
    /// operator's choice (`on.fault`), by default that its partition waits. A record that should not be replicated is
    /// [dropped](Edit::drop) instead.
    fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String>;
}

/// Asks the plugin about every record of the batch; the answer is what the host gets.
pub(crate) fn edit_batch<P: Records>(plugin: &mut P, batch: &Batch<'_>, answer: &mut Answer) {
    answer.start();
    plugin.begin(batch);
    for record in batch.records() {
        let mut edit = Edit::new(answer, &record);
        if let Err(reason) = plugin.edit(&record, &mut edit) {
            edit.reject(&reason);
        }
    }
}
