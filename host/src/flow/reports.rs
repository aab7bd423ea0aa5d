//! What the nodes of a flow made of a decision, and whether it is in force everywhere. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decision::DecisionId;
use crate::serve::orders::{NodeLine, SwapView, SwappedPartition};

/// What one node made of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    /// Which decision.
    pub(super) decision: DecisionId,
    pub(super) node: String,
    /// The slots that it owned then.
    pub(super) slots: Vec<i32>,
    /// Its partitions, and where they changed over.
    pub(super) partitions: Vec<SwappedPartition>,
    /// Why it stays on the old generation; none when it took the new one.
    pub(super) refused: Option<String>,
}

/// The reports of one decision.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    by_node: BTreeMap<String, Report>,
}

impl Reports {
    /// A node may report again, when its slots change; the last one counts. Where its partitions changed over is told once.
    pub(super) fn take(&mut self, mut report: Report) {
        let before = self.by_node.get(&report.node).filter(|before| before.decision == report.decision);
        if let Some(before) = before.filter(|_| report.partitions.is_empty()) {
            report.partitions.clone_from(&before.partitions);
        }
        self.by_node.insert(report.node.clone(), report);
    }

    /// Whether every slot is under the new generation, or known not to be.
    pub(super) fn is_decided(&self, slot_count: i32) -> bool {
        let told: BTreeSet<i32> =
            self.by_node.values().flat_map(|report| report.slots.iter().copied()).collect();
        (0..slot_count).all(|slot| told.contains(&slot))
    }

    /// The nodes, for the history.
    pub(super) fn nodes(&self) -> Vec<NodeLine> {
        let line = |report: &Report| NodeLine {
            node: report.node.clone(),
            slots: report.slots.clone(),
            refused: report.refused.clone(),
        };
        self.by_node.values().map(line).collect()
    }

    /// What the asker is told.
    pub(super) fn view(&self, flow: &str, generation: u64, slot_count: i32, took_ms: u64) -> SwapView {
        let taken = || self.by_node.values().filter(|report| report.refused.is_none());
        let covered: BTreeSet<i32> = taken().flat_map(|report| report.slots.iter().copied()).collect();
        let refused = self.by_node.values().filter_map(|report| Some((report, report.refused.as_ref()?)));
        let mut notes: Vec<String> = refused
            .map(|(report, why)| {
                let slots = slots_text(&report.slots);
                format!("node {} stays on the old generation with {slots}: {why}", report.node)
            })
            .collect();
        let told: BTreeSet<i32> =
            self.by_node.values().flat_map(|report| report.slots.iter().copied()).collect();
        let silent: Vec<i32> = (0..slot_count).filter(|slot| !told.contains(slot)).collect();
        if !silent.is_empty() {
            notes.push(format!("nobody has reported for {}", slots_text(&silent)));
        }
        let mut partitions: Vec<SwappedPartition> =
            taken().flat_map(|report| report.partitions.iter().cloned()).collect();
        partitions.sort();
        let unknown = partitions.iter().filter(|partition| partition.first_offset.is_none()).count();
        if unknown > 0 {
            notes.push(format!("{unknown} partition(s) have not told their first offset yet"));
        }
        let is_complete = notes.is_empty() && covered.len() == usize::try_from(slot_count).unwrap_or(0);
        if !is_complete {
            notes.push(format!(
                "tidegate plugin rollback '{flow}' takes every node back to the generation before"
            ));
        }
        SwapView { generation, is_complete, notes, partitions, took_ms }
    }
}

fn slots_text(slots: &[i32]) -> String {
    if slots.is_empty() {
        return "no slots".to_owned();
    }
    let numbers: Vec<String> = slots.iter().map(ToString::to_string).collect();
    format!("slot(s) {}", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(node: &str, slots: &[i32], refused: Option<&str>) -> Report {
        let partition = SwappedPartition {
            topic: "orders".to_owned(),
            partition: slots.first().copied().unwrap_or(0),
            first_offset: Some(10),
            node: node.to_owned(),
        };
        Report {
            decision: DecisionId { generation: 2, node: "n1".to_owned(), at_ms: 5 },
            node: node.to_owned(),
            slots: slots.to_vec(),
            partitions: if slots.is_empty() { Vec::new() } else { vec![partition] },
            refused: refused.map(str::to_owned),
        }
    }

    #[test]
    fn a_swap_is_complete_when_every_slot_is_taken() {
        let mut reports = Reports::default();
        reports.take(report("n1", &[0, 2], None));
        assert!(!reports.is_decided(3));
        reports.take(report("n2", &[1], None));
        reports.take(report("n3", &[], None));
        assert!(reports.is_decided(3));
        let view = reports.view("east->west", 2, 3, 12);
        assert!(view.is_complete, "{view:?}");
        assert_eq!(view.notes, Vec::<String>::new());
        assert_eq!(view.partitions.len(), 2);
    }

    #[test]
    fn who_refused_and_who_is_silent_is_named_with_the_way_back() {
        let mut reports = Reports::default();
        reports.take(report("n1", &[0], None));
        reports.take(report("n2", &[1], Some("no such file")));
        let view = reports.view("east->west", 2, 4, 30_000);
        assert!(!view.is_complete);
        assert_eq!(
            view.notes,
            [
                "node n2 stays on the old generation with slot(s) 1: no such file",
                "nobody has reported for slot(s) 2, 3",
                "tidegate plugin rollback 'east->west' takes every node back to the generation before",
            ]
        );
        assert!(view.partitions.iter().all(|partition| partition.node == "n1"));
    }

    #[test]
    fn a_second_report_of_a_node_counts() {
        let mut reports = Reports::default();
        reports.take(report("n1", &[0], Some("slow")));
        assert!(reports.is_decided(1), "a refusal is an answer, too");
        reports.take(report("n1", &[0], None));
        assert!(reports.view("f", 2, 1, 0).is_complete);
    }
}
