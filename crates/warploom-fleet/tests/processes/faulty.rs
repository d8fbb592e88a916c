//! Work that goes wrong in every way there is, as it is told.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, getpid, kill_process, kill_process_group,
    pidfd_getfd, pidfd_open,
};
use serde::{Deserialize, Serialize};
use warploom_fleet::journal::{Event, read};
use warploom_fleet::worker::Batches;
use warploom_fleet::{Assigned, Batch, Refusal, Trouble, Work};

use crate::marks::{leave, wait_for};
use crate::memory::Memory;

/// Workers of a slot do no record until another process has left a mark: what a test expects of one slot
/// must have happened before the other has done everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hold {
    /// Whose workers wait.
    pub(crate) slot: usize,
    /// For which mark.
    pub(crate) until: String,
    /// Has whoever left it to be dead and buried, so that its coordinator has heard of it?
    pub(crate) buried: bool,
}

/// The variables that say which device may be used.
pub(crate) const MASKS: [&str; 8] = [
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "ZE_FLAT_DEVICE_HIERARCHY",
    "ONEAPI_DEVICE_SELECTOR",
];

/// Those of them that this process has.
fn masks() -> String {
    let all: Vec<(String, String)> = std::env::vars().collect();
    let own = MASKS.iter().filter_map(|name| {
        let (name, value) = all.iter().find(|(known, _)| known == name)?;
        Some(format!("{name}={value}"))
    });
    own.collect::<Vec<_>>().join(" ")
}

/// A process that a worker starts and that never ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Helper {
    #[default]
    None,
    /// Which a worker that crashes leaves behind, for its coordinator to end.
    Left,
    /// Which goes with a worker that crashes or ends: if the coordinator is killed in that moment, nobody is left
    /// who could end it.
    Taken,
}

/// What goes wrong, and when.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// A folder in which workers leave marks: their process numbers, and what happens only once.
    pub(crate) marks: PathBuf,
    /// Microseconds that a record takes.
    pub(crate) service: u64,
    /// How many times slower each slot is.
    pub(crate) slow: Vec<u64>,
    /// Records that kill their worker, always.
    pub(crate) poison: Vec<u64>,
    /// Records that kill their worker the first time.
    pub(crate) kill_once: Vec<u64>,
    /// Records over which their worker hangs.
    pub(crate) hang: Vec<u64>,
    /// Records over which their worker becomes one that cannot be killed, the first time.
    pub(crate) freeze: Vec<u64>,
    /// Bytes that a worker needs of its device; the file `free` beside the marks says how many there are.
    pub(crate) needs: u64,
    /// The device's memory, of which workers take their part.
    pub(crate) memory: Option<Memory>,
    /// Do workers answer with the variables that say which device may be used?
    pub(crate) tells_masks: bool,
    /// Records over which their worker loses its device, always.
    pub(crate) lose: Vec<u64>,
    /// The run's journal, if workers are to look whether their batches are in there.
    pub(crate) journal: Option<PathBuf>,
    /// Records over which their worker says something senseless.
    pub(crate) garbage: Vec<u64>,
    /// Records that the work fails.
    pub(crate) refuse: Vec<u64>,
    /// Records that are left without an answer.
    pub(crate) forget: Vec<u64>,
    /// Records over which the work fails the whole batch.
    pub(crate) spoil: Vec<u64>,
    /// The largest batch that fits; 0 is any.
    pub(crate) fits: usize,
    /// Slots, and how often each loses its device.
    pub(crate) sticky: Vec<(usize, usize)>,
    /// Slots on which a probe fails so often.
    pub(crate) failing_probes: Vec<(usize, usize)>,
    /// Slots whose workers do not start.
    pub(crate) broken: Vec<usize>,
    /// Slots whose workers hang while they start, as in a driver that does not answer.
    pub(crate) stuck: Vec<usize>,
    /// Slots whose workers see another device.
    pub(crate) elsewhere: Vec<usize>,
    /// Who waits for whom.
    pub(crate) holds: Vec<Hold>,
    /// Does no slot do its first record before so many have begun?
    pub(crate) meet: usize,
    /// Does every worker take batches while it is at others, and end them in any order?
    pub(crate) overlap: bool,
    /// Do workers survive SIGTERM?
    pub(crate) ignore_term: bool,
    /// Does every worker start a process of its own?
    pub(crate) helper: Helper,
    /// How long answers are, in bytes; 0 is as long as the record.
    pub(crate) answer: usize,
    /// Of a thousand batches, how many end in a kill, a hang, no memory, a lost device; and the seed.
    pub(crate) chances: Option<([u64; 4], u64)>,
}

/// The work.
#[derive(Clone)]
pub(crate) struct Faulty {
    plan: Plan,
    slot: usize,
    device: String,
    random: u64,
    /// Has it what it needs of the device's memory?
    has_room: bool,
    /// The process that it ends before it ends.
    helper: Option<Pid>,
}

impl Faulty {
    /// True the first `times` that this is asked about `name`, by whatever process.
    fn happens(&self, name: &str, times: usize) -> bool {
        (0..times).any(|time| leave(&self.plan.marks, &format!("{name}.{time}")))
    }

    /// Leaves a mark if the journal has not as many attempts of a record as there were, this one included.
    fn look_up(&self, journal: &Path, batch: &Batch<'_>) {
        let entries = read(journal).expect("a journal");
        for (record, _) in batch.records() {
            let mut times = 0..=entries.len();
            let earlier = times.find(|time| self.happens(&format!("ran-{record}-{time}"), 1));
            let attempts = entries.iter().filter(|entry| match &entry.event {
                Event::Attempt { records, .. } => records.iter().any(|one| one == record),
                _ => false,
            });
            if attempts.count() <= earlier.expect("some number") {
                leave(&self.plan.marks, "not-in-the-journal");
            }
        }
        leave(&self.plan.marks, "looked-up");
    }

    /// Waits as long as the plan says.
    fn wait(&self) {
        leave(&self.plan.marks, &format!("begun-{}", self.slot));
        for slot in 0..self.plan.meet {
            wait_for(&self.plan.marks, &format!("begun-{slot}"), false);
        }
        for hold in self.plan.holds.iter().filter(|hold| hold.slot == self.slot) {
            wait_for(&self.plan.marks, &hold.until, hold.buried);
        }
    }

    fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1000
    }

    fn random_trouble(&mut self, records: usize) -> Result<(), Trouble> {
        let Some(([kill, hang, memory, lost], _)) = self.plan.chances else {
            return Ok(());
        };
        let dice = self.chance();
        if dice < kill {
            die(self.plan.helper);
        } else if dice < kill + hang {
            sleep_for_ever();
        } else if dice < kill + hang + memory {
            // A record that does not fit alone fails for good, which no good record should by chance.
            if records > 1 {
                return Err(Trouble::OutOfMemory { asked: 0 });
            }
        } else if dice < kill + hang + memory + lost {
            return Err(Trouble::DeviceLost("by chance".into()));
        }
        Ok(())
    }
}

impl Work for Faulty {
    fn init(assigned: &Assigned) -> Result<Self, Refusal> {
        let plan: Plan = postcard::from_bytes(&assigned.setup)
            .map_err(|error| Refusal::Failed(error.to_string()))?;
        let pid = std::process::id();
        fs::create_dir_all(plan.marks.join("pids")).expect("a folder for marks");
        fs::write(plan.marks.join("pids").join(pid.to_string()), "").expect("a mark");
        eprintln!("worker {pid} on {}", assigned.device);
        if plan.broken.contains(&assigned.slot) {
            return Err(Refusal::Failed("the driver is not there".into()));
        }
        if plan.stuck.contains(&assigned.slot) {
            sleep_for_ever();
        }
        let seen = if plan.elsewhere.contains(&assigned.slot) {
            leave(&plan.marks, &format!("elsewhere-{}", assigned.slot));
            "gpu-of-another".to_owned()
        } else {
            assigned.device.clone()
        };
        assigned.check(&[seen])?;
        if plan.needs > 0 {
            let limit = Duration::from_secs(1);
            assigned.wait_for_room(plan.needs, plan.needs / 2, limit, || {
                let text = fs::read_to_string(plan.marks.join("free")).ok()?;
                text.trim().parse().ok()
            })?;
        }
        if plan.ignore_term {
            let flag = std::sync::Arc::default();
            signal_hook::flag::register(signal_hook::consts::SIGTERM, flag).expect("a handler");
        }
        let mut started = None;
        if plan.helper != Helper::None {
            let mut helper = Command::new("sleep");
            #[expect(clippy::zombie_processes, reason = "it has to be left behind")]
            let helper = helper.arg("1000").spawn().expect("a helper");
            fs::write(plan.marks.join("pids").join(helper.id().to_string()), "").expect("a mark");
            started = Some(Pid::from_child(&helper)).filter(|_| plan.helper == Helper::Taken);
        }
        let mut random = 1;
        if let Some((_, seed)) = plan.chances {
            // The same for the n-th worker of a slot, whenever and wherever it runs.
            let mut life = 0;
            while !leave(&plan.marks, &format!("life-{}.{life}", assigned.slot)) {
                life += 1;
            }
            for part in [seed, assigned.slot as u64, life] {
                random = (random ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                random ^= random >> 29;
            }
        }
        let has_room = match &plan.memory {
            Some(memory) => memory.take(&plan.marks),
            None => true,
        };
        Ok(Self {
            slot: assigned.slot,
            device: assigned.device.clone(),
            random: random | 1,
            has_room,
            helper: started,
            plan,
        })
    }

    fn process(&mut self, batch: &mut Batch<'_>) -> Result<(), Trouble> {
        if let Some(journal) = &self.plan.journal {
            self.look_up(journal, batch);
        }
        let sticky = self.plan.sticky.iter().find(|(slot, _)| *slot == self.slot);
        if let Some(&(slot, times)) = sticky
            && self.happens(&format!("sticky-{slot}"), times)
        {
            return Err(Trouble::DeviceLost("illegal access".into()));
        }
        if !self.has_room || self.plan.fits > 0 && batch.len() > self.plan.fits {
            let asked = batch.len() as u64;
            return Err(Trouble::OutOfMemory { asked });
        }
        self.random_trouble(batch.len())?;
        self.wait();
        let slow = self.plan.slow.get(self.slot).copied().unwrap_or(1);
        for (place, (record, body)) in batch.records().enumerate() {
            if self.plan.poison.contains(&record) {
                eprintln!("record {record} is poison");
                die(self.plan.helper);
            }
            if self.plan.kill_once.contains(&record) && self.happens(&format!("kill-{record}"), 1) {
                die(self.plan.helper);
            }
            if self.plan.hang.contains(&record) {
                leave(&self.plan.marks, &format!("hung-{record}"));
                sleep_for_ever();
            }
            if self.plan.freeze.contains(&record) && self.happens(&format!("freeze-{record}"), 1) {
                freeze(&self.plan.marks);
            }
            if self.plan.lose.contains(&record) {
                eprintln!("record {record} loses its device");
                return Err(Trouble::DeviceLost("illegal access".into()));
            }
            if self.plan.garbage.contains(&record) {
                talk_nonsense();
            }
            if self.plan.spoil.contains(&record) {
                return Err(Trouble::Failed(format!("record {record} spoils its batch")));
            }
            if self.plan.service > 0 {
                thread::sleep(Duration::from_micros(self.plan.service * slow));
            }
            if self.plan.refuse.contains(&record) {
                batch.failed(place, format!("record {record} is not an image"));
            } else if self.plan.tells_masks {
                batch.done(place, format!("{}: {}", self.device, masks()).as_bytes());
            } else if !self.plan.forget.contains(&record) {
                batch.done(place, &answer(record, body, self.plan.answer));
            }
        }
        leave(&self.plan.marks, &format!("worked-{}", self.slot));
        Ok(())
    }

    fn stream(&mut self, batches: Batches) -> Result<(), Trouble> {
        thread::scope(|scope| {
            for load in batches {
                if !self.plan.overlap {
                    let ended = self.process(&mut load.batch());
                    load.over(ended)?;
                    continue;
                }
                self.chance();
                let mut own = self.clone();
                scope.spawn(move || {
                    let ended = own.process(&mut load.batch());
                    // Some ends come after those of batches that were begun later.
                    thread::sleep(Duration::from_millis(own.chance() % 5));
                    if load.over(ended).is_err() {
                        // Others may be at theirs for ever, which a lost device does not wait for.
                        die(own.plan.helper);
                    }
                });
            }
            if let Some(helper) = self.helper {
                let _ = kill_process(helper, Signal::KILL);
            }
            Ok(())
        })
    }

    fn probe(&mut self) -> Result<(), Refusal> {
        let failing = self.plan.failing_probes.iter();
        let failing = failing.clone().find(|(slot, _)| *slot == self.slot);
        if let Some(&(slot, times)) = failing
            && self.happens(&format!("probe-{slot}"), times)
        {
            return Err(Refusal::Failed(format!("{} is still sick", self.device)));
        }
        Ok(())
    }
}

/// What comes out for a record, whoever does it: bytes that depend on all of it.
pub(crate) fn answer(record: u64, body: &[u8], length: usize) -> Vec<u8> {
    let mut state = record.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    for &byte in body {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let length = if length == 0 {
        body.len().max(8)
    } else {
        length
    };
    let words = (0..length.div_ceil(8) as u64).flat_map(|word| {
        let mixed = (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed ^ (mixed >> 33)).to_le_bytes()
    });
    words.take(length).collect()
}

fn die(helper: Helper) -> ! {
    if helper == Helper::Taken {
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
    let _ = kill_process(getpid(), Signal::KILL);
    sleep_for_ever()
}

fn sleep_for_ever() -> ! {
    loop {
        thread::park();
    }
}

/// Where processes can be stopped so that no signal ends them, if this system has that.
pub(crate) const FREEZER: &str = "/sys/fs/cgroup/freezer";

/// Makes this process one that does not die of SIGKILL until somebody thaws it: as near as one gets to a process
/// that is stuck in a driver.
fn freeze(marks: &Path) -> ! {
    let own = Path::new(FREEZER).join(format!("warploom-test-{}", std::process::id()));
    fs::create_dir(&own).expect("a group of processes");
    fs::write(marks.join("frozen"), own.to_string_lossy().as_bytes()).expect("a mark");
    fs::write(own.join("cgroup.procs"), "0").expect("a member");
    fs::write(own.join("freezer.state"), "FROZEN").expect("a state");
    sleep_for_ever()
}

/// Ends what was frozen.
pub(crate) fn thaw(marks: &Path) {
    let own = fs::read_to_string(marks.join("frozen")).expect("a frozen process");
    fs::write(Path::new(&own).join("freezer.state"), "THAWED").expect("a state");
    // Once it has died of the signals that waited for it, its group can be removed.
    while fs::remove_dir(&own).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Writes rubbish into the socket to the coordinator, as only a broken worker could.
fn talk_nonsense() -> ! {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).expect("ourselves");
    for entry in fs::read_dir("/proc/self/fd")
        .expect("our descriptors")
        .flatten()
    {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        if target.to_string_lossy().starts_with("socket:") {
            let number = entry
                .file_name()
                .to_string_lossy()
                .parse()
                .expect("a number");
            let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).expect("a copy");
            let _ = File::from(socket).write_all(b"\xff\xff\xff\xffrubbish");
        }
    }
    sleep_for_ever()
}
