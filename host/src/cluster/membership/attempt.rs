//! One attempt: look at the group, send our own dead members away, join, be a member until something ends it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use kafka_protocol::ResponseError;
use tidegate_wire::client::Client;
use tidegate_wire::error::WireError;
use tokio::sync::mpsc;
use tracing::{debug, info};

use super::consumer::{self, ConsumerTask, Protocol};
use super::verdict::{self, Verdict};
use super::{Leaving, MembershipEvent, MembershipOptions};
use crate::cluster::group::{GroupKind, remove_members, serves_consumer_protocol, view_group};

/// Looks for dead processes on this host so often, in milliseconds.
const SIBLINGS_LOOK_MS: u64 = 1_000;

/// How an attempt ended.
pub(super) enum AttemptEnd {
    /// We were told to leave, or nobody listens any more.
    Left,
    /// MirrorMaker 2 has the group.
    MirrorMaker,
    /// Another attempt would end the same way.
    Hopeless(String),
    /// The same: the target does not let us.
    NotAllowed(String),
    /// A new member may do better.
    Ended { reason: String, had_slots: bool, was_consumer_protocol: bool },
}

pub(super) struct Attempt<'a> {
    pub(super) options: &'a MembershipOptions,
    pub(super) target: &'a Client,
    pub(super) events: &'a mpsc::Sender<MembershipEvent>,
    pub(super) leaving: &'a std::sync::Arc<Leaving>,
    pub(super) prefer_classic: bool,
}

/// Sends the members of dead processes on this host away, for as long as we are a member: their slots come to us or to
/// others within a second or two, not after their session's timeout.
async fn bury_siblings(options: &MembershipOptions, target: &Client) -> Infallible {
    let mut buried = BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_millis(SIBLINGS_LOOK_MS)).await;
        let dead = options.node.dead_siblings();
        buried.retain(|id| dead.iter().any(|sibling| sibling.id() == id));
        let new: Vec<_> = dead.iter().filter(|sibling| !buried.contains(sibling.id())).collect();
        if new.is_empty() {
            continue;
        }
        let client_ids: Vec<String> = new.iter().map(|sibling| sibling.client_id(&options.flow)).collect();
        match remove_members(target, &options.group.id, &client_ids).await {
            Ok(removed_count) => {
                if removed_count > 0 {
                    info!(
                        group = options.group.id,
                        removed_count, "sent members of dead processes on this host away"
                    );
                }
                buried.extend(new.iter().map(|sibling| sibling.id().to_owned()));
            }
            Err(error) => debug!(%error, "could not look for members of dead processes"),
        }
    }
}

impl Attempt<'_> {
    pub(super) async fn run(self) -> AttemptEnd {
        if self.leaving.is_set() || self.events.is_closed() {
            return AttemptEnd::Left;
        }
        let protocol = tokio::select! {
            () = self.leaving.wait() => return AttemptEnd::Left,
            prepared = self.prepare() => match prepared {
                Ok(Some(protocol)) => protocol,
                Ok(None) => return AttemptEnd::MirrorMaker,
                Err(error) => return self.not_seen(&error),
            },
        };
        let task = ConsumerTask {
            options: self.options.clone(),
            protocol,
            events: self.events.clone(),
            leaving: std::sync::Arc::clone(self.leaving),
        };
        let end = tokio::select! {
            end = consumer::run(task) => end,
            never = bury_siblings(self.options, self.target) => match never {},
        };
        let was_consumer_protocol = protocol == Protocol::Consumer;
        match end.problem {
            None => AttemptEnd::Left,
            Some(problem) => match verdict::judge(&problem) {
                Verdict::Hopeless(remedy) => AttemptEnd::Hopeless(self.no_member(&problem, remedy)),
                Verdict::NotAllowed(remedy) => AttemptEnd::NotAllowed(self.no_member(&problem, remedy)),
                Verdict::Again => self.ended(
                    format!("membership of group \"{}\" ended: {problem}", self.group()),
                    end.had_slots,
                    was_consumer_protocol,
                ),
                // What the error hints at, the next attempt's look at the group proves.
                Verdict::OtherProtocol => match view_group(self.target, self.group()).await {
                    Ok(view) if view.kind == GroupKind::Connect => AttemptEnd::MirrorMaker,
                    _ => self.ended(
                        format!("group \"{}\" speaks another protocol: {problem}", self.group()),
                        end.had_slots,
                        was_consumer_protocol,
                    ),
                },
            },
        }
    }

    fn group(&self) -> &str {
        &self.options.group.id
    }

    fn no_member(&self, problem: &verdict::Problem, remedy: &str) -> String {
        format!("could not be a member of group \"{}\": {problem}; {remedy}", self.group())
    }

    /// The group could not be looked at.
    fn not_seen(&self, error: &WireError) -> AttemptEnd {
        let reason = format!("could not look at group \"{}\": {error}", self.group());
        match error {
            WireError::Refused { error: ResponseError::GroupAuthorizationFailed, .. } => {
                AttemptEnd::NotAllowed(format!("{reason}; allow READ and DESCRIBE on the group"))
            }
            _ => self.ended(reason, false, false),
        }
    }

    fn ended(&self, reason: String, had_slots: bool, was_consumer_protocol: bool) -> AttemptEnd {
        AttemptEnd::Ended { reason, had_slots, was_consumer_protocol }
    }

    /// The protocol to join with, or None when MirrorMaker 2 is there.
    async fn prepare(&self) -> Result<Option<Protocol>, WireError> {
        let view = view_group(self.target, self.group()).await?;
        debug!(group = self.group(), kind = ?view.kind, members = view.members.len(), "looked at the group");
        if view.kind == GroupKind::Connect {
            return Ok(None);
        }
        let own = self.options.node.client_id(&self.options.flow);
        let removed_count = remove_members(self.target, self.group(), &[own]).await?;
        if removed_count > 0 {
            info!(group = self.group(), removed_count, "sent our own dead member away");
        }
        let consumer = !self.prefer_classic && serves_consumer_protocol(self.target).await?;
        Ok(Some(if consumer { Protocol::Consumer } else { Protocol::Classic }))
    }
}
