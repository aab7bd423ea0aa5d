//! How a plugin starts: what it is told, and what it may object to.

/// The flow that an instance works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The flow's name, `source->target`.
    pub name: String,
    /// Alias of the cluster that is read.
    pub source_cluster: String,
    /// Alias of the cluster that is written.
    pub target_cluster: String,
}

/// Something in the settings that the plugin can't work with. The operator reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON pointer (RFC 6901) into the settings, such as `/rules/3/topic`, or "" for all of them.
    pub at: String,
    /// What is wrong and what would be right; lower case, no full stop.
    pub message: String,
}

impl Problem {
    /// A problem at a place of the settings.
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into() }
    }
}

/// Every plugin is one. The host makes and drops instances at will (for each flow, for each worker, after a
/// fault), so an instance keeps nothing that matters.
///
/// A panic ends the instance, never the host: its text and place go to the host's log, the host makes a new
/// instance and asks once more.
pub trait Plugin: Sized + 'static {
    /// What operators see in logs and lists. Unless set, the crate's name; the version always is the crate's.
    const NAME: Option<&'static str> = None;

    /// A JSON Schema of the settings. The host checks by it before `init`, which still checks what a schema can't say.
    const SETTINGS_SCHEMA: Option<&'static str> = None;

    /// Makes an instance. `settings` is the text of one JSON object, `{}` when the operator gave none;
    /// [`Settings`](crate::settings::Settings) reads it. Tell all problems at once.
    fn init(link: Link, settings: &str) -> Result<Self, Vec<Problem>>;

    /// Asked once before a plugin goes live; an error keeps it from doing so.
    fn self_test(&self) -> Result<(), String> {
        Ok(())
    }
}
