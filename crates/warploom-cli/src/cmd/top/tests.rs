//! What people see and what their keys do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use warploom::watch::board::{DeviceNotice, Notice, Phase};
use warploom::watch::{Machine, MachineDevice};
use warploom::{DeviceKind, Holder, LeaseCapacity};

use super::state::{Focus, Order, State, Wish};
use super::{rows, screen};

const GIB: u64 = 1 << 30;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000)
}

fn holder(pid: u32, label: &str, gib: u64, since: u64) -> Holder {
    Holder {
        pid,
        label: label.into(),
        slots: 1,
        bytes: gib * GIB,
        since: now() - Duration::from_secs(since),
    }
}

fn device(name: &str, label: &str, slots: u32, bytes: u64) -> MachineDevice {
    MachineDevice {
        name: name.into(),
        label: label.into(),
        kind: DeviceKind::Discrete,
        software: false,
        total_memory: Some(bytes),
        free_memory: None,
        capacity: LeaseCapacity { slots, bytes },
        held: Vec::new(),
        waiting: Vec::new(),
        used: None,
        runs: 0,
    }
}

fn notice(pid: u32, pipeline: &str, [total, ok, failed]: [u64; 3]) -> Notice {
    Notice {
        pid,
        total,
        ok,
        failed,
        started: pid.into(),
        phase: Phase::Running,
        rate: Some(12.5),
        ..Notice::new(format!("plate {pid}"), pipeline, total)
    }
}

fn machine() -> Machine {
    let mut first = device("gpu0", "NVIDIA RTX A5000", 4, 24 * GIB);
    first.held = vec![
        holder(4211, "nuclei", 11, 75),
        holder(5120, "denoise", 8, 4_000),
    ];
    first.waiting = vec![holder(6001, "stitch", 20, 12)];
    first.used = Some(13 * GIB);
    let mut second = device("gpu1", "Radeon PRO W7900", 6, 48 * GIB);
    second.held = vec![holder(4211, "nuclei", 40, 75)];
    let third = device(
        "cpu",
        "AMD EPYC 7543 32-Core Processor, a long name",
        1,
        u64::MAX,
    );
    let mut nuclei = notice(4211, "nuclei", [384, 120, 3]);
    nuclei.bound = Some(14.0);
    let on = |label: &str, memory| DeviceNotice {
        label: label.into(),
        ok: 60,
        rate: Some(6.2),
        memory: Some(memory * GIB),
        budget: Some(11 * GIB),
        ..DeviceNotice::default()
    };
    nuclei.devices = vec![
        on("gpu0", 9),
        DeviceNotice {
            quarantined: true,
            ..on("gpu1", 30)
        },
    ];
    let mut denoise = notice(5120, "denoise", [20_000, 19_999, 0]);
    (denoise.rate, denoise.devices) = (Some(841.0), vec![on("gpu0", 4)]);
    let mut stitch = notice(6001, "stitch", [12, 0, 0]);
    (stitch.phase, stitch.rate) = (Phase::Waiting, None);
    Machine {
        devices: vec![first, second, third],
        runs: vec![nuclei, denoise, stitch],
    }
}

fn drawn(
    machine: &Machine,
    state: &State,
    trouble: Option<&str>,
    [width, height]: [u16; 2],
) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| screen::draw(frame, machine, state, trouble, now()))
        .unwrap();
    terminal.backend().to_string()
}

fn press(state: &mut State, machine: &Machine, code: KeyCode) -> Wish {
    state.press(KeyEvent::from(code), machine)
}

#[test]
fn eighty_columns_are_enough() {
    insta::assert_snapshot!(drawn(&machine(), &State::default(), None, [80, 24]));
}

#[test]
fn a_wide_screen_has_bars_and_memory() {
    insta::assert_snapshot!(drawn(&machine(), &State::default(), None, [120, 26]));
}

#[test]
fn an_idle_machine_says_so() {
    let idle = Machine {
        devices: machine().devices.split_off(2),
        runs: Vec::new(),
    };
    insta::assert_snapshot!(drawn(&idle, &State::default(), None, [80, 14]));
}

#[test]
fn trouble_takes_the_place_of_the_keys() {
    let screen = drawn(
        &machine(),
        &State::default(),
        Some("error[WL0127]: no\u{1b}[2J"),
        [80, 24],
    );
    assert!(screen.contains("error[WL0127]: no\u{fffd}[2J"), "{screen}");
    assert!(!screen.contains("q quit"));
}

#[test]
fn no_size_is_too_small_to_draw_and_none_too_large() {
    let mut many = machine();
    for pid in 0..300 {
        many.runs.push(notice(pid, "many", [10, 5, 0]));
        many.devices.push(device("gpuX", "Card", 1, GIB));
        many.devices[0].waiting.push(holder(pid, "many", 1, 5));
    }
    for machine in [&many, &machine(), &Machine::default()] {
        for size in [[1, 1], [5, 3], [20, 6], [40, 10], [79, 23], [250, 100]] {
            drawn(machine, &State::default(), None, size);
        }
    }
    let screen = drawn(&many, &State::default(), None, [80, 24]);
    assert!(screen.contains("Devices (6 of 303)"), "{screen}");
    assert!(screen.contains("Leases (6 of 304)"), "{screen}");
}

#[test]
fn the_picked_run_stays_picked_when_the_order_changes() {
    let machine = machine();
    let mut state = State::default();
    press(&mut state, &machine, KeyCode::Down);
    let pipeline = |state: &State| {
        let runs = state.ordered(&machine);
        runs[state.place(&runs)].pipeline.clone()
    };
    assert_eq!(pipeline(&state), "denoise");
    for _ in 0..6 {
        press(&mut state, &machine, KeyCode::Char('s'));
        assert_eq!(pipeline(&state), "denoise", "by {}", state.order.word());
    }
    assert_eq!(state.order, Order::Started, "six orders come round");
    press(&mut state, &machine, KeyCode::Char('r'));
    assert_eq!(pipeline(&state), "denoise");
    for (key, expected) in [
        (KeyCode::End, "nuclei"),
        (KeyCode::Home, "stitch"),
        (KeyCode::Up, "stitch"),
    ] {
        press(&mut state, &machine, key);
        assert_eq!(pipeline(&state), expected, "{key:?}");
    }
    // A run that ended leaves the first one picked.
    let rest = Machine {
        runs: machine.runs[..1].to_vec(),
        ..Machine::default()
    };
    assert_eq!(state.place(&state.ordered(&rest)), 0);
}

#[test]
fn runs_are_ordered_by_what_was_chosen() {
    let machine = machine();
    let names = |order, reversed| {
        let state = State {
            order,
            reversed,
            ..State::default()
        };
        let runs = state.ordered(&machine).into_iter();
        runs.map(|run| run.pipeline.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names(Order::Started, false), "nuclei denoise stitch");
    assert_eq!(names(Order::Started, true), "stitch denoise nuclei");
    assert_eq!(names(Order::Pipeline, false), "denoise nuclei stitch");
    assert_eq!(names(Order::Done, false), "denoise nuclei stitch");
    assert_eq!(names(Order::Failed, false), "nuclei denoise stitch");
    assert_eq!(names(Order::Rate, false), "denoise nuclei stitch");
    assert_eq!(names(Order::Memory, false), "nuclei denoise stitch");
}

#[test]
fn keys_quit_interrupt_and_look_again() {
    let (machine, mut state) = (machine(), State::default());
    for (code, wish) in [
        (KeyCode::Char('q'), Wish::Quit),
        (KeyCode::Esc, Wish::Quit),
        (KeyCode::Char('d'), Wish::Rescan),
        (KeyCode::Char('x'), Wish::Nothing),
    ] {
        assert_eq!(press(&mut state, &machine, code), wish);
    }
    let with_control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    assert_eq!(state.press(with_control('c'), &machine), Wish::Interrupt);
    assert_eq!(state.press(with_control('q'), &machine), Wish::Nothing);
    assert_eq!(state, State::default());
}

#[test]
fn leases_scroll_when_they_have_the_focus() {
    let mut many = machine();
    for pid in 100..130 {
        many.devices[0].waiting.push(holder(pid, "queue", 1, 5));
    }
    let mut state = State::default();
    press(&mut state, &many, KeyCode::Tab);
    assert_eq!(state.focus, Focus::Leases);
    press(&mut state, &many, KeyCode::End);
    let screen = drawn(&many, &state, None, [80, 24]);
    assert!(
        screen.contains("gpu1") && screen.contains("129"),
        "{screen}"
    );
    press(&mut state, &many, KeyCode::Home);
    assert_eq!(state.lease, 0);
    assert_eq!(state.picked, None, "runs stayed where they were");
}

#[test]
fn printed_once_it_is_a_table() {
    insta::assert_snapshot!(rows::text(&machine(), now()));
    assert_eq!(
        rows::text(&Machine::default(), now()),
        "no devices\nno leases\nno runs\n"
    );
}
