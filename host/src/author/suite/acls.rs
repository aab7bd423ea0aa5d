//! Access rules in, access rules out.

use similar::{ChangeTag, TextDiff};

use crate::author::fixture::{AclCase, Case, Rule, RuleKind, RulePattern, RulePermission};
use crate::plugin::{AclRule, LoadedPlugin, Pattern, Permission, ResourceKind};

pub(super) fn check(plugin: &LoadedPlugin, case: &Case) -> Vec<String> {
    if case.acls.is_empty() {
        return Vec::new();
    }
    let rules: Vec<AclRule> = case.acls.iter().map(|acl| host_rule(&acl.rule)).collect();
    let answers = match plugin.acl_mapping().map(&rules) {
        Ok(answers) => answers,
        Err(fault) => return vec![fault.to_string()],
    };
    case.acls
        .iter()
        .zip(&rules)
        .zip(&answers)
        .flat_map(|((acl, rule), found)| failures(acl, rule, found))
        .collect()
}

fn failures(case: &AclCase, rule: &AclRule, found: &[AclRule]) -> Vec<String> {
    let mut failures = Vec::new();
    let expected: Vec<AclRule> = case.becomes.iter().map(host_rule).collect();
    if expected != found {
        failures.push(format!("{}: (- expected, + found)\n{}", words(rule), diff(&expected, found)));
    }
    failures
}

fn diff(expected: &[AclRule], found: &[AclRule]) -> String {
    let text = |rules: &[AclRule]| -> String {
        match rules {
            [] => "nothing\n".to_owned(),
            _ => rules.iter().map(|rule| format!("{}\n", words(rule))).collect(),
        }
    };
    let (expected, found) = (text(expected), text(found));
    let diff = TextDiff::from_lines(&expected, &found);
    let sign = |tag| match tag {
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
        ChangeTag::Equal => ' ',
    };
    let lines = diff.iter_all_changes().map(|change| format!("  {} {}", sign(change.tag()), change.value()));
    lines.collect::<String>().trim_end().to_owned()
}

/// One line, such as `allow READ on topic orders (literal) to User:shop from *`.
fn words(rule: &AclRule) -> String {
    let permission = match rule.permission {
        Permission::Allow => "allow",
        Permission::Deny => "deny",
    };
    let kind = match rule.kind {
        ResourceKind::Topic => "topic",
        ResourceKind::Group => "group",
        ResourceKind::TransactionalId => "transactional-id",
        ResourceKind::Cluster => "cluster",
        ResourceKind::DelegationToken => "delegation-token",
        ResourceKind::User => "user",
    };
    let pattern = match rule.pattern {
        Pattern::Literal => "literal",
        Pattern::Prefixed => "prefixed",
    };
    let AclRule { operation, name, principal, host, .. } = rule;
    format!("{permission} {operation} on {kind} {name} ({pattern}) to {principal} from {host}")
}

fn host_rule(rule: &Rule) -> AclRule {
    AclRule {
        kind: match rule.kind {
            RuleKind::Topic => ResourceKind::Topic,
            RuleKind::Group => ResourceKind::Group,
            RuleKind::TransactionalId => ResourceKind::TransactionalId,
            RuleKind::Cluster => ResourceKind::Cluster,
            RuleKind::DelegationToken => ResourceKind::DelegationToken,
            RuleKind::User => ResourceKind::User,
        },
        name: rule.name.clone(),
        pattern: match rule.pattern {
            RulePattern::Literal => Pattern::Literal,
            RulePattern::Prefixed => Pattern::Prefixed,
        },
        principal: rule.principal.clone(),
        host: rule.host.clone(),
        operation: rule.operation.clone(),
        permission: match rule.permission {
            RulePermission::Allow => Permission::Allow,
            RulePermission::Deny => Permission::Deny,
        },
    }
}
