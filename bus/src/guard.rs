//! Who may talk to the server. Whatever page a browser shows can send requests to this machine; so the name in `Host` must be
//! this machine's, or a token is asked for, and no other page's `Origin` is let through.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::headers;
use crate::problem::Problem;

/// Who may talk to the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// What clients have to show, as `Authorization: Bearer ...`. Without one, only this machine's own names are answered.
    pub token: Option<Box<str>>,
    /// Whether any `Host` is answered without a token: where only who may open a file can connect.
    pub any_host: bool,
}

/// Without the token, so that no log has it.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "(a secret)");
        f.debug_struct("Guard").field("token", &token).field("any_host", &self.any_host).finish()
    }
}

/// Lets a request through that names this machine: enough for what says nothing of the bus.
pub(crate) async fn check_host(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_host(request.headers()) {
        Ok(_) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Lets a request through that comes from no other origin's page, and shows the token, if there is one.
pub(crate) async fn check_client(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let checked = guard.check_host(headers).and_then(|host| check_origin(headers, host));
    match checked.and_then(|()| guard.check_token(headers)) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            let is_unauthorized = problem.status == StatusCode::UNAUTHORIZED;
            let mut response = problem.into_response();
            if is_unauthorized {
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

impl Guard {
    fn check_host<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Problem::bad("there has to be one header `Host`"));
        };
        let host = host.to_str().unwrap_or_default();
        if self.token.is_some() || self.any_host || is_this_machine(host) {
            return Ok(host);
        }
        let detail = "without a token the bus answers to localhost and loopback addresses only: use one of them in the address";
        Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = headers::one(headers, AUTHORIZATION.as_str())?.unwrap_or_default();
        let (scheme, shown) = shown.split_once(' ').unwrap_or_default();
        if scheme.eq_ignore_ascii_case("Bearer") && bool::from(shown.as_bytes().ct_eq(token.as_bytes())) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNAUTHORIZED, "show the token: `Authorization: Bearer ...`"))
    }
}

/// A page may talk to the server that it came from. Another port of this machine is the same site to a browser, and somebody
/// else's page all the same.
fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let is_foreign =
        headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none");
    let origins = headers.get_all(ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
    let are_own = origins.map(|origin| origin.strip_prefix("http://").or(origin.strip_prefix("https://")));
    if is_foreign || !are_own.into_iter().all(|origin| origin == Some(host)) {
        let detail = "another origin's page may not talk to this bus";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(())
}

/// Whether a `Host`, with its port or without, is a loopback address or `localhost`.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, rest)) if rest.is_empty() || rest.starts_with(':') => address,
        Some(_) => return false,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let address = name.parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
