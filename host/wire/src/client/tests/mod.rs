//! A client against brokers that do what the test says.

mod offsets;
mod routing;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, StrBytes};

use super::*;
use crate::connection::stub::{Asked, Stub, body, versions};

fn options(bootstrap: &[&str]) -> ClientOptions {
    ClientOptions {
        bootstrap_servers: bootstrap.iter().map(|&server| server.to_owned()).collect(),
        request_timeout: Duration::from_secs(5),
        backoff_seed: Some(1),
        ..ClientOptions::default()
    }
}

/// An address where nobody listens.
async fn nobody() -> Arc<str> {
    Stub::start().await.address
}

/// Brokers as metadata tells them.
type Brokers = BTreeMap<NodeId, Arc<str>>;

fn metadata(brokers: &Brokers, controller: NodeId, leader: (NodeId, i32)) -> MetadataResponse {
    let brokers = brokers.iter().map(|(node, address)| {
        let (host, port) = address.rsplit_once(':').unwrap();
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(*node))
            .with_host(StrBytes::from_string(host.to_owned()))
            .with_port(port.parse().unwrap())
    });
    let partition =
        MetadataResponsePartition::default().with_leader_id(BrokerId(leader.0)).with_leader_epoch(leader.1);
    let topic = MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_static_str("orders"))))
        .with_partitions(vec![partition]);
    MetadataResponse::default()
        .with_cluster_id(Some(StrBytes::from_static_str("stub")))
        .with_controller_id(BrokerId(controller))
        .with_brokers(brokers.collect())
        .with_topics(vec![topic])
}

/// Two brokers that say the same of the cluster, and `answer` everything else by their number.
async fn two_brokers(
    state: impl Fn(&Brokers) -> MetadataResponse + Clone + Send + Sync + 'static,
    answer: impl Fn(NodeId, &Asked) -> Option<Vec<u8>> + Clone + Send + Sync + 'static,
) -> Brokers {
    let stubs = [(1, Stub::start().await), (2, Stub::start().await)];
    let brokers: Brokers = stubs.iter().map(|(node, stub)| (*node, Arc::clone(&stub.address))).collect();
    for (node, stub) in stubs {
        let (state, answer, brokers) = (state.clone(), answer.clone(), brokers.clone());
        stub.serve(move |asked| {
            let answered = match asked.api {
                ApiKey::Metadata => Some(body(&state(&brokers), asked.version)),
                _ => answer(node, &asked),
            };
            async move { answered }
        });
    }
    brokers
}

#[tokio::test]
async fn the_first_bootstrap_server_that_answers_wins() {
    let brokers = two_brokers(|brokers| metadata(brokers, 2, (1, 0)), |_, _| None).await;
    let servers = format!("{},{}", nobody().await, brokers[&2]);
    let client = Client::connect(options(&[&servers])).await.unwrap();
    let metadata = client.metadata();
    assert_eq!(metadata.cluster_id.as_deref(), Some("stub"));
    assert_eq!((metadata.controller, metadata.brokers.len()), (Some(2), 2));
    assert!(!client.metadata_is_stale());
}

#[tokio::test]
async fn a_cluster_that_nobody_answers_for_is_told_with_every_address() {
    let (one, two) = (nobody().await, nobody().await);
    let error = Client::connect(options(&[&one, &two])).await.unwrap_err();
    let each = |address: &str| {
        format!(
            "broker {address} could not be reached: Connection refused (os error 111); check that it runs and that this address can be reached from here"
        )
    };
    let wanted = format!("no broker of the cluster answered; tried {}; {}", each(&one), each(&two));
    assert_eq!(error.to_string(), wanted);
    assert!(error.is_retriable());
    let error = Client::connect(options(&[" , "])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "bootstrap server \"\" is not an address: there is none; write host:port, several separated by commas"
    );
}

#[tokio::test]
async fn a_broker_too_old_to_leave_topics_alone_is_refused() {
    let stub = Stub::start().await;
    let address = Arc::clone(&stub.address);
    let broker = tokio::spawn(async move {
        let mut broker = stub.accept().await;
        let asked = broker.asked().await.unwrap();
        broker.answer(&asked, &versions(&[(ApiKey::Metadata, 0, 3)])).await;
        broker.is_closed().await
    });
    let error = Client::connect(options(&[&address])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "broker {address} speaks Metadata in versions 0 to 3, this program needs versions 4 to 13; use brokers from Kafka 2.7.1 on"
        )
    );
    assert!(broker.await.unwrap());
}

#[tokio::test]
async fn metadata_comes_from_the_bootstrap_servers_when_all_known_brokers_are_gone() {
    let gone = nobody().await;
    let asked_count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked_count);
    let state = move |brokers: &Brokers| {
        counting.fetch_add(1, Ordering::Relaxed);
        metadata(&brokers.keys().map(|node| (*node, Arc::clone(&gone))).collect(), 1, (1, 0))
    };
    let brokers = two_brokers(state, |_, _| None).await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    client.refresh_metadata(TopicSelection::All).await.unwrap();
    assert_eq!(asked_count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_connection_of_a_broker_that_is_gone_ends() {
    let (one, two) = (Stub::start().await, Stub::start().await);
    let both = Brokers::from([(1, Arc::clone(&one.address)), (2, Arc::clone(&two.address))]);
    let first = Brokers::from([(1, Arc::clone(&one.address))]);
    let bootstrap = one.serve(move |asked| {
        let answered = body(&metadata(&both, 1, (1, 0)), asked.version);
        async move { Some(answered) }
    });
    let client = Client::connect(options(&[&bootstrap])).await.unwrap();
    let calling = client.call(2, CreateTopicsRequest::default());
    let answering = async {
        let mut broker = two.accept_negotiated().await;
        let asked = broker.asked().await.unwrap();
        broker.answer(&asked, &CreateTopicsResponse::default()).await;
        broker
    };
    let (called, mut broker) = tokio::join!(calling, answering);
    called.unwrap();
    // The connected broker is asked first, and says that it leaves.
    let leaving = async {
        let asked = broker.asked().await.unwrap();
        broker.answer(&asked, &metadata(&first, 1, (1, 0))).await;
    };
    let (refreshed, ()) = tokio::join!(client.refresh_metadata(TopicSelection::None), leaving);
    refreshed.unwrap();
    assert!(broker.is_closed().await);
    let error = client.call(2, CreateTopicsRequest::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "broker 2 is not in the cluster; its brokers are 1; refresh the metadata");
}

#[tokio::test]
async fn a_fetch_gives_slices_and_refusals_as_errors() {
    let brokers = two_brokers(
        |brokers| metadata(brokers, 1, (1, 0)),
        |node, asked| {
            let partition = fetch_response::PartitionData::default()
                .with_records(Some(Bytes::from_static(b"some records")));
            let topic = fetch_response::FetchableTopicResponse::default()
                .with_topic(TopicName(StrBytes::from_static_str("orders")))
                .with_partitions(vec![partition]);
            let code = if node == 1 { 0 } else { ResponseError::UnknownServerError.code() };
            let answer = FetchResponse::default().with_error_code(code).with_responses(vec![topic]);
            Some(body(&answer, asked.version))
        },
    )
    .await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    let parameters =
        FetchParameters { max_wait_ms: 1, min_bytes: 1, max_bytes: 1, isolation: Isolation::ReadUncommitted };
    let partition =
        FetchPartition { topic: "orders".into(), partition: 0, offset: 0, leader_epoch: -1, max_bytes: 1 };
    let answer = client.fetch(1, &parameters, std::slice::from_ref(&partition)).await.unwrap();
    assert_eq!(answer.partitions[0].records, Bytes::from_static(b"some records"));
    let error = client.fetch(2, &parameters, std::slice::from_ref(&partition)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("broker {} refused Fetch: UnknownServerError", brokers[&2]));
    let other = FetchPartition { topic: "bills".into(), ..partition };
    let error = client.fetch(1, &parameters, &[other]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "answer of broker {} to Fetch is malformed at byte 18: it names a topic that was not asked for; see that this address is a Kafka broker's",
            brokers[&1]
        )
    );
}

#[test]
fn every_future_may_move_between_threads() {
    fn check<T: Send>(_: impl FnOnce(&'static Client) -> T) {}
    check(|client| client.refresh_metadata(TopicSelection::All));
    check(|client| client.call(1, CreateTopicsRequest::default()));
    check(|client| client.call_any(CreateTopicsRequest::default()));
    check(|client| client.call_controller(CreateTopicsRequest::default()));
    check(|client| client.call_coordinator("group", OffsetFetchRequest::default()));
    check(|client| client.call_with(1, |_| CreateTopicsRequest::default()));
    check(|client| client.call_coordinator_with("group", |_| OffsetFetchRequest::default()));
    check(|client| client.api_versions());
    check(|client| client.version_for(1, ApiKey::Fetch));
    check(|client| client.send_parts(1, ApiKey::Produce, 8, Vec::new()));
    check(|client| client.list_offsets(&[], OffsetAt::Latest, Isolation::ReadCommitted));
    static PARAMETERS: FetchParameters =
        FetchParameters { max_wait_ms: 1, min_bytes: 1, max_bytes: 1, isolation: Isolation::ReadCommitted };
    check(|client| client.fetch(1, &PARAMETERS, &[]));
    fn connecting<T: Send>(_: impl FnOnce(ClientOptions) -> T) {}
    connecting(Client::connect);
}
