//! Tables of what is wider and what is not.

use super::super::acl::ResourceKind;
use super::*;

fn rule() -> AclRule {
    AclRule {
        kind: ResourceKind::Topic,
        name: "orders".to_owned(),
        pattern: Pattern::Literal,
        principal: "User:alice".to_owned(),
        host: "10.0.0.1".to_owned(),
        operation: "READ".to_owned(),
        permission: Permission::Allow,
    }
}

fn denial() -> AclRule {
    AclRule { permission: Permission::Deny, ..rule() }
}

fn with(change: impl FnOnce(&mut AclRule)) -> AclRule {
    let mut changed = rule();
    change(&mut changed);
    changed
}

fn named(pattern: Pattern, name: &str) -> AclRule {
    AclRule { pattern, name: name.to_owned(), ..rule() }
}

/// For two rules that allow; the same two as denials must judge the other way round.
fn check(inner: &AclRule, outer: &AclRule, is_within: bool) {
    assert_eq!(is_never_wider(outer, inner), is_within, "allowing {outer:?} becomes {inner:?}");
    let deny = |rule: &AclRule| AclRule { permission: Permission::Deny, ..rule.clone() };
    assert_eq!(is_never_wider(&deny(inner), &deny(outer)), is_within, "denying {inner:?} becomes {outer:?}");
}

#[test]
fn resources_may_shrink_and_never_grow() {
    use Pattern::{Literal, Prefixed};
    let case = |inner: (Pattern, &str), outer: (Pattern, &str), is_within: bool| {
        check(&named(inner.0, inner.1), &named(outer.0, outer.1), is_within);
    };
    case((Literal, "orders"), (Literal, "orders"), true);
    case((Literal, "orders"), (Literal, "*"), true);
    case((Prefixed, "orders"), (Literal, "*"), true);
    case((Prefixed, ""), (Literal, "*"), true);
    case((Literal, "orders-eu"), (Prefixed, "orders-"), true);
    case((Literal, "orders-"), (Prefixed, "orders-"), true);
    case((Prefixed, "orders-eu"), (Prefixed, "orders-"), true);
    case((Literal, "anything"), (Prefixed, ""), true);
    case((Literal, "*"), (Prefixed, ""), true);

    case((Literal, "payments"), (Literal, "orders"), false);
    case((Literal, "*"), (Literal, "orders"), false);
    case((Literal, "*"), (Prefixed, "orders"), false);
    case((Literal, "*"), (Prefixed, "*"), false);
    case((Prefixed, "orders"), (Literal, "orders"), false);
    case((Prefixed, "orders"), (Prefixed, "orders-"), false);
    case((Prefixed, ""), (Prefixed, "o"), false);
    case((Prefixed, "payments-"), (Prefixed, "orders-"), false);
    case((Literal, "order"), (Prefixed, "orders"), false);
}

#[test]
fn kinds_never_change() {
    for kind in [ResourceKind::Group, ResourceKind::TransactionalId, ResourceKind::Cluster] {
        check(&with(|rule| rule.kind = kind), &rule(), false);
    }
}

#[test]
fn a_principal_may_become_another_but_not_all() {
    let case = |inner: &str, outer: &str, is_within: bool| {
        let of = |principal: &str| with(|rule| rule.principal = principal.to_owned());
        check(&of(inner), &of(outer), is_within);
    };
    case("User:east-alice", "User:alice", true);
    case("User:alice", "User:*", true);
    case("User:*", "User:*", true);
    case("User:CN=alice,OU=a:b", "User:alice", true);
    case("odd", "odd", true);

    case("User:*", "User:alice", false);
    case("Group:alice", "User:alice", false);
    case("User:alice", "Group:staff", false);
    case("Group:*", "User:*", false);
    case("User:", "User:alice", false);
    case("*", "User:alice", false);
    case("", "User:alice", false);
    case("odd", "User:alice", false);
}

#[test]
fn a_host_may_become_another_but_not_all() {
    let case = |inner: &str, outer: &str, is_within: bool| {
        let at = |host: &str| with(|rule| rule.host = host.to_owned());
        check(&at(inner), &at(outer), is_within);
    };
    case("10.9.9.9", "10.0.0.1", true);
    case("fe80::1", "10.0.0.1", true);
    case("10.0.0.1", "*", true);
    case("*", "*", true);
    case("10.0.0.0/24", "10.0.0.0/24", true);

    case("*", "10.0.0.1", false);
    case("10.0.0.0/8", "10.0.0.1", false);
    case("10.0.0.*", "10.0.0.1", false);
    case("10.0.0.1,10.0.0.2", "10.0.0.1", false);
    case("", "10.0.0.1", false);
}

#[test]
fn an_operation_may_become_a_part_of_it() {
    let of = |operation: &str| with(|rule| rule.operation = operation.to_owned());
    check(&of("READ"), &of("ALL"), true);
    check(&of("SOMETHING_NEW"), &of("ALL"), true);
    check(&of("ALL"), &of("ALL"), true);
    check(&of("ALL"), &of("READ"), false);
    check(&of("WRITE"), &of("READ"), false);
    check(&of("READ"), &of("DESCRIBE"), false);
    check(&of("read"), &of("READ"), false);

    for stronger in ["READ", "WRITE", "DELETE", "ALTER"] {
        assert!(is_never_wider(&of(stronger), &of("DESCRIBE")), "{stronger} lets describe");
        let deny = |operation: &str| AclRule { permission: Permission::Deny, ..of(operation) };
        assert!(!is_never_wider(&deny("DESCRIBE"), &deny(stronger)), "denying {stronger} lets describe");
    }
    assert!(is_never_wider(&of("ALTER_CONFIGS"), &of("DESCRIBE_CONFIGS")));
    assert!(!is_never_wider(&of("READ"), &of("DESCRIBE_CONFIGS")));
}

#[test]
fn a_denial_never_lets_in() {
    assert!(!is_never_wider(&denial(), &rule()));
    assert!(is_never_wider(&rule(), &denial()));
    assert!(is_never_wider(&denial(), &denial()));
}

#[test]
fn each_rule_of_an_answer_is_judged() {
    let all = with(|rule| rule.principal = "User:*".to_owned());
    let bob = with(|rule| rule.principal = "User:bob".to_owned());
    let judge = |answer: Vec<AclRule>| widenings(&[rule()], &[answer]);

    assert_eq!(judge(vec![]), []);
    assert_eq!(judge(vec![rule(), bob.clone()]), []);
    let reason = "principal User:* takes in more than User:alice".to_owned();
    assert_eq!(judge(vec![rule(), bob, all]), [Widening { rule: 0, reason }]);
}

#[test]
fn one_rule_must_deny_what_was_denied() {
    let deny = |principal: &str| AclRule { principal: principal.to_owned(), ..denial() };
    let judge = |answer: Vec<AclRule>| -> Vec<String> {
        widenings(&[deny("User:*")], &[answer]).into_iter().map(|widening| widening.reason).collect()
    };
    assert_eq!(judge(vec![deny("User:bob"), deny("User:*")]), [""; 0]);
    assert_eq!(judge(vec![deny("User:bob")]), ["principal User:bob denies less than User:*"]);
    assert_eq!(
        judge(vec![deny("User:*"), AclRule { permission: Permission::Allow, ..deny("User:bob") }]),
        ["a rule that denies became one that allows"]
    );
}

#[test]
fn a_denial_goes_only_with_what_it_takes_away_from() {
    let everyone = with(|rule| {
        rule.principal = "User:*".to_owned();
        rule.host = "*".to_owned();
        rule.operation = "ALL".to_owned();
        rule.pattern = Pattern::Prefixed;
        rule.name = "ord".to_owned();
    });
    let judge = |allowing: &AclRule, is_kept: bool| {
        let kept = if is_kept { vec![allowing.clone()] } else { vec![] };
        widenings(&[allowing.clone(), denial()], &[kept, vec![]])
    };

    assert_eq!(judge(&everyone, false), []);
    let reason = "it is dropped, and a rule that it takes away from stays: User:* from host * may ALL \"ord\" and all \
                  that begins so"
        .to_owned();
    assert_eq!(judge(&everyone, true), [Widening { rule: 1, reason }]);
    let apart: [fn(&mut AclRule); 5] = [
        |rule| rule.principal = "User:bob".to_owned(),
        |rule| rule.host = "10.0.0.2".to_owned(),
        |rule| rule.operation = "WRITE".to_owned(),
        |rule| rule.name = "payments".to_owned(),
        |rule| rule.kind = ResourceKind::Group,
    ];
    for change in apart {
        assert_eq!(judge(&with(change), true), [], "{:?}", with(change));
    }
    assert_eq!(judge(&rule(), true).len(), 1);
}

#[test]
fn a_denial_goes_where_the_rule_goes_that_it_takes_away_from() {
    let named = |rule: AclRule, principal: &str, host: &str| AclRule {
        principal: principal.to_owned(),
        host: host.to_owned(),
        ..rule
    };
    let judge = |allowed: &[(&str, &str)], denied: &[(&str, &str)]| -> Vec<String> {
        let answer = |rule: &AclRule, to: &[(&str, &str)]| -> Vec<AclRule> {
            to.iter().map(|(principal, host)| named(rule.clone(), principal, host)).collect()
        };
        let mapped = [answer(&rule(), allowed), answer(&denial(), denied)];
        widenings(&[rule(), denial()], &mapped).into_iter().map(|widening| widening.reason).collect()
    };
    let (alice, bob) = (("User:alice", "10.0.0.1"), ("User:bob", "10.0.0.1"));
    assert_eq!(judge(&[alice], &[alice]), [""; 0]);
    assert_eq!(judge(&[bob], &[bob]), [""; 0]);
    assert_eq!(judge(&[alice, bob], &[bob, alice]), [""; 0]);
    assert_eq!(judge(&[alice, bob], &[("User:*", "*")]), [""; 0]);
    assert_eq!(judge(&[], &[bob]), [""; 0]);
    let left = |principal: &str, host: &str| {
        format!(
            "it keeps out others, and a rule that it takes away from stays: {principal} from host {host} may READ \"orders\""
        )
    };
    assert_eq!(judge(&[alice], &[bob]), [left("User:alice", "10.0.0.1")]);
    assert_eq!(judge(&[alice, bob], &[alice]), [left("User:bob", "10.0.0.1")]);
    assert_eq!(judge(&[alice], &[("User:alice", "10.0.0.2")]), [left("User:alice", "10.0.0.1")]);
    assert_eq!(judge(&[("User:alice", "10.0.0.2")], &[alice]), [left("User:alice", "10.0.0.2")]);

    let everyone = named(rule(), "User:*", "*");
    let mapped = [vec![everyone.clone()], vec![named(denial(), "User:bob", "10.0.0.1")]];
    assert_eq!(
        widenings(&[everyone, denial()], &mapped),
        [],
        "the one who is kept out may be called otherwise"
    );
}
