//! Records in, records out.

use std::sync::Arc;

use crate::author::chain::alone;
use crate::author::fixture::{Case, Change, Expectation, RecordCase};
use crate::names::TopicName;
use crate::plugin::LoadedPlugin;
use crate::plugin::trial::{ShownRecord, TrialBatch, TrialRecord, Verdict, judge, line_diff};

const TOPIC_DEFAULT: &str = "orders";

pub(super) fn check(plugin: &Arc<LoadedPlugin>, case: &Case) -> Vec<String> {
    if case.records.is_empty() {
        return Vec::new();
    }
    let batch = match batch(case) {
        Ok(batch) => batch,
        Err(problem) => return vec![problem],
    };
    let mut chain = match alone(plugin) {
        Ok(chain) => chain,
        Err(error) => return vec![error.to_string()],
    };
    let verdicts = judge(&mut chain, &batch);
    let records = case.records.iter().zip(&batch.records).zip(&verdicts).enumerate();
    records
        .filter_map(|(index, ((case, record), verdict))| {
            let failure = failure(&case.expect, record, verdict)?;
            Some(format!("record {} (offset {}): {failure}", index + 1, record.offset))
        })
        .collect()
}

fn batch(case: &Case) -> Result<TrialBatch, String> {
    let topic = case.topic.as_deref().unwrap_or(TOPIC_DEFAULT);
    let topic = TopicName::parse(topic).map_err(|error| format!("topic: {error}"))?;
    let records = case.records.iter().zip(case.offsets()).map(|(record, offset)| input(record, offset));
    Ok(TrialBatch { topic, partition: case.partition, records: records.collect() })
}

fn input(record: &RecordCase, offset: i64) -> TrialRecord {
    TrialRecord {
        offset,
        timestamp_ms: record.timestamp,
        key: record.key.bytes(),
        value: record.value.bytes(),
        headers: record
            .headers
            .iter()
            .map(|(name, value)| (name.clone().into_bytes(), value.bytes()))
            .collect(),
    }
}

/// Why the verdict is not the expected one.
fn failure(expected: &Expectation, input: &TrialRecord, verdict: &Verdict) -> Option<String> {
    let copied = match verdict {
        Verdict::Kept => Some(input),
        Verdict::Changed(record) => Some(record),
        Verdict::Dropped | Verdict::Rejected { .. } | Verdict::Faulted { .. } => None,
    };
    let (wanted, wanted_record) = match expected {
        Expectation::Keep => ("keep".to_owned(), Some(input.clone())),
        Expectation::Change(change) => {
            ("a changed record".to_owned(), Some(changed(change, input, copied.unwrap_or(input))))
        }
        Expectation::Drop => ("drop".to_owned(), None),
        Expectation::Reject(reason) => (format!("reject {reason:?}"), None),
    };
    let is_right = match (expected, verdict) {
        (Expectation::Drop, Verdict::Dropped) => true,
        (Expectation::Reject(wanted), Verdict::Rejected { reason, .. }) => wanted == reason,
        (Expectation::Drop | Expectation::Reject(_), _) => false,
        (Expectation::Keep | Expectation::Change(_), _) => copied == wanted_record.as_ref(),
    };
    if is_right {
        return None;
    }
    let found = match verdict {
        Verdict::Kept => "it was kept unchanged".to_owned(),
        Verdict::Changed(_) => "it was changed".to_owned(),
        Verdict::Dropped => "it was dropped".to_owned(),
        Verdict::Rejected { reason, .. } => format!("it was rejected: {reason:?}"),
        Verdict::Faulted { reason, .. } => format!("the plugin failed: {reason}"),
    };
    let diff = match (&wanted_record, copied) {
        (Some(wanted), Some(found)) => {
            let diff = line_diff(&ShownRecord::of(wanted), &ShownRecord::of(found));
            format!(" (- expected, + found)\n{}", diff.trim_end())
        }
        _ => String::new(),
    };
    Some(format!("expected {wanted}, but {found}{diff}"))
}

/// The record with the parts that are expected to change. JSON takes the spelling of what was found.
fn changed(change: &Change, input: &TrialRecord, found: &TrialRecord) -> TrialRecord {
    let mut record = input.clone();
    if let Some(key) = &change.key {
        record.key = key.expected(found.key.as_deref());
    }
    if let Some(value) = &change.value {
        record.value = value.expected(found.value.as_deref());
    }
    if let Some(headers) = &change.headers {
        let header = |(index, (name, value)): (usize, &(String, _))| {
            let value: &crate::author::fixture::Part = value;
            let found = found.headers.get(index).and_then(|(_, value)| value.as_deref());
            (name.clone().into_bytes(), value.expected(found))
        };
        record.headers = headers.iter().enumerate().map(header).collect();
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::fixture::Part;

    fn record(value: &str) -> TrialRecord {
        TrialRecord { key: Some(b"k".to_vec()), value: Some(value.into()), ..TrialRecord::default() }
    }

    #[test]
    fn only_the_expected_verdict_passes() {
        let input = record("v");
        let rejected = |reason: &str| Verdict::Rejected { plugin: "plugin".into(), reason: reason.into() };
        let check = |expected: &Expectation, verdict: &Verdict, words: Option<&str>| {
            assert_eq!(failure(expected, &input, verdict).as_deref(), words, "{expected:?} {verdict:?}");
        };
        check(&Expectation::Keep, &Verdict::Kept, None);
        check(&Expectation::Keep, &Verdict::Changed(input.clone()), None);
        check(&Expectation::Keep, &Verdict::Dropped, Some("expected keep, but it was dropped"));
        check(&Expectation::Drop, &Verdict::Dropped, None);
        check(&Expectation::Drop, &Verdict::Kept, Some("expected drop, but it was kept unchanged"));
        let reject = Expectation::Reject("no key".into());
        check(&reject, &rejected("no key"), None);
        check(&reject, &rejected("key"), Some("expected reject \"no key\", but it was rejected: \"key\""));
        check(&reject, &Verdict::Dropped, Some("expected reject \"no key\", but it was dropped"));
        let fault = Verdict::Faulted { plugin: "plugin".into(), reason: "it broke down".into() };
        check(&Expectation::Drop, &fault, Some("expected drop, but the plugin failed: it broke down"));
    }

    #[test]
    fn a_change_is_compared_whole() {
        let input = record("v");
        let change = Change { value: Some(Part::Bytes(b"w".to_vec())), ..Change::default() };
        let check = |found: TrialRecord, words: Option<&str>| {
            let verdict = Verdict::Changed(found);
            let expected = Expectation::Change(change.clone());
            assert_eq!(failure(&expected, &input, &verdict).as_deref(), words);
        };
        check(record("w"), None);
        check(
            TrialRecord { key: None, ..record("w") },
            Some(
                "expected a changed record, but it was changed (- expected, + found)\n  - key: \"k\"\n  + key: null\n    value: \"w\"",
            ),
        );
        let unchanged = failure(&Expectation::Change(change.clone()), &input, &Verdict::Kept).unwrap();
        assert!(unchanged.starts_with("expected a changed record, but it was kept unchanged"), "{unchanged}");
    }
}
