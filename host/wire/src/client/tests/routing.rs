//! Which broker a request goes to.

use super::*;

#[tokio::test]
async fn any_broker_means_the_next_one_when_the_first_is_gone() {
    let gone = nobody().await;
    let state = move |brokers: &Brokers| {
        let brokers = Brokers::from([(1, Arc::clone(&gone)), (2, Arc::clone(&brokers[&2]))]);
        metadata(&brokers, 2, (1, 0))
    };
    let brokers =
        two_brokers(state, |_, asked| Some(body(&CreateTopicsResponse::default(), asked.version))).await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    client.call_any(CreateTopicsRequest::default()).await.unwrap();
    assert!(client.api_versions().await.unwrap().range(ApiKey::Fetch).is_some());
    assert_eq!(client.version_for(2, ApiKey::Fetch).await, Ok(12));
    let error = client.call(3, CreateTopicsRequest::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "broker 3 is not in the cluster; its brokers are 1, 2; refresh the metadata"
    );
}

#[tokio::test]
async fn the_controller_is_followed_when_it_has_moved() {
    let controller = Arc::new(AtomicI32::new(1));
    let told = Arc::clone(&controller);
    let state = move |brokers: &Brokers| metadata(brokers, told.load(Ordering::Relaxed), (1, 0));
    let brokers = two_brokers(state, |node, asked| {
        let code = if node == 2 { 0 } else { ResponseError::NotController.code() };
        let topic = CreatableTopicResult::default().with_error_code(code);
        Some(body(&CreateTopicsResponse::default().with_topics(vec![topic]), asked.version))
    })
    .await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    controller.store(2, Ordering::Relaxed);
    let answer = client.call_controller(CreateTopicsRequest::default()).await.unwrap();
    assert_eq!(answer.topics[0].error_code, 0);
}

#[tokio::test]
async fn a_coordinator_is_found_remembered_and_followed() {
    let finds = Arc::new(AtomicI32::new(0));
    let counting = Arc::clone(&finds);
    let brokers = two_brokers(
        |brokers| metadata(brokers, 1, (1, 0)),
        move |node, asked| match asked.api {
            ApiKey::FindCoordinator => {
                let mut request = asked.body.clone();
                let request = FindCoordinatorRequest::decode(&mut request, asked.version).unwrap();
                assert_eq!(request.coordinator_keys[0].as_str(), "orders-mm2");
                // First nobody knows, then broker 1, which is no longer right, then broker 2.
                let count = counting.fetch_add(1, Ordering::Relaxed);
                let code = if count < 2 { ResponseError::CoordinatorNotAvailable.code() } else { 0 };
                let found = Coordinator::default()
                    .with_error_code(code)
                    .with_node_id(BrokerId(if count < 3 { 1 } else { 2 }));
                let answer = FindCoordinatorResponse::default().with_coordinators(vec![found]);
                Some(body(&answer, asked.version))
            }
            _ => {
                let code = if node == 2 { 0 } else { ResponseError::NotCoordinator.code() };
                let group = offset_fetch_response::OffsetFetchResponseGroup::default().with_error_code(code);
                Some(body(&OffsetFetchResponse::default().with_groups(vec![group]), asked.version))
            }
        },
    )
    .await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    for _ in 0..3 {
        let answer = client.call_coordinator("orders-mm2", OffsetFetchRequest::default()).await.unwrap();
        assert_eq!(answer.groups[0].error_code, 0);
    }
    assert_eq!(finds.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_request_can_be_made_for_the_version_that_is_spoken() {
    let brokers = two_brokers(
        |brokers| metadata(brokers, 1, (1, 0)),
        |_, asked| {
            let request = OffsetFetchRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
            assert_eq!((asked.version, request.groups.len()), (9, 1));
            Some(body(&OffsetFetchResponse::default(), asked.version))
        },
    )
    .await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    let build = |version| {
        assert_eq!(version, 9);
        OffsetFetchRequest::default().with_groups(vec![Default::default()])
    };
    client.call_with(1, build).await.unwrap();
}
