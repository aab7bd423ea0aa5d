use std::time::Duration;

use super::random::SplitMix;
use super::*;

fn touched(topic: &str, partition: i32) -> Touched {
    Touched { topic: topic.to_owned(), partition: Some(partition) }
}

fn decide(faults: &Faults, api: ApiKey, touched: &[Touched]) -> Injected {
    faults.decide(&RequestFacts { api, node: 1, client_id: "c", touched })
}

/// Which of the first ten requests the fault hits.
fn check_times(fault: Fault, expected: &[u64]) {
    let faults = Faults::default();
    faults.add(fault);
    let hit = |_: &u64| decide(&faults, ApiKey::Produce, &[]).cut_before;
    let hits: Vec<u64> = (1..=10).filter(hit).collect();
    assert_eq!(hits, expected);
}

#[test]
fn times_count_matching_requests() {
    let cut = || Fault::new(Effect::CutBefore);
    check_times(cut(), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    check_times(cut().nth(3), &[3]);
    check_times(cut().times(2), &[1, 2]);
    check_times(cut().after(7), &[8, 9, 10]);
    check_times(cut().after(2).times(3), &[3, 4, 5]);
}

#[test]
fn requests_that_do_not_match_are_not_counted() {
    let faults = Faults::default();
    let id = faults.add(Fault::new(Effect::CutAfter).api(ApiKey::Fetch).topic("t").partition(1).nth(2));
    for (api, topic, partition, hit) in [
        (ApiKey::Fetch, "t", 1, false),
        (ApiKey::Produce, "t", 1, false),
        (ApiKey::Fetch, "t", 0, false),
        (ApiKey::Fetch, "u", 1, false),
        (ApiKey::Fetch, "t", 1, true),
        (ApiKey::Fetch, "t", 1, false),
    ] {
        assert_eq!(decide(&faults, api, &[touched(topic, partition)]).cut_after, hit, "{topic}[{partition}]");
    }
    assert_eq!(faults.hits(id), 1);
    assert!(faults.is_exhausted());
}

#[test]
fn all_faults_that_match_happen_and_the_first_error_wins() {
    let faults = Faults::default();
    faults.add(Fault::new(Effect::Delay(Duration::from_millis(2))));
    faults.add(Fault::new(Effect::Delay(Duration::from_millis(3))));
    faults.add(Fault::new(Effect::Error(ResponseError::NotLeaderOrFollower)).topic("t").partition(1));
    faults.add(Fault::new(Effect::ErrorAfterApply(ResponseError::RequestTimedOut)));
    let injected = decide(&faults, ApiKey::Produce, &[touched("t", 0), touched("t", 1)]);
    assert_eq!(injected.delay, Duration::from_millis(5));
    assert_eq!(injected.error(Some("t"), Some(1)), Some((ResponseError::NotLeaderOrFollower, false)));
    assert_eq!(injected.error(Some("t"), Some(0)), Some((ResponseError::RequestTimedOut, true)));
    assert_eq!(injected.error(None, None), Some((ResponseError::RequestTimedOut, true)));
}

#[test]
fn what_has_fired_is_remembered_within_its_bound() {
    let faults = Faults::default();
    faults.add(Fault::new(Effect::CutAfter));
    for _ in 0..FIRED_KEPT_MAX + 5 {
        decide(&faults, ApiKey::Metadata, &[]);
    }
    let fired = faults.fired();
    assert_eq!((fired.len(), fired[0].request), (FIRED_KEPT_MAX, 6));
}

#[test]
fn a_plan_is_the_same_for_the_same_seed_and_prints_as_a_list() {
    let space =
        FaultSpace { fault_count: 4, topics: vec![("orders".to_owned(), 2)], ..FaultSpace::default() };
    let plan = FaultPlan::random(7, &space);
    assert_eq!(plan, FaultPlan::random(7, &space));
    assert_ne!(plan.faults, FaultPlan::random(8, &space).faults);
    let expected = "fault plan with seed 7, 4 faults
   1. Metadata, request 4: cut the connection at byte 2 of the answer
   2. InitProducerId, request 19: cut the connection after it is done
   3. Metadata, request 6: cut the connection after it is done
   4. ListOffsets of orders[1], request 11: answer NotLeaderOrFollower";
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn plans_use_every_effect_and_only_errors_that_a_client_retries() {
    let space =
        FaultSpace { fault_count: 2000, topics: vec![("orders".to_owned(), 2)], ..FaultSpace::default() };
    let mut kinds = std::collections::BTreeSet::new();
    for fault in FaultPlan::random(1, &space).faults {
        let effect = fault.effect.to_string();
        kinds.insert(effect.split(' ').take(2).collect::<Vec<_>>().join(" "));
        if let Effect::Error(error) | Effect::ErrorAfterApply(error) = fault.effect {
            assert!(error.is_retriable(), "{error}");
        }
        assert!((1..=space.within_requests).contains(&(fault.times.skip + 1)));
    }
    for kind in ["cut the", "delay by", "do it,", "end the", "move the", "answer NotLeaderOrFollower"] {
        assert!(kinds.contains(kind), "{kind} is missing in {kinds:?}");
    }
}

#[test]
fn faults_print_as_sentences() {
    let error = Effect::Error(ResponseError::NotLeaderOrFollower);
    let fault = Fault::new(error)
        .api(ApiKey::Produce)
        .topic("t")
        .partition(3)
        .client_id("c")
        .node(2)
        .after(4)
        .times(2);
    assert_eq!(
        fault.to_string(),
        "Produce of t[3] from c on node 2, requests 5 to 6: answer NotLeaderOrFollower"
    );
    let cut = Fault::new(Effect::CutWithinAnswer { frame_bytes_max: 9 }).topic("t").after(1);
    assert_eq!(
        cut.to_string(),
        "any request of t, from request 2 on: cut the connection at byte 9 of the answer"
    );
}

#[test]
fn split_mix_is_the_published_generator() {
    // First numbers for the seed 1234567, as its author's reference gives them.
    let mut random = SplitMix::new(1_234_567);
    let numbers: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
    assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    assert_eq!(random.below(0), 0);
}
