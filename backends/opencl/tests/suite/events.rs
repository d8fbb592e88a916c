//! Markers: status, deadlines, times.

use std::time::{Duration, Instant};

use warploom_core::{DeviceError, Queue};

use crate::rig::{SOON, each};

#[test]
fn a_wait_can_be_given_up_and_taken_up_again() {
    each(|rig| {
        let data = rig.filled(&[1.0_f32, 0.0]);
        let mut queue = rig.queue();
        rig.churn(&mut queue, &data);
        let event = queue.record().unwrap();
        let short = Duration::from_millis(5);
        if event.is_done().unwrap() {
            println!("skipped: this device works while it is being asked");
            event.wait(Some(short)).unwrap();
            return;
        }
        assert_eq!(event.at(), None);
        let start = Instant::now();
        let error = event.wait(Some(short)).unwrap_err();
        let DeviceError::Timeout { device, waited } = error else {
            panic!("{error}");
        };
        assert_eq!((device, waited), (rig.device.info().id, short));
        assert!(start.elapsed() >= short);
        let now = event.wait(Some(Duration::ZERO)).unwrap_err();
        assert!(matches!(now, DeviceError::Timeout { .. }));
        event.wait(SOON).unwrap();
        assert!(event.is_done().unwrap());
        event.wait(Some(Duration::ZERO)).unwrap();
        event.wait(None).unwrap();
        assert!(event.at().is_some());
    });
}

#[test]
fn a_wait_ends_soon_after_the_work() {
    each(|rig| {
        let mut queue = rig.queue();
        let best = (0..20)
            .map(|_| {
                let event = queue.record().unwrap();
                let start = Instant::now();
                event.wait(SOON).unwrap();
                start.elapsed()
            })
            .min()
            .unwrap();
        println!("empty queue: {best:?}");
        assert!(best < Duration::from_millis(10), "{best:?}");
    });
}

#[test]
fn many_threads_wait_for_one_event() {
    each(|rig| {
        let data = rig.filled(&[1.0_f32, 0.0]);
        let mut queue = rig.queue();
        rig.churn(&mut queue, &data);
        let event = queue.record().unwrap();
        std::thread::scope(|scope| {
            for patience in [SOON, None, SOON, Some(Duration::from_secs(100))] {
                let event = &event;
                scope.spawn(move || event.wait(patience).unwrap());
            }
        });
        assert!(event.is_done().unwrap());
    });
}

#[test]
fn times_of_one_queue_do_not_run_backwards() {
    each(|rig| {
        let data = rig.filled(&[1.0_f32, 0.0]);
        let mut queue = rig.queue();
        let mut events = vec![queue.record().unwrap()];
        rig.churn(&mut queue, &data);
        events.push(queue.record().unwrap());
        events.push(queue.record().unwrap());
        events[2].wait(SOON).unwrap();
        let times: Vec<Duration> = events.iter().map(|event| event.at().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(
            times[1].abs_diff(times[0]) > Duration::from_millis(1),
            "{times:?}"
        );
    });
}

#[test]
fn events_dropped_while_waited_for_leave_nothing_behind() {
    each(|rig| {
        let data = rig.filled(&[1.0_f32, 0.0]);
        let mut queue = rig.queue();
        for _ in 0..3 {
            rig.churn(&mut queue, &data);
            for _ in 0..50 {
                let event = queue.record().unwrap();
                // Registers a callback that outlives the event's handle.
                let _ = event.wait(Some(Duration::from_micros(10)));
            }
        }
        queue.record().unwrap().wait(SOON).unwrap();
    });
}
