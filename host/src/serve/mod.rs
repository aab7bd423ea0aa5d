//! HTTP, on loopback unless configured: health, metrics, the status that `tidegate status` and programs read, and orders for
//! flows ([`api`]), which need the token ([`token`]).
//!
//! | path | answer |
//! |---|---|
//! | `/health/live` | 200 while the process runs |
//! | `/health/ready` | 200 when every flow runs, else 503 with the flows that don't |
//! | `/metrics` | Prometheus text |
//! | `/api/v1/status` | [`view::StatusView`] as JSON |
//! | `/api/v1/flows/…` | see [`api`] |

pub mod api;
mod metrics;
pub mod orders;
pub mod rates;
pub mod token;
pub mod view;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;

use self::api::Api;
use self::rates::Rates;
use self::view::StatusView;
use crate::status::{FlowState, Registry};

/// Rates are measured over steps of this length, in milliseconds.
pub const RATE_STEP_MS: u64 = 1_000;

/// What the handlers read.
#[derive(Debug)]
pub struct Watched {
    registry: Arc<Registry>,
    rates: Mutex<Rates>,
    started: std::time::Instant,
}

impl Watched {
    /// Watches `registry`. Rates need [`Watched::sample_forever`].
    pub fn new(registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { registry, rates: Mutex::new(Rates::default()), started: std::time::Instant::now() })
    }

    /// Everything at this moment.
    pub fn view(&self) -> StatusView {
        let rates = self.rates.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        StatusView::new(&self.registry.snapshot(), &rates, self.started.elapsed())
    }

    /// Measures rates, a step at a time. Never ends; drop the future to stop it.
    pub async fn sample_forever(&self) {
        let mut step = tokio::time::interval(Duration::from_millis(RATE_STEP_MS));
        step.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let now = step.tick().await;
            let flows = self.registry.snapshot();
            self.rates.lock().unwrap_or_else(std::sync::PoisonError::into_inner).sample(&flows, now);
        }
    }
}

/// Listens. Another address than a loopback one is for those who named a token file (`tidegate.http.token.file`): a token that
/// was made by itself is not known where others ask from.
pub async fn bind(listen: SocketAddr, has_token_file: bool) -> anyhow::Result<TcpListener> {
    anyhow::ensure!(
        listen.ip().is_loopback() || has_token_file,
        "tidegate.http.listen = {listen} is not a loopback address; others are served with a token alone: set \
         tidegate.http.token.file, or listen on 127.0.0.1:{}",
        listen.port()
    );
    TcpListener::bind(listen).await.with_context(|| {
        format!("could not listen on tidegate.http.listen = {listen}; another process may use the port: choose another, 0 lets the system choose")
    })
}

/// Serves until the future is dropped.
pub async fn serve(listener: TcpListener, watched: Arc<Watched>, api: Api) -> anyhow::Result<()> {
    let router = api::guarded(router(watched).merge(api::routes(api.clone())), api);
    axum::serve(listener, router).await.context("the HTTP server stopped")
}

fn router(watched: Arc<Watched>) -> Router {
    Router::new()
        .route("/health/live", get(|| async { "live\n" }))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics_text))
        .route("/api/v1/status", get(status))
        .with_state(watched)
}

async fn status(State(watched): State<Arc<Watched>>) -> Json<StatusView> {
    Json(watched.view())
}

async fn ready(State(watched): State<Arc<Watched>>) -> (StatusCode, String) {
    let flows = watched.registry.snapshot();
    let not_ready: Vec<String> = flows
        .iter()
        .filter(|flow| flow.state != FlowState::Running)
        .map(|flow| format!("{} is {}", flow.name, view::state_word(flow.state)))
        .collect();
    if not_ready.is_empty() && !flows.is_empty() {
        return (StatusCode::OK, "ready\n".to_owned());
    }
    let what = if flows.is_empty() { "no flow has started".to_owned() } else { not_ready.join("; ") };
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {what}\n"))
}

async fn metrics_text(State(watched): State<Arc<Watched>>) -> impl IntoResponse {
    match metrics::text(&watched.registry) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(problem) => (StatusCode::INTERNAL_SERVER_ERROR, format!("metrics: {problem}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests;
