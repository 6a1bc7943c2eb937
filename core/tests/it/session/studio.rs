//! A session with both its journals in memory, driven the way an adapter drives it.

use bytes::Bytes;
use strandline_core::session::{
    Answered, CheckError, CheckStep, Checked, EventDigest, PlaybackError, ReplayCheck, ScanningCheck,
    Session, SessionStep, Setup, Side,
};
use strandline_core::{Config, Engine, Events, Journal, Pryj, ReadRequest, Seq, Verdict, View};

use crate::world::{World, at, drain, open, scan_all, small};

/// Adds up the lengths of its commands from a number in its setup. A command emits as many events as its first digit
/// says, each with the sum so far.
#[derive(Debug)]
pub(crate) struct Adder(pub(super) u64);

impl Engine for Adder {
    const ID: &'static str = "adder/1";
    type Error = std::num::ParseIntError;

    fn start(setup: &[u8]) -> Result<Self, Self::Error> {
        std::str::from_utf8(setup).unwrap_or_default().parse().map(Self)
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        for _ in 0..command.first().map_or(0, |digit| digit - b'0') {
            self.0 += command.len() as u64;
            events.push(format!("{} after {seq}", self.0).as_bytes());
        }
    }
}

/// The disks of a session's two journals.
#[derive(Default)]
pub(crate) struct Disks {
    pub(crate) input: World,
    pub(crate) log: World,
}

/// A running session.
pub(crate) struct Studio {
    pub(crate) disks: Disks,
    pub(crate) input: Box<Journal<Pryj>>,
    pub(crate) log: Box<Journal<Pryj>>,
    pub(crate) session: Session<Adder>,
    /// Events that are appended at most, before everything stands still.
    pub(crate) events_left: u64,
}

pub(crate) fn config() -> Config {
    Config { segment_bytes: 400, tail_bytes_max: 300, ..small(2) }
}

impl Disks {
    pub(crate) fn slice(&self, side: Side, read: ReadRequest) -> Bytes {
        let world = match side {
            Side::Input => &self.input,
            Side::Events => &self.log,
        };
        Bytes::copy_from_slice(world.slice(read.segment, read.offset, read.len))
    }

    /// Journals of exactly these records.
    pub(crate) fn of(input: &[&[u8]], log: &[&[u8]]) -> Self {
        let mut disks = Self::default();
        for (world, first, records) in [(&mut disks.input, 0, input), (&mut disks.log, 1, log)] {
            let config = Config { first_seq: Some(Seq::new(first)), ..config() };
            let (mut journal, _) = open::<Pryj>(world, config).unwrap();
            for record in records {
                journal.append(at(1), record).unwrap();
                drain(&mut journal, world);
            }
            crate::world::close(journal, world);
        }
        disks
    }

    /// What the two journals hold.
    pub(crate) fn views(&self) -> [View<Pryj>; 2] {
        [&self.input, &self.log].map(|world| scan_all::<Pryj>(world).0.as_recovered())
    }

    /// The check over views and the one over scans, which say the same.
    pub(crate) fn check(&self) -> Result<Checked, CheckError<<Adder as Engine>::Error>> {
        let [over_views, over_scans] = [self.check_over_views(), self.check_over_scans()];
        assert_eq!(format!("{over_views:?}"), format!("{over_scans:?}"));
        over_scans
    }

    fn check_over_scans(&self) -> Result<Checked, CheckError<<Adder as Engine>::Error>> {
        let (input, log) = (self.input.listing(), self.log.listing());
        let mut check = ScanningCheck::<Adder, _>::new(input, log, EventDigest::default());
        while let Some((side, read)) = check.poll() {
            check.handle_read(side, Ok(self.slice(side, read)));
        }
        let found = check.finish().unwrap();
        assert_eq!((found.input.1.verdict, found.events.1.verdict), (Verdict::Sound, Verdict::Sound));
        found.played.unwrap()
    }

    fn check_over_views(&self) -> Result<Checked, CheckError<<Adder as Engine>::Error>> {
        let ([input, log], mut check) = (self.views(), ReplayCheck::<Adder>::new());
        loop {
            match check.poll(&input, &log)? {
                CheckStep::Read(side, read) => check.handle_read(side, Ok(self.slice(side, read))).unwrap(),
                CheckStep::Same(checked) => return Ok(checked),
            }
        }
    }
}

impl Studio {
    /// A new session with this setup.
    pub(crate) fn begin(setup: &str) -> Self {
        let mut studio = Self::open(Disks::default());
        studio.submit(&Setup { engine: Adder::ID, setup: setup.as_bytes() }.encode());
        studio
    }

    pub(crate) fn open(mut disks: Disks) -> Self {
        let log = Config { first_seq: Some(Seq::new(1)), ..config() };
        let (input, _) = open::<Pryj>(&mut disks.input, config()).unwrap();
        let (log, _) = open::<Pryj>(&mut disks.log, log).unwrap();
        Self { disks, input, log, session: Session::new(), events_left: u64::MAX }
    }

    /// The process ends without a word, and another one opens the session.
    pub(crate) fn restart(self) -> Self {
        Self::open(self.disks)
    }

    pub(crate) fn submit(&mut self, record: &[u8]) {
        self.input.append(at(1), record).unwrap();
        drain(&mut self.input, &mut self.disks.input);
    }

    /// Runs until everything is done, or the events that are left are used up; gives what was answered.
    pub(crate) fn run(&mut self) -> Result<Vec<Answered>, PlaybackError<<Adder as Engine>::Error>> {
        loop {
            match self.session.poll(self.input.view(), self.log.view())? {
                SessionStep::Read(side, read) => {
                    let bytes = self.disks.slice(side, read);
                    self.session.handle_read(side, Ok(bytes)).unwrap();
                }
                SessionStep::Apply => _ = self.session.apply(),
                SessionStep::Append if self.events_left == 0 => break,
                SessionStep::Append => {
                    let (seq, event) = self.session.event().unwrap();
                    assert_eq!(self.log.append(at(1), event).unwrap().seq, seq);
                    self.session.handle_appended();
                    self.events_left -= 1;
                }
                SessionStep::CaughtUp => break,
            }
        }
        drain(&mut self.log, &mut self.disks.log);
        Ok(self.answered())
    }

    pub(crate) fn answered(&mut self) -> Vec<Answered> {
        let end = self.log.view().durable_end();
        std::iter::from_fn(|| self.session.poll_answered(end)).collect()
    }

    /// The recorded events.
    pub(crate) fn events(&self) -> Vec<String> {
        let payloads = crate::world::payloads(&self.disks.log);
        payloads.into_iter().map(|(_, payload)| String::from_utf8(payload).unwrap()).collect()
    }
}
