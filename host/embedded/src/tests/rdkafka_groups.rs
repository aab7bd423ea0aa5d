//! rdkafka joins consumer groups, eager and cooperative.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;

use super::batch::BatchPlan;
use super::{PATIENCE, eventually};
use crate::{Cluster, ClusterOptions};

/// A group member on a thread of its own: commits what it reads.
struct Member {
    stop: Arc<AtomicBool>,
    owned: Arc<Mutex<BTreeSet<i32>>>,
    read: Arc<Mutex<Vec<(i32, i64)>>>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    fn start(cluster: &Cluster, strategy: &str) -> Member {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", cluster.bootstrap_servers())
            .set("group.id", "readers")
            .set("partition.assignment.strategy", strategy)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "100")
            .create()
            .unwrap();
        consumer.subscribe(&["orders"]).unwrap();
        let member =
            Member { stop: Arc::default(), owned: Arc::default(), read: Arc::default(), thread: None };
        let (stop, owned, read) = (member.stop.clone(), member.owned.clone(), member.read.clone());
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if let Some(message) = consumer.poll(Duration::from_millis(20)) {
                    let message = message.unwrap();
                    read.lock().unwrap().push((message.partition(), message.offset()));
                }
                // Refused in the middle of a rebalance, and when there is nothing to commit; the next turn
                // tries again.
                let _refused = consumer.commit_consumer_state(CommitMode::Sync);
                let assignment = consumer.assignment().unwrap();
                *owned.lock().unwrap() = assignment.elements().iter().map(|one| one.partition()).collect();
            }
            // Dropping the consumer leaves the group.
        });
        Member { thread: Some(thread), ..member }
    }

    fn owned(&self) -> BTreeSet<i32> {
        self.owned.lock().unwrap().clone()
    }

    fn leave(mut self) -> Vec<(i32, i64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.read.lock().unwrap().clone()
    }
}

async fn check_two_members_share_and_one_leaves(strategy: &str) {
    let options = ClusterOptions { nodes: 2, ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await.unwrap();
    cluster.create_topic("orders", 4, &[]).unwrap();
    let all = BTreeSet::from([0, 1, 2, 3]);
    let append = |count: i64| {
        for partition in 0..4 {
            cluster.append_at_end("orders", partition, &BatchPlan::records(count).build()).unwrap();
        }
    };
    append(5);
    let first = Member::start(&cluster, strategy);
    eventually("the first member has everything", || first.owned() == all).await;
    let second = Member::start(&cluster, strategy);
    eventually("two members have two partitions each, and no partition twice", || {
        let (first, second) = (first.owned(), second.owned());
        first.len() == 2 && second.len() == 2 && first.union(&second).count() == 4
    })
    .await;
    append(5);
    let committed = |offset| {
        move |cluster: &Cluster| {
            (0..4).all(|partition| cluster.committed_offset("readers", "orders", partition) == Some(offset))
        }
    };
    eventually("everything is committed", || committed(10)(&cluster)).await;
    let mut read = tokio::task::spawn_blocking(move || first.leave()).await.unwrap();
    eventually("the second member has everything", || second.owned() == all).await;
    append(5);
    eventually("everything is committed again", || committed(15)(&cluster)).await;
    read.extend(tokio::task::spawn_blocking(move || second.leave()).await.unwrap());
    read.sort_unstable();
    read.dedup();
    let expected: Vec<_> =
        (0..4).flat_map(|partition| (0..15).map(move |offset| (partition, offset))).collect();
    assert_eq!(read, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn eager_members_share_a_topic_and_one_leaves() {
    check_two_members_share_and_one_leaves("range").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cooperative_members_share_a_topic_and_one_leaves() {
    check_two_members_share_and_one_leaves("cooperative-sticky").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_dies_is_replaced_after_its_session() {
    let options =
        ClusterOptions { group_session_timeout_min: Duration::from_millis(1), ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await.unwrap();
    cluster.create_topic("orders", 1, &[]).unwrap();
    cluster.append_at_end("orders", 0, &BatchPlan::records(1).build()).unwrap();
    let survivor = tokio::time::timeout(PATIENCE, async {
        // A member by hand, whose session is short and which never speaks again.
        super::groups::join_and_vanish(&cluster, "readers").await;
        let survivor = Member::start(&cluster, "range");
        let committed = || cluster.committed_offset("readers", "orders", 0) == Some(1);
        eventually("the survivor has read the partition", committed).await;
        survivor
    });
    let survivor = survivor.await.unwrap();
    let read = tokio::task::spawn_blocking(move || survivor.leave()).await.unwrap();
    assert_eq!(read, vec![(0, 0)]);
}
