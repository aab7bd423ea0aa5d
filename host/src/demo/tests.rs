//! The whole demo, without a terminal.

use std::net::TcpListener;

use super::*;

/// Longer than any run here should take, in seconds, on a machine that does much else.
const PATIENCE_S: u64 = 120;

fn options() -> DemoOptions {
    DemoOptions { rate: 400, east_port: 0, west_port: 0, http_listen: "127.0.0.1:0".into() }
}

async fn run_until(enough: impl Fn(&Look) -> bool + Sync) -> (Outcome, Introduction, Look) {
    let (order, stop) = watch::channel(false);
    let (mut introduction, mut last) = (None, None);
    let mut tell = |event| match event {
        DemoEvent::Started(told) => introduction = Some(told),
        DemoEvent::Looked(look) => {
            if enough(&look) {
                order.send_replace(true);
            }
        }
        DemoEvent::CatchingUp => {}
        DemoEvent::LookedLast(look) => last = Some(look),
    };
    let options = options();
    let demo = run(&options, stop, &mut tell);
    let outcome = tokio::time::timeout(Duration::from_secs(PATIENCE_S), demo).await.unwrap().unwrap();
    (outcome, introduction.unwrap(), last.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_seconds_of_orders_are_copied_and_verified() {
    let enough = |look: &Look| look.elapsed >= Duration::from_secs(2) && look.target_records > 0;
    let (outcome, introduction, last) = run_until(enough).await;
    let Outcome { comparison, orders_count, has_caught_up, first_copied_after } = outcome;
    assert!(has_caught_up);
    assert!(comparison.is_identical(), "{comparison}");
    assert_eq!(comparison.source_count as u64, orders_count);
    assert!(orders_count > 0);
    assert!(first_copied_after.is_some_and(|after| after > Duration::ZERO));
    assert_eq!(
        (last.source_records, last.target_records, last.lag_records()),
        (orders_count, orders_count, 0)
    );
    assert!(last.batches.pass + last.batches.merge + last.batches.rewrite > 0);
    assert!(introduction.file.contains(&format!("west.bootstrap.servers = {}\n", introduction.west)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_stopped_at_once_ends_cleanly() {
    let (outcome, _, last) = run_until(|_| true).await;
    assert!(outcome.comparison.is_identical(), "{}", outcome.comparison);
    assert_eq!(last.target_records, outcome.orders_count);
}

#[tokio::test]
async fn a_taken_port_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (_order, stop) = watch::channel(false);
    let failure = run(&DemoOptions { west_port: port, ..options() }, stop, &mut |_| {}).await.unwrap_err();
    let text = failure.to_string();
    let start = format!("could not start cluster west (--west-port {port}; 0 lets the system choose): ");
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn the_file_is_honoured_whole() {
    let text = file::text("127.0.0.1:1", "127.0.0.1:2");
    let flags = ProcessOverrides { cache_dir: Some("/cache".into()), ..ProcessOverrides::default() };
    let load_options = LoadOptions { flags, ..LoadOptions::default() };
    let loaded =
        config::load_bytes(file::NAME, text.as_bytes(), std::path::Path::new("/"), &load_options).unwrap();
    // One about heartbeats in general is left; none is about a key that is written here.
    assert!(loaded.warnings.iter().all(|warning| warning.key.is_none()), "{:?}", loaded.warnings);
    let fates: Vec<_> = loaded.report.rows.iter().map(|row| (row.key.as_str(), row.fate)).collect();
    assert!(fates.iter().all(|(_, fate)| *fate == config::Fate::Honoured), "{fates:?}");
    assert_eq!(fates.len(), 7);
}
