//! Digesting events on another core: SHA-256 takes as long as all the rest of a check.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use strandline_core::Seq;
use strandline_core::session::{Digester, EventDigest};

/// Bytes that are handed to the thread at once.
const BLOCK_BYTES: usize = 256 * 1024;
/// Blocks on their way to the thread and back, beside the one that is being filled: so much memory, and no more.
const BLOCKS: usize = 2;

/// The digest of what comes in, computed in order by a thread. Events of less than a block need none.
#[derive(Default)]
pub(super) struct DigestThread {
    /// Of all that comes before the block, unless a thread has it.
    digest: EventDigest,
    /// Heads and payloads of events, not digested yet.
    block: Vec<u8>,
    worker: Option<Worker>,
}

/// Blocks go round between the check and the thread.
struct Worker {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<EventDigest>,
}

impl Digester for DigestThread {
    fn take(&mut self, seq: Seq, event: &[u8]) {
        self.push(&EventDigest::head(seq, event));
        self.push(event);
    }

    fn so_far(&mut self) -> [u8; 32] {
        match self.worker.take().map(Worker::join) {
            Some(Ok(digest)) => self.digest = digest,
            Some(Err(panic)) => resume_unwind(panic),
            None => {}
        }
        self.digest.update_encoded(&self.block);
        self.block.clear();
        self.digest.so_far()
    }
}

impl Drop for DigestThread {
    /// No thread outlives the check.
    fn drop(&mut self) {
        drop(self.worker.take().map(Worker::join));
    }
}

impl DigestThread {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            if self.block.len() == BLOCK_BYTES {
                self.hand_over();
            }
            bytes = later;
        }
    }

    fn hand_over(&mut self) {
        if self.worker.is_none() {
            self.worker = Worker::start(self.digest.clone());
        }
        if let Some(worker) = &self.worker {
            self.block = worker.exchange(std::mem::take(&mut self.block));
        } else {
            // No thread is to be had.
            self.digest.update_encoded(&self.block);
            self.block.clear();
        }
    }
}

impl Worker {
    fn start(mut digest: EventDigest) -> Option<Self> {
        let (full, blocks) = sync_channel::<Vec<u8>>(BLOCKS);
        let (done, empty) = sync_channel(BLOCKS);
        for _ in 0..BLOCKS {
            done.send(Vec::with_capacity(BLOCK_BYTES)).ok()?;
        }
        let digests = move || {
            for mut block in blocks {
                digest.update_encoded(&block);
                block.clear();
                // Nobody wants the last ones back.
                let _ = done.send(block);
            }
            digest
        };
        let thread = Builder::new().name("strandline-digest".into()).spawn(digests).ok()?;
        Some(Self { full, empty, thread })
    }

    /// Gives a full block for an empty one. From a thread that has panicked there is none, which is told by joining it.
    fn exchange(&self, full: Vec<u8>) -> Vec<u8> {
        let sent = self.full.send(full);
        sent.ok().and_then(|()| self.empty.recv().ok()).unwrap_or_default()
    }

    fn join(self) -> std::thread::Result<EventDigest> {
        let Self { full, empty, thread } = self;
        drop((full, empty));
        thread.join()
    }
}
