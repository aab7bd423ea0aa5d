//! The hook that maps access rules on their way to the target, and what a rule is. That none became wider is
//! `acl_width`'s.

use super::contract::acl_mapping::{self as wit, AclParam, AclResult};
use super::fault::Fault;
use super::instance::{Instance, Question};
use super::loaded::About;
use super::seat::Seat;

/// A call asks about so many at most: four strings a rule each way, some 80 ns each, and a call has 50 ms.
const QUESTION_COUNT_MAX: usize = 500;
/// A rule becomes at most so many.
const MAPPED_COUNT_MAX: usize = 64;
/// Kafka's longest names are some hundred bytes; principals may be whole distinguished names.
const TEXT_BYTES_MAX: usize = 4096;

/// An access rule of Kafka.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AclRule {
    /// What it is about.
    pub kind: ResourceKind,
    /// The resource's name, `*` for all of the kind, or with a prefixed pattern how names begin.
    pub name: String,
    /// How `name` is meant.
    pub pattern: Pattern,
    /// Who, such as `User:alice` or `User:*`.
    pub principal: String,
    /// From where: an address, or `*`.
    pub host: String,
    /// Kafka's word: `READ`, `WRITE`, `DESCRIBE`, …, `ALL`.
    pub operation: String,
    /// Whether it allows or denies.
    pub permission: Permission,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// A topic.
    Topic,
    /// A consumer group.
    Group,
    /// A transactional id.
    TransactionalId,
    /// The cluster itself.
    Cluster,
    /// A delegation token.
    DelegationToken,
    /// A user, for tokens that others make for it.
    User,
}

/// How a rule's name is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The name itself; `*` is every name.
    Literal,
    /// Names that begin with it.
    Prefixed,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// It lets in.
    Allow,
    /// It keeps out; stronger than any that lets in.
    Deny,
}

/// A started plugin that maps access rules.
pub struct AclPlugin {
    pub(super) about: About,
    pub(super) seat: Seat,
}

impl AclPlugin {
    /// What it says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// For each rule, in order, what it becomes: nothing, itself, or several. Counted, and bounded in length, but not
    /// judged: see [`widenings`](super::widenings).
    pub fn map(&mut self, rules: &[AclRule]) -> Result<Vec<Vec<AclRule>>, Fault> {
        let mut answers = Vec::with_capacity(rules.len());
        for piece in rules.chunks(QUESTION_COUNT_MAX) {
            answers.extend(self.seat.ask(|instance| instance.map_rules(piece))?);
        }
        Ok(answers)
    }
}

impl Instance {
    fn map_rules(&mut self, rules: &[AclRule]) -> Result<Vec<Vec<AclRule>>, Fault> {
        let asked: Vec<AclParam<'_>> = rules.iter().map(to_wit).collect();
        let question = Question::Acls(rules.len());
        let answer =
            self.ask(question, |exports, store| exports.acl_mapping()?.call_map_acls(store, &asked))?;
        let mapped = answer.map_err(|message| self.declined(question, &message))?;
        match oversize(rules.len(), &mapped) {
            Some(message) => Err(self.bad_answer(question, message)),
            None => Ok(mapped.into_iter().map(|rules| rules.into_iter().map(from_wit).collect()).collect()),
        }
    }
}

/// What makes an answer none, by number and length.
fn oversize(count: usize, mapped: &[Vec<AclResult>]) -> Option<String> {
    if mapped.len() != count {
        return Some(format!("{} answers", mapped.len()));
    }
    if let Some(many) = mapped.iter().find(|rules| rules.len() > MAPPED_COUNT_MAX) {
        return Some(format!("{} rules out of one, at most {MAPPED_COUNT_MAX}", many.len()));
    }
    let texts = |rule: &AclResult| {
        [rule.name.len(), rule.principal.len(), rule.client_host.len(), rule.operation.len()]
    };
    let longest_bytes = mapped.iter().flatten().flat_map(texts).max().unwrap_or(0);
    (longest_bytes > TEXT_BYTES_MAX).then(|| format!("a text of {longest_bytes} bytes in a rule"))
}

fn to_wit(rule: &AclRule) -> AclParam<'_> {
    AclParam {
        kind: match rule.kind {
            ResourceKind::Topic => wit::TargetKind::Topic,
            ResourceKind::Group => wit::TargetKind::Group,
            ResourceKind::TransactionalId => wit::TargetKind::TransactionalId,
            ResourceKind::Cluster => wit::TargetKind::Cluster,
            ResourceKind::DelegationToken => wit::TargetKind::DelegationToken,
            ResourceKind::User => wit::TargetKind::User,
        },
        name: &rule.name,
        pattern: match rule.pattern {
            Pattern::Literal => wit::Pattern::Literal,
            Pattern::Prefixed => wit::Pattern::Prefixed,
        },
        principal: &rule.principal,
        client_host: &rule.host,
        operation: &rule.operation,
        permission: match rule.permission {
            Permission::Allow => wit::Permission::Allow,
            Permission::Deny => wit::Permission::Deny,
        },
    }
}

fn from_wit(rule: AclResult) -> AclRule {
    AclRule {
        kind: match rule.kind {
            wit::TargetKind::Topic => ResourceKind::Topic,
            wit::TargetKind::Group => ResourceKind::Group,
            wit::TargetKind::TransactionalId => ResourceKind::TransactionalId,
            wit::TargetKind::Cluster => ResourceKind::Cluster,
            wit::TargetKind::DelegationToken => ResourceKind::DelegationToken,
            wit::TargetKind::User => ResourceKind::User,
        },
        name: rule.name,
        pattern: match rule.pattern {
            wit::Pattern::Literal => Pattern::Literal,
            wit::Pattern::Prefixed => Pattern::Prefixed,
        },
        principal: rule.principal,
        host: rule.client_host,
        operation: rule.operation,
        permission: match rule.permission {
            wit::Permission::Allow => Permission::Allow,
            wit::Permission::Deny => Permission::Deny,
        },
    }
}
