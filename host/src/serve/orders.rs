//! What a flow can be asked and told while it runs: what the HTTP handlers send to the flow's loop, and what comes back. The
//! types are those of the JSON, too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::names::FlowName;

/// Orders that may wait for a flow. They are rare: a person gives them.
pub const ORDERS_MAX: usize = 16;

/// Who asked, as the asking command says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The user of the operating system.
    pub user: String,
    /// The host.
    pub host: String,
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.user, self.host)
    }
}

/// A plugin that shall take another's place.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapWish {
    /// Its name in `tidegate.plugins`, or `naming`.
    #[serde(default)]
    pub name: String,
    /// None keeps the module: settings alone change.
    #[serde(default)]
    pub module: Option<SentModule>,
    /// One JSON object as text; none keeps the settings.
    #[serde(default)]
    pub settings: Option<String>,
    /// The trial runs over so many recent records of the source.
    #[serde(default)]
    pub replay: usize,
    /// Also when topics that are copied already would be renamed, or when the trial has faults.
    #[serde(default)]
    pub force: bool,
    /// The generation that the asker has seen: another one is not swapped.
    #[serde(default)]
    pub seen_generation: Option<u64>,
    /// Who asks.
    #[serde(default)]
    pub who: Who,
}

/// Without settings and module: the first may hold a secret, the second is long.
impl fmt::Debug for SwapWish {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("SwapWish");
        text.field("name", &self.name).field("replay", &self.replay).field("who", &self.who);
        text.finish_non_exhaustive()
    }
}

/// A module as it is sent.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentModule {
    /// One that the binary carries, without `builtin:`.
    Builtin(String),
    /// Its bytes, and the path where the asker found it.
    Bytes {
        /// The path, absolute.
        path: String,
        /// In base64 in JSON.
        #[serde(with = "base64_text")]
        bytes: Vec<u8>,
    },
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}

/// A way back that is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackWish {
    /// To which generation; none is the one before.
    #[serde(default)]
    pub to: Option<u64>,
    /// As with a swap.
    #[serde(default)]
    pub force: bool,
    /// Who asks.
    #[serde(default)]
    pub who: Who,
}

/// Paused partitions that shall go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeWish {
    /// A topic of the source and a partition of it; none is every one of this process.
    #[serde(default)]
    pub partition: Option<PartitionName>,
}

/// A partition of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionName {
    /// The topic.
    pub topic: String,
    /// Its number.
    pub partition: i32,
}

/// What was told to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeView {
    /// Partitions of this process that were paused.
    pub resumed: Vec<PartitionName>,
}

/// What runs now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginsView {
    /// The flow.
    pub flow: String,
    /// The generation's number.
    pub generation: u64,
    /// What brought it: `file`, `swap`, `settings`, `rollback`.
    pub kind: String,
    /// Its plugins, in the chain's order; `naming` is the last.
    pub plugins: Vec<PluginView>,
}

/// One plugin of a generation. Settings are never shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginView {
    /// Its name in the file.
    pub name: String,
    /// Where the module came from.
    pub module: String,
    /// What the module calls itself.
    pub plugin: String,
    /// The module's version.
    pub version: String,
    /// SHA-256 of the module.
    pub digest: String,
    /// Its size.
    pub size_bytes: u64,
    /// `records`, `selection`, `acl-mapping`, `topic-naming`.
    pub hooks: Vec<String>,
    /// Where it applies.
    pub topics: String,
    /// Where it does not.
    pub topics_exclude: String,
    /// `pause`, `pass`, `drop`, `quarantine`.
    pub on_fault: String,
}

/// A decision of the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// The generation that it made.
    pub generation: u64,
    /// `file`, `swap`, `settings`, `rollback`.
    pub kind: String,
    /// Which of them runs here.
    pub is_current: bool,
    /// When, RFC 3339.
    pub at: String,
    /// By whom.
    pub who: Who,
    /// What changed, in words.
    pub what: String,
    /// The nodes that took it, and those that refused, with the reason.
    pub nodes: Vec<NodeLine>,
}

/// What a node made of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    /// The node's identity.
    pub node: String,
    /// Its slots.
    pub slots: Vec<i32>,
    /// Why it did not take it; none when it did.
    pub refused: Option<String>,
}

/// What a trial showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialView {
    /// The generation that runs, which the trial was compared with.
    pub generation: u64,
    /// What the new module calls itself, and its version.
    pub plugin: String,
    /// Its digest.
    pub digest: String,
    /// Old against new, as text for people.
    pub text: String,
    /// The same as values.
    pub report: serde_json::Value,
    /// Records on which the new one failed or said reject.
    pub fault_count: u64,
    /// Copied topics that would be called otherwise.
    pub renames: Vec<String>,
}

/// What came of a swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapView {
    /// The new generation.
    pub generation: u64,
    /// Every slot of the flow is under it.
    pub is_complete: bool,
    /// Sentences about what is missing, and the way back; empty when complete.
    pub notes: Vec<String>,
    /// Each partition with the first source offset under the new generation.
    pub partitions: Vec<SwappedPartition>,
    /// From order to answer, in milliseconds.
    pub took_ms: u64,
}

/// Where a partition changed over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SwappedPartition {
    /// The topic on the source.
    pub topic: String,
    /// Its number.
    pub partition: i32,
    /// The first source offset that the new generation edits; none while that is not known.
    pub first_offset: Option<i64>,
    /// The node that relays it.
    pub node: String,
}

/// Which quarantined records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantineWish {
    /// Single records, as `partition:offset` of the quarantine topic; none is all.
    #[serde(default)]
    pub records: Vec<String>,
    /// Also those that were played again.
    #[serde(default)]
    pub with_replayed: bool,
    /// At most so many.
    #[serde(default)]
    pub count_max: Option<usize>,
}

/// A quarantined record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedView {
    /// `partition:offset` in the quarantine topic.
    pub id: String,
    /// The topic on the source.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// When it came into quarantine, RFC 3339.
    pub at: String,
    /// The plugin that it failed in.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// Why.
    pub reason: String,
    /// Whether it was played again.
    pub is_replayed: bool,
    /// The record itself, where it was asked for.
    pub content: Option<QuarantinedContent>,
}

/// What a quarantined record holds: text where it is UTF-8, else base64 behind `base64:`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedContent {
    /// None for null.
    pub key: Option<String>,
    /// None for null.
    pub value: Option<String>,
    /// In order.
    pub headers: Vec<(String, Option<String>)>,
}

/// What came of playing records again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayView {
    /// Written to the target.
    pub replayed: Vec<String>,
    /// Dropped by the chain, as it does by policy; they are done, too.
    pub dropped: Vec<String>,
    /// Failed again: id and reason. They stay.
    pub failed: Vec<(String, String)>,
}

/// What is sent to a flow's loop.
#[derive(Debug)]
pub enum FlowOrder {
    /// What runs?
    List(Answer<PluginsView>),
    /// What was decided?
    History(Answer<Vec<HistoryLine>>),
    /// Try a plugin; nothing changes.
    Trial(SwapWish, Answer<TrialView>),
    /// Swap a plugin.
    Swap(SwapWish, Answer<SwapView>),
    /// Go back.
    Rollback(RollbackWish, Answer<SwapView>),
    /// Let paused partitions go on.
    Resume(ResumeWish, Answer<ResumeView>),
    /// Show quarantined records; with their content if the flag says so.
    Quarantine(QuarantineWish, bool, Answer<Vec<QuarantinedView>>),
    /// Play quarantined records again.
    Replay(QuarantineWish, Answer<ReplayView>),
}

/// Where an answer goes.
pub type Answer<T> = oneshot::Sender<Result<T, NoAnswer>>;

/// Why an order was not followed, and what can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}; {remedy}")]
pub struct NoAnswer {
    /// Of which kind; it becomes the HTTP code.
    pub kind: NoAnswerKind,
    /// What, which, why.
    pub error: String,
    /// The way out.
    pub remedy: String,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswerKind {
    /// There is no such thing (404).
    Unknown,
    /// The request makes no sense (400).
    BadRequest,
    /// The module or its settings can't be used (422).
    Plugin,
    /// Something else must be done or end first (409).
    Conflict,
    /// The flow or a cluster can't answer now (503).
    Unavailable,
}

impl NoAnswer {
    /// All of it.
    pub fn new(kind: NoAnswerKind, error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind, error: error.into(), remedy: remedy.into() }
    }
}

/// Where orders for each flow of this process go. A flow that does not run yet has no place for them.
#[derive(Debug, Default)]
pub struct Orders {
    flows: RwLock<BTreeMap<FlowName, Option<mpsc::Sender<FlowOrder>>>>,
}

impl Orders {
    /// Says that a flow is one of this process: whoever asks it before it runs is told to ask again.
    pub fn expect(&self, flow: &FlowName) {
        self.flows.write().unwrap_or_else(PoisonError::into_inner).entry(flow.clone()).or_default();
    }

    /// A place for the orders of a flow that begins to run. A former one of the same flow gets no more.
    pub fn open(&self, flow: &FlowName) -> mpsc::Receiver<FlowOrder> {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let mut flows = self.flows.write().unwrap_or_else(PoisonError::into_inner);
        flows.insert(flow.clone(), Some(sender));
        orders
    }

    /// Sends an order to the flow called `name`, and waits for its answer.
    pub async fn ask<T>(
        &self,
        name: &str,
        order: impl FnOnce(Answer<T>) -> FlowOrder,
    ) -> Result<T, NoAnswer> {
        let sender = self.sender(name)?;
        let (answer, answered) = oneshot::channel();
        if sender.try_send(order(answer)).is_err() {
            return Err(not_running(name));
        }
        // The flow ended before it answered.
        answered.await.unwrap_or_else(|_| Err(not_running(name)))
    }

    fn sender(&self, name: &str) -> Result<mpsc::Sender<FlowOrder>, NoAnswer> {
        let flows = self.flows.read().unwrap_or_else(PoisonError::into_inner);
        let found = flows.iter().find(|(flow, _)| flow.to_string() == name);
        if let Some((_, sender)) = found {
            return sender.clone().ok_or_else(|| not_running(name));
        }
        let known: Vec<String> = flows.keys().map(ToString::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(NoAnswer::new(
            NoAnswerKind::Unknown,
            format!("flow \"{name}\" does not run in this process"),
            format!("name one that does: {known}"),
        ))
    }
}

fn not_running(name: &str) -> NoAnswer {
    NoAnswer::new(
        NoAnswerKind::Unavailable,
        format!("flow \"{name}\" takes no orders now: it starts, stops, or has too many to follow"),
        "try again, or look at tidegate status",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ClusterAlias;

    #[tokio::test]
    async fn an_order_for_a_flow_that_does_not_run_names_those_that_do() {
        let orders = Orders::default();
        let flow = FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") };
        let _orders = orders.open(&flow);
        let refused = orders.ask("east->north", FlowOrder::List).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "flow \"east->north\" does not run in this process; name one that does: east->west"
        );
    }

    #[tokio::test]
    async fn a_flow_that_does_not_run_yet_is_no_unknown_one() {
        let orders = Orders::default();
        let flow = FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") };
        orders.expect(&flow);
        let refused = orders.ask("east->west", FlowOrder::List).await.unwrap_err();
        assert_eq!(refused.kind, NoAnswerKind::Unavailable);
        let place = orders.open(&flow);
        orders.expect(&flow);
        assert!(orders.sender("east->west").is_ok(), "it keeps its place");
        drop(place);
    }

    #[tokio::test]
    async fn a_flow_that_ended_is_told() {
        let orders = Orders::default();
        let flow = FlowName { source: ClusterAlias::new("east"), target: ClusterAlias::new("west") };
        drop(orders.open(&flow));
        let refused = orders.ask("east->west", FlowOrder::List).await.unwrap_err();
        assert_eq!(refused.kind, NoAnswerKind::Unavailable);
    }

    #[test]
    fn a_wish_never_shows_its_settings() {
        let wish: SwapWish =
            serde_json::from_str(r#"{"name":"mask","settings":"{\"salt\":\"geheim\"}"}"#).unwrap();
        assert!(!format!("{wish:?}").contains("geheim"));
        assert_eq!(wish.settings.as_deref(), Some(r#"{"salt":"geheim"}"#));
    }
}
