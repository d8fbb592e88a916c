//! What a desk refuses before anybody waits, and in which words.
#![cfg(not(warploom_shuttle))]

use rstest::rstest;
use tempfile::TempDir;
use warploom_core::{Coded as _, DeskDevice, LeaseCapacity, LeaseDesk, LeaseError, LeaseRequest};

const CAPACITY: LeaseCapacity = LeaseCapacity {
    slots: 4,
    bytes: 1000,
};

fn gpu(at: usize) -> DeskDevice {
    DeskDevice::new(format!("gpu{at}"), format!("pci-0000-4{at}-00.0"), CAPACITY)
}

#[rstest]
#[case(LeaseRequest::new(0, 1).label("probe"), "WL0124")]
#[case(LeaseRequest::new(5, 1), "WL0123")]
#[case(LeaseRequest::new(1, 1001), "WL0122")]
#[case(LeaseRequest::new(1, u64::MAX).on(["gpu0"]), "WL0122")]
#[case(LeaseRequest::new(u32::MAX, 0).on(["gpu1"]), "WL0123")]
#[case(LeaseRequest::new(1, 1).on(["gpu0", "gpu7"]), "WL0121")]
fn what_can_never_be_is_refused_at_once(
    #[values(false, true)] shared: bool,
    #[case] request: LeaseRequest,
    #[case] code: &str,
) {
    let dir = TempDir::new().unwrap();
    let devices = vec![gpu(0), gpu(1)];
    let desk = if shared {
        LeaseDesk::shared(devices, dir.path()).unwrap()
    } else {
        LeaseDesk::local(devices).unwrap()
    };
    let error = desk.lease(&request).unwrap_err();
    assert_eq!(error.code().to_string(), code);
    assert!(error.help().is_some());
    let tried = desk.try_lease(&request).unwrap_err();
    assert_eq!(tried, error);
}

#[test]
fn a_refusal_names_the_nearest_device_and_those_that_would_do() {
    let of = |name: &str, slots, bytes| DeskDevice::new(name, name, LeaseCapacity { slots, bytes });
    let devices = vec![
        of("small", 1, 100),
        of("wide", 8, 200),
        of("deep", 2, 3 << 30),
    ];
    let desk = LeaseDesk::local(devices).unwrap();
    let refused = |request: LeaseRequest| {
        let error = desk.lease(&request).unwrap_err();
        let help = error.help().unwrap();
        format!("{error} = {help}")
    };
    assert_eq!(
        refused(LeaseRequest::new(2, 1 << 30).on(["small", "wide"])),
        "1.0 GiB were asked of wide, which leases 200 B in all \
         = deep would do; or ask for at most 200 B: a smaller tile or depth needs less"
    );
    assert_eq!(
        refused(LeaseRequest::new(9, 0)),
        "9 slots were asked of wide, which has 8 = ask for at most 8 slots"
    );
    assert_eq!(
        refused(LeaseRequest::new(3, 500)),
        "500 B were asked of wide, which leases 200 B in all \
         = ask for at most 200 B: a smaller tile or depth needs less"
    );
    // A device that is too small is left out while another will do.
    let lease = desk.lease(&LeaseRequest::new(1, 150).on(["small", "wide"]));
    assert_eq!(lease.unwrap().device(), "wide");
}

#[rstest]
#[case(vec![gpu(0), gpu(0)], "its name is in the list twice")]
#[case(
    vec![gpu(0), DeskDevice::new("gpu1", gpu(0).key, CAPACITY)],
    "its key `pci-0000-40-00.0` is in the list twice"
)]
#[case(vec![DeskDevice::new("gpu0", "../evil", CAPACITY)], "its key `../evil` cannot name a file: \
    1 to 128 letters, digits, `.`, `-`, `_` are needed, the first a letter or digit")]
fn devices_that_cannot_be_told_apart_are_refused(
    #[case] devices: Vec<DeskDevice>,
    #[case] reason: &str,
) {
    let dir = TempDir::new().unwrap();
    for desk in [
        LeaseDesk::local(devices.clone()),
        LeaseDesk::shared(devices, dir.path()),
    ] {
        let Err(LeaseError::Device { why, .. }) = desk else {
            panic!("{desk:?}");
        };
        assert_eq!(why, reason);
    }
}

#[test]
fn a_desk_without_devices_says_so() {
    let error = LeaseDesk::local(vec![]).unwrap();
    let error = error.lease(&LeaseRequest::new(1, 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no device `any` to lease; known: nothing"
    );
}
