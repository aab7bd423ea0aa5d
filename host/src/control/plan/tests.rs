use super::*;
use crate::cluster::{BrokerRefusal, ConfigEntry, ConfigOrigin};
use crate::control::fixture::{Identity, Table, cluster, flow, naming, prefix_naming, topic};
use crate::control::naming::Naming;
use kafka_protocol::ResponseError;

/// Plans for what is seen, remembers it, and gives the plan.
fn plan_round(naming: &mut Naming, flow: &FlowConfig, memory: &mut Memory, mut observed: Observed) -> Plan {
    let answers = naming.answer_all(observed.source.topics.keys());
    for source in observed.source.topics.keys() {
        observed.source_configs.entry(source.clone()).or_insert(Ok(Vec::new()));
    }
    let situation = Situation {
        observed: &observed,
        answers: &answers,
        memory,
        flow,
        names_are_kept: naming.keeps_names(),
        wants_quarantine: false,
        selection_fault: None,
    };
    let plan = plan(&situation);
    memory.remember(&observed, &plan);
    plan
}

fn seen(source: &[(&str, i32, u8)], target: &[(&str, i32, u8)]) -> Observed {
    Observed { source: cluster("a", source), target: cluster("b", target), ..Observed::default() }
}

const POSITIONS: (&str, i32, u8) = ("mm2-offsets.A.internal", 25, 99);

#[test]
fn a_first_plan_creates_what_is_missing_and_nothing_is_ready() {
    let flow = flow("topics = orders, bills");
    let observed = seen(&[("orders", 3, 1), ("bills", 1, 2), ("other", 1, 3)], &[]);
    let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
    assert_eq!(
        plan.to_string(),
        "flow A->B: 2 topics to copy, 0 partitions ready\n  \
           would do:\n    \
             create positions topic \"mm2-offsets.A.internal\": 25 partitions, replication factor 1, cleanup.policy = compact\n    \
             create topic \"A.bills\" for \"bills\": 1 partition, replication factor 1\n    \
             create topic \"A.orders\" for \"orders\": 3 partitions, replication factor 1\n  \
           names:\n    \
             bills -> A.bills\n    \
             orders -> A.orders\n"
    );
    assert!(plan.ready.is_empty());
}

#[test]
fn only_partitions_seen_on_the_target_are_ready() {
    let flow = flow("");
    let observed =
        seen(&[("grown", 4, 1), ("wide", 2, 2)], &[POSITIONS, ("A.grown", 3, 3), ("A.wide", 8, 4)]);
    let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
    let add = Action::AddPartitions {
        source_topic: topic("grown"),
        topic: topic("A.grown"),
        from_count: 3,
        to_count: 4,
    };
    assert_eq!(plan.actions, [add]);
    assert_eq!(plan.actions[0].to_string(), "add partitions to topic \"A.grown\" for \"grown\": from 3 to 4");
    let ready: Vec<String> =
        plan.ready.iter().map(|(partition, target)| format!("{partition} {target}")).collect();
    assert_eq!(
        ready,
        ["grown-0 A.grown", "grown-1 A.grown", "grown-2 A.grown", "wide-0 A.wide", "wide-1 A.wide"]
    );
}

#[test]
fn settings_of_the_source_are_created_with_the_copy() {
    let entry = |name: &str, value: &str, origin| ConfigEntry {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        origin,
        is_read_only: false,
        is_sensitive: false,
    };
    let entries = vec![
        entry("retention.ms", "5000", ConfigOrigin::Topic),
        entry("cleanup.policy", "compact", ConfigOrigin::Topic),
        entry("max.message.bytes", "2000000", ConfigOrigin::DynamicBroker),
        entry("segment.bytes", "77", ConfigOrigin::StaticBroker),
        entry("flush.ms", "1", ConfigOrigin::Default),
        entry("min.insync.replicas", "2", ConfigOrigin::Topic),
        ConfigEntry { is_read_only: true, ..entry("fixed", "1", ConfigOrigin::Topic) },
        ConfigEntry { is_sensitive: true, value: None, ..entry("secret", "1", ConfigOrigin::Topic) },
    ];
    let check = |lines: &str, expected: &[(&str, &str)]| {
        let flow = flow(lines);
        let mut observed = seen(&[("orders", 1, 1)], &[POSITIONS]);
        observed.source_configs.insert(topic("orders"), Ok(entries.clone()));
        let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
        let Action::CreateTopic { settings, .. } = &plan.actions[0] else { panic!("{plan}") };
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(*settings, expected, "{lines}");
    };
    let common = [("cleanup.policy", "compact"), ("max.message.bytes", "2000000"), ("retention.ms", "5000")];
    check("", &common);
    // It says whether they are kept alike later, not how a copy begins.
    check("sync.topic.configs.enabled = false", &common);
    check("config.properties.exclude = .*", &[]);
    check(
        "config.properties.exclude = max.*\nA->B.use.defaults.from = source",
        &[
            ("cleanup.policy", "compact"),
            ("flush.ms", "1"),
            ("min.insync.replicas", "2"),
            ("retention.ms", "5000"),
        ],
    );
}

#[test]
fn without_its_settings_no_topic_is_created() {
    let flow = flow("");
    let mut observed = seen(&[("orders", 1, 1)], &[POSITIONS]);
    let refusal = BrokerRefusal { error: ResponseError::TopicAuthorizationFailed, message: None };
    observed.source_configs.insert(topic("orders"), Err(refusal));
    let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
    assert_eq!(plan.actions, []);
    assert_eq!(
        plan.refusals[0].text,
        "could not create topic \"A.orders\" on target \"B\": source \"A\" does not tell the settings of \"orders\" \
         (TopicAuthorizationFailed); allow DESCRIBE_CONFIGS on it, or create the copy by hand"
    );
}

#[test]
fn more_replicas_than_brokers_are_refused() {
    let flow = flow("replication.factor = 3");
    let plan = plan_round(
        &mut prefix_naming(&flow),
        &flow,
        &mut Memory::default(),
        seen(&[("orders", 1, 1)], &[POSITIONS]),
    );
    assert_eq!(plan.actions, []);
    assert_eq!(plan.refusals[0].kind, RefusalKind::ReplicationFactor);
    assert_eq!(
        plan.refusals[0].text,
        "could not create topic \"A.orders\" on target \"B\": replication factor 3, 1 broker alive; set \
         replication.factor = 1 or add brokers"
    );
    // −1 is the broker's default, and no topic that is there already is refused.
    let flow = crate::control::fixture::flow("replication.factor = -1");
    let plan = plan_round(
        &mut prefix_naming(&flow),
        &flow,
        &mut Memory::default(),
        seen(&[("orders", 1, 1)], &[POSITIONS]),
    );
    assert_eq!(plan.refusals, []);
    assert_eq!(
        plan.actions[0].to_string(),
        "create topic \"A.orders\" for \"orders\": 1 partition, the broker's default replication factor"
    );
}

/// Two topics that want one name, and an inverse that is right for whichever is asked last.
struct Shared(String);

impl crate::control::naming::TopicNaming for Shared {
    fn name(&self) -> &str {
        "shared"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        self.0 = topic.to_owned();
        Ok(Ok("same".to_owned()))
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        Ok((topic == "same").then(|| self.0.clone()))
    }
}

#[test]
fn a_newcomer_never_takes_a_name_that_is_in_use() {
    let flow = flow("");
    let mut naming = naming(&flow, Shared(String::new()));
    let mut memory = Memory::default();
    plan_round(&mut naming, &flow, &mut memory, seen(&[("second", 1, 1)], &[POSITIONS]));
    let both = || seen(&[("first", 1, 2), ("second", 1, 1)], &[POSITIONS, ("same", 1, 3)]);
    let plan = plan_round(&mut naming, &flow, &mut memory, both());
    assert_eq!(plan.topic_map.source_of(&topic("same")), Some(&topic("second")));
    assert_eq!(
        plan.refusals[0].text,
        "topic \"first\" of cluster \"A\" is not copied: target topic \"same\" is already the copy of source topic \
         \"second\", so \"first\" can't use it; change the naming plugin or its settings, or add one of the two to \
         topics.exclude"
    );
    assert!(plan.ready.keys().all(|partition| partition.topic == topic("second")));
    // Without a past the first by name has it.
    let plan = plan_round(&mut naming, &flow, &mut Memory::default(), both());
    assert_eq!(plan.topic_map.source_of(&topic("same")), Some(&topic("first")));
}

#[test]
fn a_flow_into_its_own_cluster_is_refused_when_names_stay() {
    let flow = flow("");
    let same = |topics: &[(&str, i32, u8)]| Observed {
        source: cluster("a", topics),
        target: cluster("a", topics),
        ..Observed::default()
    };
    let identity = || naming(&flow, Identity("A"));
    let plan = plan_round(&mut identity(), &flow, &mut Memory::default(), same(&[("orders", 1, 1)]));
    assert_eq!(plan.actions, []);
    assert!(plan.ready.is_empty() && plan.topic_map.is_empty());
    assert_eq!(
        plan.flow_refusal().unwrap().text,
        "flow A->B does not run: \"A\" and \"B\" are one cluster (id a) and topic \"orders\" would keep the name, so it \
         would be copied onto itself; correct the bootstrap servers or use a naming policy that changes names"
    );
    let plan = plan_round(&mut identity(), &flow, &mut Memory::default(), same(&[]));
    assert_eq!(plan.flow_refusal().map(|refusal| refusal.kind), Some(RefusalKind::SameCluster));
    let plan = plan_round(&mut identity(), &flow, &mut Memory::default(), seen(&[("orders", 1, 1)], &[]));
    assert_eq!(plan.flow_refusal(), None);
    // One topic of its own plugin that stays is enough.
    let plan = plan_round(
        &mut naming(&flow, Table(&[("orders", "copy"), ("bills", "bills")])),
        &flow,
        &mut Memory::default(),
        same(&[("orders", 1, 1), ("bills", 1, 2)]),
    );
    assert!(plan.flow_refusal().unwrap().text.contains("topic \"bills\" would keep the name"));
}

#[test]
fn a_flow_into_its_own_cluster_does_not_copy_its_copies() {
    let flow = flow("");
    let topics = [("orders", 1, 1), ("A.orders", 1, 2), POSITIONS];
    let observed =
        Observed { source: cluster("a", &topics), target: cluster("a", &topics), ..Observed::default() };
    let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
    assert_eq!(plan.actions, []);
    assert_eq!(plan.topic_map.target_of(&topic("orders")), Some(&topic("A.orders")));
    assert_eq!(
        plan.refusals.iter().map(|refusal| refusal.text.as_str()).collect::<Vec<_>>(),
        [
            "topic \"A.orders\" of cluster \"A\" is not copied: by its name it is a copy that this flow made, source and \
          target being one cluster"
        ]
    );
    assert_eq!(plan.attention().count(), 0);
    assert_eq!(plan.summary_lines(), ["1 topic is a copy that this flow made and is not copied again"]);
}

#[test]
fn copies_of_the_other_side_are_summed_up_without_alarm() {
    let flow = flow("");
    let check = |source: &[(&str, i32, u8)], attention: usize, lines: &[&str]| {
        let observed = seen(source, &[POSITIONS, ("A.orders", 1, 3)]);
        let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
        assert_eq!(plan.attention().count(), attention, "{plan}");
        assert_eq!(plan.summary_lines(), lines);
        assert_eq!(plan.topic_map.len(), 1);
        plan
    };
    check(&[("orders", 1, 2)], 0, &[]);
    let one = "1 topic is a copy that came from B and is not sent back";
    check(&[("B.bills", 1, 1), ("orders", 1, 2)], 0, &[one]);
    let source = [("B.bills", 1, 1), ("B.orders", 1, 3), ("orders", 1, 2)];
    let plan = check(&source, 0, &["2 topics are copies that came from B and are not sent back"]);
    assert!(plan.refusals.iter().all(|refusal| refusal.kind == RefusalKind::WouldLoop));
    assert_eq!(
        plan.to_string(),
        "flow A->B: 1 topic to copy, 1 partition ready\n  \
           would leave alone:\n    \
             2 topics are copies that came from B and are not sent back\n  \
           names:\n    \
             orders -> A.orders\n"
    );
}

#[test]
fn names_that_stay_both_ways_need_attention() {
    let flow = flow("");
    let mut naming = Naming::new(&flow, Box::new(Identity("A")), std::collections::BTreeMap::new(), true);
    let observed = seen(&[("orders", 1, 1)], &[POSITIONS]);
    let plan = plan_round(&mut naming, &flow, &mut Memory::default(), observed);
    assert_eq!(plan.attention().map(|refusal| refusal.kind).collect::<Vec<_>>(), [RefusalKind::KeptBothWays]);
    assert_eq!(plan.summary_lines(), Vec::<String>::new());
}

#[test]
fn topics_that_change_behind_our_back_are_noticed() {
    let flow = flow("");
    let source = [("orders", 2, 1)];
    let check = |now: Observed, expected: &[&str]| {
        let mut naming = prefix_naming(&flow);
        let mut memory = Memory::default();
        let before = seen(&source, &[POSITIONS, ("A.orders", 2, 7)]);
        assert_eq!(plan_round(&mut naming, &flow, &mut memory, before).events, []);
        let plan = plan_round(&mut naming, &flow, &mut memory, now);
        assert_eq!(plan.events.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        plan
    };
    check(seen(&source, &[POSITIONS, ("A.orders", 2, 7)]), &[]);
    check(
        seen(&[("orders", 2, 5)], &[POSITIONS, ("A.orders", 2, 7)]),
        &[
            "source topic \"orders\" was deleted and made anew; it is copied from its first record, behind the old one's in \
             \"A.orders\"",
        ],
    );
    let plan = check(
        seen(&[], &[POSITIONS, ("A.orders", 2, 7)]),
        &["source topic \"orders\" was deleted; its copy \"A.orders\" stays as it is"],
    );
    assert!(plan.ready.is_empty());
    let plan = check(
        seen(&source, &[POSITIONS]),
        &[
            "target topic \"A.orders\" was deleted; it is made anew, but records of \"orders\" before the stored positions \
           are not copied again unless the positions are reset",
        ],
    );
    assert!(plan.ready.is_empty());
    assert_eq!(plan.actions.len(), 1);
    check(
        seen(&source, &[POSITIONS, ("A.orders", 2, 8)]),
        &[
            "target topic \"A.orders\" was deleted and made anew; records of \"orders\" before the stored positions are not \
           copied again unless the positions are reset",
        ],
    );
    // Brokers without topic ids.
    check(seen(&[("orders", 2, 0)], &[POSITIONS, ("A.orders", 2, 0)]), &[]);
}

#[test]
fn a_topic_that_returns_as_another_is_noticed_though_it_was_gone() {
    let flow = flow("");
    let mut naming = prefix_naming(&flow);
    let mut memory = Memory::default();
    let target = [POSITIONS, ("A.orders", 1, 7)];
    plan_round(&mut naming, &flow, &mut memory, seen(&[("orders", 1, 1)], &target));
    plan_round(&mut naming, &flow, &mut memory, seen(&[], &target));
    let plan = plan_round(&mut naming, &flow, &mut memory, seen(&[("orders", 1, 2)], &target));
    let recreated = Event::SourceTopicRecreated { topic: topic("orders"), target: topic("A.orders") };
    assert_eq!(plan.events, [recreated]);
    let plan = plan_round(&mut naming, &flow, &mut memory, seen(&[("orders", 1, 2)], &target));
    assert_eq!(plan.events, []);
}

#[test]
fn a_plan_is_json_too() {
    let flow = flow("replication.factor = 2");
    let observed = seen(&[("bills", 1, 1), ("orders", 1, 2)], &[POSITIONS, ("A.orders", 1, 3)]);
    let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
    let json = serde_json::to_value(&plan).unwrap();
    let expected = serde_json::json!({
        "flow": "A->B",
        "actions": [],
        "refusals": [{
            "kind": "replication-factor",
            "topic": "bills",
            "text": "could not create topic \"A.bills\" on target \"B\": replication factor 2, 1 broker alive; set \
                     replication.factor = 1 or add brokers",
        }],
        "events": [],
        "topic_map": {"bills": "A.bills", "orders": "A.orders"},
        "ready": [{"topic": "orders", "partition": 0, "target": "A.orders"}],
        "unclear": [],
        "left_out": [],
        "selection_fault": null,
    });
    assert_eq!(json, expected);
    let action = Action::CreateTopic {
        source_topic: topic("t"),
        topic: topic("A.t"),
        partition_count: 1,
        replication_factor: 1,
        settings: vec![("retention.ms".to_owned(), "5".to_owned())],
    };
    assert_eq!(
        serde_json::to_value(action).unwrap(),
        serde_json::json!({"action": "create-topic", "source_topic": "t", "topic": "A.t", "partition_count": 1,
            "replication_factor": 1, "settings": [["retention.ms", "5"]]})
    );
}

#[test]
fn a_topic_that_is_unclear_is_neither_deleted_nor_let_go() {
    let flow = flow("");
    let mut naming = prefix_naming(&flow);
    let mut memory = Memory::default();
    let observed =
        seen(&[("orders", 2, 1), ("bills", 1, 2)], &[POSITIONS, ("A.orders", 2, 3), ("A.bills", 1, 4)]);
    let before = plan_round(&mut naming, &flow, &mut memory, observed.clone());
    assert_eq!(before.ready.len(), 3);

    let mut later = seen(&[("bills", 1, 2)], &[("A.orders", 2, 3)]);
    later.source.unclear.insert(topic("orders"));
    later.target.unclear.extend([topic("A.bills"), topic(POSITIONS.0), topic("strange")]);
    later.source.fill_unclear(&observed.source);
    later.target.fill_unclear(&observed.target);
    let plan = plan_round(&mut naming, &flow, &mut memory, later);
    assert_eq!((&plan.ready, plan.events.len(), plan.actions.len()), (&before.ready, 0, 0), "{plan}");
    assert_eq!(plan.unclear, ["orders", "A.bills", POSITIONS.0].map(topic));
    assert!(plan.to_string().contains("not known at this moment:\n    orders\n"), "{plan}");
}

#[test]
fn a_copy_that_is_unclear_at_the_first_look_is_not_made() {
    let flow = flow("");
    let mut observed = seen(&[("orders", 2, 1)], &[POSITIONS]);
    observed.target.unclear.insert(topic("A.orders"));
    let plan = plan_round(&mut prefix_naming(&flow), &flow, &mut Memory::default(), observed);
    assert_eq!((plan.actions.len(), plan.refusals.len(), plan.ready.len()), (0, 0, 0), "{plan}");
    assert_eq!(plan.unclear, [topic("A.orders")]);
}
