//! The control path of a flow: observe both clusters → plan → apply. Start-up, new topics and more partitions are one
//! path; deciding is pure, and each action may be done twice.

pub mod access;
pub mod apply;
#[cfg(test)]
mod fixture;
pub mod naming;
pub mod observe;
pub mod pace;
pub mod plan;
pub mod policies;
pub mod round;
pub mod selection;
pub mod settings;

pub use apply::{ActionResult, apply};
pub use naming::{Naming, Rename, TopicAnswer, TopicNaming, renames};
pub use observe::Observed;
pub use pace::Pace;
pub use plan::{Action, Event, Memory, Plan, Preview, Refusal, RefusalKind, Situation, plan};
pub use policies::Policies;
pub use round::Round;
