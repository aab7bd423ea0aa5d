//! Connections that break, stall or lie.

use std::time::Duration;

use tidegate_embedded::{ApiKey, Effect, Fault};

use super::{FaultOn, Pair, TARGET_TOPIC, TOPIC};

fn effects() -> [Effect; 6] {
    [
        Effect::CutBefore,
        Effect::CutAfter,
        Effect::TruncateAnswer { body_bytes_max: 3 },
        Effect::CutWithinAnswer { frame_bytes_max: 9 },
        Effect::Delay(Duration::from_millis(300)),
        Effect::Throttle { throttle_ms: 200 },
    ]
}

/// A produce request whose answer is lost may have been done: it is sent again, and the copy still holds no duplicate.
#[tokio::test(flavor = "multi_thread")]
async fn produce_connections_break() {
    for effect in effects() {
        let pair = Pair::start(1).await;
        let fault = Fault::new(effect).api(ApiKey::Produce).topic(TARGET_TOPIC).after(2).times(3);
        pair.copies_whole_in_spite_of(&[FaultOn::Target(fault)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fetch_connections_break() {
    for effect in effects() {
        let pair = Pair::start(1).await;
        let fault = Fault::new(effect).api(ApiKey::Fetch).topic(TOPIC).after(2).times(3);
        pair.copies_whole_in_spite_of(&[FaultOn::Source(fault)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_are_stored_in_spite_of_broken_connections() {
    let pair = Pair::start(1).await;
    let positions = "mm2-offsets.mem.internal";
    let fault = Fault::new(Effect::CutAfter).api(ApiKey::Produce).topic(positions).times(2);
    pair.copies_whole_in_spite_of(&[FaultOn::Target(fault)]).await;
    // A second process goes on where the first stopped: had the positions been lost, records would come twice.
    pair.copies_whole_again().await;
}
