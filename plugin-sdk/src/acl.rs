//! The capability `acl_mapping`: what an access rule of the source becomes on the target.

use crate::Plugin;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// A topic.
    Topic,
    /// A consumer group.
    Group,
    /// A producer's transactional id.
    TransactionalId,
    /// The cluster as a whole.
    Cluster,
    /// A delegation token.
    DelegationToken,
    /// A user, in the sense of delegation tokens.
    User,
}

/// How a rule's name is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The whole name; `*` stands for all.
    Literal,
    /// The beginning of the name.
    Prefixed,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// It lets in.
    Allow,
    /// It keeps out, whatever other rules say.
    Deny,
}

/// An access rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    /// What it is about.
    pub kind: ResourceKind,
    /// The name of the topic, the group and so on.
    pub name: String,
    /// How that name is compared.
    pub pattern: Pattern,
    /// Whom it is for, such as `User:alice`; `User:*` is everyone.
    pub principal: String,
    /// The client's address; `*` is any.
    pub host: String,
    /// What is done: Kafka's names, such as `READ`, `WRITE`, `DESCRIBE`, `ALL`.
    pub operation: String,
    /// Whether that is allowed or denied.
    pub permission: Permission,
}

/// Maps access rules. Pure: any instance gives the same answer.
///
/// The host refuses a rule that lets in more than the one it was made of, such as one for everyone that was for one
/// user.
pub trait AclMapping: Plugin {
    /// What the rule becomes: nothing (an empty list), itself, or several. An error (lower case, no full stop) keeps
    /// all rules of the question from being used and is shown to the operator.
    fn map(&self, acl: &Acl) -> Result<Vec<Acl>, String>;
}
