//! All devices of all backends at work at once, in one process.

use std::thread;

use warploom::{Options, registry};

use crate::same_bytes::{check, inputs, run};

#[test]
fn all_devices_work_side_by_side() {
    let status = registry().setup(&Options::default()).unwrap();
    let x = inputs();
    thread::scope(|scope| {
        for face in status
            .survey
            .devices
            .iter()
            .flat_map(|device| &device.faces)
        {
            let x = &x;
            scope.spawn(move || {
                for _ in 0..5 {
                    let device = registry().open(face.id).unwrap();
                    check(&device, &run(&device, x), x);
                }
            });
        }
    });
}

#[test]
fn everybody_gets_the_same_opened_device() {
    let cpu = "cpu:0".parse().unwrap();
    let first = registry().open(cpu).unwrap();
    let second = registry().open(cpu).unwrap();
    assert!(std::sync::Arc::ptr_eq(first.bare(), second.bare()));
}
