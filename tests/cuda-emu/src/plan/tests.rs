use std::time::Duration;

use super::*;
use crate::driver::Status;

fn read(variables: &[(&'static str, &str)]) -> Result<Plan, PlanError> {
    let variable = |name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Plan::read(variable, &|name| name.starts_with("cuMem"))
}

fn refused(variable: &'static str, value: &str) -> String {
    let error = read(&[(variable, value)]).expect_err("it should be refused");
    assert_eq!((error.variable, error.value.as_str()), (variable, value));
    error.to_string()
}

fn devices(list: &str) -> Vec<DeviceSpec> {
    read(&[("WARPLOOM_EMU_DEVICES", list)]).unwrap().machine
}

#[test]
fn nothing_set_gives_two_distinct_devices() {
    let plan = read(&[]).unwrap();
    assert_eq!(plan.visible, [0, 1]);
    assert_eq!(plan.jitter, Duration::from_micros(100));
    assert_eq!(plan.log, Log::Faults);
    let [a, b] = &plan.machine[..] else {
        panic!("{:?}", plan.machine)
    };
    for device in [a, b] {
        assert_eq!(device.name, "Warploom emulated GPU");
        assert_eq!(device.memory, 2 << 30);
        assert_eq!(device.capability, (8, 0));
    }
    assert!(a.uuid != b.uuid && a.pci != b.pci);
}

#[test]
fn a_count_may_be_zero() {
    assert!(devices("0").is_empty());
    assert_eq!(devices("5").len(), 5);
    assert!(refused("WARPLOOM_EMU_DEVICES", "65").contains("at most 64"));
}

#[test]
fn a_list_sets_what_it_says_and_leaves_the_rest() {
    let list = "name=RTX 6000, memory=512MiB ,cc=8.9,pci=0001:41:02.0,\
                uuid=GPU-01234567-89ab-cdef-0123-456789abcdef;memory=1000;;";
    let found = devices(list);
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].name, "Warploom emulated RTX 6000");
    assert_eq!(found[0].memory, 512 << 20);
    assert_eq!(found[0].capability, (8, 9));
    assert_eq!(found[0].pci.to_string(), "0001:41:02.0");
    assert_eq!(
        found[0].uuid.to_string(),
        "01234567-89ab-cdef-0123-456789abcdef"
    );
    assert_eq!((found[1].memory, found[1].capability), (1000, (8, 0)));
    assert_eq!(found[2], device::usual(3)[2]);
}

#[test]
fn names_never_pretend_to_be_real() {
    let found = devices("name=Warploom emulated A100;name=NVIDIA A100");
    assert_eq!(found[0].name, "Warploom emulated A100");
    assert_eq!(found[1].name, "Warploom emulated NVIDIA A100");
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("WARPLOOM_EMU_DEVICES", "two", "`two` is no field"),
        (
            "WARPLOOM_EMU_DEVICES",
            "memory=2;colour=red",
            "device 1: no field is called `colour`",
        ),
        ("WARPLOOM_EMU_DEVICES", "memory=2MB", "`2MB` is no size"),
        ("WARPLOOM_EMU_DEVICES", "memory=0", "`0` is no size"),
        (
            "WARPLOOM_EMU_DEVICES",
            "cc=80",
            "`80` is no compute capability",
        ),
        ("WARPLOOM_EMU_DEVICES", "pci=0000:41:20.0", "no PCI address"),
        ("WARPLOOM_EMU_DEVICES", "uuid=GPU-123", "no UUID"),
        (
            "WARPLOOM_EMU_DEVICES",
            "pci=1:0.0;pci=0000:01:00.0",
            "devices 0 and 1",
        ),
        ("WARPLOOM_EMU_SEED", "-1", "whole number"),
        ("WARPLOOM_EMU_JITTER", "1ms", "whole number"),
        ("WARPLOOM_EMU_LOG", "loud", "`quiet`, `faults` or `calls`"),
        ("WARPLOOM_EMU_PINNED", "lots", "`lots` is no size"),
        ("WARPLOOM_EMU_DRIVER", "12", "such as `12.0`"),
        ("WARPLOOM_EMU_WORKERS", "0", "1 to 64"),
        (
            "WARPLOOM_EMU_FAIL",
            "cuMemAlloc_v2=OUT_OF_MEMORY",
            "`function#number=ERROR`",
        ),
        (
            "WARPLOOM_EMU_FAIL",
            "cuNothing#1=UNKNOWN",
            "no driver call `cuNothing`",
        ),
        (
            "WARPLOOM_EMU_FAIL",
            "cuMemAlloc#0=UNKNOWN",
            "counted from 1",
        ),
        ("WARPLOOM_EMU_FAIL", "cuMemAlloc#1=SUCCESS", "no CUDA error"),
        ("WARPLOOM_EMU_LOSE", "0", "`device@launches`"),
        ("WARPLOOM_EMU_LOSE", "2@1", "there are 2 devices"),
    ];
    for (variable, value, words) in cases {
        let message = refused(variable, value);
        assert!(message.contains(words), "{message}");
        assert!(message.starts_with(variable), "{message}");
    }
}

#[test]
fn empty_variables_are_unset() {
    let plan = read(&[("WARPLOOM_EMU_DEVICES", " "), ("WARPLOOM_EMU_SEED", "")]).unwrap();
    assert_eq!((plan.machine.len(), plan.seed), (2, 0));
}

#[test]
fn failures_are_read() {
    let rules = "cuMemAlloc_v2#3=OUT_OF_MEMORY; cuMemFree#1+=719 ;";
    let plan = read(&[("WARPLOOM_EMU_FAIL", rules)]).unwrap();
    let failure = |function: &str, nth, onwards, status| Failure {
        function: function.to_owned(),
        nth,
        onwards,
        status,
    };
    let want = [
        failure("cuMemAlloc_v2", 3, false, Status::OUT_OF_MEMORY),
        failure("cuMemFree", 1, true, Status::LAUNCH_FAILED),
    ];
    assert_eq!(plan.failures, want);
}

#[test]
fn losses_are_read() {
    let plan = read(&[("WARPLOOM_EMU_LOSE", "0@5;1@0=CUDA_ERROR_UNKNOWN")]).unwrap();
    let loss = |device, launches, status| Loss {
        device,
        launches,
        status,
    };
    let want = [
        loss(0, 5, Status::ECC_UNCORRECTABLE),
        loss(1, 0, Status::UNKNOWN),
    ];
    assert_eq!(plan.losses, want);
}

fn visible(mask: &str) -> Vec<usize> {
    let list = "uuid=GPU-aaaa0000000000000000000000000001;\
                uuid=GPU-aabb0000000000000000000000000002;\
                uuid=GPU-cc000000000000000000000000000003,mig=MIG-10000000000000000000000000000001;\
                uuid=GPU-cc000000000000000000000000000003,mig=MIG-20000000000000000000000000000002,\
                pci=77:00.0";
    let variables = [
        ("WARPLOOM_EMU_DEVICES", list),
        ("CUDA_VISIBLE_DEVICES", mask),
    ];
    read(&variables).unwrap().visible
}

#[test]
fn masks_choose_as_cuda_does() {
    assert_eq!(visible("2,0"), [2, 0]);
    assert_eq!(visible(" 1 , 3 "), [1, 3]);
    assert_eq!(visible(""), [0; 0], "empty hides all");
    assert_eq!(visible("-1"), [0; 0]);
    assert_eq!(visible("0,9,1"), [0], "the first wrong entry ends the list");
    assert_eq!(visible("0,1,0"), [0; 0], "a repeated entry voids the list");
    assert_eq!(
        visible("GPU-aabb0000-0000-0000-0000-000000000002,0"),
        [1, 0]
    );
    assert_eq!(visible("GPU-AAAA"), [0], "a prefix is enough, in any case");
    assert_eq!(
        visible("GPU-aa"),
        [0; 0],
        "an ambiguous prefix names nothing"
    );
    assert_eq!(visible("GPU-cc"), [0; 0], "a divided card is no device");
    assert_eq!(visible("MIG-2"), [3]);
}
