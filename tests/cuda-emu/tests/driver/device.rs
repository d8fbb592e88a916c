//! Devices.

use warploom_cuda_emu::driver::ffi::CUuuid;

use crate::Scene;
use crate::rig::*;

const TWO: &str = "name=A,memory=64MiB,cc=9.0,pci=0000:41:00.0,\
                   uuid=GPU-01234567-89ab-cdef-0123-456789abcdef;\
                   mig=MIG-11111111-2222-3333-4444-555555555555";

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("two_devices_by_default", two_devices_by_default),
    Scene::new("devices_are_as_planned", devices_are_as_planned)
        .with(&[("WARPLOOM_EMU_DEVICES", TWO)]),
    Scene::new("a_mask_reorders_devices", a_mask_reorders_devices).with(&[
        ("WARPLOOM_EMU_DEVICES", TWO),
        ("CUDA_VISIBLE_DEVICES", "MIG-1111,GPU-0123"),
    ]),
    Scene::new("attributes", attributes),
];

fn name(device: i32) -> String {
    let mut text = [0_u8; 64];
    ok!(cuDeviceGetName(
        TextRoom::new(text.as_mut_ptr().cast()),
        64,
        device
    ));
    let end = text.iter().position(|byte| *byte == 0).unwrap();
    String::from_utf8(text[..end].to_vec()).unwrap()
}

fn pci(device: i32) -> String {
    let mut text = [0_u8; 13];
    ok!(cuDeviceGetPCIBusId(
        TextRoom::new(text.as_mut_ptr().cast()),
        13,
        device
    ));
    String::from_utf8(text[..12].to_vec()).unwrap()
}

fn uuids(device: i32) -> [[u8; 16]; 2] {
    let (mut card, mut part) = (CUuuid { bytes: [0; 16] }, CUuuid { bytes: [0; 16] });
    ok!(cuDeviceGetUuid(Out::new(&raw mut card), device));
    ok!(cuDeviceGetUuid_v2(Out::new(&raw mut part), device));
    [card.bytes, part.bytes]
}

fn two_devices_by_default() {
    ok!(cuInit(0));
    assert_eq!(made!(cuDeviceGetCount()), 2);
    for device in 0..2 {
        assert_eq!(made!(cuDeviceGet(device)), device);
        assert_eq!(name(device), "Warploom emulated GPU");
        assert_eq!(made!(cuDeviceTotalMem_v2(device)), 2_usize << 30);
        let [card, part] = uuids(device);
        assert_eq!(card, part);
    }
    assert_ne!(uuids(0), uuids(1));
    assert_ne!(pci(0), pci(1));
    assert_eq!(
        cu!(cuDeviceGetName(TextRoom::new(std::ptr::null_mut()), 1, 0)),
        Status::INVALID_VALUE
    );
    let mut total = 0_usize;
    assert_eq!(
        cu!(cuDeviceTotalMem_v2(Out::new(&raw mut total), 2)),
        Status::INVALID_DEVICE
    );
    assert_eq!(
        cu!(cuDeviceTotalMem_v2(Out::new(&raw mut total), -1)),
        Status::INVALID_DEVICE
    );
    let mut nodes = 0;
    let luid = cu!(cuDeviceGetLuid(
        std::ptr::null_mut(),
        Out::new(&raw mut nodes),
        0
    ));
    assert_eq!(luid, Status::NOT_SUPPORTED);
}

fn devices_are_as_planned() {
    ok!(cuInit(0));
    assert_eq!(name(0), "Warploom emulated A");
    assert_eq!(pci(0), "0000:41:00.0");
    assert_eq!(made!(cuDeviceGetByPCIBusId(Text::new(c"0000:41:00.0"))), 0);
    assert_eq!(made!(cuDeviceTotalMem_v2(0)), 64_usize << 20);
    assert_eq!(made!(cuDeviceGetAttribute(75, 0)), 9);
    assert_eq!(made!(cuDeviceGetAttribute(33, 0)), 0x41);
    assert_eq!(uuids(0)[0][..4], [0x01, 0x23, 0x45, 0x67]);
    let [card, part] = uuids(1);
    assert_ne!(card, part);
    assert_eq!(part[..4], [0x11; 4]);
}

fn a_mask_reorders_devices() {
    ok!(cuInit(0));
    assert_eq!(made!(cuDeviceGetCount()), 2);
    assert_eq!(name(0), "Warploom emulated GPU");
    assert_eq!(name(1), "Warploom emulated A");
    // Memory of the device with number 1 is that of the first of the machine.
    enter(1);
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(
        Out::new(&raw mut free),
        Out::new(&raw mut total)
    ));
    assert_eq!(total, 64 << 20);
}

fn attributes() {
    ok!(cuInit(0));
    let attribute = |number| made!(cuDeviceGetAttribute(number, 1));
    assert_eq!(attribute(1), 1024, "threads of a block");
    assert_eq!(attribute(10), 32, "threads of a warp");
    assert_eq!((attribute(75), attribute(76)), (8, 0));
    assert_eq!(attribute(18), 0, "integrated");
    assert_eq!(attribute(115), 1, "pools");
    let mut value = 0;
    let wrong = cu!(cuDeviceGetAttribute(Out::new(&raw mut value), 5000, 1));
    assert_eq!(wrong, Status::INVALID_VALUE);
    assert_eq!(made!(cuDeviceCanAccessPeer(0, 1)), 1);
    assert_eq!(made!(cuDeviceCanAccessPeer(1, 1)), 0);
}
