//! How a worker reaches its two clusters at the start.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tidegate_wire::client::{Client, ClientOptions};
use tidegate_wire::produce::{Producer, ProducerIdentity, ProducerOptions, init_producer_id};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use super::leaders::Refresh;
use super::worker::{SourceSide, TargetSide};
use super::{Command, WorkerSettings};
use crate::status::{FlowStats, now_ms};

/// Produce requests that may be on their way to one broker: more than five would break Kafka's duplicate detection.
const PRODUCE_IN_FLIGHT_MAX: usize = 5;

/// Idle answer buffers that a fetch connection keeps for its next answers, in bytes: about what it brings at once.
const POOLED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Pause between attempts to reach a cluster, in milliseconds.
const CONNECT_RETRY_MS: u64 = 500;

/// While a cluster is being reached, the end of orders is looked for so often, in milliseconds.
const ORDERS_LOOK_MS: u64 = 50;

/// Both clusters, reached.
pub(super) struct Connected {
    pub(super) source: SourceSide,
    pub(super) target: TargetSide,
    pub(super) producer: Producer,
}

/// Connects to both clusters, however long that takes. None when the orders end before.
pub(super) async fn connect(
    settings: &WorkerSettings,
    flow: &Arc<FlowStats>,
    inbox: &mpsc::Receiver<Command>,
) -> Option<Connected> {
    tokio::select! {
        connected = keep_trying(settings, flow) => Some(connected),
        () = orders_end(inbox) => None,
    }
}

async fn keep_trying(settings: &WorkerSettings, flow: &Arc<FlowStats>) -> Connected {
    loop {
        let problem = match try_once(settings).await {
            Ok(connected) => return connected,
            Err(problem) => format!("{problem:#}"),
        };
        warn!(flow = %settings.flow, %problem, "worker could not connect, trying again");
        flow.set_error(now_ms(), problem);
        tokio::time::sleep(Duration::from_millis(CONNECT_RETRY_MS)).await;
    }
}

/// Orders that wait are not taken here, so the channel can only be looked at.
async fn orders_end(inbox: &mpsc::Receiver<Command>) {
    while !inbox.is_closed() {
        tokio::time::sleep(Duration::from_millis(ORDERS_LOOK_MS)).await;
    }
}

async fn try_once(settings: &WorkerSettings) -> anyhow::Result<Connected> {
    let now = Instant::now();
    let source = connect_to("source", settings.flow.source.as_str(), &settings.source);
    let target = connect_to("target", settings.flow.target.as_str(), &settings.target);
    let (source, target) = tokio::try_join!(source, target)?;
    let identity = init_producer_id(&target)
        .await
        .with_context(|| format!("could not get a producer id on target \"{}\"", settings.flow.target))?;
    Ok(Connected {
        source: SourceSide {
            fetchers: std::array::from_fn(|_| source.with_own_connections()),
            metadata: source.metadata(),
            refresh: Refresh::new(settings.source.metadata_max_age, now),
            control: source,
        },
        target: TargetSide {
            data: target.with_own_connections(),
            metadata: target.metadata(),
            refresh: Refresh::new(settings.target.metadata_max_age, now),
            control: target,
        },
        producer: producer(settings, identity),
    })
}

fn producer(settings: &WorkerSettings, identity: ProducerIdentity) -> Producer {
    let options = ProducerOptions {
        request_bytes_max: settings.request_bytes_max,
        in_flight_max: PRODUCE_IN_FLIGHT_MAX,
        acks_timeout_ms: i32::try_from(settings.acks_timeout.as_millis()).unwrap_or(i32::MAX),
        retry_backoff: settings.retry_backoff,
        retry_backoff_max: settings.retry_backoff_max,
        ..ProducerOptions::default()
    };
    Producer::new(identity, options)
}

async fn connect_to(side: &str, alias: &str, options: &ClientOptions) -> anyhow::Result<Client> {
    let options = ClientOptions { pooled_buffer_bytes_max: POOLED_BYTES_MAX, ..options.clone() };
    Client::connect(options).await.with_context(|| format!("could not reach {side} \"{alias}\""))
}
