//! What we ask of a cluster and tell it, outside the data path: its topics and their settings, the positions topic, the
//! group that shares the slots. Everything here is told what to do; `control` decides.

pub mod access;
pub mod admin;
pub mod connect;
pub mod creation;
pub mod group;
pub mod membership;
pub mod node;
pub mod positions;
pub mod positions_topic;

pub use admin::{BrokerRefusal, ClusterAdmin, ClusterView, ConfigEntry, ConfigOrigin, TopicId, TopicView};
pub use connect::client_options;
pub use creation::{NewTopic, Outcome};
pub use membership::{Membership, MembershipEvent, MembershipOptions};
pub use node::NodeIdentity;
pub use positions::read_positions;
pub use positions_topic::{PositionsTopic, PositionsTopicError};
