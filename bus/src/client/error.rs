//! Why a client gave up.

use std::io;

use axum::http::StatusCode;

use super::sse::SseError;

/// Why a request has no good answer, or a subscription ended.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error(
        "`{address}` is no address of a bus: use http://HOST:PORT, with the path behind it where the bus is mounted under one; on the command line also unix:PATH"
    )]
    Address {
        /// What was given.
        address: String,
    },
    /// The server refused.
    #[error("the server answers {status}: {detail}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What the server says.
        detail: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("the server cannot be reached: {0}")]
    Connection(#[from] io::Error),
    /// The connection is not HTTP, or broke.
    #[error("the connection broke: {0}")]
    Http(#[from] hyper::Error),
    /// The server answers with something else than a bus does.
    #[error("the server's answer is not understood: {0}")]
    Answer(String),
    /// Somebody else connected with the name of the subscription, or it was removed.
    #[error("the subscription was taken over by another connection, or removed")]
    Ended,
}

impl From<SseError> for ClientError {
    fn from(error: SseError) -> Self {
        Self::Answer(error.to_string())
    }
}

impl ClientError {
    /// Whether the server does not know what the request is about, and will once it has been subscribed to again.
    pub(super) fn is_unknown(&self) -> bool {
        let unknown = [StatusCode::CONFLICT, StatusCode::NOT_FOUND];
        matches!(self, Self::Refused { status, .. } if unknown.contains(status))
    }

    /// Whether the same request may be answered later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Http(_) => true,
            Self::Refused { status, .. } => {
                *status == StatusCode::TOO_MANY_REQUESTS || *status == StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Address { .. } | Self::Answer(_) | Self::Ended => false,
        }
    }
}
