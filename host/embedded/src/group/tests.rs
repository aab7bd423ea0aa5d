use bytes::Bytes;
use tokio::sync::oneshot;

use super::member::{JoinAnswer, Joined, Joining, Protocol, SyncAnswer};
use super::sync::Syncing;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// A group and a clock that stands still until it is moved.
struct Bench {
    group: Group,
    now: Instant,
}

fn joining(id: &str, protocols: &[&str]) -> Joining {
    let protocols =
        protocols.iter().map(|name| Protocol { name: (*name).to_owned(), metadata: Bytes::new() });
    Joining {
        member_id: String::new(),
        instance_id: None,
        client_id: id.to_owned(),
        client_host: String::new(),
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: MINUTE,
        protocol_type: "consumer".to_owned(),
        protocols: protocols.collect(),
        must_know_its_id: false,
    }
}

impl Bench {
    fn new(initial_rebalance_delay: Duration) -> Bench {
        let now = Instant::now();
        let rules = Rules { initial_rebalance_delay, session_timeout_min: Duration::ZERO };
        Bench { group: Group::new(rules, now), now }
    }

    fn add(&mut self, id: &str) -> oneshot::Receiver<JoinAnswer> {
        self.group.join(joining(id, &["range"]), id.to_owned(), self.now)
    }

    fn rejoin(&mut self, id: &str) -> oneshot::Receiver<JoinAnswer> {
        let again = Joining { member_id: id.to_owned(), ..joining(id, &["range"]) };
        self.group.join(again, String::new(), self.now)
    }

    fn sync(&mut self, id: &str) -> oneshot::Receiver<SyncAnswer> {
        let syncing = Syncing {
            member_id: id.to_owned(),
            instance_id: None,
            generation: self.group.generation,
            protocol_type: None,
            protocol: None,
            assignments: [("a", "A"), ("b", "B")].map(|(id, word)| (id.to_owned(), Bytes::from(word))).into(),
        };
        self.group.sync(syncing, self.now)
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.group.expire(self.now);
    }

    fn members(&self) -> Vec<&str> {
        self.group.members.iter().map(|member| member.id.as_str()).collect()
    }
}

fn answered(receiver: &mut oneshot::Receiver<JoinAnswer>) -> Joined {
    receiver.try_recv().unwrap().unwrap()
}

#[test]
fn a_lone_member_is_in_at_once() {
    let mut bench = Bench::new(Duration::ZERO);
    let joined = answered(&mut bench.add("a"));
    assert_eq!((joined.generation, joined.leader.as_str(), joined.members.len()), (1, "a", 1));
    assert_eq!(bench.group.state, GroupState::CompletingRebalance);
    bench.sync("a").try_recv().unwrap().unwrap();
    assert_eq!(bench.group.state, GroupState::Stable);
}

#[test]
fn the_initial_delay_gathers_members_into_one_generation() {
    let delay = Duration::from_secs(3);
    let mut bench = Bench::new(delay);
    let mut a = bench.add("a");
    let mut b = bench.add("b");
    bench.pass(Duration::from_secs(2));
    assert!(a.try_recv().is_err());
    assert_eq!(bench.group.next_deadline(), Some(bench.now + Duration::from_secs(1)));
    bench.pass(Duration::from_secs(1));
    assert_eq!((answered(&mut a).generation, answered(&mut b).generation), (1, 1));
}

#[test]
fn who_does_not_rejoin_in_time_is_out() {
    let mut bench = Bench::new(Duration::ZERO);
    answered(&mut bench.add("a"));
    bench.sync("a").try_recv().unwrap().unwrap();
    let mut b = bench.add("b");
    assert_eq!(bench.group.state, GroupState::PreparingRebalance);
    for _ in 0..11 {
        // It still sends heartbeats, but never JoinGroup.
        let beat = bench.group.heartbeat("a", None, 1, bench.now);
        assert_eq!(beat, Err(ResponseError::RebalanceInProgress));
        bench.pass(Duration::from_secs(5));
        assert!(b.try_recv().is_err());
    }
    bench.group.heartbeat("a", None, 1, bench.now).unwrap_err();
    bench.pass(Duration::from_secs(5));
    assert_eq!(answered(&mut b).leader, "b");
    assert_eq!(bench.members(), ["b"]);
}

#[test]
fn a_silent_member_is_out_after_its_session_and_the_rest_rebalance() {
    let mut bench = Bench::new(Duration::ZERO);
    answered(&mut bench.add("a"));
    let mut b = bench.add("b");
    answered(&mut bench.rejoin("a"));
    answered(&mut b);
    let mut waiting = bench.sync("b");
    assert!(waiting.try_recv().is_err());
    bench.sync("a").try_recv().unwrap().unwrap();
    assert_eq!(waiting.try_recv().unwrap().unwrap().assignment, "B");
    bench.pass(Duration::from_secs(9));
    bench.group.heartbeat("b", None, 2, bench.now).unwrap();
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.members(), ["b"]);
    assert_eq!(bench.group.state, GroupState::PreparingRebalance);
    assert_eq!(answered(&mut bench.rejoin("b")).generation, 3);
    bench.pass(Duration::from_secs(10));
    assert_eq!((bench.group.state, bench.group.next_deadline()), (GroupState::Empty, None));
}

#[test]
fn who_does_not_sync_in_time_is_out() {
    let mut bench = Bench::new(Duration::ZERO);
    answered(&mut bench.add("a"));
    let mut b = bench.add("b");
    answered(&mut bench.rejoin("a"));
    answered(&mut b);
    let mut waiting = bench.sync("b");
    for _ in 0..12 {
        bench.group.heartbeat("a", None, 2, bench.now).unwrap();
        bench.pass(Duration::from_secs(5));
    }
    assert_eq!(waiting.try_recv().unwrap(), Err(ResponseError::RebalanceInProgress));
    assert_eq!(bench.members(), ["b"]);
}

#[test]
fn an_unchanged_follower_gets_the_current_generation_and_a_changed_one_a_rebalance() {
    let mut bench = Bench::new(Duration::ZERO);
    answered(&mut bench.add("a"));
    let mut b = bench.add("b");
    answered(&mut bench.rejoin("a"));
    answered(&mut b);
    bench.sync("a").try_recv().unwrap().unwrap();
    assert_eq!(answered(&mut bench.rejoin("b")).generation, 2);
    assert_eq!(bench.group.state, GroupState::Stable);
    let mut changed = joining("b", &["range"]);
    changed.member_id = "b".to_owned();
    changed.protocols[0].metadata = Bytes::from_static(b"new");
    let mut waiting = bench.group.join(changed, String::new(), bench.now);
    assert!(waiting.try_recv().is_err());
    assert_eq!(bench.group.state, GroupState::PreparingRebalance);
}

#[test]
fn the_protocol_with_most_votes_wins() {
    let mut bench = Bench::new(Duration::from_secs(1));
    let ids = [("a", ["x", "y"]), ("b", ["y", "x"]), ("c", ["y", "x"])];
    let waiting: Vec<_> = ids
        .into_iter()
        .map(|(id, protocols)| bench.group.join(joining(id, &protocols), id.to_owned(), bench.now))
        .collect();
    bench.pass(Duration::from_secs(1));
    for mut receiver in waiting {
        assert_eq!(answered(&mut receiver).protocol, "y");
    }
}

#[test]
fn an_id_that_was_handed_out_holds_the_rebalance_until_it_is_used_or_too_old() {
    let mut bench = Bench::new(Duration::ZERO);
    let careful = Joining { must_know_its_id: true, ..joining("b", &["range"]) };
    let refused = bench.group.join(careful, "b".to_owned(), bench.now).try_recv().unwrap().unwrap_err();
    assert_eq!((refused.error, refused.member_id.as_str()), (ResponseError::MemberIdRequired, "b"));
    let mut a = bench.add("a");
    assert!(a.try_recv().is_err());
    bench.pass(Duration::from_secs(10));
    assert_eq!(answered(&mut a).members.len(), 1);
}

#[test]
fn a_static_member_that_comes_back_fences_its_old_self() {
    let mut bench = Bench::new(Duration::ZERO);
    let fixed = Joining { instance_id: Some("i".to_owned()), ..joining("a", &["range"]) };
    answered(&mut bench.group.join(fixed.clone(), "old".to_owned(), bench.now));
    answered(&mut bench.group.join(fixed, "new".to_owned(), bench.now));
    assert_eq!(bench.members(), ["new"]);
    let old = bench.group.heartbeat("old", Some("i"), 2, bench.now);
    assert_eq!(old, Err(ResponseError::FencedInstanceId));
    assert_eq!(bench.group.heartbeat("new", Some("i"), 2, bench.now), Ok(()));
    assert_eq!(bench.group.leave("", Some("i"), bench.now), Ok(()));
    assert_eq!(bench.group.state, GroupState::Empty);
}
