//! Reading a journal from its files: the one scan that open, verify and every offline reader drive,
//! so that no two of them can disagree.

mod evidence;
mod head;
mod report;
mod segment;
pub mod verdict;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use evidence::{BadFrame, Search};
use head::{Head, head_len, read_head};
pub(crate) use report::LastSegment;
pub use report::{Cut, Proof, Refusal, Repair, Report, SegmentReport, Verdict};
use segment::{SegmentWalk, Walked};
use verdict::{Action, Evidence, Row, judge};

use crate::config::BLOCK_BYTES;
use crate::listing::Naming;
use crate::{
    Batch, Framing, IoFailure, Listing, ReadRequest, RecoveryPolicy, SegmentFile, SegmentView, Seq, View,
};

/// How a scan judges what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// The policy for damage that cannot be proven.
    pub policy: RecoveryPolicy,
    /// Aligned block size that a torn write leaves whole or zero; 512, only simulations use another.
    pub block_bytes: u64,
    /// Whether events are indexed by source, type and domain: 16 bytes of memory for each.
    pub index_events: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { policy: RecoveryPolicy::Standard, block_bytes: BLOCK_BYTES, index_events: false }
    }
}

/// What a scan wants next.
#[derive(Debug)]
pub enum ScanStep<F: Framing> {
    /// These bytes; answer with [`Scan::resume`].
    Read(ReadRequest, Box<Scan<F>>),
    /// Nothing: what it found. The view ends at the first bad byte.
    Done(Box<View<F>>, Box<Report>),
}

/// What a piece of a file gave: whole frames that were verified, and the records in them.
#[derive(Default)]
struct Taken {
    /// Where the frames stand in the piece.
    frames: Range<usize>,
    first: Seq,
    end: Seq,
    /// The frames, where they were not in the piece as it was lent.
    gathered: Option<Vec<u8>>,
}

/// A scan in progress. It holds no clock, file or buffer of its own, except for a frame larger
/// than [`ReadRequest::LEN_MAX`], and its memory does not grow with the journal, the index aside.
///
/// ```
/// use strandline_core::{Listing, Pryj, Scan, ScanOptions, ScanStep, SegmentFile, SegmentId, Seq, Verdict};
///
/// // A version 1 segment with one record "hi" at sequence number 0.
/// let mut file = b"PRYJ\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
/// let record = [&2u32.to_le_bytes()[..], &0u64.to_le_bytes(), b"hi"].concat();
/// file.extend_from_slice(&record);
/// file.extend_from_slice(&crc32c::crc32c(&record).to_le_bytes());
///
/// let files = vec![SegmentFile { id: SegmentId(Seq::ZERO), len: file.len() as u64 }];
/// let mut step = Scan::<Pryj>::start(Listing::Segments(files), ScanOptions::default());
/// let report = loop {
///     match step {
///         ScanStep::Read(request, scan) => {
///             let from = request.offset as usize;
///             step = scan.resume(Ok(&file[from..from + request.len]));
///         }
///         ScanStep::Done(_, report) => break report,
///     }
/// };
/// assert_eq!((report.verdict, report.end), (Verdict::Sound, Seq::new(1)));
/// ```
#[derive(Debug)]
pub struct Scan<F: Framing> {
    options: ScanOptions,
    files: Vec<SegmentFile>,
    naming: Naming,
    /// The file in hand.
    at: usize,
    stage: Stage,
    /// The last request, so that the answer can be placed.
    asked: ReadRequest,
    /// A frame larger than the lent buffer gathers here; its capacity is kept.
    carry: Vec<u8>,
    segments: Vec<SegmentReport>,
    last: Option<LastSegment>,
    view: View<F>,
    first: Seq,
    end: Seq,
    proven_end: Seq,
}

#[derive(Debug)]
enum Stage {
    Head,
    Frames(SegmentWalk),
    Carry(SegmentWalk, usize),
    Search(SegmentWalk, Search),
}

impl<F: Framing> Scan<F> {
    /// Begins to read the files of a journal. A journal without files is sound and empty.
    #[must_use]
    pub fn start(listing: Listing, options: ScanOptions) -> ScanStep<F> {
        let (files, naming) = listing.into_ordered();
        let start = files.first().map_or(Seq::ZERO, |file| file.id.0);
        let scan = Box::new(Self {
            options,
            files,
            naming,
            at: 0,
            stage: Stage::Head,
            asked: ReadRequest { segment: Listing::BARE, offset: 0, len: 0 },
            carry: Vec::new(),
            segments: Vec::new(),
            last: None,
            view: View::empty(start),
            first: start,
            end: start,
            proven_end: start,
        });
        scan.begin_file()
    }

    /// Goes on with the answer to the last request: the bytes, all that were asked for, or the
    /// failure of the read, which is never taken for a tear.
    #[must_use]
    pub fn resume(self: Box<Self>, answer: Result<&[u8], IoFailure>) -> ScanStep<F> {
        self.resume_taking(answer, &mut Taken::default())
    }

    /// The same; hands on the records that were verified by it, each of the journal's once and in order, so that who
    /// needs them has them in one pass. Whether the journal is one that this version reads is only known at the end.
    #[must_use]
    pub fn resume_handing_on(
        self: Box<Self>,
        answer: Result<Bytes, IoFailure>,
    ) -> (ScanStep<F>, Option<Batch<F>>) {
        let mut taken = Taken::default();
        let step = self.resume_taking(answer.as_deref().map_err(|failure| *failure), &mut taken);
        let Taken { frames, first, end, gathered } = taken;
        let bytes = gathered.map(Bytes::from).or(answer.ok()).unwrap_or_default();
        let batch = (first < end).then(|| Batch::new(bytes.slice(frames), first, end));
        (step, batch)
    }

    fn resume_taking(
        mut self: Box<Self>,
        answer: Result<&[u8], IoFailure>,
        taken: &mut Taken,
    ) -> ScanStep<F> {
        let asked = self.asked;
        let bytes = match answer {
            Ok(bytes) if bytes.len() >= asked.len => bytes.get(..asked.len).unwrap_or(bytes),
            Ok(bytes) => {
                let len = asked.offset + bytes.len() as u64;
                return self.interrupted(Refusal::Shrank { segment: asked.segment, len });
            }
            Err(failure) => {
                let (segment, offset) = (asked.segment, asked.offset);
                return self.interrupted(Refusal::Unreadable { segment, offset, failure });
            }
        };
        match core::mem::replace(&mut self.stage, Stage::Head) {
            Stage::Head => self.read_head(bytes, taken),
            Stage::Frames(walk) => self.walk(walk, bytes, asked.offset, taken),
            Stage::Carry(walk, need) => self.gather(walk, need, bytes, taken),
            Stage::Search(walk, search) => self.search(walk, search, Some(bytes)),
        }
    }

    /// Stops in the middle of a segment, and keeps what was valid before.
    fn interrupted(mut self: Box<Self>, refusal: Refusal) -> ScanStep<F> {
        match core::mem::replace(&mut self.stage, Stage::Head) {
            Stage::Head => {}
            Stage::Frames(walk) | Stage::Carry(walk, _) | Stage::Search(walk, _) => self.keep(walk, None),
        }
        self.stop(refusal)
    }

    fn begin_file(mut self: Box<Self>) -> ScanStep<F> {
        match self.files.get(self.at).copied() {
            None => self.finish(Verdict::Sound),
            Some(file) if file.len == 0 => self.read_head(&[], &mut Taken::default()),
            Some(_) => {
                self.stage = Stage::Head;
                self.ask(0, ReadRequest::LEN_MAX)
            }
        }
    }

    fn read_head(mut self: Box<Self>, bytes: &[u8], taken: &mut Taken) -> ScanStep<F> {
        let Some(file) = self.files.get(self.at).copied() else { return self.finish(Verdict::Sound) };
        let held = bytes.get(..head_len::<F>()).unwrap_or(bytes);
        let before = self.view.last().map(SegmentView::layout);
        match read_head::<F>(held, file.id, self.naming, before) {
            Err(refusal) => self.stop(refusal),
            Ok(Head::Short { version }) => {
                let evidence = Evidence { short: true, ..Evidence::default() };
                self.bad_head(file, version, file.len, evidence, bytes)
            }
            Ok(Head::Invalid { version, offset }) => {
                let evidence = Evidence { head_invalid: true, ..Evidence::default() };
                self.bad_head(file, version, offset, evidence, bytes)
            }
            Ok(Head::Valid { layout, first, mark, records_at }) => {
                if self.at == 0 {
                    (self.first, self.end) = (first, first);
                    self.proven_end = first;
                    self.view = View::empty(first);
                }
                let indexed = self.options.index_events;
                self.walk(SegmentWalk::new(file, layout, first, mark, records_at, indexed), bytes, 0, taken)
            }
        }
    }

    fn walk(
        mut self: Box<Self>,
        mut walk: SegmentWalk,
        bytes: &[u8],
        base: u64,
        taken: &mut Taken,
    ) -> ScanStep<F> {
        let (start, first) = (walk.position(), walk.expected());
        let walked = walk.walk::<F>(bytes, base);
        let [start, end] =
            [start, walk.position()].map(|at| usize::try_from(at - base).unwrap_or(usize::MAX));
        *taken = Taken { frames: start..end, first, end: walk.expected(), gathered: None };
        match walked {
            Walked::Needs { offset, need } if need <= ReadRequest::LEN_MAX => {
                self.stage = Stage::Frames(walk);
                self.ask(offset, ReadRequest::LEN_MAX)
            }
            Walked::Needs { offset, need } => {
                self.carry.clear();
                self.stage = Stage::Carry(walk, need);
                self.ask(offset, ReadRequest::LEN_MAX)
            }
            Walked::End => self.end_of_segment(walk, None),
            Walked::Bad(bad) => self.begin_search(walk, bad),
            Walked::Refused(refusal) => {
                self.keep(walk, None);
                self.stop(refusal)
            }
        }
    }

    /// Gathers a frame that is larger than the lent buffer. It is never larger than the payload
    /// limit allows, nor than the file: both were checked when its bounds were read.
    fn gather(
        mut self: Box<Self>,
        walk: SegmentWalk,
        need: usize,
        bytes: &[u8],
        taken: &mut Taken,
    ) -> ScanStep<F> {
        self.carry.extend_from_slice(bytes);
        let missing = need.saturating_sub(self.carry.len());
        if missing > 0 {
            let next = self.asked.offset + bytes.len() as u64;
            self.stage = Stage::Carry(walk, need);
            return self.ask(next, missing.min(ReadRequest::LEN_MAX));
        }
        let start = (self.asked.offset + bytes.len() as u64) - self.carry.len() as u64;
        let carry = core::mem::take(&mut self.carry);
        let step = self.walk(walk, &carry, start, taken);
        taken.gathered = Some(carry);
        step
    }

    fn begin_search(self: Box<Self>, walk: SegmentWalk, bad: BadFrame) -> ScanStep<F> {
        let file_bytes = self.file().map_or(0, |file| file.len);
        let search = Search::new(bad, walk.wanted(), file_bytes, self.options.block_bytes);
        self.search(walk, search, None)
    }

    fn search(
        mut self: Box<Self>,
        walk: SegmentWalk,
        mut search: Search,
        piece: Option<&[u8]>,
    ) -> ScanStep<F> {
        if let Some(piece) = piece {
            search.feed::<F>(piece, self.asked.offset);
        }
        match search.wants() {
            Some(offset) => {
                self.stage = Stage::Search(walk, search);
                self.ask(offset, ReadRequest::LEN_MAX)
            }
            None => self.judge_search(walk, &search),
        }
    }

    fn judge_search(mut self: Box<Self>, walk: SegmentWalk, search: &Search) -> ScanStep<F> {
        let next = self.files.get(self.at + 1).copied();
        let expected = walk.expected();
        let meets_successor = next.is_some_and(|next| next.id.0 == expected);
        let evidence = search.evidence::<F>(next.is_none(), meets_successor);
        let (row, action) = judge(&evidence, self.options.policy);
        let (segment, offset) = (search.segment(), search.bad.offset);
        if let (Some(mark), false) = (search.proof(), self.has_marks(&walk)) {
            self.keep(walk, Some(row));
            return self.stop(Refusal::MarkInVersion1 { segment, offset: mark.offset });
        }
        match action {
            Action::CleanEnd => self.end_of_segment(walk, Some(row)),
            Action::Cut => {
                let bytes = search.bytes_with_content();
                self.keep(walk, Some(row));
                self.finish(Verdict::Cut(Cut { segment, offset, bytes, first_lost: expected, row }))
            }
            Action::Refuse => {
                self.keep(walk, Some(row));
                let proof = search.proof().filter(|_| row == Row::B);
                self.stop(Refusal::Damaged { segment, offset, expected, row, proof })
            }
        }
    }

    /// A file whose beginning is missing or invalid.
    fn bad_head(
        mut self: Box<Self>,
        file: SegmentFile,
        version: u8,
        offset: u64,
        evidence: Evidence,
        bytes: &[u8],
    ) -> ScanStep<F> {
        let last = self.at + 1 == self.files.len();
        let (row, action) = judge(&Evidence { last, ..evidence }, self.options.policy);
        self.segments.push(SegmentReport {
            id: file.id,
            version,
            first: file.id.0,
            end: file.id.0,
            marks: 0,
            bytes: 0,
            file_bytes: file.len,
            proof: Proof::Nothing,
            row: Some(row),
        });
        if action == Action::Cut {
            let content = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1);
            let first_lost = file.id.0;
            return self.finish(Verdict::Cut(Cut {
                segment: file.id,
                offset: 0,
                bytes: content,
                first_lost,
                row,
            }));
        }
        self.stop(Refusal::Damaged { segment: file.id, offset, expected: file.id.0, row, proof: None })
    }

    fn end_of_segment(mut self: Box<Self>, walk: SegmentWalk, row: Option<Row>) -> ScanStep<F> {
        let expected = walk.expected();
        let segment = self.file().map_or(Listing::BARE, |file| file.id);
        self.keep(walk, row);
        self.at += 1;
        match self.files.get(self.at).map(|next| next.id) {
            Some(next) if next.0 > expected => self.stop(Refusal::Gap { segment, missing: expected, next }),
            Some(next) if next.0 < expected => self.stop(Refusal::Overlap { segment, end: expected, next }),
            _ => self.begin_file(),
        }
    }

    /// Takes a segment's valid part into the view and the report.
    fn keep(&mut self, walk: SegmentWalk, row: Option<Row>) {
        let has_successor = self.at + 1 < self.files.len();
        self.end = walk.expected();
        self.proven_end = if has_successor { self.end } else { walk.proven_end() };
        self.first = self.first.max(walk.stated_first().unwrap_or(Seq::ZERO));
        self.last = Some(walk.last_segment());
        self.segments.push(walk.report(has_successor, row));
        self.view.push(walk.into_view(has_successor));
    }

    fn has_marks(&self, walk: &SegmentWalk) -> bool {
        walk.wanted().layout.has_marks()
    }

    fn file(&self) -> Option<&SegmentFile> {
        self.files.get(self.at)
    }

    fn ask(mut self: Box<Self>, offset: u64, len: usize) -> ScanStep<F> {
        let Some(file) = self.file().copied() else { return self.finish(Verdict::Sound) };
        let left = usize::try_from(file.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let request = ReadRequest { segment: file.id, offset, len: len.min(left) };
        self.asked = request;
        ScanStep::Read(request, self)
    }

    fn stop(self: Box<Self>, refusal: Refusal) -> ScanStep<F> {
        self.finish(Verdict::Refused(refusal))
    }

    fn finish(self: Box<Self>, verdict: Verdict) -> ScanStep<F> {
        let Self { segments, last, mut view, first, end, proven_end, .. } = *self;
        view.set_first(first);
        view.set_written_end(end);
        view.set_durable_end(proven_end);
        let report = Report { segments, first, end, proven_end, verdict, repair: Repair::default(), last };
        ScanStep::Done(Box::new(view), Box::new(report))
    }
}
