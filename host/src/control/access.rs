//! What the source's access rules about copied topics become on the target: MirrorMaker 2's rule first, then the plugins'
//! mapping, then the names. Pure but for the plugins; nothing is changed on a cluster.
//!
//! MirrorMaker 2 takes rules about single topics only, never grants WRITE on a copy, and makes ALL of it READ. No plugin may
//! make a rule wider than it was at the source: such a one is refused.

use serde::Serialize;

use super::policies::AccessMapping;
use crate::cluster::access::TopicAccess;
use crate::names::TopicName;
use crate::plugin::{AclRule, Pattern, Permission, ResourceKind, widenings};
use crate::topic_map::TopicMap;

/// A rule as a plan shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessRule {
    /// The topic.
    pub topic: String,
    /// Who.
    pub principal: String,
    /// From where.
    pub host: String,
    /// Kafka's word.
    pub operation: String,
    /// It lets in; otherwise it keeps out.
    pub is_allowed: bool,
}

/// What a rule of the source becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedAccess {
    /// As it stands on the source.
    pub source: AccessRule,
    /// What it would be on the target; empty when a plugin drops it.
    pub target: Vec<AccessRule>,
}

/// What would be done with access rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessPlan {
    /// Rules and what they become, as they lie on the source.
    pub rules: Vec<MappedAccess>,
    /// Rules that a plugin would make wider, and plugins that failed: not done.
    pub refusals: Vec<String>,
    /// Rules that stay on the source, in one sentence for each reason.
    pub notes: Vec<String>,
}

/// A rule on its way: where it began, and what it is by now.
struct Travelling {
    source: AclRule,
    now: Vec<AclRule>,
}

/// Plans the access rules of a flow.
pub(super) fn plan_access(
    rules: &[TopicAccess],
    topic_map: &TopicMap,
    mappings: &mut [Box<dyn AccessMapping>],
) -> AccessPlan {
    let mut plan = AccessPlan { notes: staying(rules, topic_map), ..AccessPlan::default() };
    let mut travelling: Vec<Travelling> =
        rules.iter().filter(|rule| is_copied(rule, topic_map)).map(depart).collect();
    for mapping in mappings {
        if let Err(text) = map_all(mapping.as_mut(), &mut travelling, &mut plan.refusals) {
            plan.refusals.push(text);
            return plan;
        }
    }
    for rule in travelling {
        arrive(rule, topic_map, &mut plan);
    }
    plan
}

/// MirrorMaker 2's choice.
fn is_copied(rule: &TopicAccess, topic_map: &TopicMap) -> bool {
    let is_write = rule.is_allowed && rule.operation == "WRITE";
    !rule.is_prefixed && !is_write && target_of(&rule.name, topic_map).is_some()
}

fn target_of<'a>(topic: &str, topic_map: &'a TopicMap) -> Option<&'a TopicName> {
    topic_map.target_of(&TopicName::parse(topic).ok()?)
}

fn staying(rules: &[TopicAccess], topic_map: &TopicMap) -> Vec<String> {
    let count = |is: &dyn Fn(&TopicAccess) -> bool| rules.iter().filter(|rule| is(rule)).count();
    let is_wide = |rule: &TopicAccess| rule.is_prefixed || rule.name == "*";
    let is_write = |rule: &TopicAccess| {
        !is_wide(rule)
            && rule.is_allowed
            && rule.operation == "WRITE"
            && target_of(&rule.name, topic_map).is_some()
    };
    let is_other = |rule: &TopicAccess| !is_wide(rule) && target_of(&rule.name, topic_map).is_none();
    let line = |count: usize, why: &str| {
        let noun = if count == 1 { "rule" } else { "rules" };
        (count > 0).then(|| format!("{count} access {noun} of the source {why}"))
    };
    [
        line(count(&is_wide), "for more than one topic: only rules about single topics are copied"),
        line(count(&is_write), "for WRITE: only the flow writes to a copy"),
        line(count(&is_other), "about topics that are not copied"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn depart(rule: &TopicAccess) -> Travelling {
    let source = AclRule {
        kind: ResourceKind::Topic,
        name: rule.name.clone(),
        pattern: Pattern::Literal,
        principal: rule.principal.clone(),
        host: rule.host.clone(),
        operation: rule.operation.clone(),
        permission: if rule.is_allowed { Permission::Allow } else { Permission::Deny },
    };
    let mut now = source.clone();
    if rule.is_allowed && rule.operation == "ALL" {
        now.operation = "READ".to_owned();
    }
    Travelling { source, now: vec![now] }
}

/// Lets one plugin map every rule. A rule that became wider is refused: one that allows is left out, one that denies stays
/// as it was, so that nobody gains by it. The error is the plugin's fault.
fn map_all(
    mapping: &mut dyn AccessMapping,
    travelling: &mut [Travelling],
    refusals: &mut Vec<String>,
) -> Result<(), String> {
    let asked: Vec<AclRule> = travelling.iter().flat_map(|rule| rule.now.iter().cloned()).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let plugin = mapping.name().to_owned();
    let mut mapped = mapping.map(&asked).map_err(|fault| {
        format!("no access rule would be copied: plugin \"{plugin}\" failed: {fault}; it is asked again with the next plan")
    })?;
    if mapped.len() != asked.len() {
        return Err(format!(
            "no access rule would be copied: plugin \"{plugin}\" answered for {} of {}",
            mapped.len(),
            asked.len()
        ));
    }
    for widening in widenings(&asked, &mapped) {
        let (Some(rule), Some(answer)) = (asked.get(widening.rule), mapped.get_mut(widening.rule)) else {
            continue;
        };
        let way_out = match rule.permission {
            Permission::Allow => "it is left out",
            Permission::Deny => "it stays as it is",
        };
        refusals.push(format!(
            "access rule \"{}\": plugin \"{plugin}\" would make it wider ({}), so {way_out}; correct the plugin or its settings",
            described(&shown(rule)),
            widening.reason
        ));
        *answer = match rule.permission {
            Permission::Allow => Vec::new(),
            Permission::Deny => vec![rule.clone()],
        };
    }
    let mut mapped = mapped.into_iter();
    for rule in travelling {
        rule.now = mapped.by_ref().take(rule.now.len()).flatten().collect();
    }
    Ok(())
}

/// Gives a rule its topic's name on the target.
fn arrive(rule: Travelling, topic_map: &TopicMap, plan: &mut AccessPlan) {
    let mut target = Vec::with_capacity(rule.now.len());
    for now in &rule.now {
        let is_topic = now.kind == ResourceKind::Topic && now.pattern == Pattern::Literal;
        match target_of(&now.name, topic_map).filter(|_| is_topic) {
            Some(name) => target.push(AccessRule { topic: name.to_string(), ..shown(now) }),
            // A rule that denies must not get lost: it holds for its own topic at least.
            None if now.permission == Permission::Deny => {
                let own = target_of(&rule.source.name, topic_map).map(ToString::to_string);
                target.extend(own.map(|topic| AccessRule { topic, ..shown(now) }));
            }
            None => plan.refusals.push(format!(
                "access rule \"{}\" became \"{}\", and that is about no topic that is copied, so it is left out",
                described(&shown(&rule.source)),
                described(&shown(now))
            )),
        }
    }
    plan.rules.push(MappedAccess { source: shown(&rule.source), target });
}

fn shown(rule: &AclRule) -> AccessRule {
    AccessRule {
        topic: rule.name.clone(),
        principal: rule.principal.clone(),
        host: rule.host.clone(),
        operation: rule.operation.clone(),
        is_allowed: rule.permission == Permission::Allow,
    }
}

/// `User:alice may READ orders from *`.
fn described(rule: &AccessRule) -> String {
    let AccessRule { topic, principal, host, operation, is_allowed } = rule;
    let may = if *is_allowed { "may" } else { "may not" };
    format!("{principal} {may} {operation} {topic} from {host}")
}

impl std::fmt::Display for MappedAccess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let target: Vec<String> = self.target.iter().map(described).collect();
        let target = if target.is_empty() { "nothing".to_owned() } else { target.join("; ") };
        write!(formatter, "{} -> {target}", described(&self.source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers by a function.
    struct Mapping<F>(F);

    impl<F: FnMut(&AclRule) -> Vec<AclRule> + Send + Sync> AccessMapping for Mapping<F> {
        fn name(&self) -> &str {
            "guests"
        }

        fn map(&mut self, rules: &[AclRule]) -> Result<Vec<Vec<AclRule>>, String> {
            Ok(rules.iter().map(&mut self.0).collect())
        }
    }

    struct Broken;

    impl AccessMapping for Broken {
        fn name(&self) -> &str {
            "broken"
        }

        fn map(&mut self, _: &[AclRule]) -> Result<Vec<Vec<AclRule>>, String> {
            Err("it trapped".to_owned())
        }
    }

    fn rule(name: &str, principal: &str, operation: &str, is_allowed: bool) -> TopicAccess {
        TopicAccess {
            name: name.to_owned(),
            is_prefixed: false,
            principal: principal.to_owned(),
            host: "*".to_owned(),
            operation: operation.to_owned(),
            is_allowed,
        }
    }

    fn topic_map() -> TopicMap {
        let mut map = TopicMap::default();
        let topic = |name| TopicName::parse(name).unwrap();
        map.insert(topic("orders"), topic("A.orders")).unwrap();
        map
    }

    fn lines(rules: &[TopicAccess], mappings: &mut [Box<dyn AccessMapping>]) -> Vec<String> {
        let plan = plan_access(rules, &topic_map(), mappings);
        let rules = plan.rules.iter().map(ToString::to_string);
        rules.chain(plan.refusals.iter().cloned()).chain(plan.notes.iter().cloned()).collect()
    }

    #[test]
    fn rules_go_as_mirror_maker_sends_them() {
        let rules = [
            rule("orders", "User:alice", "READ", true),
            rule("orders", "User:bob", "ALL", true),
            rule("orders", "User:eve", "ALL", false),
            rule("orders", "User:bob", "WRITE", true),
            rule("orders", "User:eve", "WRITE", false),
            rule("bills", "User:alice", "READ", true),
            rule("*", "User:alice", "READ", true),
            TopicAccess { is_prefixed: true, ..rule("ord", "User:alice", "READ", true) },
        ];
        assert_eq!(
            lines(&rules, &mut []),
            [
                "User:alice may READ orders from * -> User:alice may READ A.orders from *",
                "User:bob may ALL orders from * -> User:bob may READ A.orders from *",
                "User:eve may not ALL orders from * -> User:eve may not ALL A.orders from *",
                "User:eve may not WRITE orders from * -> User:eve may not WRITE A.orders from *",
                "2 access rules of the source for more than one topic: only rules about single topics are copied",
                "1 access rule of the source for WRITE: only the flow writes to a copy",
                "1 access rule of the source about topics that are not copied",
            ]
        );
    }

    #[test]
    fn plugins_map_one_after_the_other_and_names_come_last() {
        let first = |rule: &AclRule| match rule.principal.as_str() {
            "User:drop" => Vec::new(),
            name => vec![AclRule { principal: format!("{name}@east"), ..rule.clone() }],
        };
        let second = |rule: &AclRule| vec![AclRule { host: "10.0.0.1".to_owned(), ..rule.clone() }];
        let mut mappings: Vec<Box<dyn AccessMapping>> =
            vec![Box::new(Mapping(first)), Box::new(Mapping(second))];
        let rules = [rule("orders", "User:alice", "READ", true), rule("orders", "User:drop", "READ", true)];
        assert_eq!(
            lines(&rules, &mut mappings),
            [
                "User:alice may READ orders from * -> User:alice@east may READ A.orders from 10.0.0.1",
                "User:drop may READ orders from * -> nothing",
            ]
        );
    }

    #[test]
    fn a_rule_that_became_wider_is_refused_and_a_denial_stays() {
        let everyone = |rule: &AclRule| match rule.permission {
            Permission::Allow => vec![AclRule { principal: "User:*".to_owned(), ..rule.clone() }],
            Permission::Deny => vec![AclRule { permission: Permission::Allow, ..rule.clone() }],
        };
        let mut mappings: Vec<Box<dyn AccessMapping>> = vec![Box::new(Mapping(everyone))];
        let rules = [rule("orders", "User:alice", "READ", true), rule("orders", "User:eve", "READ", false)];
        let plan = plan_access(&rules, &topic_map(), &mut mappings);
        assert_eq!(plan.refusals.len(), 2, "{plan:?}");
        assert!(plan.refusals[0].starts_with(
            "access rule \"User:alice may READ orders from *\": plugin \"guests\" would make it wider ("
        ));
        assert!(plan.refusals[0].ends_with("so it is left out; correct the plugin or its settings"));
        assert!(plan.refusals[1].ends_with("so it stays as it is; correct the plugin or its settings"));
        let rules: Vec<String> = plan.rules.iter().map(ToString::to_string).collect();
        assert_eq!(
            rules,
            [
                "User:alice may READ orders from * -> nothing",
                "User:eve may not READ orders from * -> User:eve may not READ A.orders from *",
            ]
        );
    }

    #[test]
    fn after_a_fault_no_rule_goes() {
        let rules = [rule("orders", "User:alice", "READ", true)];
        assert_eq!(
            lines(&rules, &mut [Box::new(Broken)]),
            [
                "no access rule would be copied: plugin \"broken\" failed: it trapped; it is asked again with the next plan"
            ]
        );
    }

    #[test]
    fn a_rule_may_not_move_to_a_topic_that_is_not_copied() {
        let elsewhere = |rule: &AclRule| vec![AclRule { kind: ResourceKind::Group, ..rule.clone() }];
        let mut mappings: Vec<Box<dyn AccessMapping>> = vec![Box::new(Mapping(elsewhere))];
        let plan = plan_access(&[rule("orders", "User:alice", "READ", true)], &topic_map(), &mut mappings);
        assert_eq!(plan.rules[0].target, []);
        assert_eq!(plan.refusals.len(), 1, "{plan:?}");
    }
}
