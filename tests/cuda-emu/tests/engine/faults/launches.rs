//! Launches that make no sense.

use warploom_cuda_emu::engine::{FaultKind, Launch, Rules, launch};

use super::module;
use crate::args;
use crate::rig::{Rig, Shape};

fn why(shape: Shape, directives: &str) -> Option<String> {
    let text = module("", "", "    ret;").replace(")\n{", &format!(")\n{directives}\n{{"));
    match Rig::new(&text).launch("k", shape, &[]) {
        Ok(()) => None,
        Err(fault) => match fault.kind {
            FaultKind::InvalidLaunch { why } => Some(why),
            other => panic!("{other}"),
        },
    }
}

#[test]
fn sizes_that_no_device_has() {
    assert_eq!(why(Shape::line(1, 1024), ""), None);
    assert_eq!(
        why(Shape::line(1, 1025), "").unwrap(),
        "a block of [1025, 1, 1] has 1025 threads; 1 to 1024 are possible"
    );
    assert!(why(Shape::line(1, 0), "").is_some());
    assert!(why(Shape::line(0, 1), "").is_some());
    let huge = Shape {
        grid: [u32::MAX; 3],
        block: [u32::MAX; 3],
        shared: 0,
    };
    assert!(why(huge, "").is_some());
    assert!(why(Shape::line(1, 1).with_shared(u32::MAX), "").is_some());
}

#[test]
fn sizes_that_the_kernel_excludes() {
    assert_eq!(why(Shape::line(1, 128), ".maxntid 128, 1, 1"), None);
    assert_eq!(
        why(Shape::line(1, 129), ".maxntid 128, 1, 1\n.minnctapersm 2").unwrap(),
        "a block of [129, 1, 1] has 129 threads; 1 to 128 are possible"
    );
    assert_eq!(why(Shape::line(1, 64), ".reqntid 64"), None);
    assert_eq!(
        why(Shape::line(1, 32), ".reqntid 64").unwrap(),
        "a block of [32, 1, 1]; the kernel requires [64, 1, 1]"
    );
}

#[test]
fn parameters_that_are_missing() {
    let text = module("", ".param .u64 a, .param .u32 b", "    ret;");
    let rig = Rig::new(&text);
    rig.run("k", Shape::line(1, 1), args!(1u64, 2u32));
    let kernel = rig.module.kernel("k").unwrap();
    let fault = launch(&Launch {
        kernel: &kernel,
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        params: &[0; 8],
        globals: &[],
        memory: &rig.memory,
        print: &|_| {},
        cancel: None,
        rules: Rules::default(),
    });
    let text = fault.unwrap_err().to_string();
    assert!(
        text.ends_with("8 bytes of parameters; the kernel has 12"),
        "{text}"
    );
}
