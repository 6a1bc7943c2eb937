//! What the scan found, and which repairs follow from it, in order.

use crate::scan::LastSegment;
use crate::verdict::Row;
use crate::view::SegmentView;
use crate::{Cut, Effect, Framing, Mark, Report, SegmentId, Seq, Verdict, View};

/// What the scan found, and what is to become of it.
#[derive(Debug)]
pub(super) struct Plan<F: Framing> {
    pub(super) view: View<F>,
    pub(super) report: Report,
}

/// Bringing the files to their valid end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    RemoveTemporaries,
    SetAside,
    RemoveTorn,
    Truncate,
    Sync,
}

/// Stating the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marking {
    Write(Mark),
    Sync(Mark),
    /// There was no space for it: what came of it is cut off again.
    TakeBack,
    SyncTakeBack,
}

impl<F: Framing> Plan<F> {
    pub(super) fn cut(&self) -> Option<Cut> {
        match self.report.verdict {
            Verdict::Cut(cut) => Some(cut),
            Verdict::Sound | Verdict::Refused(_) => None,
        }
    }

    pub(super) fn last(&self) -> Option<(&SegmentView, &LastSegment)> {
        self.view.last().zip(self.report.last.as_ref())
    }

    /// The repair that comes after `done`, with its effect.
    pub(super) fn repair_after(&self, done: Repair) -> Option<(Repair, Effect)> {
        let cut = self.cut();
        let torn = cut.filter(|cut| cut.row == Row::D).map(|cut| cut.segment);
        let longer = self.last().filter(|(view, last)| last.file_bytes > view.bytes());
        match done {
            Repair::RemoveTemporaries => match cut.filter(|cut| cut.bytes > 0) {
                Some(Cut { segment, offset, bytes, .. }) => {
                    Some((Repair::SetAside, Effect::SetAside { segment, offset, len: bytes }))
                }
                None => self.repair_after(Repair::SetAside),
            },
            // A segment that was never created whole goes, where another one is there to go on with.
            Repair::SetAside => match torn.filter(|_| self.view.last().is_some()) {
                Some(segment) => Some((Repair::RemoveTorn, Effect::Remove { segment })),
                None => self.repair_after(Repair::RemoveTorn),
            },
            Repair::RemoveTorn => longer.map(|(view, _)| {
                (Repair::Truncate, Effect::Truncate { segment: view.id(), len: view.bytes() })
            }),
            Repair::Truncate => {
                self.view.last().map(|view| (Repair::Sync, Effect::Sync { segment: view.id() }))
            }
            Repair::Sync => None,
        }
    }
}

impl Report {
    /// The report on a journal that does not exist yet.
    pub(super) fn empty(first: Seq) -> Self {
        Self {
            segments: alloc::vec::Vec::new(),
            first,
            end: first,
            proven_end: first,
            verdict: Verdict::Sound,
            repair: crate::Repair::default(),
            last: None,
        }
    }

    /// The last segment that was looked at.
    pub(super) fn last_id(&self) -> SegmentId {
        self.segments.last().map_or(SegmentId(self.first), |segment| segment.id)
    }
}
