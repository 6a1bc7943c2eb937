//! A journal over the simulated disk, driven one effect at a time.

use std::sync::Arc;

use bytes::Bytes;
use strandline::{Performer, files_of, recover};
use strandline_core::{
    Completion, Config, Cursor, Framing, Journal, JournalName, Output, ReadUpTo, Replay, Seq,
};

use crate::disk::SimDisk;

/// A journal and who performs its effects.
pub(crate) struct Driven<F: Framing> {
    pub(crate) journal: Journal<F>,
    performer: Performer<SimDisk>,
}

/// Something stopped: the disk failed, or refused to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stopped(pub(crate) String);

pub(crate) fn stopped(error: impl ToString) -> Stopped {
    Stopped(error.to_string())
}

impl<F: Framing> Driven<F> {
    pub(crate) fn open(disk: &SimDisk, name: &str, config: Config) -> Result<Self, Stopped> {
        let name = JournalName::parse(name).map_err(stopped)?;
        let performer = Performer::new(Arc::new(disk.clone()), name.clone());
        let listing = files_of(disk, &name).map_err(stopped)?.listing;
        let (journal, _) = recover::<F, _>(&performer, config, listing).map_err(stopped)?;
        Ok(Self { journal, performer })
    }

    /// Performs one effect, or gives one thing that was told. Gives nothing when nothing is left.
    pub(crate) fn step(&mut self) -> Result<Option<Option<Output>>, Stopped> {
        Ok(match self.journal.poll_output() {
            None => None,
            Some(Output::Effect { id, effect }) => {
                let result = self.performer.perform(&effect);
                self.journal.handle_completion(Completion { id, result });
                Some(None)
            }
            Some(Output::Poisoned(poison)) => return Err(stopped(poison)),
            Some(told) => Some(Some(told)),
        })
    }

    /// Ends what was begun and lies still.
    pub(crate) fn close(&mut self) -> Result<(), Stopped> {
        self.journal.close();
        while self.step()?.is_some() {}
        Ok(())
    }

    pub(crate) fn read(&self, request: strandline_core::ReadRequest) -> Result<Bytes, Stopped> {
        let mut buffer = vec![0; request.len];
        let n = self.performer.read(request, &mut buffer).map_err(stopped)?;
        buffer.truncate(n);
        Ok(buffer.into())
    }

    /// Every durable record from `from` on.
    pub(crate) fn each(
        &self,
        from: Seq,
        mut take: impl FnMut(F::Record<'_>) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let mut cursor = Cursor::<F>::new(from, ReadUpTo::Durable);
        loop {
            match cursor.poll(self.journal.view()) {
                Replay::Records(batch) => batch.records().try_for_each(&mut take)?,
                Replay::Read(request) => cursor.handle_read(Ok(self.read(request)?)).map_err(stopped)?,
                Replay::Trimmed { .. } => {}
                Replay::CaughtUp => return Ok(()),
                Replay::Beyond { end } => return Err(Stopped(format!("reading began beyond {end}"))),
            }
        }
    }
}
