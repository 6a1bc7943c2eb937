//! Why a request is refused: a status, and a sentence that says what to do (RFC 9457).

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use strandline::AppendError;
use strandline::bus::{AcknowledgeError, EventBusError, SubscribeError};
use strandline_core::DraftError;

/// What a client is told in place of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status of the answer.
    pub status: StatusCode,
    /// What is wrong, and what to do.
    pub detail: String,
}

/// The answer's body.
#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    status: u16,
    detail: &'a str,
}

/// Seconds after which a full bus is worth another try.
const RETRY_SECONDS: u16 = 1;

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// The address is there, and is not asked so.
    pub(crate) async fn not_allowed(method: Method) -> Self {
        let detail = format!("{method} is not for this address: the header `Allow` says what is");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, detail)
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The answer's body.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let Self { status, detail } = self;
        let title = status.canonical_reason().unwrap_or("Error");
        serde_json::to_vec(&Document { title, status: status.as_u16(), detail }).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = Response::new(Body::from(self.to_json()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        response
    }
}

impl From<AppendError> for Problem {
    fn from(error: AppendError) -> Self {
        let status = match error {
            AppendError::Draft(DraftError::PayloadTooLong { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            AppendError::Draft(_) => StatusCode::BAD_REQUEST,
            AppendError::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
            AppendError::NoSpace | AppendError::SequenceExhausted => StatusCode::INSUFFICIENT_STORAGE,
            AppendError::TooManyFiles
            | AppendError::NotNext { .. }
            | AppendError::Poisoned(_)
            | AppendError::Closed => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<EventBusError> for Problem {
    fn from(error: EventBusError) -> Self {
        let status = match &error {
            EventBusError::Subscribe(SubscribeError::Full { .. }) | EventBusError::NoSpace => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            EventBusError::Subscribe(_) => StatusCode::BAD_REQUEST,
            EventBusError::Acknowledge(
                AcknowledgeError::NeverDelivered { .. } | AcknowledgeError::GapNotTold { .. },
            ) => StatusCode::CONFLICT,
            EventBusError::Acknowledge(_) | EventBusError::UnknownName { .. } => StatusCode::NOT_FOUND,
            EventBusError::Poisoned(_) | EventBusError::Closed => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}
