//! Flows and namers for the tests of this folder.

use std::collections::BTreeMap;
use std::path::Path;

use super::naming::{Naming, TopicNaming};
use crate::cluster::{ClusterView, TopicView};
use crate::config::{FlowConfig, LoadOptions, load_bytes};
use crate::names::{ClusterAlias, TopicName};

pub(super) fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

/// The flow A->B of a file with clusters A, B and C, one broker each, and these lines.
pub(super) fn flow(lines: &str) -> FlowConfig {
    let file = format!(
        "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n\
         A->B.enabled = true\nreplication.factor = 1\noffset.storage.replication.factor = 1\n{lines}\n"
    );
    let environment = BTreeMap::from([("HOME".to_owned(), "/home/test".to_owned())]);
    let options = LoadOptions { environment, ..LoadOptions::default() };
    let loaded = load_bytes("test.properties", file.as_bytes(), Path::new(""), &options);
    let config = loaded.unwrap().config;
    config.flows.into_iter().find(|flow| flow.name.to_string() == "A->B").unwrap()
}

/// `source.topic`, as MirrorMaker 2's default policy.
pub(super) struct Prefix(pub(super) &'static str);

impl TopicNaming for Prefix {
    fn name(&self) -> &str {
        "prefix"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        Ok(Ok(format!("{}.{topic}", self.0)))
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        Ok(topic.strip_prefix(self.0).and_then(|rest| rest.strip_prefix('.')).map(str::to_owned))
    }
}

/// Names stay, but for heartbeats, as MirrorMaker 2's identity policy.
pub(super) struct Identity(pub(super) &'static str);

impl TopicNaming for Identity {
    fn name(&self) -> &str {
        "identity"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        if topic.ends_with("heartbeats") { Prefix(self.0).to_target(topic) } else { Ok(Ok(topic.to_owned())) }
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        if topic.ends_with("heartbeats") {
            Prefix(self.0).to_source(topic)
        } else {
            Ok(Some(topic.to_owned()))
        }
    }
}

/// Answers from a table (topic, name); `!` before a name is the plugin's refusal, `?` a fault. Knows its names back.
pub(super) struct Table(pub(super) &'static [(&'static str, &'static str)]);

impl TopicNaming for Table {
    fn name(&self) -> &str {
        "table"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        let found = self.0.iter().find(|(known, _)| *known == topic).map_or(topic, |(_, name)| *name);
        match found.split_at_checked(1) {
            Some(("!", reason)) => Ok(Err(reason.to_owned())),
            Some(("?", fault)) => Err(fault.to_owned()),
            _ => Ok(Ok(found.to_owned())),
        }
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        Ok(self.0.iter().find(|(_, name)| *name == topic).map(|(known, _)| (*known).to_owned()))
    }
}

pub(super) fn naming(flow: &FlowConfig, own: impl TopicNaming + 'static) -> Naming {
    Naming::new(flow, Box::new(own), BTreeMap::new(), false)
}

/// The default policy of a file with A, B and C.
pub(super) fn prefix_naming(flow: &FlowConfig) -> Naming {
    let other = |alias: &'static str| -> (ClusterAlias, Box<dyn TopicNaming>) {
        (ClusterAlias::new(alias), Box::new(Prefix(alias)))
    };
    Naming::new(flow, Box::new(Prefix("A")), BTreeMap::from([other("B"), other("C")]), true)
}

/// A cluster called `id` with one broker and these topics: name, partitions, id.
pub(super) fn cluster(id: &str, topics: &[(&str, i32, u8)]) -> ClusterView {
    let view = |(name, partition_count, number): &(&str, i32, u8)| {
        let id = (*number > 0).then_some([*number; 16]);
        (topic(name), TopicView { id, partition_count: *partition_count, is_internal: false })
    };
    ClusterView {
        cluster_id: Some(id.to_owned()),
        broker_count: 1,
        topics: topics.iter().map(view).collect(),
        ..ClusterView::default()
    }
}
