//! How a connection fails, what it tells and what comes after.

use super::*;

#[tokio::test]
async fn an_answer_to_another_request_ends_the_connection_and_the_next_request_makes_a_new_one() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let (first, second) = (ask(&connection, "a"), ask(&connection, "b"));
    let mut broker = stub.accept_negotiated().await;
    broker.asked().await.unwrap();
    let asked = broker.asked().await.unwrap();
    echo(&mut broker, &asked).await;
    let wanted = format!(
        "connection to broker {} was lost before Metadata was answered: it answered request 1 where the answer to request 0 was due; it is made again with the next request",
        stub.address
    );
    assert_eq!(error_of(first).await, wanted);
    assert_eq!(error_of(second).await, wanted);
    let third = ask(&connection, "c");
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    assert_eq!(name_of(&asked), "c");
    echo(&mut broker, &asked).await;
    check_echo(third, "c").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_answered_in_time_ends_the_connection() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let (first, second) = (ask(&connection, "a"), ask(&connection, "b"));
    let mut broker = stub.accept_negotiated().await;
    let begun = Instant::now();
    assert_eq!(
        error_of(first).await,
        format!(
            "broker {} did not answer Metadata within 5000 ms; see whether it is overloaded, or raise request.timeout.ms",
            stub.address
        )
    );
    assert_eq!(
        error_of(second).await,
        format!(
            "connection to broker {} was lost before Metadata was answered: an earlier request was not answered within 5000 ms; it is made again with the next request",
            stub.address
        )
    );
    assert!((Duration::from_secs(5)..Duration::from_millis(5100)).contains(&begun.elapsed()));
    broker.asked().await.unwrap();
    broker.asked().await.unwrap();
    assert!(broker.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_too_long_is_not_written_and_the_connection_goes_on() {
    let stub = Stub::start().await;
    let connection = connection_with(&stub.address, ConnectionOptions { in_flight_max: 1, ..options() });
    let [first, second, third] = ["a", "b", "c"].map(|name| ask(&connection, name));
    let mut broker = stub.accept_negotiated().await;
    for _ in 0..2 {
        let asked = broker.asked().await.unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        echo(&mut broker, &asked).await;
    }
    check_echo(first, "a").await;
    check_echo(second, "b").await;
    assert!(matches!(third.await, Err(WireError::TimedOut { .. })));
    let fourth = ask(&connection, "d");
    let asked = broker.asked().await.unwrap();
    assert_eq!(name_of(&asked), "d");
    echo(&mut broker, &asked).await;
    check_echo(fourth, "d").await;
}

#[tokio::test]
async fn a_connection_cut_within_an_answer_fails_all_that_was_asked_and_nothing_is_sent_again() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let answers = ["a", "b", "c"].map(|name| ask(&connection, name));
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    let whole = frame(&asked, b"some answer");
    broker.send(&whole[..10]).await;
    drop(broker);
    for answer in answers {
        let error = answer.await.unwrap_err();
        assert!(error.is_retriable());
        let text = error.to_string();
        // The system may tell the cut as a reset, since requests were left unread.
        let cut = "the broker closed it after 6 of an answer's 15 bytes";
        assert!(text.contains(cut) || text.contains("reset") || text.contains("Broken pipe"), "{text}");
    }
    let next = ask(&connection, "d");
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    assert_eq!(name_of(&asked), "d");
    echo(&mut broker, &asked).await;
    check_echo(next, "d").await;
}

#[tokio::test]
async fn an_answer_larger_than_the_bound_is_refused() {
    let stub = Stub::start().await;
    let connection =
        connection_with(&stub.address, ConnectionOptions { response_bytes_max: 1000, ..options() });
    let answer = ask(&connection, "a");
    let mut broker = stub.accept_negotiated().await;
    broker.asked().await.unwrap();
    broker.send(&1001i32.to_be_bytes()).await;
    assert_eq!(
        error_of(answer).await,
        format!(
            "connection to broker {} was lost before Metadata was answered: it announced an answer of 1001 bytes, at most 1000 are taken; is this a Kafka broker without TLS?; it is made again with the next request",
            stub.address
        )
    );
}

#[tokio::test(start_paused = true)]
async fn reconnects_wait_as_the_backoff_says() {
    let address: Arc<str> = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string().into()
    };
    let connection = connection_with(&address, options());
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1), SEED);
    assert_eq!(
        error_of(ask(&connection, "a")).await,
        format!(
            "broker {address} could not be reached: Connection refused (os error 111); check that it runs and that this address can be reached from here"
        )
    );
    for _ in 0..8 {
        assert!(connection.is_backing_off());
        let begun = Instant::now();
        ask(&connection, "a").await.unwrap_err();
        let (waited, wanted) = (begun.elapsed(), backoff.next_wait());
        assert!((wanted..wanted + Duration::from_millis(5)).contains(&waited), "{waited:?} for {wanted:?}");
    }
}

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let answers: Vec<PendingAnswer> = (0..=WAITING_REQUESTS_MAX).map(|_| ask(&connection, "a")).collect();
    assert_eq!(
        error_of(answers.into_iter().next_back().unwrap()).await,
        format!(
            "256 requests already wait for broker {}, Metadata was not queued; send fewer at once",
            stub.address
        )
    );
}

#[tokio::test]
async fn a_prebuilt_version_that_the_broker_lacks_is_not_sent() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let refused = connection.send_parts(ApiKey::Produce, 99, Vec::new());
    let next = ask(&connection, "a");
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    echo(&mut broker, &asked).await;
    check_echo(next, "a").await;
    assert!(matches!(refused.await, Err(WireError::Unsupported { .. })));
}

#[tokio::test]
async fn a_malformed_answer_is_told_and_the_connection_goes_on() {
    let stub = Stub::start().await;
    let connection = connection(&stub);
    let queued = connection
        .queue(ApiKey::Metadata, |version| {
            let mut body = Vec::new();
            MetadataRequest::default().encode(&mut body, version).unwrap();
            Ok(body.into())
        })
        .await
        .unwrap();
    let mut broker = stub.accept_negotiated().await;
    let asked = broker.asked().await.unwrap();
    broker.answer_with(&asked, &[0; 3]).await;
    let answer = queued.answer().await.unwrap();
    assert_eq!(
        decode_answer::<MetadataResponse>(ApiKey::Metadata, &answer).unwrap_err().to_string(),
        format!(
            "answer of broker {} to Metadata is malformed at byte 0: Not enough bytes remaining in buffer to read value (requested 4 but only 3 available); see that this address is a Kafka broker's",
            stub.address
        )
    );
    let next = ask(&connection, "a");
    let asked = broker.asked().await.unwrap();
    echo(&mut broker, &asked).await;
    check_echo(next, "a").await;
}
