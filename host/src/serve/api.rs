//! What changes a running flow, over HTTP. Every request that changes something, and every one that shows records, needs
//! `Authorization: Bearer TOKEN`; the other GETs are free while only loopback is served.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `GET /api/v1/flows/{flow}/plugins` | | [`PluginsView`](super::orders::PluginsView) |
//! | `GET /api/v1/flows/{flow}/plugins/history` | | list of [`HistoryLine`](super::orders::HistoryLine) |
//! | `POST /api/v1/flows/{flow}/plugins/{name}/trial` | [`SwapWish`] | [`TrialView`](super::orders::TrialView) |
//! | `POST /api/v1/flows/{flow}/plugins/{name}/swap` | [`SwapWish`] | [`SwapView`](super::orders::SwapView) |
//! | `POST /api/v1/flows/{flow}/plugins/rollback` | [`RollbackWish`] | [`SwapView`](super::orders::SwapView) |
//! | `POST /api/v1/flows/{flow}/resume` | [`ResumeWish`] | [`ResumeView`](super::orders::ResumeView) |
//! | `POST /api/v1/flows/{flow}/quarantine/list` (or `show`) | [`QuarantineWish`] | list of [`QuarantinedView`](super::orders::QuarantinedView) |
//! | `POST /api/v1/flows/{flow}/quarantine/replay` | [`QuarantineWish`] | [`ReplayView`](super::orders::ReplayView) |
//!
//! `{flow}` is `east->west`, percent-encoded: `east-%3Ewest`. A module lies in the JSON as base64. A refusal is
//! `{"error": "…", "remedy": "…"}` with 400, 401, 404, 409, 413, 422 or 503.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::orders::{
    Answer, FlowOrder, NoAnswer, NoAnswerKind, Orders, QuarantineWish, ResumeWish, RollbackWish, SwapWish,
};
use super::token::Token;

/// Longest body: a module of 64 MiB in base64, and its settings.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024 / 3 * 4 + 2 * 1024 * 1024;

/// What the handlers need.
#[derive(Clone, Debug)]
pub struct Api {
    /// Where orders go.
    pub orders: Arc<Orders>,
    /// What a request must show.
    pub token: Token,
    /// Nobody beyond this machine is served, so looking is free.
    pub is_loopback: bool,
}

/// A refusal as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What, which, why.
    pub error: String,
    /// The way out.
    pub remedy: String,
}

/// The routes below `/api/v1/flows`.
pub(super) fn routes(api: Api) -> Router {
    Router::new()
        .route("/api/v1/flows/{flow}/plugins", get(list))
        .route("/api/v1/flows/{flow}/plugins/history", get(history))
        .route("/api/v1/flows/{flow}/plugins/rollback", post(rollback))
        .route("/api/v1/flows/{flow}/plugins/{name}/trial", post(trial))
        .route("/api/v1/flows/{flow}/plugins/{name}/swap", post(swap))
        .route("/api/v1/flows/{flow}/resume", post(resume))
        .route("/api/v1/flows/{flow}/quarantine/list", post(quarantine_list))
        .route("/api/v1/flows/{flow}/quarantine/show", post(quarantine_show))
        .route("/api/v1/flows/{flow}/quarantine/replay", post(quarantine_replay))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(api)
}

/// Lets a request pass that shows the token, that only looks while nobody else is served, or that asks for health.
pub(super) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let is_health = request.uri().path().starts_with("/health/");
    let is_look = request.method() == Method::GET;
    let shown = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    if is_health || (is_look && api.is_loopback) || api.token.is_shown(shown) {
        return next.run(request).await;
    }
    let what = if shown.is_some() { "the token is not the right one" } else { "a token is wanted" };
    let body = ErrorBody {
        error: format!("{} {} is not allowed: {what}", request.method(), request.uri().path()),
        remedy: "send Authorization: Bearer TOKEN with the token of tidegate.http.token.file, by default http.token in the cache \
                 folder"
            .to_owned(),
    };
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], Json(body)).into_response()
}

/// Puts the guard before `router`.
pub(super) fn guarded(router: Router, api: Api) -> Router {
    router.layer(middleware::from_fn_with_state(api, guard))
}

type Body<T> = Result<Json<T>, JsonRejection>;

async fn list(State(api): State<Api>, Path(flow): Path<String>) -> Response {
    follow(&api, &flow, FlowOrder::List).await
}

async fn history(State(api): State<Api>, Path(flow): Path<String>) -> Response {
    follow(&api, &flow, FlowOrder::History).await
}

async fn trial(
    State(api): State<Api>,
    Path((flow, name)): Path<(String, String)>,
    body: Body<SwapWish>,
) -> Response {
    let wish = match body {
        Ok(Json(wish)) => SwapWish { name, ..wish },
        Err(rejection) => return bad_body(&rejection),
    };
    follow(&api, &flow, |answer| FlowOrder::Trial(wish, answer)).await
}

async fn swap(
    State(api): State<Api>,
    Path((flow, name)): Path<(String, String)>,
    body: Body<SwapWish>,
) -> Response {
    let wish = match body {
        Ok(Json(wish)) => SwapWish { name, ..wish },
        Err(rejection) => return bad_body(&rejection),
    };
    follow(&api, &flow, |answer| FlowOrder::Swap(wish, answer)).await
}

async fn rollback(State(api): State<Api>, Path(flow): Path<String>, body: Body<RollbackWish>) -> Response {
    with_body(&api, &flow, body, FlowOrder::Rollback).await
}

async fn resume(State(api): State<Api>, Path(flow): Path<String>, body: Body<ResumeWish>) -> Response {
    with_body(&api, &flow, body, FlowOrder::Resume).await
}

async fn quarantine_list(
    State(api): State<Api>,
    Path(flow): Path<String>,
    body: Body<QuarantineWish>,
) -> Response {
    with_body(&api, &flow, body, |wish, answer| FlowOrder::Quarantine(wish, false, answer)).await
}

async fn quarantine_show(
    State(api): State<Api>,
    Path(flow): Path<String>,
    body: Body<QuarantineWish>,
) -> Response {
    with_body(&api, &flow, body, |wish, answer| FlowOrder::Quarantine(wish, true, answer)).await
}

async fn quarantine_replay(
    State(api): State<Api>,
    Path(flow): Path<String>,
    body: Body<QuarantineWish>,
) -> Response {
    with_body(&api, &flow, body, FlowOrder::Replay).await
}

async fn with_body<W, T: Serialize>(
    api: &Api,
    flow: &str,
    body: Body<W>,
    order: impl FnOnce(W, Answer<T>) -> FlowOrder,
) -> Response {
    match body {
        Ok(Json(wish)) => follow(api, flow, |answer| order(wish, answer)).await,
        Err(rejection) => bad_body(&rejection),
    }
}

async fn follow<T: Serialize>(api: &Api, flow: &str, order: impl FnOnce(Answer<T>) -> FlowOrder) -> Response {
    match api.orders.ask(flow, order).await {
        Ok(answer) => Json(answer).into_response(),
        Err(refused) => refusal(&refused),
    }
}

fn refusal(refused: &NoAnswer) -> Response {
    let code = match refused.kind {
        NoAnswerKind::Unknown => StatusCode::NOT_FOUND,
        NoAnswerKind::BadRequest => StatusCode::BAD_REQUEST,
        NoAnswerKind::Plugin => StatusCode::UNPROCESSABLE_ENTITY,
        NoAnswerKind::Conflict => StatusCode::CONFLICT,
        NoAnswerKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(ErrorBody { error: refused.error.clone(), remedy: refused.remedy.clone() })).into_response()
}

/// Only the kind of the problem is told: the text would quote the body, and with it settings.
fn bad_body(rejection: &JsonRejection) -> Response {
    let (code, error) = match rejection {
        JsonRejection::MissingJsonContentType(_) => {
            (StatusCode::BAD_REQUEST, "the request has no Content-Type: application/json")
        }
        JsonRejection::BytesRejection(_) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "the body can't be read: it is too long")
        }
        _ => (StatusCode::BAD_REQUEST, "the body is not the JSON that is wanted here"),
    };
    let remedy =
        "see tidegate plugin swap --help for what can be sent; modules have at most 64 MiB".to_owned();
    (code, Json(ErrorBody { error: error.to_owned(), remedy })).into_response()
}
