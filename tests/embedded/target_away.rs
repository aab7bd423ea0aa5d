//! What status says while the target does not take anything.

use std::time::Duration;

use anyhow::ensure;
use tidegate_tests::eventually;

use super::{Pair, TARGET_TOPIC, TOPIC};
use crate::scenario::{Scenario, stops};

#[tokio::test(flavor = "multi_thread")]
async fn the_lag_grows_while_the_target_is_away() {
    let pair = Pair::start(1).await;
    // The group's coordinator is away, too; the flow shall keep its slots for the time of the test.
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.topics(TOPIC).set("replication.factor", "-1");
        file.set("target.session.timeout.ms", "120000").set("target.reconnect.backoff.max.ms", "200")
    });
    let mut process = scenario.run();
    pair.produce(0..400).await;
    scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
    pair.target.stop_node(1).await.unwrap();
    pair.produce(400..5_400).await;
    let shown = eventually("the whole lag to be shown", Duration::from_secs(60), async || {
        process.still_runs()?;
        let status: serde_json::Value = serde_json::from_str(&process.http_get("/api/v1/status").await?)?;
        let lag = status["flows"][0]["lag_records"].as_u64().unwrap_or(0);
        ensure!(lag >= 5_000, "lag {lag} in {status}");
        Ok(())
    });
    if let Err(error) = shown.await {
        panic!("{error:#}\n{}", process.log_tail());
    }
    pair.target.start_node(1).await.unwrap();
    scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
    stops(process).await;
}
