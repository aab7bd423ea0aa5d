//! A connection against a broker that does what the test says.

mod failure;
mod lifetime;

use std::time::Duration;

use bytes::BufMut;
use kafka_protocol::messages::{FetchResponse, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::Encodable;
use tokio::net::TcpListener;

use super::stub::{Asked, Stub, StubConnection, body, frame, unsupported_version, versions};
use super::*;

const SEED: u64 = 11;

fn options() -> ConnectionOptions {
    ConnectionOptions {
        client_id: "test".to_owned(),
        request_timeout: Duration::from_secs(5),
        reconnect_backoff: Duration::from_millis(50),
        reconnect_backoff_max: Duration::from_secs(1),
        connections_idle_max: Duration::from_secs(540),
        in_flight_max: 5,
        response_bytes_max: 64 * 1024 * 1024,
        transport: TransportOptions {
            connection_setup_timeout: Duration::from_secs(10),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        },
    }
}

fn connection_with(address: &Arc<str>, options: ConnectionOptions) -> Connection {
    let pool = BufferPool::new(4, 1 << 24);
    let runtime = tokio::runtime::Handle::current();
    Connection::start(Arc::clone(address), Arc::new(options), pool, SEED, &runtime)
}

fn connection(stub: &Stub) -> Connection {
    connection_with(&stub.address, options())
}

/// Queues a metadata request at once, for a topic of that name so that the test can tell requests apart.
fn ask(connection: &Connection, name: &str) -> PendingAnswer {
    let mut body = Vec::new();
    body.put_i32(1);
    body.put_i16(name.len() as i16);
    body.put_slice(name.as_bytes());
    connection.send_parts(ApiKey::Metadata, 1, vec![body.into()])
}

fn name_of(asked: &Asked) -> String {
    String::from_utf8(asked.body[6..].to_vec()).unwrap()
}

/// Answers with the request's own name.
async fn echo(stub: &mut StubConnection, asked: &Asked) {
    let name = name_of(asked);
    stub.answer_with(asked, name.as_bytes()).await;
}

async fn check_echo(answer: PendingAnswer, name: &str) {
    assert_eq!(answer.await.unwrap(), name.as_bytes());
}

async fn error_of(answer: PendingAnswer) -> String {
    answer.await.unwrap_err().to_string()
}

#[tokio::test]
async fn negotiation_falls_back_to_the_version_that_the_broker_names() {
    for (named, wanted) in [(Some(2), 2), (Some(0), 0), (None, 0)] {
        let stub = Stub::start().await;
        let connection = connection(&stub);
        let broker = async {
            let mut broker = stub.accept().await;
            let first = broker.asked().await.unwrap();
            assert_eq!((first.api, first.version, &*first.client_id), (ApiKey::ApiVersions, 3, "test"));
            let names = named.map(|max| (ApiKey::ApiVersions, 0, max));
            let keys = versions(names.as_slice()).api_keys;
            broker.answer_with(&first, &body(&unsupported_version().with_api_keys(keys), 0)).await;
            let second = broker.asked().await.unwrap();
            assert_eq!((second.api, second.version), (ApiKey::ApiVersions, wanted));
            broker.answer(&second, &versions(&[(ApiKey::Metadata, 0, 9)])).await;
            broker
        };
        let (versions, _broker) = tokio::join!(connection.versions(), broker);
        assert_eq!(versions.unwrap().range(ApiKey::Metadata), Some((0, 9)));
    }
}

#[tokio::test]
async fn requests_are_written_in_the_order_of_the_calls_without_waiting_for_answers() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let answers: Vec<PendingAnswer> = ["a", "b", "c"].map(|name| ask(&connection, name)).into();
    let mut broker = stub.accept_negotiated().await;
    let mut asked = Vec::new();
    for name in ["a", "b", "c"] {
        asked.push(broker.asked().await.unwrap());
        assert_eq!(name_of(asked.last().unwrap()), name);
    }
    for asked in &asked {
        echo(&mut broker, asked).await;
    }
    for (answer, name) in answers.into_iter().zip(["a", "b", "c"]) {
        check_echo(answer, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_in_flight_than_the_bound() {
    let stub = Stub::start().await;
    let connection = connection_with(&stub.address, ConnectionOptions { in_flight_max: 2, ..options() });
    let _answers = ["a", "b", "c"].map(|name| ask(&connection, name));
    let mut broker = stub.accept_negotiated().await;
    let first = broker.asked().await.unwrap();
    broker.asked().await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), broker.asked()).await.is_err());
    echo(&mut broker, &first).await;
    assert_eq!(name_of(&broker.asked().await.unwrap()), "c");
}

#[tokio::test(start_paused = true)]
async fn a_throttle_is_obeyed_and_bounded() {
    for (throttle_ms, waited_ms) in [(3000, 3000), (i32::MAX, u64::from(THROTTLE_MS_MAX))] {
        let stub = Stub::start().await;
        let connection = connection(&stub);
        let fetch = || connection.send_parts(ApiKey::Fetch, 11, vec![Bytes::from_static(b"x")]);
        let answers = [fetch(), fetch()];
        let mut broker = stub.accept_negotiated().await;
        let (first, second) = (broker.asked().await.unwrap(), broker.asked().await.unwrap());
        let throttled = FetchResponse::default().with_throttle_time_ms(throttle_ms);
        broker.answer(&first, &throttled).await;
        broker.answer(&second, &FetchResponse::default()).await;
        for answer in answers {
            answer.await.unwrap();
        }
        let begun = Instant::now();
        let third = fetch();
        let asked = broker.asked().await.unwrap();
        let waited = begun.elapsed();
        let wanted = Duration::from_millis(waited_ms);
        assert!((wanted..wanted + Duration::from_millis(50)).contains(&waited), "{waited:?}");
        broker.answer(&asked, &FetchResponse::default()).await;
        third.await.unwrap();
    }
}

#[tokio::test]
async fn answers_are_read_while_a_large_request_is_written() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let first = ask(&connection, "a");
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    let part = Bytes::from(vec![7; 16 * 1024 * 1024]);
    let large = connection.send_parts(ApiKey::Produce, 8, vec![part]);
    // Like a real broker it reads no further before its answer is taken.
    broker.answer_with(&asked, &vec![1; 16 * 1024 * 1024]).await;
    assert_eq!(first.await.unwrap().len(), 16 * 1024 * 1024);
    let asked = broker.asked().await.unwrap();
    broker.answer_with(&asked, &[0; 8]).await;
    large.await.unwrap();
}
