//! Whether a mapped rule lets in more than the one it was made of.

use tidegate_plugin::{Acl, Pattern, Permission};

/// `User:*`, or any other type's `*`.
pub(crate) fn is_everyone(principal: &str) -> bool {
    principal.split_once(':').is_some_and(|(_, name)| name == "*")
}

/// Any client's address.
pub(crate) fn is_everywhere(host: &str) -> bool {
    host == "*"
}

/// Whether a text is a principal: a type and a name. An error is a sentence for the operator.
pub(crate) fn check_principal(principal: &str) -> Result<(), String> {
    match principal.split_once(':') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && kind != "*" => Ok(()),
        _ => Err(format!(
            "\"{principal}\" is no principal: it is a type, a colon and a name, such as User:alice"
        )),
    }
}

/// Whether a text can be a host: an address or `*`. An error is a sentence for the operator.
pub(crate) fn check_host(host: &str) -> Result<(), String> {
    if host.is_empty() || (host.contains('*') && !is_everywhere(host)) || host.contains(char::is_whitespace) {
        return Err(format!("\"{host}\" is no host: it is a client's address, or * for any"));
    }
    Ok(())
}

/// The mapped rule lets in no more than the source's. A rule that denies must keep out no less: there the same holds
/// the other way round. An error is a sentence for the operator.
pub(crate) fn check(source: &Acl, mapped: &Acl) -> Result<(), String> {
    check_principal(&mapped.principal)?;
    check_host(&mapped.host)?;
    let (narrow, wide, verb) = match source.permission {
        Permission::Allow => (source, mapped, "allow"),
        Permission::Deny => (mapped, source, "deny"),
    };
    let difference = if source.permission != mapped.permission {
        Some("permission")
    } else if is_everyone(&wide.principal) && wide.principal != narrow.principal {
        Some("principal")
    } else if is_everywhere(&wide.host) && !is_everywhere(&narrow.host) {
        Some("host")
    } else if source.kind != mapped.kind || !covers(narrow, wide) {
        Some("resource")
    } else if source.operation != mapped.operation {
        Some("operation")
    } else {
        None
    };
    match difference {
        None => Ok(()),
        Some(what) => {
            let how = if source.permission == Permission::Deny { "less" } else { "more" };
            Err(format!(
                "the rule for {} from host {} on \"{}\" would {verb} {how} than the source's: its {what} would become \
                 {}",
                source.principal,
                source.host,
                source.name,
                match what {
                    "principal" => &mapped.principal,
                    "host" => &mapped.host,
                    "operation" => &mapped.operation,
                    "resource" => &mapped.name,
                    _ => "the opposite",
                }
            ))
        }
    }
}

/// Whether all resources of `wide` are resources of `narrow`.
fn covers(narrow: &Acl, wide: &Acl) -> bool {
    match (narrow.pattern, wide.pattern) {
        (Pattern::Literal, Pattern::Literal) => narrow.name == wide.name || narrow.name == "*",
        (Pattern::Prefixed, _) => wide.name.starts_with(&narrow.name) && wide.name != "*",
        (Pattern::Literal, Pattern::Prefixed) => narrow.name == "*",
    }
}

#[cfg(test)]
mod tests {
    use tidegate_plugin::ResourceKind;

    use super::*;

    fn acl() -> Acl {
        Acl {
            kind: ResourceKind::Topic,
            name: "orders".into(),
            pattern: Pattern::Literal,
            principal: "User:alice".into(),
            host: "10.0.0.1".into(),
            operation: "READ".into(),
            permission: Permission::Allow,
        }
    }

    #[test]
    fn an_equal_or_narrower_rule_passes() {
        let pass = |source: &Acl, mapped: &Acl| assert_eq!(check(source, mapped), Ok(()));
        pass(&acl(), &acl());
        pass(&acl(), &Acl { principal: "User:bob".into(), host: "10.0.0.2".into(), ..acl() });
        let everyone = Acl { principal: "User:*".into(), host: "*".into(), ..acl() };
        pass(&everyone, &everyone);
        pass(&everyone, &acl());
        let deny = |acl: Acl| Acl { permission: Permission::Deny, ..acl };
        pass(&deny(acl()), &deny(everyone.clone()));
        let all = Acl { name: "*".into(), ..acl() };
        pass(&all, &acl());
        pass(&all, &Acl { pattern: Pattern::Prefixed, ..acl() });
        let prefixed = Acl { name: "or".into(), pattern: Pattern::Prefixed, ..acl() };
        pass(&prefixed, &acl());
        pass(&prefixed, &Acl { name: "ord".into(), ..prefixed.clone() });
    }

    #[test]
    fn a_wider_rule_is_refused_in_words() {
        let refuse = |source: Acl, mapped: Acl, message: &str| {
            assert_eq!(check(&source, &mapped), Err(message.to_owned()));
        };
        let rule = "the rule for User:alice from host 10.0.0.1 on \"orders\" would";
        let to = |what: &str, value: &str| {
            format!("{rule} allow more than the source's: its {what} would become {value}")
        };
        refuse(acl(), Acl { principal: "User:*".into(), ..acl() }, &to("principal", "User:*"));
        refuse(acl(), Acl { principal: "Group:*".into(), ..acl() }, &to("principal", "Group:*"));
        refuse(acl(), Acl { host: "*".into(), ..acl() }, &to("host", "*"));
        refuse(acl(), Acl { name: "*".into(), ..acl() }, &to("resource", "*"));
        refuse(acl(), Acl { pattern: Pattern::Prefixed, ..acl() }, &to("resource", "orders"));
        refuse(acl(), Acl { kind: ResourceKind::Group, ..acl() }, &to("resource", "orders"));
        refuse(acl(), Acl { operation: "ALL".into(), ..acl() }, &to("operation", "ALL"));
        refuse(acl(), Acl { permission: Permission::Deny, ..acl() }, &to("permission", "the opposite"));
        let prefixed = Acl { pattern: Pattern::Prefixed, ..acl() };
        refuse(prefixed.clone(), Acl { name: "or".into(), ..prefixed }, &to("resource", "or"));
    }

    #[test]
    fn a_denial_that_became_narrower_is_refused_in_words() {
        let everyone =
            Acl { principal: "User:*".into(), host: "*".into(), permission: Permission::Deny, ..acl() };
        let refuse = |mapped: Acl, what: &str, value: &str| {
            assert_eq!(
                check(&everyone, &mapped),
                Err(format!(
                    "the rule for User:* from host * on \"orders\" would deny less than the source's: its {what} would \
                     become {value}"
                ))
            );
        };
        refuse(Acl { principal: "User:bob".into(), ..everyone.clone() }, "principal", "User:bob");
        refuse(Acl { host: "10.0.0.1".into(), ..everyone.clone() }, "host", "10.0.0.1");
    }

    #[test]
    fn what_is_no_principal_or_no_host_is_refused_in_words() {
        for principal in ["", "alice", ":alice", "User:", "*", "*:alice"] {
            assert_eq!(
                check_principal(principal),
                Err(format!(
                    "\"{principal}\" is no principal: it is a type, a colon and a name, such as User:alice"
                ))
            );
        }
        for host in ["", "10.0.0.*", "a b"] {
            assert_eq!(
                check_host(host),
                Err(format!("\"{host}\" is no host: it is a client's address, or * for any"))
            );
        }
        assert_eq!(check_principal("User:CN=a,O=b:c"), Ok(()));
    }
}
