//! The settings: tables, patterns and drop rules. What would make rules wider is refused here, as far as it shows.

use tidegate_patterns::{Rewrite, WholeMatch};
use tidegate_plugin::{Problem, ResourceKind};
use tidegate_setting_tables::{Table, escape, read};

use crate::map::{Drop, Mapping, Rules, Text};
use crate::wider::{check_host, check_principal, is_everyone, is_everywhere};

/// More patterns or drop rules than this are refused.
const RULE_COUNT_MAX: usize = 1024;

/// What differs between principals and hosts.
struct Subject {
    table: &'static str,
    patterns: &'static str,
    check: fn(&str) -> Result<(), String>,
    /// Stands for everyone, or everywhere.
    is_all: fn(&str) -> bool,
    all: &'static str,
}

const PRINCIPALS: Subject = Subject {
    table: "principals",
    patterns: "principal_patterns",
    check: check_principal,
    is_all: is_everyone,
    all: "everyone",
};

const HOSTS: Subject = Subject {
    table: "hosts",
    patterns: "host_patterns",
    check: check_host,
    is_all: is_everywhere,
    all: "any host",
};

pub(crate) fn read_settings(settings: &str) -> Result<Rules, Vec<Problem>> {
    read(settings, |table| {
        let rules = Rules {
            principals: take_mapping(table, &PRINCIPALS),
            hosts: take_mapping(table, &HOSTS),
            drops: table.tables("drop", take_drop).unwrap_or_default(),
            is_unmatched_dropped: table.choice("unmatched", &["keep", "drop"]) == "drop",
        };
        for (name, count) in [
            ("principal_patterns", rules.principals.patterns.len()),
            ("host_patterns", rules.hosts.patterns.len()),
            ("drop", rules.drops.len()),
        ] {
            if count > RULE_COUNT_MAX {
                table.object_to(name, format!("has {count} entries, at most {RULE_COUNT_MAX} are taken"));
            }
        }
        rules
    })
}

fn take_mapping(table: &mut Table<'_>, subject: &Subject) -> Mapping {
    let mut mapping = Mapping::default();
    for (from, to) in table.string_table(subject.table) {
        let at = format!("{}/{}", subject.table, escape(&from));
        for text in [&from, &to] {
            if let Err(message) = (subject.check)(text) {
                table.object_to(&at, message);
            }
        }
        if (subject.is_all)(&to) && to != from {
            let message = format!("\"{to}\" is {}, which is wider than \"{from}\"", subject.all);
            table.object_to(&at, message);
        }
        mapping.table.insert(from, to);
    }
    mapping.patterns =
        table.tables(subject.patterns, |pattern| take_pattern(pattern, subject)).unwrap_or_default();
    mapping
}

fn take_pattern(table: &mut Table<'_>, subject: &Subject) -> Option<Rewrite> {
    let (expression, to) = (table.required_string("match"), table.required_string("to"));
    let (expression, to) = (expression?, to?);
    if (subject.is_all)(&to) {
        table.object_to("to", format!("\"{to}\" is {}, which is wider than what it is made of", subject.all));
        return None;
    }
    let matches = take_expression(table, "match", &expression)?;
    match Rewrite::new(matches, &to) {
        Ok(rewrite) => Some(rewrite),
        Err(message) => {
            table.object_to("to", message);
            None
        }
    }
}

fn take_expression(table: &mut Table<'_>, name: &str, expression: &str) -> Option<WholeMatch> {
    match WholeMatch::new(expression) {
        Ok(matches) => Some(matches),
        Err(message) => {
            table.object_to(name, message);
            None
        }
    }
}

fn take_drop(table: &mut Table<'_>) -> Option<Drop> {
    let drop = Drop {
        kind: take_kind(table),
        operation: table.string("operation").map(|operation| operation.to_ascii_uppercase()),
        principal: take_text(table, "principal", "principal_match"),
        host: take_text(table, "host", "host_match"),
        name: take_text(table, "name", "name_match"),
    };
    if drop.is_empty() {
        table.object_to("", "names nothing that is right, so it would drop every rule");
        return None;
    }
    Some(drop)
}

fn take_kind(table: &mut Table<'_>) -> Option<ResourceKind> {
    const KINDS: [(&str, ResourceKind); 6] = [
        ("topic", ResourceKind::Topic),
        ("group", ResourceKind::Group),
        ("transactional-id", ResourceKind::TransactionalId),
        ("cluster", ResourceKind::Cluster),
        ("delegation-token", ResourceKind::DelegationToken),
        ("user", ResourceKind::User),
    ];
    let kind = table.optional_choice("kind", &KINDS.map(|(name, _)| name))?;
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind)
}

/// As it stands, or by an expression; both is a problem.
fn take_text(table: &mut Table<'_>, whole: &'static str, expression: &'static str) -> Option<Text> {
    let (text, matches) = (table.string(whole), table.string(expression));
    match (text, matches) {
        (Some(_), Some(_)) => {
            table.object_to(expression, format!("stands beside \"{whole}\"; one of them is enough"));
            None
        }
        (Some(text), None) => Some(Text::Is(text)),
        (None, Some(matches)) => take_expression(table, expression, &matches).map(Text::Matches),
        (None, None) => None,
    }
}
