//! Fleets that share devices with others.

use std::time::Duration;

use warploom_core::{DeskDevice, LeaseCapacity, LeaseDesk, LeaseRequest};
use warploom_fleet::{Fleet, FleetDevice, Program, Stopper};

use crate::Test;
use crate::ground::{Ground, check, records, rules};

pub(crate) const TESTS: &[Test] = &[
    ("leases_are_released_whatever_happens_to_workers", released),
    ("two_fleets_share_a_device_by_the_ledger", shared),
    ("a_fleet_that_waits_for_a_lease_can_be_ended", waiting),
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
