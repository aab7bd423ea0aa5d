//! Callers that go away, connections that idle, tasks that end.

use super::*;

#[tokio::test]
async fn a_caller_that_goes_away_harms_nobody() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let (first, second, third) = (ask(&connection, "a"), ask(&connection, "b"), ask(&connection, "c"));
    let mut broker = stub.accept_negotiated().await;
    let asked = [broker.asked().await.unwrap(), broker.asked().await.unwrap(), broker.asked().await.unwrap()];
    drop(second);
    for asked in &asked {
        echo(&mut broker, asked).await;
    }
    check_echo(first, "a").await;
    check_echo(third, "c").await;
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_never_written() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let (first, second) = (ask(&connection, "a"), ask(&connection, "b"));
    drop(first);
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    assert_eq!(name_of(&asked), "b");
    echo(&mut broker, &asked).await;
    check_echo(second, "b").await;
}

#[tokio::test]
async fn a_frame_is_written_whole_though_its_caller_went_away() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let part = Bytes::from(vec![7; 16 * 1024 * 1024]);
    let large = connection.send_parts(ApiKey::Produce, 8, vec![part]);
    let next = ask(&connection, "a");
    let mut broker = stub.accept_negotiated().await;
    // Its beginning is here, so its rest waits for room in the socket.
    broker.stream.peek(&mut [0]).await.unwrap();
    drop(large);
    let asked = broker.asked().await.unwrap();
    assert_eq!((asked.api, asked.body.len()), (ApiKey::Produce, 16 * 1024 * 1024));
    broker.answer_with(&asked, &[0; 8]).await;
    let asked = broker.asked().await.unwrap();
    echo(&mut broker, &asked).await;
    check_echo(next, "a").await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_and_made_again_without_a_failure() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    for name in ["a", "b"] {
        let answer = ask(&connection, name);
        let mut broker = stub.accept_negotiated().await;
        let asked = broker.asked().await.unwrap();
        echo(&mut broker, &asked).await;
        check_echo(answer, name).await;
        assert!(connection.is_connected());
        let begun = Instant::now();
        assert!(broker.is_closed().await);
        let waited = begun.elapsed();
        assert!((Duration::from_secs(540)..Duration::from_secs(541)).contains(&waited), "{waited:?}");
        assert!(!connection.is_connected() && !connection.is_backing_off());
    }
}

#[tokio::test]
async fn a_broker_that_closes_an_idle_connection_fails_nothing() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    for name in ["a", "b"] {
        let answer = ask(&connection, name);
        let mut broker = stub.accept_negotiated().await;
        let asked = broker.asked().await.unwrap();
        echo(&mut broker, &asked).await;
        check_echo(answer, name).await;
        drop(broker);
        while connection.is_connected() {
            tokio::task::yield_now().await;
        }
        assert!(!connection.is_backing_off());
    }
}

#[tokio::test]
async fn without_handles_the_task_ends_once_all_is_answered() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let answer = ask(&connection, "a");
    drop(connection);
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    echo(&mut broker, &asked).await;
    check_echo(answer, "a").await;
    assert!(broker.is_closed().await);
}
