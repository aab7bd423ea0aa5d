//! `acl-mapping` in the contract's types.

use super::{Instance, acl_mapping};
use crate::{Acl, AclMapping, Pattern, Permission, ResourceKind};

impl<P: AclMapping> Instance<P> {
    pub fn map_acls(&self, acls: Vec<acl_mapping::Acl>) -> Result<Vec<Vec<acl_mapping::Acl>>, String> {
        self.with(|plugin| {
            acls.into_iter()
                .map(|acl| Ok(plugin.map(&from_wit(acl))?.into_iter().map(to_wit).collect()))
                .collect()
        })
    }
}

fn from_wit(acl: acl_mapping::Acl) -> Acl {
    Acl {
        kind: match acl.kind {
            acl_mapping::TargetKind::Topic => ResourceKind::Topic,
            acl_mapping::TargetKind::Group => ResourceKind::Group,
            acl_mapping::TargetKind::TransactionalId => ResourceKind::TransactionalId,
            acl_mapping::TargetKind::Cluster => ResourceKind::Cluster,
            acl_mapping::TargetKind::DelegationToken => ResourceKind::DelegationToken,
            acl_mapping::TargetKind::User => ResourceKind::User,
        },
        name: acl.name,
        pattern: match acl.pattern {
            acl_mapping::Pattern::Literal => Pattern::Literal,
            acl_mapping::Pattern::Prefixed => Pattern::Prefixed,
        },
        principal: acl.principal,
        host: acl.client_host,
        operation: acl.operation,
        permission: match acl.permission {
            acl_mapping::Permission::Allow => Permission::Allow,
            acl_mapping::Permission::Deny => Permission::Deny,
        },
    }
}

fn to_wit(acl: Acl) -> acl_mapping::Acl {
    acl_mapping::Acl {
        kind: match acl.kind {
            ResourceKind::Topic => acl_mapping::TargetKind::Topic,
            ResourceKind::Group => acl_mapping::TargetKind::Group,
            ResourceKind::TransactionalId => acl_mapping::TargetKind::TransactionalId,
            ResourceKind::Cluster => acl_mapping::TargetKind::Cluster,
            ResourceKind::DelegationToken => acl_mapping::TargetKind::DelegationToken,
            ResourceKind::User => acl_mapping::TargetKind::User,
        },
        name: acl.name,
        pattern: match acl.pattern {
            Pattern::Literal => acl_mapping::Pattern::Literal,
            Pattern::Prefixed => acl_mapping::Pattern::Prefixed,
        },
        principal: acl.principal,
        client_host: acl.host,
        operation: acl.operation,
        permission: match acl.permission {
            Permission::Allow => acl_mapping::Permission::Allow,
            Permission::Deny => acl_mapping::Permission::Deny,
        },
    }
}
