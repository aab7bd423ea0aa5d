//! Whether access rules became wider on their way to the target: pure, and on the safe side. What can't be compared counts
//! as wider.
//!
//! A rule that allows may only shrink: the same resource or part of it, the same operation or part of it, one principal or
//! host for another but never all of them for one. A rule that denies may only grow, by the same comparison turned round.
//! That topics are called otherwise on the target is not the plugin's business: the flow's naming comes after it.

use std::fmt;

use super::acl::{AclRule, Pattern, Permission};

/// All names, principals of a type or hosts.
const WILDCARD: &str = "*";
const EVERY_OPERATION: &str = "ALL";

/// A rule of the source and what is wider about that which it became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The rule's index among the source's.
    pub rule: usize,
    /// In words, such as `principal User:* takes in more than User:alice`.
    pub reason: String,
}

/// What widens access when the source's rules become the mapped ones, each the answer to the rule of the same index.
/// Empty = nothing. At most one a rule of the source.
pub fn widenings(sources: &[AclRule], mapped: &[Vec<AclRule>]) -> Vec<Widening> {
    let mut found = Vec::new();
    for (rule, (source, answer)) in sources.iter().zip(mapped).enumerate() {
        let reason = match (source.permission, answer.as_slice()) {
            (Permission::Deny, []) => dropped_denial(source, sources, mapped),
            (Permission::Allow, answer) => answer.iter().find_map(|mapped| wider(source, mapped)),
            (Permission::Deny, answer) => wider_answer_to_denial(source, answer)
                .or_else(|| moved_denial((source, answer), sources, mapped)),
        };
        found.extend(reason.map(|reason| Widening { rule, reason }));
    }
    found
}

/// Whether access under `mapped` is no wider than under `source`, each taken alone.
pub fn is_never_wider(source: &AclRule, mapped: &AclRule) -> bool {
    wider(source, mapped).is_none()
}

/// One of the rules must deny all that was denied; what others deny beside it is welcome.
fn wider_answer_to_denial(source: &AclRule, answer: &[AclRule]) -> Option<String> {
    let allowing = answer.iter().find(|mapped| mapped.permission == Permission::Allow);
    if let Some(mapped) = allowing {
        return wider(source, mapped);
    }
    let mut reasons = Vec::with_capacity(answer.len());
    for mapped in answer {
        reasons.push(wider(source, mapped)?);
    }
    reasons.into_iter().next()
}

/// A denial may go when nothing is left that it took away from.
fn dropped_denial(denial: &AclRule, sources: &[AclRule], mapped: &[Vec<AclRule>]) -> Option<String> {
    let kept = sources.iter().zip(mapped).find(|(source, answer)| {
        source.permission == Permission::Allow && !answer.is_empty() && overlap(source, denial)
    })?;
    Some(format!("it is dropped, and a rule that it takes away from stays: {}", Described(kept.0)))
}

/// Whoever stands for another in a rule that allows must do so in the denials beside it, too; else the denial keeps out
/// somebody else. Who is let in as one of all (`User:*`) may be called anything.
fn moved_denial(
    (denial, answer): (&AclRule, &[AclRule]),
    sources: &[AclRule],
    mapped: &[Vec<AclRule>],
) -> Option<String> {
    let allowing = sources
        .iter()
        .zip(mapped)
        .filter(|(source, _)| source.permission == Permission::Allow && overlap(source, denial));
    for (source, kept) in allowing {
        let follows = |kept: &AclRule, denied: &AclRule| {
            wider(denial, denied).is_none()
                && (source.principal != denial.principal || holds_all_of(&denied.principal, &kept.principal))
                && (source.host != denial.host || denied.host == WILDCARD || denied.host == kept.host)
        };
        let mut kept = kept.iter().filter(|kept| kept.permission == Permission::Allow);
        let left = kept.find(|kept| !answer.iter().any(|denied| follows(kept, denied)));
        if let Some(left) = left {
            return Some(format!(
                "it keeps out others, and a rule that it takes away from stays: {}",
                Described(left)
            ));
        }
    }
    None
}

/// Whether a rule for `outer` is one for `inner`.
fn holds_all_of(outer: &str, inner: &str) -> bool {
    let of_type = outer.strip_suffix(WILDCARD).filter(|of_type| of_type.ends_with(':'));
    outer == inner || of_type.is_some_and(|of_type| inner.starts_with(of_type))
}

fn wider(source: &AclRule, mapped: &AclRule) -> Option<String> {
    match (source.permission, mapped.permission) {
        (Permission::Deny, Permission::Allow) => Some("a rule that denies became one that allows".to_owned()),
        // Less than it was: it gave something, and takes something away now.
        (Permission::Allow, Permission::Deny) => None,
        (Permission::Allow, Permission::Allow) => not_within(mapped, source, Side::Allowed),
        (Permission::Deny, Permission::Deny) => not_within(source, mapped, Side::Denied),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The mapped rule must lie within the source's.
    Allowed,
    /// The source's rule must lie within the mapped one.
    Denied,
}

impl Side {
    fn words(self, what: &str, inner: &str, outer: &str) -> String {
        match self {
            Self::Allowed => format!("{what} {inner} takes in more than {outer}"),
            Self::Denied => format!("{what} {outer} denies less than {inner}"),
        }
    }
}

/// Where `inner` reaches beyond `outer`.
fn not_within(inner: &AclRule, outer: &AclRule, side: Side) -> Option<String> {
    if inner.kind != outer.kind {
        return Some("it is about another kind of resource".to_owned());
    }
    if !is_resource_within(inner, outer) {
        return Some(side.words("resource", &resource(inner), &resource(outer)));
    }
    if !is_principal_within(&inner.principal, &outer.principal) {
        return Some(side.words("principal", &inner.principal, &outer.principal));
    }
    if !is_host_within(&inner.host, &outer.host) {
        return Some(side.words("host", &inner.host, &outer.host));
    }
    if !is_operation_within(&inner.operation, &outer.operation, side) {
        return Some(side.words("operation", &inner.operation, &outer.operation));
    }
    None
}

fn is_resource_within(inner: &AclRule, outer: &AclRule) -> bool {
    match (inner.pattern, outer.pattern) {
        (_, Pattern::Literal) if outer.name == WILDCARD => true,
        // The wildcard begins with no prefix; an empty prefix is every name.
        (Pattern::Literal, _) if inner.name == WILDCARD => {
            outer.pattern == Pattern::Prefixed && outer.name.is_empty()
        }
        (_, Pattern::Prefixed) => inner.name.starts_with(&outer.name),
        (Pattern::Literal, Pattern::Literal) => inner.name == outer.name,
        (Pattern::Prefixed, Pattern::Literal) => false,
    }
}

/// One principal may stand for another of the same type (that is what mapping is for), but not all for one.
fn is_principal_within(inner: &str, outer: &str) -> bool {
    let (Some((inner_type, inner_name)), Some((outer_type, outer_name))) =
        (inner.split_once(':'), outer.split_once(':'))
    else {
        return inner == outer;
    };
    inner_type == outer_type && !inner_name.is_empty() && (inner_name != WILDCARD || outer_name == WILDCARD)
}

/// One host may stand for another, but not all for one, and no range for an address.
fn is_host_within(inner: &str, outer: &str) -> bool {
    if outer == WILDCARD || inner == outer {
        return true;
    }
    let is_single = |host: &str| !host.is_empty() && !host.contains(['*', '/', ',', ' ']);
    is_single(inner) && is_single(outer)
}

/// Kafka lets who may read, write, delete or alter also describe; a denial implies nothing.
fn is_operation_within(inner: &str, outer: &str, side: Side) -> bool {
    if inner == outer || outer == EVERY_OPERATION {
        return true;
    }
    let implied = match inner {
        "DESCRIBE" => matches!(outer, "READ" | "WRITE" | "DELETE" | "ALTER"),
        "DESCRIBE_CONFIGS" => outer == "ALTER_CONFIGS",
        _ => false,
    };
    side == Side::Allowed && implied
}

/// Whether a request exists that both rules speak of.
fn overlap(allowing: &AclRule, denial: &AclRule) -> bool {
    let either_way = |is_within: &dyn Fn(&AclRule, &AclRule) -> bool| {
        is_within(allowing, denial) || is_within(denial, allowing)
    };
    let is_same_or_all = |one: &str, other: &str| one == other || one == WILDCARD || other == WILDCARD;
    let is_principal_shared = allowing.principal == denial.principal
        || allowing.principal.ends_with(":*")
        || denial.principal.ends_with(":*");
    let is_operation_shared =
        either_way(&|one, other| is_operation_within(&one.operation, &other.operation, Side::Allowed));
    allowing.kind == denial.kind
        && either_way(&is_resource_within)
        && is_principal_shared
        && is_same_or_all(&allowing.host, &denial.host)
        && is_operation_shared
}

fn resource(rule: &AclRule) -> String {
    match rule.pattern {
        Pattern::Literal => format!("{:?}", rule.name),
        Pattern::Prefixed => format!("{:?} and all that begins so", rule.name),
    }
}

/// A rule in a sentence.
struct Described<'a>(&'a AclRule);

impl fmt::Display for Described<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AclRule { principal, host, operation, .. } = self.0;
        write!(formatter, "{principal} from host {host} may {operation} {}", resource(self.0))
    }
}

#[cfg(test)]
mod tests;
