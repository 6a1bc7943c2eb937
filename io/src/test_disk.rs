//! For tests: a real directory whose calls are written down, and fail, stop or panic where a test wants.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use tempfile::TempDir;

use crate::StdDisk;
use crate::disk::{Access, Disk, Entry};

/// What happens to the next calls whose line in the log begins with some text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They fail with this error number.
    Error(i32),
    /// They write only this many bytes.
    Short(usize),
    Panic,
}

/// The error number of a full disk, of a process with too many open files, and of a broken disk.
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const EIO: i32 = 5;

/// What happens before a call.
type Hook = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
pub(crate) struct TestDisk {
    shared: Arc<Shared>,
}

struct Shared {
    inner: StdDisk,
    root: TempDir,
    log: Mutex<Vec<String>>,
    faults: Mutex<Vec<(String, Fault, usize)>>,
    syncs: AtomicUsize,
    gate: Mutex<Gate>,
    opened: Condvar,
    hook: Mutex<Option<(String, Hook)>>,
}

/// Holds syncs back, so that a test can look at what happens meanwhile.
#[derive(Default)]
struct Gate {
    shut: bool,
    waiting: usize,
}

pub(crate) struct TestFile {
    name: Mutex<String>,
    file: std::fs::File,
}

impl TestDisk {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let inner = StdDisk::create(root.path()).unwrap();
        let shared = Shared {
            inner,
            root,
            log: Mutex::default(),
            faults: Mutex::default(),
            syncs: AtomicUsize::new(0),
            gate: Mutex::default(),
            opened: Condvar::new(),
            hook: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.shared.root.path()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap()
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    /// The names in the directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.shared.inner.list().unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }

    /// The calls since the last time, without reads and openings, and with zeros to be told from data.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.log.lock().unwrap())
    }

    /// The next `count` calls that begin with `call` ("write a-0", "sync", ...) meet this fault.
    pub(crate) fn inject(&self, call: &str, fault: Fault, count: usize) {
        self.shared.faults.lock().unwrap().push((call.to_string(), fault, count));
    }

    pub(crate) fn syncs(&self) -> usize {
        self.shared.syncs.load(Ordering::SeqCst)
    }

    pub(crate) fn hold_syncs(&self) {
        self.shared.gate.lock().unwrap().shut = true;
    }

    pub(crate) fn release_syncs(&self) {
        self.shared.gate.lock().unwrap().shut = false;
        self.shared.opened.notify_all();
    }

    /// Waits until a sync is held back.
    pub(crate) fn wait_for_held_sync(&self) {
        let gate = self.shared.gate.lock().unwrap();
        drop(self.shared.opened.wait_while(gate, |gate| gate.waiting == 0).unwrap());
    }

    /// Has something happen just before the next call that begins with `call`; "open" is one here as well.
    pub(crate) fn before_next(&self, call: &str, happens: impl FnOnce() + Send + 'static) {
        *self.shared.hook.lock().unwrap() = Some((call.to_string(), Box::new(happens)));
    }

    fn run_hook(&self, line: &str) {
        let hook = self.shared.hook.lock().unwrap().take_if(|(call, _)| line.starts_with(&**call));
        if let Some((_, happens)) = hook {
            happens();
        }
    }

    fn pass_gate(&self) {
        let mut gate = self.shared.gate.lock().unwrap();
        gate.waiting += 1;
        self.shared.opened.notify_all();
        gate = self.shared.opened.wait_while(gate, |gate| gate.shut).unwrap();
        gate.waiting -= 1;
    }

    fn call(&self, line: String) -> io::Result<Option<usize>> {
        self.run_hook(&line);
        let fault = self.next_fault(&line);
        self.shared.log.lock().unwrap().push(line);
        match fault {
            Some(Fault::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Fault::Panic) => panic!("injected"),
            Some(Fault::Short(len)) => Ok(Some(len)),
            None => Ok(None),
        }
    }

    fn next_fault(&self, line: &str) -> Option<Fault> {
        let mut faults = self.shared.faults.lock().unwrap();
        let index = faults.iter().position(|(call, _, count)| *count > 0 && line.starts_with(call))?;
        let (_, fault, count) = &mut faults[index];
        *count -= 1;
        Some(*fault)
    }
}

impl TestFile {
    fn name(&self) -> String {
        self.name.lock().unwrap().clone()
    }
}

impl Disk for TestDisk {
    type File = TestFile;

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.shared.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<TestFile> {
        self.call(format!("create {name}"))?;
        let file = self.shared.inner.create(name)?;
        Ok(TestFile { name: Mutex::new(name.to_string()), file })
    }

    fn open(&self, name: &str, access: Access) -> io::Result<TestFile> {
        let line = format!("open {name}");
        self.run_hook(&line);
        if let Some(Fault::Error(code)) = self.next_fault(&line) {
            return Err(io::Error::from_raw_os_error(code));
        }
        let file = self.shared.inner.open(name, access)?;
        Ok(TestFile { name: Mutex::new(name.to_string()), file })
    }

    fn len(&self, file: &TestFile) -> io::Result<u64> {
        self.shared.inner.len(&file.file)
    }

    fn read_at(&self, file: &TestFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.shared.inner.read_at(&file.file, offset, buffer)
    }

    fn write_at(&self, file: &TestFile, offset: u64, data: &[u8]) -> io::Result<usize> {
        let what = if data.iter().all(|byte| *byte == 0) { "zeros" } else { "write" };
        let short = self.call(format!("{what} {} {offset}+{}", file.name(), data.len()))?;
        let data = &data[..short.unwrap_or(data.len())];
        self.shared.inner.write_at(&file.file, offset, data)
    }

    fn sync(&self, file: &TestFile) -> io::Result<()> {
        self.shared.syncs.fetch_add(1, Ordering::SeqCst);
        self.pass_gate();
        self.call(format!("sync {}", file.name()))?;
        self.shared.inner.sync(&file.file)
    }

    fn set_len(&self, file: &TestFile, len: u64) -> io::Result<()> {
        self.call(format!("set_len {} {len}", file.name()))?;
        self.shared.inner.set_len(&file.file, len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call(format!("rename {from} {to}"))?;
        self.shared.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(format!("remove {name}"))?;
        self.shared.inner.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.call("sync_directory".to_string())?;
        self.shared.inner.sync_directory()
    }
}
