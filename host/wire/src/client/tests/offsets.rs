//! Listing offsets: by the leader, after a move, and without end in sight.

use super::*;

/// The leader answers `offset`, the other broker NOT_LEADER_OR_FOLLOWER, a wrong epoch FENCED_LEADER_EPOCH.
fn listed(node: NodeId, leader: (NodeId, i32), asked: &Asked) -> Option<Vec<u8>> {
    let request = ListOffsetsRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
    let epoch = request.topics[0].partitions[0].current_leader_epoch;
    let error = match (node == leader.0, epoch == leader.1) {
        (false, _) => ResponseError::NotLeaderOrFollower.code(),
        (true, false) => ResponseError::FencedLeaderEpoch.code(),
        (true, true) => 0,
    };
    let partition = ListOffsetsPartitionResponse::default()
        .with_error_code(error)
        .with_offset(if error == 0 { 77 } else { -1 });
    let topic = ListOffsetsTopicResponse::default()
        .with_name(TopicName(StrBytes::from_static_str("orders")))
        .with_partitions(vec![partition]);
    Some(body(&ListOffsetsResponse::default().with_topics(vec![topic]), asked.version))
}

#[tokio::test]
async fn offsets_are_listed_by_the_leader_also_after_a_move() {
    let epoch = Arc::new(AtomicI32::new(0));
    let (told, true_epoch) = (Arc::clone(&epoch), Arc::clone(&epoch));
    // The leader is broker 1 in epoch 0 and broker 2 in epoch 1.
    let brokers = two_brokers(
        move |brokers| {
            let epoch = told.load(Ordering::Relaxed);
            metadata(brokers, 1, (1 + epoch, epoch))
        },
        move |node, asked| {
            let epoch = true_epoch.load(Ordering::Relaxed);
            listed(node, (1 + epoch, epoch), asked)
        },
    )
    .await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    let partitions = [(Arc::from("orders"), 0)];
    for moved in [0, 1] {
        epoch.store(moved, Ordering::Relaxed);
        let offsets =
            client.list_offsets(&partitions, OffsetAt::Latest, Isolation::ReadUncommitted).await.unwrap();
        assert_eq!((offsets.len(), offsets[0].offset, offsets[0].error), (1, Some(77), None));
        assert_eq!(client.metadata().leader("orders", 0), Some((1 + moved, moved)));
    }
}

#[tokio::test(start_paused = true)]
async fn listing_offsets_ends_though_the_leader_is_never_found() {
    let brokers =
        two_brokers(|brokers| metadata(brokers, 1, (1, 0)), |_, asked| listed(1, (2, 0), asked)).await;
    let client = Client::connect(options(&[&brokers[&1]])).await.unwrap();
    let begun = Instant::now();
    let offsets = client
        .list_offsets(
            &[(Arc::from("orders"), 0), (Arc::from("orders"), 9), (Arc::from("bills"), 0)],
            OffsetAt::Earliest,
            Isolation::ReadUncommitted,
        )
        .await
        .unwrap();
    let errors: Vec<_> =
        offsets.iter().map(|listed| (&*listed.topic, listed.partition, listed.error)).collect();
    assert_eq!(errors.len(), 3);
    assert!(errors.contains(&("orders", 0, Some(ResponseError::NotLeaderOrFollower))));
    assert!(errors.contains(&("orders", 9, Some(ResponseError::UnknownTopicOrPartition))));
    assert!(errors.contains(&("bills", 0, Some(ResponseError::UnknownTopicOrPartition))));
    assert!(begun.elapsed() < Duration::from_secs(10));
}
