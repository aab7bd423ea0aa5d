//! The first command that a person types must work, and end by itself when it is told to.

use std::time::Duration;

use tidegate_tests::Tidegate;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_and_ends_well() {
    let finished = Tidegate::command(&["demo", "--seconds", "5"], Duration::from_secs(90)).await.unwrap();
    assert_eq!(finished.code, 0, "{}", finished.output);
    assert!(finished.output.contains("east"), "{}", finished.output);
    crate::scenario::report(&format!("the demo ended with:\n{}", last_lines(&finished.output)));
}

fn last_lines(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
