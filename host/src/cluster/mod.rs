//! What we ask of a cluster and tell it, outside the data path: its topics and their settings, the positions topic, the
//! group that shares the slots. Everything here is told what to do; `control` decides.

pub mod access;
pub mod admin;
pub mod append;
pub mod connect;
pub mod creation;
pub mod group;
pub mod log_reader;
pub mod membership;
pub mod node;
pub mod plugins_log;
pub mod positions;
pub mod positions_topic;
pub mod recent;

pub use admin::{BrokerRefusal, ClusterAdmin, ClusterView, ConfigEntry, ConfigOrigin, TopicId, TopicView};
pub use append::{Appender, NewRecord};
pub use connect::client_options;
pub use creation::{NewTopic, Outcome};
pub use log_reader::{LogPart, LogReader, LogRecord};
pub use membership::{Membership, MembershipEvent, MembershipOptions};
pub use node::NodeIdentity;
pub use plugins_log::{
    ModulePlace, PluginsKey, PluginsLog, SHARED_MODULE_BYTES_MAX, digest_of, new_plugins_topic, plugins_topic,
};
pub use positions::read_positions;
pub use positions_topic::{PositionsTopic, PositionsTopicError};
