//! Reads who may do what with a cluster's topics, and which consumer groups it has.

use std::collections::BTreeSet;

use anyhow::Context;
use kafka_protocol::messages::describe_acls_response::{AclDescription, DescribeAclsResource};
use kafka_protocol::messages::{DescribeAclsRequest, ListGroupsRequest};

use super::admin::{BrokerRefusal, ClusterAdmin};

/// `ResourceType.TOPIC`.
const TOPIC: i8 = 2;

/// `PatternType.ANY`, `AclOperation.ANY` and `AclPermissionType.ANY`.
const ANY: i8 = 1;

/// `PatternType.PREFIXED`.
const PREFIXED: i8 = 4;

/// `AclPermissionType.ALLOW`.
const ALLOW: i8 = 3;

/// Kafka's words for operations, by their numbers.
const OPERATIONS: [(i8, &str); 14] = [
    (2, "ALL"),
    (3, "READ"),
    (4, "WRITE"),
    (5, "CREATE"),
    (6, "DELETE"),
    (7, "ALTER"),
    (8, "DESCRIBE"),
    (9, "CLUSTER_ACTION"),
    (10, "DESCRIBE_CONFIGS"),
    (11, "ALTER_CONFIGS"),
    (12, "IDEMPOTENT_WRITE"),
    (13, "CREATE_TOKENS"),
    (14, "DESCRIBE_TOKENS"),
    (15, "TWO_PHASE_COMMIT"),
];

/// The protocol of groups that read topics; older tools that only store offsets have an empty one.
const CONSUMER_PROTOCOLS: [&str; 2] = ["consumer", ""];

/// One access rule about topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicAccess {
    /// A topic, `*` for all, or how names begin.
    pub name: String,
    /// `name` is how names begin.
    pub is_prefixed: bool,
    /// Such as `User:alice`.
    pub principal: String,
    /// An address, or `*`.
    pub host: String,
    /// Kafka's word, such as `READ`; a number that we don't know is `OPERATION_n`.
    pub operation: String,
    /// It lets in; otherwise it keeps out.
    pub is_allowed: bool,
}

impl ClusterAdmin {
    /// The access rules about topics, or the broker's refusal: SECURITY_DISABLED where nothing guards the cluster.
    pub async fn topic_access(&self) -> anyhow::Result<Result<Vec<TopicAccess>, BrokerRefusal>> {
        let request = DescribeAclsRequest::default()
            .with_resource_type_filter(TOPIC)
            .with_resource_name_filter(None)
            .with_pattern_type_filter(ANY)
            .with_principal_filter(None)
            .with_host_filter(None)
            .with_operation(ANY)
            .with_permission_type(ANY);
        let answer =
            self.client().call_any(request).await.with_context(|| {
                format!("could not read the access rules of cluster \"{}\"", self.alias())
            })?;
        if let Some(refusal) = BrokerRefusal::from_answer(answer.error_code, answer.error_message.as_ref()) {
            return Ok(Err(refusal));
        }
        Ok(Ok(answer.resources.iter().flat_map(rules_of).collect()))
    }

    /// Every consumer group that some broker coordinates.
    pub async fn consumer_groups(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut groups = BTreeSet::new();
        for node in self.client().metadata().brokers.keys() {
            let context =
                || format!("could not list the groups of broker {node} of cluster \"{}\"", self.alias());
            let answer =
                self.client().call(*node, ListGroupsRequest::default()).await.with_context(context)?;
            if let Some(refusal) = BrokerRefusal::from_answer(answer.error_code, None) {
                return Err(anyhow::Error::new(refusal).context(context()));
            }
            let readers = answer
                .groups
                .iter()
                .filter(|group| CONSUMER_PROTOCOLS.contains(&group.protocol_type.as_str()));
            groups.extend(readers.map(|group| group.group_id.to_string()));
        }
        Ok(groups)
    }
}

fn rules_of(resource: &DescribeAclsResource) -> impl Iterator<Item = TopicAccess> {
    resource.acls.iter().map(|rule| TopicAccess {
        name: resource.resource_name.to_string(),
        is_prefixed: resource.pattern_type == PREFIXED,
        principal: rule.principal.to_string(),
        host: rule.host.to_string(),
        operation: operation(rule),
        is_allowed: rule.permission_type == ALLOW,
    })
}

fn operation(rule: &AclDescription) -> String {
    let word = OPERATIONS.iter().find(|(number, _)| *number == rule.operation).map(|(_, word)| *word);
    word.map_or_else(|| format!("OPERATION_{}", rule.operation), str::to_owned)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    #[test]
    fn rules_are_read_with_kafkas_words() {
        let acl = |operation, permission_type| {
            AclDescription::default()
                .with_principal(StrBytes::from_static_str("User:alice"))
                .with_host(StrBytes::from_static_str("*"))
                .with_operation(operation)
                .with_permission_type(permission_type)
        };
        let resource = DescribeAclsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(StrBytes::from_static_str("orders"))
            .with_pattern_type(PREFIXED)
            .with_acls(vec![acl(3, 3), acl(2, 2), acl(77, 3)]);
        let rules: Vec<TopicAccess> = rules_of(&resource).collect();
        let words: Vec<(&str, bool)> =
            rules.iter().map(|rule| (rule.operation.as_str(), rule.is_allowed)).collect();
        assert_eq!(words, [("READ", true), ("ALL", false), ("OPERATION_77", true)]);
        assert!(rules.iter().all(|rule| rule.is_prefixed && rule.principal == "User:alice"));
    }
}
