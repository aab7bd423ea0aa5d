//! When to look again.

use std::time::Duration;

use super::plan::Plan;

/// The first pause behind a round that left something undone; it doubles up to [`SOON_MS_MAX`].
const SOON_MS: u64 = 50;

/// The longest of those pauses.
const SOON_MS_MAX: u64 = 2_000;

/// So many rounds are made soon one after another; then whatever is undone waits for the refresh.
const SOON_ROUNDS_COUNT_MAX: u32 = 10;

/// What is undone is tried again at least so often, also when refreshing is switched off.
const UNDONE_MS_MAX: u64 = 60_000;

/// Paces the rounds: at the refresh interval, and soon while topics are being made.
#[derive(Clone, Debug)]
pub struct Pace {
    refresh: Option<Duration>,
    soon_rounds_count: u32,
}

impl Pace {
    /// `refresh`: None when topics are looked up at the start only.
    pub fn new(refresh: Option<Duration>) -> Self {
        Self { refresh, soon_rounds_count: 0 }
    }

    /// How long to wait behind a round with this plan; None: for ever.
    pub fn next(&mut self, plan: &Plan) -> Option<Duration> {
        // A plugin that failed (a machine that stood still is enough) may answer when it is asked again.
        if plan.actions.is_empty() && !plan.has_plugin_fault() && plan.unclear.is_empty() {
            self.soon_rounds_count = 0;
            return self.refresh;
        }
        self.undone()
    }

    /// How long to wait behind a round that could not look at a cluster.
    pub fn next_after_error(&mut self) -> Duration {
        self.undone().unwrap_or(Duration::from_millis(UNDONE_MS_MAX))
    }

    fn undone(&mut self) -> Option<Duration> {
        if self.soon_rounds_count == SOON_ROUNDS_COUNT_MAX {
            let undone = Duration::from_millis(UNDONE_MS_MAX);
            return Some(self.refresh.map_or(undone, |refresh| refresh.min(undone)));
        }
        let pause = (SOON_MS << self.soon_rounds_count).min(SOON_MS_MAX);
        self.soon_rounds_count += 1;
        Some(Duration::from_millis(pause))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::control::plan::{Action, Refusal, RefusalKind};
    use crate::names::{ClusterAlias, FlowName};
    use crate::topic_map::TopicMap;

    fn plan(is_done: bool) -> Plan {
        let action = Action::CreatePositionsTopic {
            topic: "t".to_owned(),
            partition_count: 25,
            replication_factor: 1,
        };
        Plan {
            flow: FlowName { source: ClusterAlias::new("A"), target: ClusterAlias::new("B") },
            actions: if is_done { Vec::new() } else { vec![action] },
            refusals: Vec::new(),
            events: Vec::new(),
            topic_map: TopicMap::default(),
            ready: BTreeMap::new(),
            unclear: Vec::new(),
            left_out: Vec::new(),
            selection_fault: None,
            preview: None,
        }
    }

    #[test]
    fn what_was_made_is_looked_for_soon_and_then_at_the_refresh() {
        let refresh = Duration::from_secs(600);
        let mut pace = Pace::new(Some(refresh));
        let pauses: Vec<u128> = (0..12).map(|_| pace.next(&plan(false)).unwrap().as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000, 60_000, 60_000]);
        assert_eq!(pace.next(&plan(true)), Some(refresh));
        assert_eq!(pace.next(&plan(false)), Some(Duration::from_millis(50)));
    }

    #[test]
    fn without_refresh_only_what_is_undone_is_looked_at() {
        let mut pace = Pace::new(None);
        assert_eq!(pace.next(&plan(true)), None);
        assert_eq!(pace.next(&plan(false)), Some(Duration::from_millis(50)));
        assert_eq!(pace.next_after_error(), Duration::from_millis(100));
    }

    #[test]
    fn a_topic_whose_plugin_failed_is_asked_for_soon() {
        let refused =
            |kind| Plan { refusals: vec![Refusal { kind, topic: None, text: String::new() }], ..plan(true) };
        let mut pace = Pace::new(None);
        assert_eq!(pace.next(&refused(RefusalKind::PluginFault)), Some(Duration::from_millis(50)));
        assert_eq!(pace.next(&refused(RefusalKind::PluginFault)), Some(Duration::from_millis(100)));
        assert_eq!(pace.next(&refused(RefusalKind::PluginRefused)), None);
        let last = (0..11).map(|_| pace.next(&refused(RefusalKind::PluginFault))).last().unwrap();
        assert_eq!(last, Some(Duration::from_millis(UNDONE_MS_MAX)));
    }

    #[test]
    fn a_short_refresh_is_not_made_longer() {
        let mut pace = Pace::new(Some(Duration::from_secs(1)));
        let last = (0..11).map(|_| pace.next(&plan(false))).last().unwrap();
        assert_eq!(last, Some(Duration::from_secs(1)));
    }
}
