use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::control::fixture::{Identity, Prefix, Table, flow, naming, prefix_naming, topic};

/// `=name` for a copy, `-` for a topic that is left, else the refusal's text.
fn answer(naming: &mut Naming, name: &str) -> String {
    let name = topic(name);
    match naming.answer_all([&name].into_iter()).remove(&name).unwrap() {
        TopicAnswer::Copy(named) => format!("={}", named.target),
        TopicAnswer::LeftOut(plugin) => format!("left out by {plugin}"),
        TopicAnswer::Leave => "-".to_owned(),
        TopicAnswer::Refuse(refusal) => refusal.text,
    }
}

#[test]
fn the_file_decides_which_topics_are_copied() {
    let mut naming = prefix_naming(&flow("topics = orders.*, bills\ntopics.exclude = .*\\\\.tmp"));
    let mut check = |name: &str, expected: &str| assert_eq!(answer(&mut naming, name), expected, "{name}");
    check("orders", "=A.orders");
    check("orders.eu", "=A.orders.eu");
    check("bills", "=A.bills");
    check("bills2", "-");
    check("orders.tmp", "-");
    check("__consumer_offsets", "-");
    check(".orders", "-");
    check("orders-internal", "-");
    check("orders.internal", "-");
    // Heartbeats pass the lists.
    check("heartbeats", "=A.heartbeats");
    check("C.heartbeats", "=A.C.heartbeats");
    check("my.heartbeats", "-");
}

#[test]
fn heartbeats_stay_when_they_are_switched_off() {
    let mut naming = prefix_naming(&flow("topics = orders\nheartbeats.replication.enabled = false"));
    assert_eq!(answer(&mut naming, "heartbeats"), "-");
}

#[test]
fn internal_topics_end_with_the_separator_and_internal() {
    let mut naming =
        prefix_naming(&flow("topics = .*\ntopics.exclude = none\nreplication.policy.separator = _"));
    assert_eq!(answer(&mut naming, "mm2-offset-syncs_B_internal"), "-");
    assert_eq!(answer(&mut naming, "minternal"), "=A.minternal");
}

#[test]
fn topics_that_came_from_the_target_do_not_go_back() {
    let mut naming = prefix_naming(&flow(""));
    let refused = |name: &str| {
        format!(
            "topic \"{name}\" of cluster \"A\" is not copied: by its name it came from \"B\", and back there it would \
             loop; rename it if it did not"
        )
    };
    let mut check = |name: &str, expected: &str| assert_eq!(answer(&mut naming, name), expected, "{name}");
    check("B.orders", &refused("B.orders"));
    check("C.B.orders", &refused("C.B.orders"));
    check("C.C.B.orders", &refused("C.C.B.orders"));
    check("B.heartbeats", &refused("B.heartbeats"));
    check("C.orders", "=A.C.orders");
    check("orders.B", "=A.orders.B");
    // Own copies come back over another cluster only with the target's name in front.
    check("A.orders", "=A.A.orders");
}

#[test]
fn names_that_stay_say_nothing_of_where_they_came_from() {
    let flow = flow("replication.policy.class = IdentityReplicationPolicy");
    let others: BTreeMap<ClusterAlias, Box<dyn TopicNaming>> =
        BTreeMap::from([(ClusterAlias::new("B"), Box::new(Identity("B")) as Box<dyn TopicNaming>)]);
    let mut naming = Naming::new(&flow, Box::new(Identity("A")), others, false);
    assert_eq!(answer(&mut naming, "B.orders"), "=B.orders");
    assert_eq!(answer(&mut naming, "heartbeats"), "=A.heartbeats");
    let refused = answer(&mut naming, "B.heartbeats");
    assert!(refused.contains("it came from \"B\""), "{refused}");
    assert!(naming.keeps_names());
    assert!(!prefix_naming(&flow).keeps_names());
}

#[test]
fn names_that_stay_both_ways_are_refused() {
    let flow = flow("");
    let mut naming = Naming::new(&flow, Box::new(Identity("A")), BTreeMap::new(), true);
    assert_eq!(
        answer(&mut naming, "orders"),
        "topic \"orders\" of cluster \"A\" is not copied: naming plugin \"identity\" leaves its name as it is, and \
         enabled flows lead back from \"B\" to \"A\", so it would loop; change the plugin or its settings, or add the topic to topics.exclude"
    );
    assert_eq!(answer(&mut naming, "heartbeats"), "=A.heartbeats");
}

#[test]
fn answers_of_the_plugin_are_checked() {
    const NAMES: &[(&str, &str)] = &[
        ("good", "better"),
        ("slash", "a/b"),
        ("empty", ""),
        ("hidden", "x.internal"),
        ("under", "__x"),
        ("secret", "!not for abroad"),
        ("broken", "?it trapped (unreachable)"),
        ("first", "same"),
        ("second", "same"),
    ];
    let flow = flow("");
    let mut naming = naming(&flow, Table(NAMES));
    let mut check = |name: &str, expected: &str| {
        let answer = answer(&mut naming, name);
        let prefix = format!("topic \"{name}\" of cluster \"A\" is not copied: ");
        assert_eq!(answer.strip_prefix(&prefix).unwrap_or(&answer), expected);
    };
    let way_out = "change the plugin or its settings, or add the topic to topics.exclude";
    check("good", "=better");
    check(
        "slash",
        &format!(
            "naming plugin \"table\" gives it no legal name (\"a/b\" holds '/'; Kafka takes ASCII letters, digits, '.', \
             '_' and '-'); {way_out}"
        ),
    );
    check(
        "empty",
        &format!("naming plugin \"table\" gives it no legal name (a topic name can't be empty); {way_out}"),
    );
    let internal = |name| {
        format!(
            "naming plugin \"table\" calls it \"{name}\" on \"B\", and names like that are for internal topics; {way_out}"
        )
    };
    check("hidden", &internal("x.internal"));
    check("under", &internal("__x"));
    check("secret", &format!("naming plugin \"table\" refuses it: not for abroad; {way_out}"));
    check("broken", "naming plugin \"table\" failed: it trapped (unreachable); it is asked again soon");
    check("first", "=same");
    check(
        "second",
        "naming plugin \"table\" calls it \"same\" on \"B\", but says of \"same\" that it is the copy of \"first\"; \
         to-source must undo to-target",
    );
    check(
        "stranger",
        "naming plugin \"table\" calls it \"stranger\" on \"B\", but says of \"stranger\" that it is the copy of no \
         topic; to-source must undo to-target",
    );
}

/// Counts questions and fails at the first one.
struct Counting {
    questions: Arc<AtomicUsize>,
}

impl TopicNaming for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        if self.questions.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err("first question".to_owned());
        }
        Prefix("A").to_target(topic)
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        Prefix("A").to_source(topic)
    }
}

#[test]
fn a_topic_is_asked_for_once_and_again_after_a_fault_or_its_return() {
    let questions = Arc::new(AtomicUsize::new(0));
    let flow = flow("");
    let mut naming = naming(&flow, Counting { questions: Arc::clone(&questions) });
    assert!(answer(&mut naming, "orders").contains("first question"));
    for _ in 0..3 {
        assert_eq!(answer(&mut naming, "orders"), "=A.orders");
    }
    assert_eq!(questions.load(Ordering::Relaxed), 2);
    assert!(naming.answer_all([].into_iter()).is_empty());
    assert_eq!(answer(&mut naming, "orders"), "=A.orders");
    assert_eq!(questions.load(Ordering::Relaxed), 3);
}

#[test]
fn whether_names_stay_is_asked_again_after_a_fault() {
    let questions = Arc::new(AtomicUsize::new(0));
    let flow = flow("");
    let mut naming = naming(&flow, FailingOnce { questions: Arc::clone(&questions) });
    assert!(!naming.keeps_names());
    assert!(naming.keeps_names());
    assert!(naming.keeps_names());
    assert_eq!(questions.load(Ordering::Relaxed), 2);
}

/// Keeps names, but fails at the first question.
struct FailingOnce {
    questions: Arc<AtomicUsize>,
}

impl TopicNaming for FailingOnce {
    fn name(&self) -> &str {
        "failing once"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        if self.questions.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err("first question".to_owned());
        }
        Ok(Ok(topic.to_owned()))
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        Ok(Some(topic.to_owned()))
    }
}

/// Says of every name that it came from a longer one.
struct Endless;

impl TopicNaming for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn to_target(&mut self, topic: &str) -> Result<Result<String, String>, String> {
        Ok(Ok(topic.to_owned()))
    }

    fn to_source(&mut self, topic: &str) -> Result<Option<String>, String> {
        Ok(Some(format!("{topic}x")))
    }
}

#[test]
fn an_inverse_that_never_ends_is_not_followed_for_ever() {
    let flow = flow("");
    let mut naming = naming(&flow, Endless);
    assert!(answer(&mut naming, "orders").ends_with("to-source must undo to-target"));
}
