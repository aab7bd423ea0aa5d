//! What goes wrong with a plugin that was loaded: what it did, on which question.

use wasmtime::Trap;

use super::instance::Question;
use super::journal::one_line;
use super::limits::Limits;

/// A plugin failed. The instance is gone; the next question gets a fresh one. `plugin` is its name in quotes and
/// its version, `question` what it was asked, such as `to-target("orders")`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No answer within the time that it has for a call.
    #[error(
        "plugin {plugin} took longer than {budget_ms} ms for {question}; mend it or give it a longer deadline"
    )]
    Deadline {
        /// Name and version.
        plugin: String,
        /// What it was asked.
        question: String,
        /// The deadline.
        budget_ms: u64,
    },
    /// It wanted more memory than it has.
    #[error(
        "plugin {plugin} needs more than {limit_bytes} bytes of memory for {question}; mend it or give it more"
    )]
    Memory {
        /// Name and version.
        plugin: String,
        /// What it was asked.
        question: String,
        /// The limit.
        limit_bytes: usize,
    },
    /// It panicked, or did what WebAssembly forbids.
    #[error("plugin {plugin} broke down in {question}: {message}")]
    Trap {
        /// Name and version.
        plugin: String,
        /// What it was asked.
        question: String,
        /// Its last words if it had any, and the trap.
        message: String,
    },
    /// It answered with something that is no answer.
    #[error("plugin {plugin} gave no usable answer to {question}: {message}")]
    BadAnswer {
        /// Name and version.
        plugin: String,
        /// What it was asked.
        question: String,
        /// What is wrong with the answer.
        message: String,
    },
    /// It answered that it won't: its own error, for the question as a whole.
    #[error("plugin {plugin} refused {question}: {message}")]
    Declined {
        /// Name and version.
        plugin: String,
        /// What it was asked.
        question: String,
        /// Its words.
        message: String,
    },
    /// After a fault, a fresh instance did not take the settings that the first one took.
    #[error("plugin {plugin} did not start again after a fault: {message}")]
    Refused {
        /// Name and version.
        plugin: String,
        /// What it objected to.
        message: String,
    },
}

/// What sort of fault, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// No answer in time.
    Deadline,
    /// More memory than it may have.
    Memory,
    /// A panic, or what WebAssembly forbids.
    Trap,
    /// An answer that is none.
    BadAnswer,
    /// It said no: to its settings on a fresh instance, or to a question as a whole.
    Refused,
}

impl FaultKind {
    /// Every one, each at the index that it has as a number.
    pub const ALL: [Self; 5] = [Self::Deadline, Self::Memory, Self::Trap, Self::BadAnswer, Self::Refused];

    /// As a label's value.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Trap => "trap",
            Self::BadAnswer => "bad-answer",
            Self::Refused => "refused",
        }
    }
}

impl Fault {
    /// What sort it is.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Deadline { .. } => FaultKind::Deadline,
            Self::Memory { .. } => FaultKind::Memory,
            Self::Trap { .. } => FaultKind::Trap,
            Self::BadAnswer { .. } => FaultKind::BadAnswer,
            Self::Declined { .. } | Self::Refused { .. } => FaultKind::Refused,
        }
    }
}

/// What was going on when a call failed.
pub(super) struct Scene<'a> {
    pub(super) plugin: &'a str,
    pub(super) question: Question<'a>,
    pub(super) limits: Limits,
    pub(super) memory_denied: bool,
    /// What the plugin logged as an error in this call: its panic.
    pub(super) last_words: Option<String>,
}

impl Scene<'_> {
    pub(super) fn fault(self, error: &wasmtime::Error) -> Fault {
        let plugin = self.plugin.to_owned();
        let question = self.question.to_string();
        let trap = error.downcast_ref::<Trap>();
        if trap == Some(&Trap::Interrupt) {
            return Fault::Deadline { plugin, question, budget_ms: self.limits.budget_ms() };
        }
        if self.memory_denied {
            return Fault::Memory { plugin, question, limit_bytes: self.limits.memory_bytes };
        }
        match trap {
            Some(trap) => {
                let message = match self.last_words {
                    Some(words) => format!("{words} ({trap})"),
                    None => trap.to_string(),
                };
                Fault::Trap { plugin, question, message }
            }
            None => Fault::BadAnswer { plugin, question, message: one_line(&format!("{error:#}")) },
        }
    }
}
