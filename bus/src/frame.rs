//! Events as frames of a stream of server-sent events. Each is encoded once, whoever listens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use strandline::bus::SubscriptionGap;
use strandline_core::{Event, Seq};

use crate::cloud_event::CloudEvent;
use crate::envelope::Envelope;
use crate::gap::Gap;

/// Bytes of frames that are kept for those who come a little later. One is kept however large it is.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The frames of the newest events.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    frames: BTreeMap<Seq, Bytes>,
    bytes: usize,
}

impl Frames {
    /// The frame of an event. All streams share its bytes.
    pub(crate) fn of(&self, event: &Event<'_>) -> Bytes {
        if let Some(frame) = self.lock().frames.get(&event.seq) {
            return frame.clone();
        }
        let frame = event_frame(event);
        let mut kept = self.lock();
        kept.bytes += frame.len();
        if let Some(before) = kept.frames.insert(event.seq, frame.clone()) {
            kept.bytes -= before.len();
        }
        // Who is far behind does not drive out what everybody else is about to want.
        while kept.bytes > KEPT_BYTES_MAX && kept.frames.len() > 1 {
            let Some((_, oldest)) = kept.frames.pop_first() else { break };
            kept.bytes -= oldest.len();
        }
        frame
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frames that are ready together, as one piece.
pub(crate) fn joined(frames: Vec<Bytes>) -> Bytes {
    match <[Bytes; 1]>::try_from(frames) {
        Ok([one]) => one,
        Err(frames) => {
            let mut all = BytesMut::with_capacity(frames.iter().map(Bytes::len).sum());
            frames.iter().for_each(|frame| all.extend_from_slice(frame));
            all.freeze()
        }
    }
}

/// A frame: its number, its kind, its data. No field lets the end of a line through: what is one line in the protocol has none,
/// and data is split into lines.
fn frame(id: Option<Seq>, kind: &str, data: &str) -> Bytes {
    let mut out = String::with_capacity(data.len() + kind.len() + 64);
    if let Some(id) = id {
        let _ = writeln!(out, "id: {id}");
    }
    let kind: String = kind.chars().filter(|c| !c.is_control()).collect();
    let _ = writeln!(out, "event: {kind}");
    let data = if data.contains('\r') { &*data.replace("\r\n", "\n").replace('\r', "\n") } else { data };
    for line in data.split('\n') {
        let _ = writeln!(out, "data: {line}");
    }
    out.push('\n');
    out.into()
}

fn event_frame(event: &Event<'_>) -> Bytes {
    match std::str::from_utf8(event.payload) {
        Ok(text) if CloudEvent::read(text).is_some() => frame(Some(event.seq), event.event_type, text),
        _ => frame(Some(event.seq), event.event_type, &wrapped(event)),
    }
}

fn wrapped(event: &Event<'_>) -> String {
    let time = jiff::Timestamp::from_millisecond(event.timestamp.as_millis()).ok();
    let envelope = Envelope::new(event.seq.to_string(), event.event_type, event.source, event.payload);
    envelope.at(time.map(|time| time.to_string())).to_json()
}

/// What a stream says beside events. It has no id, and does not move the place of whoever listens; but for the one that says where
/// that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Gap(SubscriptionGap),
    /// The stream begins behind this event: what is published next comes.
    Live(Seq),
    /// Nothing more until this is acknowledged.
    Awaiting(Seq),
    /// Another connection has the subscription now, or it was removed.
    TakenOver,
    /// The server ends, or the bus stopped; come again.
    Shutdown,
}

impl Notice {
    pub(crate) fn frame(&self) -> Bytes {
        match self {
            Self::Gap(gap) => {
                let document = Gap::from(*gap);
                frame(None, "strandline.gap", &serde_json::to_string(&document).unwrap_or_default())
            }
            // The one with a number: whoever is cut off before the first event comes again with it, and misses nothing.
            Self::Live(last) => {
                frame(Some(*last), "strandline.live", &format!("{{\"last_sequence\":{last}}}"))
            }
            Self::Awaiting(sequence) => {
                frame(None, "strandline.awaiting", &format!("{{\"sequence\":{sequence}}}"))
            }
            Self::TakenOver => frame(None, "strandline.ended", "{\"reason\":\"taken_over_or_removed\"}"),
            Self::Shutdown => frame(None, "strandline.shutdown", "{}"),
        }
    }
}
