//! How a command ends: `sysexits.h`.

use std::fmt;
use std::process::ExitCode;

/// The exit codes other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 64: the command line is wrong.
    Usage,
    /// 65: data is not what it should be.
    Data,
    /// 69: a cluster, or the running Tidegate that was asked, can't be reached.
    Unavailable,
    /// 70: something that should not happen.
    Internal,
    /// 77: not allowed.
    NotAllowed,
    /// 78: the configuration can't be used.
    Configuration,
}

/// The exit code of a process that a second signal ended at once: nothing was settled or stored.
pub(super) const ENDED_AT_ONCE: i32 = 1;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What to tell.
    pub problem: anyhow::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#}", self.problem)
    }
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Usage => 64,
            Exit::Data => 65,
            Exit::Unavailable => 69,
            Exit::Internal => 70,
            Exit::NotAllowed => 77,
            Exit::Configuration => 78,
        }
    }

    /// A failure with this code.
    pub fn because(self, problem: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: self, problem: problem.into() }
    }
}
