//! The demo's texts.

use super::super::DemoArguments;
use super::super::status::bytes_text;
use crate::demo::{Introduction, Look, Outcome, PARTITIONS, TARGET_TOPIC, TOPIC};

/// What is there, how to look at it from outside, and the flow's file.
pub(super) fn introduction(introduction: &Introduction, arguments: &DemoArguments) -> String {
    let Introduction { file, east, west, http } = introduction;
    let rate = arguments.rate;
    let end = match arguments.seconds {
        Some(seconds) => format!("It ends by itself after {seconds} s, or at Ctrl-C."),
        None => "It ends at Ctrl-C.".to_owned(),
    };
    let file: String = file.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
    format!(
        "Two Kafka clusters in memory, and the flow east->west between them. {end}\n\
         \n\
         \x20 east  {east:<16} topic \"{TOPIC}\", {PARTITIONS} partitions, {rate} orders a second\n\
         \x20 west  {west:<16} gets them as \"{TARGET_TOPIC}\"\n\
         \n\
         This file describes the flow, as MirrorMaker 2's does; `tidegate run FILE` runs one like it:\n\
         \n\
         {file}\
         \n\
         Look inside meanwhile, with any Kafka client:\n\
         \n\
         \x20   kcat -b {west} -t {TARGET_TOPIC} -C\n\
         \x20   kafka-console-consumer.sh --bootstrap-server {west} --topic {TARGET_TOPIC} --from-beginning\n\
         \x20   tidegate status --http {http}\n\
         \x20   curl http://{http}/metrics\n"
    )
}

/// The block that is drawn over each second. Short enough for a window of 80 columns.
pub(super) fn block(look: &Look) -> Vec<String> {
    let mut lines = vec![
        format!("  east->west  {:<12} {:>5} s", look.state, look.elapsed.as_secs()),
        String::new(),
        format!("  east  {TOPIC:<14} {:>12} records", look.source_records),
        format!("  west  {TARGET_TOPIC:<14} {:>12} records", look.target_records),
        String::new(),
        format!(
            "  copied {:>8.0} records/s  {:>10}/s   lag {} records",
            look.records_per_second,
            bytes_text(look.bytes_per_second),
            look.lag_records()
        ),
        format!("  batches: {}", batches(look)),
        format!("  first record copied {}", first_copied(look)),
    ];
    lines.extend(look.trouble.as_ref().map(|trouble| format!("  ! {trouble}")));
    lines
}

/// The same in one line, for logs and pipes.
pub(super) fn line(look: &Look) -> String {
    let mut line = format!(
        "{:>3} s  {}  east {TOPIC} {}  west {TARGET_TOPIC} {}  {:.0} records/s  {}/s  lag {}",
        look.elapsed.as_secs(),
        look.state,
        look.source_records,
        look.target_records,
        look.records_per_second,
        bytes_text(look.bytes_per_second),
        look.lag_records()
    );
    if let Some(trouble) = &look.trouble {
        line.push_str("  ! ");
        line.push_str(trouble);
    }
    line
}

/// What was found, and how to go on.
pub(super) fn conclusion(outcome: &Outcome) -> String {
    let first = outcome
        .first_copied_after
        .map(|after| format!("the first record was copied {} ms after the start\n", after.as_millis()))
        .unwrap_or_default();
    format!(
        "{}\n{first}\n\
         Go on with a file of your own, such as MirrorMaker 2's connect-mirror-maker.properties:\n\
         \n\
         \x20   tidegate check FILE    what becomes of every key; asks no cluster\n\
         \x20   tidegate plan FILE     what would be created and copied; changes nothing\n\
         \x20   tidegate run FILE      copies",
        outcome.comparison
    )
}

fn batches(look: &Look) -> String {
    let batches = look.batches;
    format!("{} passed as they were, {} merged, {} rewritten", batches.pass, batches.merge, batches.rewrite)
}

fn first_copied(look: &Look) -> String {
    match look.first_copied_after {
        Some(after) => format!("{} ms after the start", after.as_millis()),
        None => "not yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::serve::view::TierView;

    fn look() -> Look {
        Look {
            elapsed: Duration::from_millis(12_400),
            state: "running".into(),
            source_records: 6_012,
            target_records: 6_010,
            records_per_second: 500.4,
            bytes_per_second: 114_688.0,
            batches: TierView { pass: 300, merge: 20, rewrite: 0 },
            first_copied_after: Some(Duration::from_millis(310)),
            trouble: None,
        }
    }

    #[test]
    fn the_block_shows_what_is_copied_how_fast_and_how_far_behind() {
        assert_eq!(
            block(&look()),
            [
                "  east->west  running         12 s",
                "",
                "  east  orders                 6012 records",
                "  west  east.orders            6010 records",
                "",
                "  copied      500 records/s   112.0 KiB/s   lag 2 records",
                "  batches: 300 passed as they were, 20 merged, 0 rewritten",
                "  first record copied 310 ms after the start",
            ]
        );
    }

    #[test]
    fn a_line_says_the_same() {
        let with_trouble = Look { trouble: Some("no leader".into()), ..look() };
        assert_eq!(
            line(&with_trouble),
            " 12 s  running  east orders 6012  west east.orders 6010  500 records/s  112.0 KiB/s  lag 2  ! no leader"
        );
    }
}
