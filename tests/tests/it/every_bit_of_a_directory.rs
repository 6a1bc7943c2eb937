//! Every bit of a directory of several segments is flipped, one at a time, and nothing is lost in silence.
//!
//! All bits of 64 KiB take minutes, so the ordinary tests take a small directory and a sample of the large one:
//! `cargo test --release -p strandline-tests --test it -- --ignored every_bit_of_64_kib` takes all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use strandline::core::{
    Completion, Config, EventDraft, FileKind, Framing, FramingKind, JournalName, Listing, Output, Pcpj, Pryj,
    Timestamp,
};
use strandline::{Performer, recover};
use strandline_sim::disk::SimDisk;
use strandline_tests::fuzzing::{Look, Owned, look};

/// A directory, and what is in it.
struct Whole {
    kind: FramingKind,
    files: BTreeMap<u64, Vec<u8>>,
    records: Vec<Owned>,
    /// Every record before this is proven by a mark or a later segment.
    proven_end: u64,
    /// From this byte of the last segment on nothing is proven: the window that the format leaves. It begins with
    /// the mark that states the end of what is proven.
    window: usize,
}

/// How many flips ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Verdicts {
    flips: usize,
    refused: usize,
    /// Cut, and no record was lost.
    cut_without_loss: usize,
    /// Cut, loudly, with records that no mark proves.
    cut_with_loss: usize,
}

/// A directory of at least so many bytes in segments of at most so many, left by a close or by a kill.
fn directory<F: Framing>(
    kind: FramingKind,
    (bytes, segment_bytes): (usize, u64),
    draft: impl Fn(&[u8], &mut dyn FnMut(F::Draft<'_>)),
    closes: bool,
) -> Whole {
    let disk = SimDisk::new(512);
    let name = JournalName::parse("bits").unwrap();
    let performer = Performer::new(Arc::new(disk.clone()), name);
    let now = Timestamp::from_millis(1_000);
    let config = Config { segment_bytes, reserve_bytes: 0, ..Config::new(42, now) };
    let (mut journal, _) = recover::<F, _>(&performer, config, Listing::Segments(vec![])).unwrap();
    let drain = |journal: &mut strandline::core::Journal<F>| {
        while let Some(output) = journal.poll_output() {
            if let Output::Effect { id, effect } = output {
                let result = performer.perform(&effect);
                journal.handle_completion(Completion { id, result });
            }
        }
    };
    let (mut filled, mut n) = (0, 0u8);
    while filled < bytes {
        // Commits of one to three records of up to 240 bytes.
        for _ in 0..=n % 3 {
            let payload = vec![n | 1; usize::from(n.wrapping_mul(67)) % 241];
            draft(&payload, &mut |draft| {
                journal.append(now, draft).unwrap();
            });
            n = n.wrapping_add(1);
        }
        drain(&mut journal);
        filled = files_on(&disk).values().map(Vec::len).sum();
    }
    if closes {
        journal.close();
        drain(&mut journal);
    }
    Whole::of(kind, files_on(&disk))
}

fn records(size: (usize, u64), closes: bool) -> Whole {
    directory::<Pryj>(FramingKind::Pryj, size, |payload, append| append(payload), closes)
}

fn events(size: (usize, u64), closes: bool) -> Whole {
    let draft = |payload: &[u8], append: &mut dyn FnMut(EventDraft<'_>)| {
        append(EventDraft { domain: 3, event_type: "tick", source: "/a", payload });
    };
    directory::<Pcpj>(FramingKind::Pcpj, size, draft, closes)
}

fn files_on(disk: &SimDisk) -> BTreeMap<u64, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (name, bytes) in disk.state().files() {
        if let FileKind::Segment { segment, .. } = FileKind::of(name) {
            files.insert(segment.0.get(), bytes.to_vec());
        }
    }
    files
}

impl Whole {
    fn of(kind: FramingKind, files: BTreeMap<u64, Vec<u8>>) -> Self {
        let found = look(kind, &files, Look::default());
        assert!(!found.refused && found.row.is_none(), "{found:?}");
        assert!(files.len() >= 3, "several segments");
        let (last, bytes) = files.last_key_value().unwrap();
        let window = match kind {
            FramingKind::Pryj => window_of::<Pryj>(bytes, found.proven_end),
            FramingKind::Pcpj => window_of::<Pcpj>(bytes, found.proven_end),
        };
        assert!(found.end > *last, "the last segment holds a record");
        Self { kind, records: found.records, proven_end: found.proven_end, window, files }
    }

    fn bits(&self) -> usize {
        self.files.values().map(|bytes| bytes.len() * 8).sum()
    }

    /// Flips these bits, one at a time.
    fn flip(&self, bits: impl Iterator<Item = usize> + Clone + Send) -> Verdicts {
        let workers = thread::available_parallelism().map_or(2, usize::from);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..workers)
                .map(|worker| {
                    let bits = bits.clone().skip(worker).step_by(workers);
                    scope
                        .spawn(move || bits.fold(Verdicts::default(), |sum, bit| sum.and(self.flip_one(bit))))
                })
                .collect();
            workers.into_iter().fold(Verdicts::default(), |sum, worker| sum.and(worker.join().unwrap()))
        })
    }

    /// Flips one bit, has everybody look, and holds what they found to what the format promises.
    fn flip_one(&self, bit: usize) -> Verdicts {
        let (file, at) = self.place(bit);
        let mut files = self.files.clone();
        files.get_mut(&file).unwrap()[at] ^= 1 << (bit % 8);
        let found = look(self.kind, &files, Look::default());
        let what = format!("bit {} of byte {at} of segment {file}", bit % 8);
        // A lost logical start gives back what was trimmed; there is none here.
        assert_eq!(found.records, self.records[..found.records.len()], "{what}: a prefix, unchanged");
        assert!(found.refused || found.row.is_some(), "{what} goes unseen");
        let in_window = Some(&file) == self.files.keys().last() && at >= self.window;
        assert_eq!(found.refused, !in_window, "{what}: {:?}", found.row);
        let kept = found.records.len() as u64 + self.records.first().map_or(0, |record| record.seq);
        assert!(found.refused || kept >= self.proven_end, "{what}: {kept} of {} proven", self.proven_end);
        let whole = found.records.len() == self.records.len();
        Verdicts {
            flips: 1,
            refused: usize::from(found.refused),
            cut_without_loss: usize::from(!found.refused && whole),
            cut_with_loss: usize::from(!found.refused && !whole),
        }
    }

    fn place(&self, bit: usize) -> (u64, usize) {
        let mut at = bit / 8;
        for (first, bytes) in &self.files {
            match at.checked_sub(bytes.len()) {
                Some(behind) => at = behind,
                None => return (*first, at),
            }
        }
        panic!("there is no bit {bit}")
    }
}

impl Verdicts {
    fn and(self, other: Self) -> Self {
        Self {
            flips: self.flips + other.flips,
            refused: self.refused + other.refused,
            cut_without_loss: self.cut_without_loss + other.cut_without_loss,
            cut_with_loss: self.cut_with_loss + other.cut_with_loss,
        }
    }
}

/// Where the first of the marks begins that state the most; the one at the head does not count, since a file
/// without it is not taken for torn.
fn window_of<F: Framing>(bytes: &[u8], end: u64) -> usize {
    let head = F::HEADER_LEN + F::MARK_LEN;
    let windows = bytes.windows(F::MARK_LEN).enumerate();
    let mut marks = windows.filter_map(|(at, window)| F::parse_mark(window).map(|mark| (at, mark)));
    let (at, _) =
        marks.find(|(at, mark)| mark.offset == *at as u64 && mark.durable_end.get() == end).unwrap();
    at.max(head)
}

const SMALL: (usize, u64) = (1_200, 400);
const LARGE: (usize, u64) = (64 * 1_024, 12 * 1_024);

/// Behind a closed journal's last record stands the mark that proves it: losing that loses nothing.
#[test]
fn every_bit_of_a_small_closed_directory() {
    for whole in [records(SMALL, true), events(SMALL, true)] {
        let verdicts = whole.flip(0..whole.bits());
        let window = (whole.files.last_key_value().unwrap().1.len() - whole.window) * 8;
        assert_eq!((verdicts.flips, verdicts.cut_without_loss), (whole.bits(), window), "{verdicts:?}");
        assert_eq!(verdicts.cut_with_loss, 0, "{verdicts:?}");
    }
}

/// What a kill leaves may end in a commit that no mark proves yet: the window that the format names.
#[test]
fn every_bit_of_a_small_killed_directory() {
    for whole in [records(SMALL, false), events(SMALL, false)] {
        let verdicts = whole.flip(0..whole.bits());
        assert_eq!(verdicts.flips, whole.bits());
        assert!(verdicts.cut_with_loss > 0 && verdicts.refused > verdicts.cut_with_loss, "{verdicts:?}");
    }
}

#[test]
fn a_sample_of_the_bits_of_64_kib() {
    for whole in [records(LARGE, true), events(LARGE, false)] {
        // A prime, so that every bit of a byte and every field has its turn.
        let verdicts = whole.flip((0..whole.bits()).step_by(1_013));
        assert!(verdicts.flips > 500 && verdicts.refused > 500, "{verdicts:?}");
    }
}

#[test]
#[ignore = "minutes; the command is at the head of this file"]
fn every_bit_of_64_kib() {
    for whole in [records(LARGE, true), events(LARGE, false)] {
        let verdicts = whole.flip(0..whole.bits());
        assert_eq!(verdicts.flips, whole.bits());
        println!("{}, {} segments: {verdicts:?}", whole.kind.label(), whole.files.len());
    }
}
