//! The handle on an open journal.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use strandline_core::{
    Config, Framing, InvalidName, JournalName, ReadUpTo, RecoveryError, Report, Seq, Shortage, View,
};

use crate::append_all::{AppendAllError, append_all};
use crate::backup::{BackupError, BackupReport};
use crate::clock::{salt_seed, timestamp};
use crate::commit::Outcome;
use crate::commit_counts::CommitCounts;
use crate::directory::{AlreadyOpen, Directory};
use crate::disk::Disk;
use crate::error::{AppendError, FlushError, Poisoned};
use crate::housekeeping;
use crate::listing::{ListingError, files_to_write};
use crate::perform::Performer;
use crate::reader::Reader;
use crate::recover::recover;
use crate::shared::{Parked, Shared, Watch};
use crate::std_disk::StdDisk;
use crate::sync::Mutex;
use crate::sync::thread::{self, JoinHandle, ThreadId};
use crate::ticket::Ticket;

/// An open journal. Cloning gives another handle on the same one; handles can be used from many threads.
///
/// Dropping the last handle closes the journal as [`close`](Self::close) does, and says nothing if that fails:
/// what was acknowledged is safe anyway, a clean close only makes the next open quicker and
/// the file shorter. It blocks until everything accepted is written.
pub struct Journal<F: Framing, D: Disk = StdDisk> {
    handle: Arc<Handle<F, D>>,
}

struct Handle<F: Framing, D: Disk> {
    shared: Arc<Shared<F, D>>,
    name: JournalName,
    /// The housekeeping thread, and its handle until the close.
    housekeeping: ThreadId,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why a journal was not opened. Nothing that was in it is lost or changed by that.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name is no journal's name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// It is open already.
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The directory's files cannot be told apart.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// The journal is damaged, or the disk failed.
    #[error("the journal {journal} cannot be opened: {source}")]
    Recovery {
        /// Which journal.
        journal: JournalName,
        /// Why.
        source: RecoveryError,
    },
    /// The system gave no thread.
    #[error("no thread could be started for the journal: {0}")]
    Thread(std::io::Error),
}

/// The default settings of a journal that is opened now, with a random seed for its salts.
#[must_use]
pub fn config() -> Config {
    Config::new(salt_seed(), timestamp())
}

impl<D: Disk> Directory<D> {
    /// Opens a journal for writing: verifies all of it, cuts a torn tail, and says what it found. A journal
    /// that does not exist is created. Settings are changed from [`config`].
    ///
    /// # Errors
    /// [`OpenError`]. A damaged journal is refused and not a byte of it changed.
    ///
    /// # Panics
    /// If the settings ask for a format version other than 1 and 2, or a first number that no record can have.
    pub fn journal<F: Framing>(
        &self,
        name: &str,
        config: Config,
    ) -> Result<(Journal<F, D>, Report), OpenError> {
        Journal::open(self, name, config)
    }
}

impl<F: Framing, D: Disk> Journal<F, D> {
    /// The same as [`Directory::journal`].
    ///
    /// # Errors
    /// [`OpenError`]. A damaged journal is refused and not a byte of it changed.
    ///
    /// # Panics
    /// If the settings ask for a format version other than 1 and 2, or a first number that no record can have.
    pub fn open(directory: &Directory<D>, name: &str, config: Config) -> Result<(Self, Report), OpenError> {
        let name = JournalName::parse(name)?;
        let lease = directory.lease(&name)?;
        let performer = Performer::new(Arc::clone(directory.disk()), name.clone());
        let listing = files_to_write(&**directory.disk(), &name)?.listing;
        let (core, report) = recover::<F, D>(&performer, config.clone(), listing)
            .map_err(|source| OpenError::Recovery { journal: name.clone(), source })?;
        let shared = Arc::new(Shared::new(core, performer, lease, &config));
        let for_thread = Arc::clone(&shared);
        let thread = thread::spawn(format!("strandline-{name}"), move || housekeeping::run(&for_thread))
            .map_err(OpenError::Thread)?;
        let (housekeeping, thread) = (thread.thread().id(), Mutex::new(Some(thread)));
        Ok((Self { handle: Arc::new(Handle { shared, name, housekeeping, thread }) }, report))
    }

    /// Appends a record and blocks until it is acknowledged: by default until it is durable, under a
    /// weaker [`SyncPolicy`](strandline_core::SyncPolicy) until the operating system has it. Where too much
    /// waits already ([`Config::pending_bytes_max`]) it first blocks for room.
    ///
    /// Returns the record's sequence number. Calls of several threads share commits.
    ///
    /// # Errors
    /// [`AppendError`]. Only after [`AppendError::Poisoned`] it is open whether the record is in the journal.
    pub fn append(&self, draft: F::Draft<'_>) -> Result<Seq, AppendError> {
        self.append_expecting(None, draft)
    }

    /// [`append`](Self::append), but only as record `seq`. Whoever has records in flight that must not be
    /// overtaken says with each one which number it is to get: after a lack of space the numbers of
    /// what was lost are given out again, and what follows would otherwise stand in their place.
    ///
    /// # Errors
    /// [`AppendError::NotNext`] if the next number is another one; else as for [`append`](Self::append).
    pub fn append_at(&self, seq: Seq, draft: F::Draft<'_>) -> Result<Seq, AppendError> {
        self.append_expecting(Some(seq), draft)
    }

    fn append_expecting(&self, seq: Option<Seq>, draft: F::Draft<'_>) -> Result<Seq, AppendError> {
        let shared = self.shared();
        let mut state = shared.lock();
        loop {
            match state.append_expecting(seq, draft) {
                Ok((seq, commit)) => return shared.wait(state, &commit).into_result(seq),
                Err(AppendError::Full { pending, max }) => {
                    // Without a commit to wait for, the record alone is beyond the limit.
                    let Some(oldest) = state.commits.oldest().cloned() else {
                        return Err(AppendError::Full { pending, max });
                    };
                    // However it ends, the next try says what is to be said.
                    let _ = shared.wait(state, &oldest);
                    state = shared.lock();
                }
                Err(refused) => return Err(refused),
            }
        }
    }

    /// Appends records in order and blocks until all of them are acknowledged. It is quicker than one
    /// [`append`](Self::append) after the other by far, and than tickets by some; records of others may come between.
    /// The drafts are taken while the journal is locked: what gives them must not use it.
    ///
    /// Returns the sequence number of the last one; none if there were no drafts.
    ///
    /// # Errors
    /// [`AppendAllError`] says how many of them, from the first on, were acknowledged before it.
    pub fn append_all<'a>(
        &self,
        drafts: impl IntoIterator<Item = F::Draft<'a>>,
    ) -> Result<Option<Seq>, AppendAllError> {
        append_all(self.shared(), drafts)
    }

    /// Appends a record without waiting. It is committed soon, also if nobody ever waits; the ticket
    /// says when and how.
    ///
    /// # Errors
    /// [`AppendError`]; [`AppendError::Full`] where [`append`](Self::append) would block for room.
    pub fn append_nowait(&self, draft: F::Draft<'_>) -> Result<Ticket<F, D>, AppendError> {
        self.append_nowait_expecting(None, draft)
    }

    /// [`append_nowait`](Self::append_nowait), but only as record `seq`; see [`append_at`](Self::append_at).
    ///
    /// # Errors
    /// [`AppendError::NotNext`] if the next number is another one; else as for
    /// [`append_nowait`](Self::append_nowait).
    pub fn append_nowait_at(&self, seq: Seq, draft: F::Draft<'_>) -> Result<Ticket<F, D>, AppendError> {
        self.append_nowait_expecting(Some(seq), draft)
    }

    fn append_nowait_expecting(
        &self,
        seq: Option<Seq>,
        draft: F::Draft<'_>,
    ) -> Result<Ticket<F, D>, AppendError> {
        let shared = self.shared();
        let mut state = shared.lock();
        let (seq, commit) = state.append_expecting(seq, draft)?;
        if !state.leading && (state.parked != Parked::Linger || state.commits.has_full_one()) {
            shared.wake_housekeeping(&mut state);
        }
        drop(state);
        Ok(Ticket::new(Arc::clone(shared), commit, seq))
    }

    /// Blocks until everything appended so far, by anybody, is durable, whatever the sync policy.
    ///
    /// # Errors
    /// [`FlushError`].
    pub fn flush(&self) -> Result<(), FlushError> {
        let shared = self.shared();
        let mut state = shared.lock();
        if let Some(newest) = state.commits.newest().cloned() {
            match shared.wait(state, &newest) {
                Outcome::Acknowledged => {}
                Outcome::Void(Shortage::Space) => return Err(FlushError::NoSpace),
                Outcome::Void(Shortage::Files) => return Err(FlushError::TooManyFiles),
                Outcome::Poisoned(poisoned) => return Err(poisoned.into()),
            }
            state = shared.lock();
        }
        if let Some(poisoned) = state.poisoned() {
            return Err(poisoned.into());
        }
        let written = state.written;
        if state.durable >= written || state.closed {
            return Ok(());
        }
        state.core()?.request_sync();
        let durable = state.watch(Watch::Durable(written));
        match shared.wait(state, &durable) {
            Outcome::Poisoned(poisoned) => Err(poisoned.into()),
            Outcome::Acknowledged | Outcome::Void(_) => Ok(()),
        }
    }

    /// Gives up every record before `seq`: the logical start moves at once and never back; segments that lie
    /// wholly before it are removed in the background, oldest first. What is not durable yet is kept, and
    /// a closed journal is left as it is.
    ///
    /// # Errors
    /// [`Poisoned`] if the journal stopped.
    pub fn trim_to(&self, seq: Seq) -> Result<(), Poisoned> {
        let shared = self.shared();
        let mut state = shared.lock();
        if let Some(poisoned) = state.poisoned() {
            return Err(poisoned);
        }
        state.core()?.trim_to(seq);
        state.dirty = true;
        if !state.leading {
            shared.wake_housekeeping(&mut state);
        }
        Ok(())
    }

    /// Writes what was accepted and a closing mark, cuts the reserved space off, and syncs. Then the
    /// name can be opened again. Other handles stay valid: they refuse appends, and still read.
    ///
    /// # Errors
    /// [`Poisoned`] if the journal stopped; it is closed all the same.
    pub fn close(&self) -> Result<(), Poisoned> {
        self.handle.close()
    }

    /// A reader whose first record is `from`, which follows the journal's end.
    #[must_use]
    pub fn reader(&self, from: Seq, until: ReadUpTo) -> Reader<F, D> {
        Reader::new(Arc::clone(self.shared()), from, until)
    }

    /// Copies the journal to a new directory, up to what is durable now and no further, beside running
    /// appends. The copy opens as a sound journal.
    ///
    /// ```
    /// use strandline::{Directory, JournalName, Pryj, ScanOptions, config, inspect};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let root = tempfile::tempdir()?;
    /// let directory = Directory::open(root.path().join("live"))?;
    /// let (journal, _) = directory.journal::<Pryj>("log", config())?;
    /// journal.append(b"first")?;
    /// let copy = root.path().join("copy");
    /// journal.backup(&copy)?;
    /// let found = inspect::<Pryj>(&copy, &JournalName::parse("log")?, ScanOptions::default())?;
    /// assert_eq!((found.report.records(), found.report.unproven()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn backup(&self, destination: impl AsRef<Path>) -> Result<BackupReport, BackupError> {
        crate::backup::backup(self.shared(), destination.as_ref())
    }

    /// The segments and watermarks as they are now.
    #[must_use]
    pub fn view(&self) -> View<F> {
        self.shared().lock().view().clone()
    }

    /// Every record before this is durable.
    #[must_use]
    pub fn durable_end(&self) -> Seq {
        self.shared().lock().view().durable_end()
    }

    /// The commits since it was opened.
    #[must_use]
    pub fn commit_counts(&self) -> CommitCounts {
        self.shared().lock().counted.counts
    }

    /// The lowest sequence number that is kept.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.shared().lock().view().first()
    }

    /// The number that the next record will get, unless somebody else appends first.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.shared().lock().next_seq()
    }

    /// Why the journal stopped, if it did.
    #[must_use]
    pub fn poisoned(&self) -> Option<Poisoned> {
        self.shared().lock().poisoned()
    }

    /// The journal's name.
    #[must_use]
    pub fn name(&self) -> &JournalName {
        &self.handle.name
    }

    /// Whether the housekeeping thread waits for nothing but to be woken.
    #[cfg(test)]
    pub(crate) fn is_asleep(&self) -> bool {
        self.shared().lock().parked == Parked::Forever
    }

    /// Whether a close waits for nothing but what the housekeeping thread does in the background.
    #[cfg(test)]
    pub(crate) fn close_waits_for_background(&self) -> bool {
        let state = self.shared().lock();
        state.closing && !state.leading && !state.has_work()
    }

    /// Whether this thread can wait for what the journal does. One that does it itself cannot, which wakes tasks in the
    /// middle of it.
    pub(crate) fn can_be_waited_for(&self) -> bool {
        !self.handle.is_housekeeping() && !self.handle.is_led_by_us()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<F, D>> {
        &self.handle.shared
    }
}

impl<F: Framing, D: Disk> fmt::Debug for Journal<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, durable_end) = (self.first(), self.durable_end());
        let mut out = f.debug_struct("Journal");
        out.field("name", &self.handle.name).field("first", &first).field("durable_end", &durable_end);
        out.finish_non_exhaustive()
    }
}

impl<F: Framing, D: Disk> Clone for Journal<F, D> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<F: Framing, D: Disk> Handle<F, D> {
    fn close(&self) -> Result<(), Poisoned> {
        if self.is_housekeeping() || self.is_led_by_us() {
            self.close_later();
            return Ok(());
        }
        let result = self.finish();
        // Who finds it closed already still waits until the thread is gone and the name is free.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // If it panicked, that was told as poison.
            let _ = thread.join();
        }
        self.shared.end_lease();
        result
    }

    /// Whether this is the housekeeping thread itself: it wakes tasks, and what a task's waker drops may
    /// be the last handle. It cannot wait for itself, and somebody else's close may be waiting for it already.
    fn is_housekeeping(&self) -> bool {
        self.housekeeping == thread::current().id()
    }

    /// Whether this thread is in the middle of leading: the same can happen to it, while it waits for a ticket.
    fn is_led_by_us(&self) -> bool {
        self.shared.lock().leader == Some(thread::current().id())
    }

    /// Has the housekeeping thread close the journal once it is done with what it is doing.
    fn close_later(&self) {
        let mut state = self.shared.lock();
        state.closing = true;
        state.dirty = true;
        if let Ok(core) = state.core() {
            core.close();
        }
    }

    fn finish(&self) -> Result<(), Poisoned> {
        let mut state = self.shared.lock();
        if let Some(poisoned) = state.poisoned() {
            self.shared.wake_housekeeping(&mut state);
            return Err(poisoned);
        }
        if state.closed {
            return Ok(());
        }
        state.closing = true;
        state.core()?.close();
        let closed = state.watch(Watch::Closed);
        match self.shared.wait(state, &closed) {
            Outcome::Poisoned(poisoned) => Err(poisoned),
            Outcome::Acknowledged | Outcome::Void(_) => Ok(()),
        }
    }
}

impl<F: Framing, D: Disk> Drop for Handle<F, D> {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.close();
    }
}
