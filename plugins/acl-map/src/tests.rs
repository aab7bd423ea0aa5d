//! Rules, mapped by settings.

use tidegate_plugin::testing;
use tidegate_plugin::{Pattern, Permission, ResourceKind};

use super::*;

fn acl(principal: &str, host: &str) -> Acl {
    Acl {
        kind: ResourceKind::Topic,
        name: "orders".into(),
        pattern: Pattern::Literal,
        principal: principal.into(),
        host: host.into(),
        operation: "READ".into(),
        permission: Permission::Allow,
    }
}

fn map(settings: &str, acl: &Acl) -> Result<Vec<Acl>, String> {
    let plugin: AclMap = testing::start(settings).unwrap();
    plugin.map(acl)
}

/// A rule for this principal becomes one for that.
fn check_principal(settings: &str, from: &str, to: &str) {
    assert_eq!(map(settings, &acl(from, "*")), Ok(vec![acl(to, "*")]), "{settings} {from}");
}

#[test]
fn without_settings_rules_stay() {
    let rule = Acl { pattern: Pattern::Prefixed, permission: Permission::Deny, ..acl("User:*", "*") };
    assert_eq!(map("{}", &rule), Ok(vec![rule]));
}

#[test]
fn principals_are_mapped_by_table_then_by_pattern() {
    let settings = r#"{"principals":{"User:alice":"User:anna"},"principal_patterns":[
        {"match":"User:CN=([^,]+),.*","to":"User:$1"},{"match":"User:(?<name>a.*)","to":"User:east-${name}"}]}"#;
    check_principal(settings, "User:alice", "User:anna");
    check_principal(settings, "User:CN=bob,O=shop", "User:bob");
    check_principal(settings, "User:ada", "User:east-ada");
    check_principal(settings, "User:zoe", "User:zoe");
    check_principal(settings, "User:*", "User:*");
}

#[test]
fn hosts_are_mapped_by_table_then_by_pattern() {
    let settings =
        r#"{"hosts":{"10.0.0.1":"192.168.7.7"},"host_patterns":[{"match":"10\\.(.*)","to":"172.$1"}]}"#;
    for (from, to) in
        [("10.0.0.1", "192.168.7.7"), ("10.0.0.2", "172.0.0.2"), ("11.0.0.1", "11.0.0.1"), ("*", "*")]
    {
        assert_eq!(map(settings, &acl("User:a", from)), Ok(vec![acl("User:a", to)]));
    }
}

#[test]
fn rules_are_dropped() {
    let check = |drop: &str, acl: &Acl, is_dropped: bool| {
        let kept = map(&format!("{{\"drop\":[{drop}]}}"), acl).unwrap();
        assert_eq!(kept.is_empty(), is_dropped, "{drop} {acl:?}");
    };
    let rule = acl("User:tmp-1", "10.0.0.1");
    check(r#"{"principal":"User:tmp-1"}"#, &rule, true);
    check(r#"{"principal":"User:tmp"}"#, &rule, false);
    check(r#"{"principal":"User:*"}"#, &rule, false);
    check(r#"{"principal":"User:*"}"#, &acl("User:*", "*"), true);
    check(r#"{"principal_match":"User:tmp-.*"}"#, &rule, true);
    check(r#"{"principal_match":"tmp"}"#, &rule, false);
    check(r#"{"host":"10.0.0.1"}"#, &rule, true);
    check(r#"{"host_match":"11.*"}"#, &rule, false);
    check(r#"{"kind":"topic"}"#, &rule, true);
    check(r#"{"kind":"group"}"#, &rule, false);
    check(r#"{"operation":"read"}"#, &rule, true);
    check(r#"{"operation":"WRITE"}"#, &rule, false);
    check(r#"{"name":"orders","operation":"READ"}"#, &rule, true);
    check(r#"{"name_match":"ord.*","operation":"WRITE"}"#, &rule, false);
}

#[test]
fn unmatched_rules_are_dropped_if_wanted() {
    let settings = r#"{"principals":{"User:a":"User:a"},"unmatched":"drop"}"#;
    assert_eq!(map(settings, &acl("User:a", "*")), Ok(vec![acl("User:a", "*")]));
    assert_eq!(map(settings, &acl("User:b", "*")), Ok(vec![]));
    assert_eq!(map(settings, &acl("User:*", "*")), Ok(vec![]));
}

#[test]
fn what_denies_is_never_dropped_and_never_narrower() {
    let deny = |principal: &str| Acl { permission: Permission::Deny, ..acl(principal, "*") };
    let settings = r#"{"principals":{"User:a":"User:b","User:*":"User:b"},"drop":[{"kind":"topic"}],"unmatched":"drop"}"#;
    assert_eq!(map(settings, &deny("User:a")), Ok(vec![deny("User:b")]));
    assert_eq!(map(settings, &deny("User:c")), Ok(vec![deny("User:c")]));
    assert_eq!(
        map(settings, &deny("User:*")),
        Err("the rule for User:* from host * on \"orders\" would deny less than the source's: its principal would \
             become User:b"
            .to_owned())
    );
    let everyone_becomes_one = r#"{"principals":{"User:*":"User:b"}}"#;
    assert_eq!(map(everyone_becomes_one, &acl("User:*", "*")), Ok(vec![acl("User:b", "*")]));
}

#[test]
fn a_pattern_that_makes_everyone_of_someone_is_refused_at_the_rule() {
    let settings = r#"{"principal_patterns":[{"match":"(User:)(.*?)x?","to":"$1*"}]}"#;
    assert_eq!(
        map(settings, &acl("User:alice", "10.0.0.1")),
        Err("the rule for User:alice from host 10.0.0.1 on \"orders\" would allow more than the source's: its principal \
             would become User:*"
            .to_owned())
    );
    let settings = r#"{"principal_patterns":[{"match":"User:(.*)","to":"$1"}]}"#;
    assert_eq!(
        map(settings, &acl("User:alice", "*")),
        Err("\"alice\" is no principal: it is a type, a colon and a name, such as User:alice".to_owned())
    );
    let settings = r#"{"host_patterns":[{"match":"10(.*)","to":"1$1*"}]}"#;
    assert_eq!(
        map(settings, &acl("User:alice", "10.0.0.1")),
        Err("\"1.0.0.1*\" is no host: it is a client's address, or * for any".to_owned())
    );
}

#[test]
fn settings_are_checked() {
    let check = |settings: &str, problems: &[(&str, &str)]| {
        let problems: Vec<Problem> =
            problems.iter().map(|(at, message)| Problem::new(*at, *message)).collect();
        assert_eq!(testing::start::<AclMap>(settings).unwrap_err(), problems, "{settings}");
    };
    check(
        r#"{"principals":{"User:a":"User:*","b":"User:b","User:*":"User:*"},"hosts":{"10.0.0.1":"*","1.*":"2"},
            "principal_patterns":[{"match":"User:.*","to":"User:*"},{"match":"(","to":"User:a"},{"match":"a","to":"$1"}],
            "host_patterns":[{"match":".*","to":"*"}],
            "drop":[{},{"kind":"table"},{"principal":"User:a","principal_match":"x"},{"name_match":"["},{"host":"a","x":1}],
            "unmatched":"maybe"}"#,
        &[
            ("/principals/User:a", "\"User:*\" is everyone, which is wider than \"User:a\""),
            ("/principals/b", "\"b\" is no principal: it is a type, a colon and a name, such as User:alice"),
            ("/principal_patterns/0/to", "\"User:*\" is everyone, which is wider than what it is made of"),
            (
                "/principal_patterns/1/match",
                "\"(\" is no regular expression: found open group without closing ')'",
            ),
            ("/principal_patterns/2/to", "\"$1\" names the group \"1\", which the expression does not have"),
            ("/hosts/10.0.0.1", "\"*\" is any host, which is wider than \"10.0.0.1\""),
            ("/hosts/1.*", "\"1.*\" is no host: it is a client's address, or * for any"),
            ("/host_patterns/0/to", "\"*\" is any host, which is wider than what it is made of"),
            ("/drop/0", "names nothing that is right, so it would drop every rule"),
            (
                "/drop/1/kind",
                "must be one of topic, group, transactional-id, cluster, delegation-token, user, not \"table\"",
            ),
            ("/drop/1", "names nothing that is right, so it would drop every rule"),
            ("/drop/2/principal_match", "stands beside \"principal\"; one of them is enough"),
            ("/drop/2", "names nothing that is right, so it would drop every rule"),
            ("/drop/3/name_match", "\"[\" is no regular expression: found unclosed character class"),
            ("/drop/3", "names nothing that is right, so it would drop every rule"),
            (
                "/drop/4/x",
                "unknown field; there is: kind, operation, principal, principal_match, host, host_match, name, name_match",
            ),
            ("/unmatched", "must be one of keep, drop, not \"maybe\""),
        ],
    );
}
