//! What an answer changes, and what an address is.

use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::metadata_response::MetadataResponseBroker;

use super::*;

/// An answer with topic "orders" of one partition, led by `leader` under `epoch`.
fn answer(topic_id: u128, leader: i32, epoch: i32) -> MetadataResponse {
    let partition = MetadataResponsePartition::default()
        .with_leader_id(BrokerId(leader))
        .with_leader_epoch(epoch)
        .with_replica_nodes(vec![BrokerId(1), BrokerId(2)]);
    let topic = MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_static_str("orders"))))
        .with_topic_id(format!("{topic_id:032x}").parse().unwrap())
        .with_partitions(vec![partition]);
    let broker = MetadataResponseBroker::default()
        .with_node_id(BrokerId(leader))
        .with_host(StrBytes::from_static_str("b"))
        .with_port(9092);
    MetadataResponse::default().with_brokers(vec![broker]).with_topics(vec![topic])
}

fn check(known: MetadataResponse, next: MetadataResponse, version: i16, leader: (NodeId, i32)) {
    let first = ClusterMetadata::default().updated(&TopicSelection::All, &known, version);
    for selection in [TopicSelection::All, TopicSelection::Named(vec!["orders".into()])] {
        assert_eq!(first.updated(&selection, &next, version).leader("orders", 0), Some(leader));
    }
}

#[test]
fn a_newer_or_equal_epoch_is_taken() {
    check(answer(7, 1, 3), answer(7, 2, 4), 12, (2, 4));
    check(answer(7, 1, 3), answer(7, 2, 3), 12, (2, 3));
}

#[test]
fn a_broker_that_lags_behind_does_not_move_the_leader_back() {
    check(answer(7, 1, 3), answer(7, 2, 2), 12, (1, 3));
}

#[test]
fn a_topic_made_anew_starts_its_epochs_again() {
    check(answer(7, 1, 3), answer(8, 2, 0), 12, (2, 0));
    check(answer(0, 1, 3), answer(0, 2, 0), 9, (2, 0));
}

#[test]
fn old_brokers_tell_no_reliable_epoch() {
    check(answer(0, 1, 3), answer(0, 2, 4), 8, (2, -1));
}

#[test]
fn what_was_not_asked_for_stays_and_what_is_gone_goes() {
    let known = ClusterMetadata::default().updated(&TopicSelection::All, &answer(7, 1, 3), 12);
    let empty = MetadataResponse::default();
    assert_eq!(known.updated(&TopicSelection::None, &empty, 12).leader("orders", 0), Some((1, 3)));
    let named = TopicSelection::Named(vec!["other".into()]);
    assert_eq!(known.updated(&named, &empty, 12).leader("orders", 0), Some((1, 3)));
    assert_eq!(known.updated(&TopicSelection::All, &empty, 12).topics.len(), 0);
    assert_eq!(known.updated(&TopicSelection::None, &empty, 12).brokers.len(), 0);
}

#[test]
fn no_request_creates_a_topic() {
    for selection in [TopicSelection::None, TopicSelection::All, TopicSelection::Named(vec!["orders".into()])]
    {
        assert!(!selection.request().allow_auto_topic_creation);
    }
    assert_eq!(TopicSelection::None.request().topics.map(|topics| topics.len()), Some(0));
    assert_eq!(TopicSelection::All.request().topics, None);
}

#[test]
fn addresses_are_read_as_kafka_reads_them() {
    for (text, wanted) in [
        ("localhost:9092", "localhost:9092"),
        (" PLAINTEXT://b-1.example:19092 ", "b-1.example:19092"),
        ("[::1]:9092", "[::1]:9092"),
    ] {
        assert_eq!(BrokerAddress::parse(text).unwrap().to_string(), wanted);
    }
}

#[test]
fn what_is_no_address_is_told() {
    for (text, reason) in [
        ("localhost", "it has no port"),
        (":9092", "it has no host"),
        ("::1:9092", "an IPv6 address stands in brackets"),
        ("b:0", "its port is not a number from 1 to 65535"),
        ("b:70000", "its port is not a number from 1 to 65535"),
    ] {
        assert_eq!(
            BrokerAddress::parse(text).unwrap_err().to_string(),
            format!(
                "bootstrap server \"{text}\" is not an address: {reason}; write host:port, several separated by commas"
            )
        );
    }
}
