//! What the plugins topic says about one flow, kept up as its records come. Pure.

use std::collections::{BTreeMap, BTreeSet};

use tracing::warn;

use super::decision::Decision;
use super::reports::{Report, Reports};
use crate::cluster::{LogRecord, ModulePlace, PluginsKey};
use crate::names::FlowName;

/// So many decisions of a flow are kept; older ones are deleted when a new one is written, and with them modules that no
/// other names.
pub(super) const DECISIONS_COUNT_MAX: usize = 100;

/// What a record was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing that concerns the flow.
    Nothing,
    /// The decision that holds from here on.
    Decision(Box<Decision>),
    /// A decision that this version can't read holds from here on.
    Unreadable(Unreadable),
    /// A node has reported on this generation.
    Report { generation: u64 },
}

/// A decision that can't be read here. What it says is unknown, so nothing may be taken in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("generation {generation} of the plugins, which was decided last, can't be read on this node: {why}")]
pub(super) struct Unreadable {
    pub(super) generation: u64,
    why: String,
}

/// Decisions, reports, and where modules lie.
#[derive(Clone, Debug)]
pub(super) struct Book {
    flow: String,
    decisions: BTreeMap<u64, Decision>,
    /// The generation of the decision that stands last in the log.
    last: Option<u64>,
    /// What stands behind that one.
    unreadable: Option<Unreadable>,
    /// Digests that decisions of other flows name, by flow and generation; none where such a decision can't be read.
    others: BTreeMap<(String, u64), Option<BTreeSet<String>>>,
    modules: BTreeMap<String, ModulePlace>,
    reports: BTreeMap<u64, Reports>,
}

impl Book {
    pub(super) fn new(flow: &FlowName) -> Self {
        Self {
            flow: flow.to_string(),
            decisions: BTreeMap::new(),
            last: None,
            unreadable: None,
            others: BTreeMap::new(),
            modules: BTreeMap::new(),
            reports: BTreeMap::new(),
        }
    }

    /// Takes the next record of the topic.
    pub(super) fn take(&mut self, record: &LogRecord) -> News {
        match record.key.as_deref().and_then(PluginsKey::parse) {
            Some(PluginsKey::Decision { flow, generation }) if flow == self.flow => {
                self.take_decision(generation, record)
            }
            Some(PluginsKey::Decision { flow, generation }) => {
                self.take_other(flow, generation, record);
                News::Nothing
            }
            Some(PluginsKey::Report { flow, generation, .. }) if flow == self.flow => {
                self.take_report(generation, record)
            }
            Some(PluginsKey::Module { digest, piece }) => {
                let place = self.modules.entry(digest).or_default();
                place.note(piece, record);
                News::Nothing
            }
            _ => News::Nothing,
        }
    }

    fn take_decision(&mut self, generation: u64, record: &LogRecord) -> News {
        let Some(value) = &record.value else {
            self.decisions.remove(&generation);
            self.reports.remove(&generation);
            self.unreadable.take_if(|unreadable| unreadable.generation == generation);
            return News::Nothing;
        };
        let decision = match Decision::parse(value) {
            Ok(decision) if decision.generation == generation => decision,
            Ok(_) => return self.take_unreadable(generation, "it lies under another's key".to_owned()),
            Err(problem) => return self.take_unreadable(generation, format!("{problem:#}")),
        };
        let is_late = self.holding().is_some_and(|held| held > generation);
        if self.decisions.get(&generation).is_some_and(|known| known.id() != decision.id()) {
            // Reports of the decision whose place it takes say nothing about this one.
            self.reports.remove(&generation);
        }
        self.decisions.insert(generation, decision.clone());
        if is_late {
            // Whoever wrote it did not know of the later one: it is history at once.
            return News::Nothing;
        }
        self.unreadable = None;
        self.last = Some(generation);
        News::Decision(Box::new(decision))
    }

    fn take_unreadable(&mut self, generation: u64, why: String) -> News {
        let unreadable = Unreadable { generation, why };
        warn!(flow = self.flow, "{unreadable}");
        self.unreadable = Some(unreadable.clone());
        News::Unreadable(unreadable)
    }

    /// Two flows share the topic when two aliases stand for one target cluster; then they share its modules, too.
    fn take_other(&mut self, flow: String, generation: u64, record: &LogRecord) {
        let place = (flow, generation);
        let Some(value) = &record.value else {
            self.others.remove(&place);
            return;
        };
        let named = Decision::parse(value).ok().map(|decision| {
            decision.plugins.into_iter().map(|plugin| plugin.digest).collect::<BTreeSet<String>>()
        });
        self.others.insert(place, named);
    }

    fn take_report(&mut self, generation: u64, record: &LogRecord) -> News {
        let Some(report) = record.value.as_deref().and_then(|json| serde_json::from_slice(json).ok()) else {
            return News::Nothing;
        };
        if self.note_report(report) { News::Report { generation } } else { News::Nothing }
    }

    /// Notes a report; whether it is about a decision that is known.
    pub(super) fn note_report(&mut self, report: Report) -> bool {
        let generation = report.decision.generation;
        let is_known =
            self.decisions.get(&generation).is_some_and(|decision| decision.id() == report.decision);
        if is_known {
            self.reports.entry(generation).or_default().take(report);
        }
        is_known
    }

    /// The decision that holds.
    pub(super) fn last(&self) -> Option<&Decision> {
        self.decisions.get(&self.last?)
    }

    /// The decision in whose place no other may be taken, if this version can't read it.
    pub(super) fn unreadable(&self) -> Option<&Unreadable> {
        self.unreadable.as_ref()
    }

    /// The number of the decision that holds, whether it can be read or not.
    pub(super) fn holding(&self) -> Option<u64> {
        let unreadable = self.unreadable.as_ref().map(|unreadable| unreadable.generation);
        unreadable.or_else(|| self.last().map(|last| last.generation))
    }

    /// The decision of that number.
    pub(super) fn decision(&self, generation: u64) -> Option<&Decision> {
        self.decisions.get(&generation)
    }

    /// All that are kept, by number.
    pub(super) fn decisions(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.decisions.values()
    }

    /// What nodes have reported on a generation.
    pub(super) fn reports(&self, generation: u64) -> Reports {
        self.reports.get(&generation).cloned().unwrap_or_default()
    }

    /// Where a module lies; none unless all of it does.
    pub(super) fn module(&self, digest: &str) -> Option<&ModulePlace> {
        self.modules.get(digest).filter(|place| place.is_whole())
    }

    /// Keys to be deleted when `next` is written.
    pub(super) fn outdated(&self, next: &Decision) -> Vec<PluginsKey> {
        let too_many = (self.decisions.len() + 1).saturating_sub(DECISIONS_COUNT_MAX);
        let old: BTreeSet<u64> = self.decisions.keys().copied().take(too_many).collect();
        let mut keys = Vec::new();
        for generation in &old {
            keys.push(PluginsKey::Decision { flow: self.flow.clone(), generation: *generation });
            let nodes = self.reports(*generation).nodes().into_iter().map(|line| line.node);
            let key = |node| PluginsKey::Report { flow: self.flow.clone(), generation: *generation, node };
            keys.extend(nodes.map(key));
        }
        let kept = self.decisions.values().filter(|decision| !old.contains(&decision.generation));
        let mut named: BTreeSet<&str> = kept
            .chain([next])
            .flat_map(|decision| decision.plugins.iter().map(|plugin| plugin.digest.as_str()))
            .collect();
        named.extend(self.others.values().flatten().flatten().map(String::as_str));
        // What a decision names that can't be read is not known.
        let all_is_known = self.others.values().all(Option::is_some) && self.unreadable.is_none();
        for (digest, place) in self.modules.iter().filter(|(digest, _)| !named.contains(digest.as_str())) {
            if !old.is_empty() && all_is_known {
                keys.extend(place.pieces().map(|piece| PluginsKey::Module { digest: digest.clone(), piece }));
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::flow::decision::tests::{decision, flow, plugin};

    fn record(offset: i64, key: &PluginsKey, value: Option<Vec<u8>>) -> LogRecord {
        LogRecord {
            offset,
            timestamp_ms: 0,
            key: Some(Bytes::from(key.to_string())),
            value: value.map(Bytes::from),
            headers: vec![(Bytes::from_static(b"pieces"), Some(Bytes::from_static(b"1")))],
        }
    }

    fn decided(book: &mut Book, decision: &Decision) -> News {
        let key = PluginsKey::Decision { flow: decision.flow.clone(), generation: decision.generation };
        book.take(&record(0, &key, Some(decision.json().unwrap())))
    }

    #[test]
    fn the_later_of_two_decisions_of_one_number_holds() {
        let mut book = Book::new(&flow());
        let first = decision(2, "f", vec![plugin("mask", "d1")]);
        let second = Decision { node: "n2".to_owned(), ..decision(2, "f", vec![plugin("mask", "d2")]) };
        assert_eq!(decided(&mut book, &first), News::Decision(Box::new(first.clone())));
        let report = Report {
            decision: first.id(),
            node: "n1".to_owned(),
            slots: vec![0],
            partitions: Vec::new(),
            refused: None,
        };
        assert!(book.note_report(report.clone()));
        decided(&mut book, &second);
        assert_eq!(book.last(), Some(&second));
        assert!(!book.reports(2).is_decided(1), "what was reported was about the other");
        assert!(!book.note_report(report));
    }

    #[test]
    fn decisions_of_other_flows_and_strange_keys_are_nothing() {
        let mut book = Book::new(&flow());
        let other = Decision { flow: "east->north".to_owned(), ..decision(2, "f", Vec::new()) };
        assert_eq!(decided(&mut book, &other), News::Nothing);
        let key = PluginsKey::Decision { flow: "east->west".to_owned(), generation: 1 };
        assert_eq!(
            book.take(&record(0, &PluginsKey::Module { digest: "d".to_owned(), piece: 0 }, None)),
            News::Nothing
        );
        assert_eq!(book.last(), None);
        assert_eq!(book.holding(), None);
        assert!(matches!(book.take(&record(0, &key, Some(b"{".to_vec()))), News::Unreadable(_)));
    }

    #[test]
    fn a_decision_that_cant_be_read_holds_until_one_comes_that_can() {
        let mut book = Book::new(&flow());
        decided(&mut book, &decision(6, "f", vec![plugin("mask", "d1")]));
        let mut json: serde_json::Value =
            serde_json::from_slice(&decision(7, "f", Vec::new()).json().unwrap()).unwrap();
        json["form"] = 2.into();
        let key = PluginsKey::Decision { flow: "east->west".to_owned(), generation: 7 };
        book.take(&record(0, &key, Some(json.to_string().into_bytes())));
        assert_eq!(book.holding(), Some(7));
        assert_eq!(
            book.unreadable().unwrap().to_string(),
            "generation 7 of the plugins, which was decided last, can't be read on this node: it has form 2, and this version \
             of Tidegate reads form 1"
        );
        decided(&mut book, &decision(8, "f", Vec::new()));
        assert_eq!((book.unreadable(), book.holding()), (None, Some(8)));
    }

    #[test]
    fn modules_that_another_flow_names_are_kept() {
        let mut book = Book::new(&flow());
        for generation in 1..=100 {
            decided(&mut book, &decision(generation, "f", vec![plugin("mask", "d1")]));
        }
        for digest in ["d1", "d2", "d3"] {
            let key = PluginsKey::Module { digest: digest.to_owned(), piece: 0 };
            book.take(&record(0, &key, Some(vec![1])));
        }
        let named = vec![plugin("mask", "d2")];
        decided(&mut book, &Decision { flow: "east->north".to_owned(), ..decision(1, "f", named) });
        let keys = |book: &Book| -> Vec<String> {
            let next = decision(101, "f", vec![plugin("mask", "d1")]);
            book.outdated(&next).iter().map(ToString::to_string).collect()
        };
        assert_eq!(keys(&book), ["decision/east->west/0000000001", "module/d3/0000"]);
        let key = PluginsKey::Decision { flow: "east->south".to_owned(), generation: 1 };
        book.take(&record(0, &key, Some(b"{".to_vec())));
        assert_eq!(keys(&book), ["decision/east->west/0000000001"], "it may name any");
    }

    #[test]
    fn the_history_is_bounded_and_takes_its_modules_along() {
        let mut book = Book::new(&flow());
        for generation in 1..=100 {
            decided(&mut book, &decision(generation, "f", vec![plugin("mask", &format!("d{generation}"))]));
            let key = PluginsKey::Module { digest: format!("d{generation}"), piece: 0 };
            book.take(&record(0, &key, Some(vec![1])));
        }
        let next = decision(101, "f", vec![plugin("mask", "d1")]);
        let keys = |book: &Book, next: &Decision| -> Vec<String> {
            book.outdated(next).iter().map(ToString::to_string).collect()
        };
        assert_eq!(keys(&book, &next), ["decision/east->west/0000000001"], "its module is named again");
        decided(&mut book, &next);
        let key = PluginsKey::Decision { flow: "east->west".to_owned(), generation: 1 };
        book.take(&record(0, &key, None));
        let next = decision(102, "f", vec![plugin("mask", "d102")]);
        assert_eq!(keys(&book, &next), ["decision/east->west/0000000002", "module/d2/0000"]);
    }
}
