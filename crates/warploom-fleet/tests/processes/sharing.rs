//! Fleets that share devices with others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use warploom_core::{DeskDevice, LeaseCapacity, LeaseDesk, LeaseRequest};
use warploom_fleet::{Fleet, FleetDevice, Incident, Program, Stopper};

use crate::Test;
use crate::faulty::{FREEZER, Hold, Plan, thaw};
use crate::ground::{Ground, check, records, rules};
use crate::memory::Memory;

pub(crate) const TESTS: &[Test] = &[
    ("leases_are_released_whatever_happens_to_workers", released),
    ("two_fleets_share_a_device_by_the_ledger", shared),
    (
        "two_coordinators_share_a_device_and_neither_runs_out_of_memory",
        two_coordinators,
    ),
    ("a_fleet_that_waits_for_a_lease_can_be_ended", waiting),
    (
        "a_ledger_that_somebody_keeps_locked_is_no_devices_fault",
        locked,
    ),
    (UNDEAD, undead),
    (
        "a_device_is_held_back_until_its_memory_is_back",
        memory_back,
    ),
    ("a_device_whose_memory_is_gone_gets_no_work", memory_gone),
];

fn desk(ground: &Ground, slots: u32) -> LeaseDesk {
    let capacity = LeaseCapacity {
        slots,
        bytes: 1 << 30,
    };
    let device = DeskDevice::new("gpu-0", "pretended-0", capacity);
    LeaseDesk::shared(vec![device], &ground.path("ledger")).unwrap()
}

fn fleet(
    ground: &Ground,
    desk: &LeaseDesk,
    run: &str,
    workers: usize,
) -> warploom_fleet::FleetBuilder {
    let program = Program::new(std::env::current_exe().unwrap()).arg("be-worker");
    let request = LeaseRequest::new(1, 1 << 20).on(["gpu-0"]).label(run);
    let device = FleetDevice::new("gpu-0").workers(workers).lease(request);
    Fleet::builder(program)
        .device(device)
        .folder(ground.path(run))
        .setup(postcard::to_stdvec(&ground.plan).unwrap())
        .rules(rules())
        .desk(desk.clone())
}

fn released() {
    let mut ground = Ground::new();
    ground.plan.kill_once = vec![1, 50, 90];
    ground.plan.poison = vec![33];
    ground.plan.hang = vec![44];
    ground.plan.sticky = vec![(0, 1)];
    let mut rules = rules();
    rules.batch_limit = Some(Duration::from_millis(500));
    let desk = desk(&ground, 2);
    let all = records(120);
    let report = ground.run(fleet(&ground, &desk, "run", 2).rules(rules), &all);
    check(&report, &all, &[33, 44]);
    let status = desk.status().unwrap();
    assert_eq!(status[0].held, [], "nobody holds anything");
}

fn shared() {
    let mut ground = Ground::new();
    ground.plan.service = 300;
    // Room for one worker at a time, and two fleets of two workers each.
    let desk = desk(&ground, 1);
    let all = records(300);
    std::thread::scope(|scope| {
        let runs = ["one", "two"].map(|run| {
            let (ground, desk, all) = (&ground, &desk, &all);
            scope.spawn(move || {
                let fleet = fleet(ground, desk, run, 2).build().unwrap();
                fleet.run(all, |_| Ok(())).unwrap()
            })
        });
        for run in runs {
            check(&run.join().unwrap(), &all, &[]);
        }
    });
    ground.nobody_is_left();
    assert_eq!(desk.status().unwrap()[0].held, []);
}

/// Bytes of a pretended device, which has room for three workers, and of each of them.
const ROOM: u64 = 3 << 20;
const NEEDS: u64 = 1 << 20;

/// A coordinator with two workers on a device that others use too; with the ledger or without.
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut next = || arguments.next().expect("FOLDER NAME UNTIL LEDGER");
    let (folder, whose, until) = (PathBuf::from(next()), next(), next());
    let has_ledger = next() == "ledger";
    // Nobody does a record before what the test is about has happened.
    let hold = |slot| Hold {
        slot,
        until: until.clone(),
        buried: false,
    };
    let plan = Plan {
        marks: folder.join("marks"),
        service: 300,
        holds: vec![hold(0), hold(1)],
        memory: Some(Memory {
            file: folder.join("memory"),
            room: ROOM,
            takes: NEEDS,
            whose: whose.clone(),
        }),
        ..Plan::default()
    };
    let program = Program::new(std::env::current_exe().unwrap()).arg("be-worker");
    let mut device = FleetDevice::new("gpu-0").workers(2);
    let mut fleet = Fleet::builder(program)
        .folder(folder.join(&whose))
        .setup(postcard::to_stdvec(&plan).unwrap())
        .rules(rules());
    if has_ledger {
        let request = LeaseRequest::new(1, NEEDS).on(["gpu-0"]).label(&whose);
        device = device.lease(request);
        fleet = fleet.desk(memory_desk(&folder.join("ledger")));
    }
    let all = records(200);
    let report = fleet
        .device(device)
        .build()
        .unwrap()
        .run(&all, |_| Ok(()))
        .unwrap();
    if has_ledger {
        check(&report, &all, &[]);
        assert_eq!(report.incidents, []);
    }
    ExitCode::SUCCESS
}

/// A device with more slots than it has memory for.
fn memory_desk(ledger: &Path) -> LeaseDesk {
    let capacity = LeaseCapacity {
        slots: 8,
        bytes: ROOM,
    };
    let device = DeskDevice::new("gpu-0", "pretended-0", capacity);
    LeaseDesk::shared(vec![device], ledger).unwrap()
}

fn two_coordinators() {
    let start = |folder: &Path, whose: &str, until: &str, ledger: &str| -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .arg("be-sharer")
            .arg(folder)
            .args([whose, until, ledger]);
        command.stdin(Stdio::null()).spawn().unwrap()
    };
    let both = |folder: &Path, until: &str, ledger: &str| {
        fs::create_dir_all(folder.join("marks")).unwrap();
        let runs = ["one", "two"].map(|whose| start(folder, whose, until, ledger));
        for mut run in runs {
            assert!(run.wait().unwrap().success(), "{ledger}");
        }
        crate::ground::nobody_is_left(&folder.join("marks"));
    };
    let ground = Ground::new();
    // Each waits until both have workers at once, of which there are never four.
    let folder = ground.path("with");
    both(&folder, "together", "ledger");
    assert!(folder.join("marks/together").exists());
    assert!(!folder.join("marks/out-of-memory").exists());
    assert_eq!(
        memory_desk(&folder.join("ledger")).status().unwrap()[0].held,
        []
    );
    // Without the ledger there are four, and the last of them has no memory.
    both(&ground.path("without"), "out-of-memory", "none");
}

fn waiting() {
    let ground = Ground::new();
    let desk = desk(&ground, 1);
    let held = desk.lease(&LeaseRequest::new(1, 0)).unwrap();
    let stopper = Stopper::new().unwrap();
    let fleet = fleet(&ground, &desk, "run", 1)
        .stopper(&stopper)
        .build()
        .unwrap();
    std::thread::scope(|scope| {
        let all = records(3);
        let run = scope.spawn(move || fleet.run(&all, |_| Ok(())).unwrap());
        while desk.status().unwrap()[0].waiting.is_empty() {
            std::thread::yield_now();
        }
        stopper.drain();
        let report = run.join().unwrap();
        assert_eq!(report.counts.waiting, 3);
    });
    drop(held);
    assert!(desk.try_lease(&LeaseRequest::new(1, 0)).unwrap().is_some());
}

/// Somebody was stopped with the ledger's lock, for longer than each of our requests waits for it.
fn locked() {
    let ground = Ground::new();
    let desk = desk(&ground, 1);
    let ledger = fs::File::open(ground.path("ledger/pretended-0.ledger")).unwrap();
    ledger.lock().unwrap();
    let request = LeaseRequest::new(1, 0).on(["gpu-0"]);
    let request = request.within(Duration::from_millis(100));
    let mut rules = rules();
    rules.start_limit = Duration::from_secs(3);
    let program = Program::new(std::env::current_exe().unwrap()).arg("be-worker");
    let fleet = Fleet::builder(program)
        .device(FleetDevice::new("gpu-0").lease(request))
        .folder(ground.path("run"))
        .setup(postcard::to_stdvec(&ground.plan).unwrap())
        .rules(rules)
        .desk(desk.clone());
    let all = records(20);
    std::thread::scope(|scope| {
        let (ground, all) = (&ground, &all);
        let run = scope.spawn(move || ground.run(fleet, all));
        std::thread::sleep(Duration::from_secs(4));
        assert!(!run.is_finished());
        ledger.unlock().unwrap();
        let report = run.join().unwrap();
        check(&report, all, &[]);
        assert_eq!(report.incidents, []);
    });
    assert_eq!(desk.status().unwrap()[0].held, []);
}

const UNDEAD: &str = "a_process_that_will_not_die_costs_its_slot";

/// Why a test cannot be made here, if it cannot.
pub(crate) fn obstacle(test: &str) -> Option<String> {
    if test != UNDEAD {
        return None;
    }
    // The second version of these groups lets SIGKILL through, and there is no other way to have such a process.
    let probe = Path::new(FREEZER).join(format!("warploom-test-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&probe) {
        return Some(format!("no process can be frozen at {FREEZER}: {error}"));
    }
    fs::remove_dir(probe).unwrap();
    None
}

/// A real process that SIGKILL does not end, as one that is stuck in a driver.
fn undead() {
    let mut ground = Ground::new();
    ground.plan.freeze = vec![5];
    let mut rules = rules();
    rules.batch_limit = Some(Duration::from_secs(1));
    rules.grace = Duration::from_millis(100);
    rules.patience = Duration::from_millis(500);
    let desk = desk(&ground, 2);
    let all = records(200);
    let begun = Instant::now();
    let fleet = fleet(&ground, &desk, "run", 2).rules(rules);
    let report = fleet.build().unwrap().run(&all, |_| Ok(())).unwrap();
    let took = begun.elapsed();
    let frozen = fs::read_to_string(ground.plan.marks.join("frozen")).unwrap();
    let pid: u32 = frozen.rsplit('-').next().unwrap().parse().unwrap();
    assert!(Path::new("/proc").join(pid.to_string()).exists());
    // It holds nothing of ours any more, whatever the driver thinks.
    assert_eq!(desk.status().unwrap()[0].held, []);
    thaw(&ground.plan.marks);
    check(&report, &all, &[]);
    assert_eq!(report.incidents[0], Incident::Undead { pid });
    let others = report.incidents[1..].iter();
    let harmless = |incident: &Incident| matches!(incident, Incident::Grief { .. });
    assert!(others.clone().all(harmless), "{:?}", report.incidents);
    assert!(took < Duration::from_mins(1), "it waited for {took:?}");
    ground.nobody_is_left();
}

fn free(ground: &Ground, bytes: u64) {
    let draft = ground.path("free.part");
    fs::write(&draft, bytes.to_string()).unwrap();
    fs::rename(draft, ground.plan.marks.join("free")).unwrap();
}

/// The driver takes a while to take a dead worker's memory back.
fn memory_back() {
    let mut ground = Ground::new();
    ground.plan.needs = 1000;
    ground.plan.kill_once = vec![10];
    free(&ground, 1000);
    let all = records(100);
    let desk = desk(&ground, 1);
    std::thread::scope(|scope| {
        let fleet = fleet(&ground, &desk, "run", 1).build().unwrap();
        let ground = &ground;
        let run = scope.spawn(move || {
            fleet.run(&records(100), |delivery| {
                // The first answer: from here on a worker that is started has to wait.
                if delivery.record == 0 {
                    free(ground, 0);
                }
                Ok(())
            })
        });
        // Two workers there were when the memory comes back.
        while fs::read_dir(ground.plan.marks.join("pids")).map_or(0, Iterator::count) < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        free(ground, 1000);
        let report = run.join().unwrap().unwrap();
        check(&report, &all, &[]);
        // One worker was killed, and the one after it had what it needed in the end.
        let told = &report.incidents[..];
        assert!(matches!(told, [Incident::Grief { .. }]), "{told:?}");
    });
    assert_eq!(desk.status().unwrap()[0].held, []);
    ground.nobody_is_left();
}

/// Somebody else has the memory and keeps it.
fn memory_gone() {
    let mut ground = Ground::new();
    ground.plan.needs = 1000;
    free(&ground, 499);
    let mut rules = rules();
    rules.quarantine = Duration::from_millis(20);
    rules.probes = 1;
    let desk = desk(&ground, 1);
    let fleet = fleet(&ground, &desk, "run", 1).rules(rules);
    let failure = fleet.build().unwrap().run(&records(5), |_| Ok(()));
    let failure = failure.unwrap_err();
    let text = failure.error.to_string();
    assert!(text.contains("gpu-0 has 499 bytes free after 1s"), "{text}");
    assert!(text.contains("500"), "{text}");
    // No process here has a file of the device, which is none.
    assert!(text.contains("open"), "{text}");
    let report = failure.report.unwrap();
    assert_eq!(report.counts.waiting, 5);
    let is_told = |incident: &Incident| matches!(incident, Incident::Quarantined { why, .. } if why.contains("499"));
    assert!(
        report.incidents.iter().any(is_told),
        "{:?}",
        report.incidents
    );
    assert_eq!(desk.status().unwrap()[0].held, []);
    // With less than it would like, but enough, a worker works.
    free(&ground, 500);
    let again = crate::ground::builder(&ground.plan, &ground.path("again"), 1);
    let all = records(5);
    check(&ground.run(again, &all), &all, &[]);
}
