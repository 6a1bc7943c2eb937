//! Bodies of requests: each within its bounds, and all of them within the server's.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::problem::Problem;
use crate::server::ServerSettings;

/// Room for bodies is given out in pieces of this many bytes.
const ROOM_BYTES: usize = 1 << 10;

/// Reads bodies.
#[derive(Debug)]
pub(crate) struct Bodies {
    bytes_max: usize,
    timeout: Duration,
    /// In units of [`ROOM_BYTES`].
    room: Arc<Semaphore>,
}

/// A body, and the room that it takes until it is dropped.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl Bodies {
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        let ServerSettings { body_bytes_max: bytes_max, bodies_bytes_max, body_timeout: timeout, .. } =
            *settings;
        let room = bodies_bytes_max.max(bytes_max).div_ceil(ROOM_BYTES);
        Self { bytes_max, timeout, room: Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS))) }
    }

    /// The body, if it comes whole, in time, and is not too long.
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Read, Problem> {
        let max = self.bytes_max;
        let too_long = || {
            let detail = format!("the body is longer than {max} bytes: send fewer or smaller events");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        };
        let said = headers.get(CONTENT_LENGTH).and_then(|len| len.to_str().ok()?.parse::<u64>().ok());
        if said.is_some_and(|len| len > max as u64) {
            return Err(too_long());
        }
        // Who does not say how long it is may fill it.
        let len = said.map_or(max, |len| usize::try_from(len).unwrap_or(max));
        let pieces = u32::try_from(len.div_ceil(ROOM_BYTES)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(pieces) else {
            let detail = "too many long bodies are being published at once: send it again in a moment";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
        };
        match timeout(self.timeout, to_bytes(body, max)).await {
            Ok(Ok(bytes)) => Ok(Read { bytes, _room: room }),
            Ok(Err(error)) if is_too_long(&error) => Err(too_long()),
            Ok(Err(error)) => Err(Problem::bad(format!("the body did not come whole: {error}"))),
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
        }
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
