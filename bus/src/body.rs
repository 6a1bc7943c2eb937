//! Bodies of requests: each within its bounds, and all of them within the server's.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
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
        match timeout(self.timeout, self.collect(Limited::new(body, max))).await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(Broken::NoRoom)) => {
                let detail = "too many long bodies are being published at once: send it again in a moment";
                Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail))
            }
            Ok(Err(Broken::Body(error))) if error.is::<LengthLimitError>() => Err(too_long()),
            Ok(Err(Broken::Body(error))) => {
                Err(Problem::bad(format!("the body did not come whole: {error}")))
            }
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
        }
    }

    /// Takes room as bytes arrive: who announces many and sends few keeps nobody out.
    async fn collect(&self, mut body: Limited<Body>) -> Result<Read, Broken> {
        let mut room = Arc::clone(&self.room).try_acquire_many_owned(0).map_err(|_| Broken::NoRoom)?;
        // In one piece from the first byte on: a piece of its own for each of a body's would take more than a short one has.
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Broken::Body)?.into_data() else { continue };
            let more = (bytes.len() + data.len()).div_ceil(ROOM_BYTES).saturating_sub(room.num_permits());
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            room.merge(Arc::clone(&self.room).try_acquire_many_owned(more).map_err(|_| Broken::NoRoom)?);
            bytes.extend_from_slice(&data);
        }
        Ok(Read { bytes: bytes.freeze(), _room: room })
    }
}

/// Why there is no body.
enum Broken {
    NoRoom,
    Body(Box<dyn std::error::Error + Send + Sync>),
}
