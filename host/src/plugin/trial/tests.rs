//! What a report says; chains themselves are tested elsewhere.

use super::*;
use crate::names::TopicName;

fn record(offset: i64, value: &str) -> TrialRecord {
    TrialRecord {
        offset,
        key: Some(format!("k{offset}").into_bytes()),
        value: Some(value.into()),
        headers: vec![(b"region".to_vec(), Some(b"eu".to_vec()))],
        ..TrialRecord::default()
    }
}

fn batch(records: Vec<TrialRecord>) -> TrialBatch {
    TrialBatch { topic: TopicName::parse("orders").unwrap(), partition: 3, records }
}

fn report(batch: &TrialBatch, old: Option<&[Verdict]>, new: &[Verdict]) -> TrialReport {
    let mut report = TrialReport { old: old.is_some().then(TrialSide::default), ..TrialReport::default() };
    report.add(batch, old, new);
    report.count_partitions(std::slice::from_ref(batch));
    report
}

fn rejected(reason: &str) -> Verdict {
    Verdict::Rejected { plugin: "mask".into(), reason: reason.into() }
}

#[test]
fn records_that_fare_alike_are_no_difference() {
    let batch = batch(vec![record(0, "a"), record(1, "b"), record(2, "c")]);
    let verdicts = [Verdict::Kept, Verdict::Dropped, rejected("no JSON")];

    let report = report(&batch, Some(&verdicts), &verdicts);

    assert!(report.is_same() && !report.is_worse());
    assert_eq!(
        report.to_string(),
        "tried 3 records of 1 partitions\n\
         \x20 old: 1 kept, 0 changed, 1 dropped, 1 rejected, 0 failed\n\
         \x20 new: 1 kept, 0 changed, 1 dropped, 1 rejected, 0 failed\n\
         \x20 old: mask rejects: no JSON\n\
         \x20 new: mask rejects: no JSON\n\
         no record fares differently\n"
    );
}

#[test]
fn differences_are_shown_as_they_would_be_copied() {
    let batch = batch(vec![record(7, r#"{"a":1,"b":2}"#), record(8, "x"), record(9, "y")]);
    let masked = TrialRecord { headers: Vec::new(), ..record(7, r#"{"a":"***","b":2}"#) };
    let new = [Verdict::Changed(masked), Verdict::Dropped, Verdict::Kept];

    let report = report(&batch, None, &new);

    assert_eq!(report.differing_count, 2);
    assert_eq!(
        report.to_string(),
        "tried 3 records of 1 partitions\n\
         \x20 new: 1 kept, 1 changed, 1 dropped, 0 rejected, 0 failed\n\
         2 records fare differently\n\
         \n\
         orders[3] offset 7: changed, was kept\n\
         \x20   key: \"k7\"\n\
         \x20   value:\n\
         \x20     {\n\
         \x20 -     \"a\": 1,\n\
         \x20 +     \"a\": \"***\",\n\
         \x20       \"b\": 2\n\
         \x20     }\n\
         \x20 - header \"region\": \"eu\"\n\
         \n\
         orders[3] offset 8: dropped, was kept\n\
         \x20 - key: \"k8\"\n\
         \x20 - value: \"x\"\n\
         \x20 - header \"region\": \"eu\"\n"
    );
}

#[test]
fn json_that_is_only_spelled_differently_is_shown_as_it_is_written() {
    let batch = batch(vec![record(0, r#"{"a":1}"#)]);
    let respelled = Verdict::Changed(TrialRecord { headers: Vec::new(), ..record(0, r#"{ "a": 1 }"#) });

    let text = report(&batch, None, &[respelled]).to_string();

    assert!(text.contains("  - value: \"{\\\"a\\\":1}\"\n"), "{text}");
    assert!(text.contains("  + value: \"{ \\\"a\\\": 1 }\"\n"), "{text}");
}

#[test]
fn more_differences_than_anybody_reads_are_counted() {
    let records: Vec<TrialRecord> = (0..25).map(|offset| record(offset, "v")).collect();
    let verdicts: Vec<Verdict> = (0..25).map(|index| rejected(&format!("reason {index}"))).collect();

    let report = report(&batch(records), None, &verdicts);

    assert_eq!(report.differing_count, 25);
    assert_eq!(
        (report.differences.len(), report.new.reasons.len()),
        (DIFFERENCE_COUNT_MAX, REASON_COUNT_MAX)
    );
    assert!(report.is_worse());
    assert!(report.to_string().ends_with("\nand 15 more\n"), "{report}");
}

#[test]
fn bytes_that_are_no_text_and_long_ones_can_be_shown() {
    let json = |bytes: Option<&[u8]>| serde_json::to_string(&Shown::of(bytes)).unwrap();
    assert_eq!(json(None), "null");
    assert_eq!(json(Some(b"")), "\"\"");
    assert_eq!(json(Some("ä".as_bytes())), "\"ä\"");
    assert_eq!(json(Some(&[0xff, 0])), r#"{"base64":"/wA="}"#);
    let long = "x".repeat(5000);
    assert_eq!(
        json(Some(long.as_bytes())),
        format!("{{\"begins\":\"{}\",\"length_bytes\":5000}}", "x".repeat(4096))
    );
}
