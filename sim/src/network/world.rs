//! The run of a story: hosts on the simulated network, and what befalls them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use strandline_bus::{ConnectionLimits, Server, ServerSettings};
use tokio::sync::Notify;
use turmoil::Sim;

use super::eventsource::EventSource;
use super::follower::Follower;
use super::intruders::{stall, usurp};
use super::ledger::{Kept, SharedLedger};
use super::link::{Connections, Port, SERVER};
use super::panics::Panics;
use super::process::Slot;
use super::publisher::Publisher;
use super::shell::{SimShell, now_ms};
use super::story::{Fault, FollowerKind, FollowerPlan, NetworkStory};
use crate::bus::machine::{Machine, bytes};
use crate::bus::story::Limits;
use crate::disk::{Call, SimDisk, Survivors};
use crate::driven::Stopped;

/// Simulated time goes on in steps of this length.
const TICK: Duration = Duration::from_millis(5);
/// Once nothing is in the way, nothing stands still for so long: longer than a dead connection takes to be noticed, and the longest pause.
const SETTLES_MS: u64 = 400_000;

/// The server's machine, which outlives its process.
struct Machinery {
    disk: SimDisk,
    limits: Limits,
    starts: u64,
    /// The running server is asked to end.
    end: Arc<Notify>,
    /// What the power loss that is on its way leaves.
    survivors: Option<Survivors>,
}

/// A story on its way.
pub(super) struct World<'a> {
    story: &'a NetworkStory,
    sim: Sim<'static>,
    machinery: Rc<RefCell<Machinery>>,
    ledger: SharedLedger,
    /// The clients, by their names.
    clients: Vec<String>,
    /// The processes of clients, and of the server behind them.
    processes: Vec<Slot>,
    is_running: bool,
    /// Whether nothing is in the way any more.
    is_mended: bool,
    /// Who is killed with the next step, and starts again after it or not.
    doomed: BTreeMap<usize, bool>,
}

impl<'a> World<'a> {
    pub(super) fn new(story: &'a NetworkStory, ledger: SharedLedger) -> Self {
        let mut sim = turmoil::Builder::new()
            .rng_seed(story.seed)
            .epoch(UNIX_EPOCH + Duration::from_secs(1_000_000_000))
            .simulation_duration(Duration::from_secs(100_000))
            .tick_duration(TICK)
            .min_message_latency(Duration::ZERO)
            .max_message_latency(Duration::from_millis(story.latency_ms))
            .tcp_capacity(story.segments_in_flight)
            .build();
        let machinery = Rc::new(RefCell::new(Machinery {
            disk: SimDisk::new(usize::try_from(story.limits.sector_bytes).unwrap_or(512)),
            limits: story.limits,
            starts: 0,
            end: Arc::default(),
            survivors: None,
        }));
        let (mut clients, mut processes) = (Vec::new(), Vec::new());
        for (who, plan) in story.followers.iter().enumerate() {
            processes.push(follow(&mut sim, who, plan, &ledger));
            clients.push(plan.name.clone());
        }
        for (number, plan) in story.publishers.iter().enumerate() {
            let name = format!("p{number}");
            let publisher = Publisher::new(number, *plan, ledger.clone());
            processes.push(host(&mut sim, &name, move |connections| publisher.clone().run(connections)));
            clients.push(name);
        }
        let (of_server, for_server) = (Rc::clone(&machinery), ledger.clone());
        processes.push(host(&mut sim, SERVER, move |connections| {
            serve(Rc::clone(&of_server), for_server.clone(), connections)
        }));
        let doomed = BTreeMap::new();
        Self { story, sim, machinery, ledger, clients, processes, is_running: true, is_mended: false, doomed }
    }

    /// Runs the story to its end, and until everybody has what there is.
    pub(super) fn run(mut self) -> Result<(), String> {
        let panics = Panics::watch();
        let mut faults = self.story.faults.iter().copied().peekable();
        loop {
            let now = u64::try_from(self.sim.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.ledger.lock().now = now;
            while let Some((_, fault)) = faults.next_if(|(at, _)| *at <= now) {
                self.befall(fault);
            }
            if now >= self.story.quiet_from && !std::mem::replace(&mut self.is_mended, true) {
                self.mend();
            }
            self.sim.step().map_err(|error| format!("N0: {error}"))?;
            if let Some(panic) = panics.last() {
                return Err(format!("N0: {panic}"));
            }
            self.bury();
            self.notice();
            let mut ledger = self.ledger.lock();
            ledger.statistics.elapsed_ms = now;
            if let Some(broken) = ledger.broken() {
                return Err(broken.clone());
            }
            if now > self.story.quiet_from && ledger.behind().is_none() {
                return Ok(());
            }
            if now > self.story.quiet_from.max(ledger.moved_at) + SETTLES_MS {
                ledger.never_ends();
            }
        }
    }

    /// A server's machine that has lost its power in the middle of a step, or whose process has stopped.
    fn notice(&mut self) {
        let (is_crashed, survivors) = {
            let machinery = self.machinery.borrow();
            (machinery.disk.is_crashed(), machinery.survivors)
        };
        if is_crashed && self.is_running {
            self.lose_power(survivors.unwrap_or(Survivors::None));
        }
    }

    fn befall(&mut self, fault: Fault) {
        let mut ledger = self.ledger.lock();
        ledger.statistics.faults += 1;
        ledger.note(format_args!("{fault:?}"));
        drop(ledger);
        match fault {
            Fault::Partition { client } => self.sim.partition(SERVER, &*self.clients[client]),
            Fault::PartitionOneWay { client, to_server: true } => {
                self.sim.partition_oneway(&*self.clients[client], SERVER);
            }
            Fault::PartitionOneWay { client, .. } => {
                self.sim.partition_oneway(SERVER, &*self.clients[client]);
            }
            Fault::Hold { client } => self.sim.hold(SERVER, &*self.clients[client]),
            Fault::PartitionAll => self.clients.iter().for_each(|name| self.sim.partition(SERVER, &**name)),
            Fault::HoldAll => self.clients.iter().for_each(|name| self.sim.hold(SERVER, &**name)),
            Fault::Repair => self.repair(),
            Fault::Kill => self.doom(self.clients.len(), false),
            Fault::PowerLoss { after: 0, survivors } => self.lose_power(survivors),
            Fault::PowerLoss { after, survivors } => {
                let mut machinery = self.machinery.borrow_mut();
                machinery.survivors = Some(survivors);
                machinery.disk.crash_after(after);
            }
            Fault::End => self.machinery.borrow().end.notify_one(),
            Fault::SyncFails { survivors } => {
                let machinery = self.machinery.borrow();
                machinery.disk.plan_fault(Call::Sync, 0, false, crate::disk::Fault::Error(survivors));
            }
            Fault::Start => self.start(),
            Fault::RestartClients => (0..self.clients.len()).for_each(|client| self.doom(client, true)),
            Fault::KillClient { client } => self.doom(client, false),
            Fault::StartClient { client } => self.start_client(client),
            Fault::NoFiles(true) => {
                let disk = &self.machinery.borrow().disk;
                disk.plan_fault(Call::Create, 0, true, crate::disk::Fault::NoFile);
            }
            Fault::NoFiles(false) => self.machinery.borrow().disk.clear_faults(),
            Fault::Space(left) => self.limit_space(left),
        }
    }

    fn repair(&self) {
        for name in &self.clients {
            self.sim.release(SERVER, &**name);
            self.sim.repair(SERVER, &**name);
        }
    }

    /// Nothing is to come any more of what was planned.
    fn calm_disk(&self) {
        let disk = &self.machinery.borrow().disk;
        disk.clear_faults();
        disk.crash_after(u64::from(u32::MAX));
    }

    fn limit_space(&self, left: Option<u64>) {
        let disk = &self.machinery.borrow().disk;
        disk.set_capacity(left.map(|left| bytes(disk) + left));
    }

    /// Kills a process with the next step.
    fn doom(&mut self, who: usize, restarts: bool) {
        self.processes[who].kill();
        *self.doomed.entry(who).or_default() |= restarts;
    }

    /// Takes away what is left of those who were killed, and starts those again who are to go on.
    fn bury(&mut self) {
        for (who, restarts) in std::mem::take(&mut self.doomed) {
            match self.clients.get(who) {
                Some(name) => {
                    self.sim.crash(&**name);
                    if restarts {
                        self.sim.bounce(&**name);
                    }
                }
                None => {
                    self.lose(None);
                    if restarts {
                        self.start();
                    }
                }
            }
        }
    }

    /// What the process had is gone; what the disk has stays, as far as it survives.
    fn lose(&mut self, loss: Option<Survivors>) {
        if !std::mem::replace(&mut self.is_running, false) {
            return;
        }
        self.sim.crash(SERVER);
        let mut machinery = self.machinery.borrow_mut();
        let state = machinery.disk.state();
        machinery.disk = SimDisk::from_state(match loss {
            Some(survivors) => state.power_loss(survivors),
            None => state,
        });
        machinery.survivors = None;
    }

    /// Nobody is told that the connections are gone.
    fn lose_power(&mut self, survivors: Survivors) {
        self.ledger.lock().note(format_args!("the power is gone, {survivors} survive"));
        self.clients.iter().for_each(|name| self.sim.partition(SERVER, &**name));
        self.lose(Some(survivors));
        self.doomed.remove(&self.clients.len());
        self.repair();
    }

    /// Starts the server, which may be running.
    fn start(&mut self) {
        if self.is_running {
            // It has stopped, or is still at it: it ends like a killed one.
            return self.doom(self.clients.len(), true);
        }
        self.machinery.borrow().disk.clear_faults();
        self.machinery.borrow_mut().end = Arc::default();
        self.is_running = true;
        self.sim.bounce(SERVER);
    }

    fn start_client(&mut self, client: usize) {
        if let Some(restarts) = self.doomed.get_mut(&client) {
            *restarts = true;
        } else if !self.sim.is_host_running(&*self.clients[client]) {
            self.sim.bounce(&*self.clients[client]);
        }
    }

    /// From now on nothing is in the way.
    fn mend(&mut self) {
        self.ledger.lock().note("nothing is in the way any more");
        self.repair();
        self.limit_space(None);
        self.calm_disk();
        // One that runs has to go on from where it is.
        if !self.is_running {
            self.start();
        }
        for client in 0..self.clients.len() {
            self.start_client(client);
        }
    }
}

/// The server, from its start on.
async fn serve(
    machinery: Rc<RefCell<Machinery>>,
    ledger: SharedLedger,
    connections: Connections,
) -> turmoil::Result {
    let (disk, limits, starts, end) = {
        let mut machinery = machinery.borrow_mut();
        machinery.starts += 1;
        (machinery.disk.clone(), machinery.limits, machinery.starts, Arc::clone(&machinery.end))
    };
    // The wall clock of a machine may be another one after each start.
    let wall_offset = i64::try_from(starts * 7_919 % 60_000).unwrap_or(0) - 30_000;
    let machine = match Machine::open(disk.clone(), limits, now_ms(), wall_offset) {
        Ok(machine) => machine,
        // A power loss that was to come while it ran comes while it starts.
        Err(_) if disk.is_crashed() => return std::future::pending().await,
        // Nor does one start whose disk fails: it is tried again.
        Err(_) if disk.take_failure() => return Ok(()),
        Err(Stopped(why)) => return Err(format!("the bus does not open: {why}").into()),
    };
    ledger.lock().starts(&Kept::read(&machine, 0));
    let shell = SimShell::new(machine, disk, ledger, limits.turns ^ starts);
    let drives = tokio::spawn(shell.clone().drive());
    let server = Server::new(shell.clone(), ServerSettings::default()).await?;
    let port = Port::bind(connections).await?;
    server.serve(port, ConnectionLimits::default(), async move { end.notified().await }).await;
    shell.close();
    drives.abort();
    Ok(())
}

/// A host whose process does this.
fn host<S: Future<Output = turmoil::Result> + 'static>(
    sim: &mut Sim<'static>,
    name: &str,
    software: impl Fn(Connections) -> S + 'static,
) -> Slot {
    let slot = Slot::default();
    let place = slot.clone();
    sim.host(name, move || {
        let process = place.start();
        let software = software(process.connections.clone());
        process.run(software)
    });
    slot
}

/// Has a subscriber follow.
fn follow(sim: &mut Sim<'static>, who: usize, plan: &FollowerPlan, ledger: &SharedLedger) -> Slot {
    let name = &*plan.name;
    match plan.kind {
        FollowerKind::Client => {
            let follower = Follower::new(who, plan.clone(), ledger.clone());
            host(sim, name, move |connections| follower.clone().run(connections))
        }
        FollowerKind::EventSource => {
            let source = EventSource::new(who, plan.clone(), ledger.clone());
            host(sim, name, move |connections| source.clone().run(connections))
        }
        FollowerKind::Staller => host(sim, name, stall),
        FollowerKind::Usurper => {
            let plan = plan.clone();
            host(sim, name, move |connections| usurp(plan.clone(), connections))
        }
    }
}
