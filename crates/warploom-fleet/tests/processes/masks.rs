//! What workers see of what their coordinator inherited: coordinators are started with variables as sites set
//! them, and their workers tell what they got.

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use warploom_fleet::mask::{Card, Inherited, Mask, Stack};
use warploom_fleet::{Fleet, FleetDevice, Outcome, Program, Schedule};

use crate::Test;
use crate::faulty::MASKS;
use crate::ground::{Ground, builder, records, rules};

pub(crate) const TESTS: &[Test] = &[
    ("inherited_masks_of_cuda_reach_workers_as_one_device", cuda),
    ("inherited_masks_of_rocm_reach_workers_as_one_device", rocm),
    (
        "inherited_masks_of_level_zero_reach_workers_as_one_device",
        level_zero,
    ),
    (
        "devices_that_workers_pick_keep_what_was_inherited",
        in_process,
    ),
    ("a_worker_with_other_variables_than_meant_refuses", refuses),
];

/// What every site sets at once, whatever its devices are.
const SLURM: &str =
    "CUDA_VISIBLE_DEVICES=1 ROCR_VISIBLE_DEVICES=1 GPU_DEVICE_ORDINAL=1 ZE_AFFINITY_MASK=1";

fn cards(stack: Stack) -> Vec<Card> {
    let card = |uuid: Option<&str>, slices: &[&str]| Card {
        uuid: uuid.map(str::to_owned),
        slices: slices.iter().map(|&name| name.to_owned()).collect(),
    };
    match stack {
        Stack::LevelZero => vec![card(None, &["a", "b"]), card(None, &["c", "d"])],
        _ => vec![
            card(Some("GPU-aa11"), &[]),
            card(Some("GPU-aa22"), &[]),
            card(Some("GPU-bb33"), &["MIG-x1", "MIG-x2"]),
        ],
    }
}

/// A coordinator: prints what each of its workers has, or why there is none.
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let stack = match arguments.next().as_deref() {
        Some("cuda") => Stack::Cuda,
        Some("rocm") => Stack::Rocm,
        Some("level-zero") => Stack::LevelZero,
        _ => Stack::InProcess,
    };
    let devices = Inherited::new(std::env::vars()).devices(stack, &cards(stack));
    let devices = match devices {
        Ok(devices) => devices,
        Err(error) => return say(&format!("refused: {error}")),
    };
    let mut ground = Ground::new();
    ground.plan.tells_masks = true;
    let all = records(devices.len() as u64);
    // Each its part, of one record.
    let fleet = builder(&ground.plan, &ground.path("run"), 0).schedule(Schedule::Balanced);
    let fleet = devices
        .into_iter()
        .fold(fleet, warploom_fleet::FleetBuilder::device);
    if all.is_empty() {
        return say("nothing");
    }
    let report = ground.run(fleet, &all);
    for outcome in &report.outcomes {
        let Outcome::Ok { result, .. } = outcome else {
            panic!("{outcome:?}");
        };
        say(&String::from_utf8_lossy(result.bytes().unwrap()));
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "this is how the test hears of it")]
fn say(line: &str) -> ExitCode {
    println!("{line}");
    ExitCode::SUCCESS
}

/// What the workers of a coordinator with these variables have.
fn workers(stack: &str, inherited: &str) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("be-masked").arg(stack).stdin(Stdio::null());
    for name in MASKS {
        command.env_remove(name);
    }
    for variable in inherited.split_whitespace() {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value);
    }
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{stack} with {inherited}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn cuda() {
    let only =
        |name: &str| format!("{name}: CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={name}");
    let check = |inherited: &str, names: &[&str]| {
        let expected: Vec<String> = names.iter().map(|name| only(name)).collect();
        assert_eq!(workers("cuda", inherited), expected, "{inherited}");
    };
    // A card in slices is given slice by slice.
    check("", &["GPU-aa11", "GPU-aa22", "MIG-x1", "MIG-x2"]);
    check("CUDA_VISIBLE_DEVICES=1,0", &["GPU-aa22", "GPU-aa11"]);
    check("CUDA_VISIBLE_DEVICES=GPU-aa22", &["GPU-aa22"]);
    check("CUDA_VISIBLE_DEVICES=GPU-aa1", &["GPU-aa11"]);
    check("CUDA_VISIBLE_DEVICES=MIG-x2", &["MIG-x2"]);
    check("CUDA_VISIBLE_DEVICES=1,x,0", &["GPU-aa22"]);
    check(
        "CUDA_DEVICE_ORDER=FASTEST_FIRST CUDA_VISIBLE_DEVICES=GPU-aa2",
        &["GPU-aa22"],
    );
    check(SLURM, &["GPU-aa22"]);
    for nothing in ["CUDA_VISIBLE_DEVICES=1,0,1", "CUDA_VISIBLE_DEVICES="] {
        assert_eq!(workers("cuda", nothing), ["nothing"], "{nothing}");
    }
}

fn rocm() {
    let check = |inherited: &str, names: &[&str]| {
        let only = |name: &&str| format!("{name}: ROCR_VISIBLE_DEVICES={name}");
        let expected: Vec<String> = names.iter().map(only).collect();
        assert_eq!(workers("rocm", inherited), expected, "{inherited}");
    };
    check(SLURM, &["GPU-aa22"]);
    check(
        "ROCR_VISIBLE_DEVICES=1,0 HIP_VISIBLE_DEVICES=1",
        &["GPU-aa11"],
    );
    check("GPU_DEVICE_ORDINAL=0", &["GPU-aa11"]);
    let trap = "ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1";
    assert_eq!(workers("rocm", trap), ["nothing"]);
}

fn level_zero() {
    let composite = "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE";
    let tiles = workers("level-zero", &format!("{composite} ZE_AFFINITY_MASK=1,0.1"));
    let expected = [
        format!("level-zero:0.1: ZE_AFFINITY_MASK=0.1 {composite}"),
        format!("level-zero:1: ZE_AFFINITY_MASK=1 {composite}"),
    ];
    assert_eq!(tiles, expected);
    let flat = "ZE_FLAT_DEVICE_HIERARCHY=FLAT";
    let one = workers("level-zero", &format!("{flat} {SLURM}"));
    assert_eq!(one, [format!("level-zero:1: ZE_AFFINITY_MASK=1 {flat}")]);
    let refused = workers("level-zero", SLURM);
    assert!(
        refused[0].starts_with("refused: a device of Level Zero"),
        "{refused:?}"
    );
}

/// The worker sees what its coordinator sees, and picks by itself.
fn in_process() {
    let found = workers("in-process", "CUDA_VISIBLE_DEVICES=1 POCL_DEVICES=basic");
    assert_eq!(found.len(), 3);
    assert_eq!(found[1], "device:1: CUDA_VISIBLE_DEVICES=1");
}

/// Somebody between coordinator and worker changes what was meant.
fn refuses() {
    let ground = Ground::new();
    let meant = "GPU-aa22";
    let set = ("CUDA_VISIBLE_DEVICES", "0", "GPU-aa22");
    let left = ("HIP_VISIBLE_DEVICES", "1", "(unset)");
    for (name, value, wanted) in [set, left] {
        let script = format!("{name}={value} exec \"$0\" be-worker");
        let program = Program::new("/bin/sh").arg("-c").arg(script);
        let program = program.arg(std::env::current_exe().unwrap());
        let device = FleetDevice::new(meant).mask(Mask::named(Stack::Cuda, meant));
        let mut rules = rules();
        rules.quarantine = Duration::from_millis(10);
        let fleet = Fleet::builder(program).device(device).rules(rules);
        let fleet = fleet.setup(postcard::to_stdvec(&ground.plan).unwrap());
        let failure = fleet.build().unwrap().run(&records(2), |_| Ok(()));
        let text = failure.unwrap_err().to_string();
        let why = format!("it was assigned {name}={wanted} and sees {name}={value}");
        assert!(text.ends_with(&why), "{text}");
    }
    ground.nobody_is_left();
}
