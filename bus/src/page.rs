//! A page that shows the journal live. It is one document, styles and scripts, all of them in the program: nothing is loaded
//! from anywhere else, and the policy in its head says so to the browser. What the scripts get, they can only show as text.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::problem::Problem;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Where each file is, its type and its text.
const FILES: [(&str, &str, &str); 16] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/page/page.css", CSS, include_str!("page/page.css")),
    ("/page/parts.css", CSS, include_str!("page/parts.css")),
    ("/page/api.js", SCRIPT, include_str!("page/api.js")),
    ("/page/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/page/events.js", SCRIPT, include_str!("page/events.js")),
    ("/page/journal.js", SCRIPT, include_str!("page/journal.js")),
    ("/page/json.js", SCRIPT, include_str!("page/json.js")),
    ("/page/metrics.js", SCRIPT, include_str!("page/metrics.js")),
    ("/page/page.js", SCRIPT, include_str!("page/page.js")),
    ("/page/publish.js", SCRIPT, include_str!("page/publish.js")),
    ("/page/rates.js", SCRIPT, include_str!("page/rates.js")),
    ("/page/sse.js", SCRIPT, include_str!("page/sse.js")),
    ("/page/stream.js", SCRIPT, include_str!("page/stream.js")),
    ("/page/subscriptions.js", SCRIPT, include_str!("page/subscriptions.js")),
];

/// The page needs no token: it asks for one, and shows it with each of its requests.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES
        .into_iter()
        .fold(Router::new(), |router, (path, media_type, text)| {
            router.route(path, get(move || async move { file(media_type, text) }))
        })
        .method_not_allowed_fallback(Problem::not_allowed)
}

fn file(media_type: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, text)
}
