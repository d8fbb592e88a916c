//! What the management of devices reports, and management that hangs.

use std::thread;
use std::time::{Duration, Instant};

use warploom_fleet::Incident;
use warploom_fleet::health::{Sentries, Sentry, Sign};

use crate::Test;
use crate::ground::{Ground, check, records, rules};

pub(crate) const TESTS: &[Test] = &[
    (
        "hardware_that_reports_itself_sick_is_put_aside_and_comes_back",
        sick,
    ),
    (
        "management_that_hangs_costs_its_device_and_not_the_run",
        hangs,
    ),
];

/// Reports one error, or hangs.
struct Reporter(Option<u64>);

impl Sentry for Reporter {
    fn wait(&mut self, within: Duration) -> Result<Option<Sign>, String> {
        match self.0 {
            None => loop {
                thread::park();
            },
            Some(0) => {
                thread::sleep(within);
                Ok(None)
            }
            Some(xid) => {
                self.0 = Some(0);
                thread::sleep(Duration::from_millis(100));
                Ok(Some(Sign::of_xid(xid)))
            }
        }
    }
}

fn told(incidents: &[Incident], what: fn(&Incident) -> Option<&str>) -> Vec<&str> {
    incidents.iter().filter_map(what).collect()
}

fn quarantined(incident: &Incident) -> Option<&str> {
    match incident {
        Incident::Quarantined { device, .. } => Some(device),
        _ => None,
    }
}

fn readmitted(incident: &Incident) -> Option<&str> {
    match incident {
        Incident::Readmitted { device } => Some(device),
        _ => None,
    }
}

fn sick() {
    let mut ground = Ground::new();
    ground.plan.service = 2000;
    let all = records(1200);
    let sentries = Sentries::new(|device| match device.id() {
        "gpu-0" => Some(Box::new(Reporter(Some(79)))),
        "gpu-1" => Some(Box::new(Reporter(Some(31)))),
        _ => None,
    });
    let report = ground.run(ground.fleet(3).sentries(sentries), &all);
    check(&report, &all, &[]);
    assert_eq!(told(&report.incidents, quarantined), ["gpu-0"]);
    assert_eq!(told(&report.incidents, readmitted), ["gpu-0"]);
    let mut reported = told(&report.incidents, |incident| match incident {
        Incident::Reported { text, .. } => Some(text),
        _ => None,
    });
    reported.sort_unstable();
    assert_eq!(
        reported,
        [
            "Xid 31, a fault of the program",
            "Xid 79, a fault of the hardware"
        ]
    );
}

fn hangs() {
    let mut ground = Ground::new();
    ground.plan.service = 2000;
    let mut rules = rules();
    rules.management_limit = Duration::from_millis(200);
    let all = records(1500);
    let sentries = Sentries::new(|device| match device.id() {
        "gpu-0" => Some(Box::new(Reporter(None))),
        _ => Some(Box::new(Reporter(Some(0)))),
    });
    let begun = Instant::now();
    let report = ground.run(ground.fleet(2).sentries(sentries).rules(rules), &all);
    check(&report, &all, &[]);
    // Once, because nobody listens there any more; a device that works after all gets work again.
    assert_eq!(told(&report.incidents, quarantined), ["gpu-0"]);
    assert_eq!(told(&report.incidents, readmitted), ["gpu-0"]);
    assert!(begun.elapsed() < Duration::from_mins(1));
}
