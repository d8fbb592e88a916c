//! The union of devices: table tests with made-up identities, and properties over random ones.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod scripted;

use proptest::prelude::*;
use rstest::rstest;
use scripted::gpu;
use warploom_core::{BackendId, DeviceInfo, DeviceKind, Luid, PhysicalKey, Survey, Uuid};

/// A device from a short text: `cuda:0 pci=41 uuid=1 luid=9 soft`. The numbers stand for whole
/// addresses.
fn device(text: &str) -> DeviceInfo {
    let mut words = text.split_whitespace();
    let (backend, ordinal) = words.next().unwrap().split_once(':').unwrap();
    let mut info = gpu(backend, ordinal.parse().unwrap());
    for word in words {
        match word.split_once('=') {
            Some(("pci", bus)) => {
                info.key.pci = Some(format!("0000:{bus}:00.0").parse().unwrap());
            }
            Some(("uuid", n)) => info.key.uuid = Some(Uuid([n.parse().unwrap(); 16])),
            Some(("luid", n)) => info.key.luid = Some(Luid([n.parse().unwrap(); 8])),
            Some(("name", name)) => name.clone_into(&mut info.name),
            Some(("mem", gib)) => info.total_memory = gib.parse::<u64>().unwrap() << 30,
            _ if word == "soft" => {
                info.software = true;
                info.kind = DeviceKind::Cpu;
            }
            _ => panic!("what is {word}?"),
        }
    }
    info
}

/// `gpu0 = cuda:0 + opencl:0; gpu1 = …`
fn printed(survey: &Survey) -> String {
    let line = |device: &warploom_core::PhysicalDevice| {
        let faces: Vec<String> = device.faces.iter().map(|f| f.id.to_string()).collect();
        format!("{} = {}", device.name, faces.join(" + "))
    };
    survey
        .devices
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("; ")
}

fn unite(devices: &[&str]) -> Survey {
    Survey::unite(Vec::new(), devices.iter().map(|text| device(text)))
}

#[rstest]
#[case::two_backends_by_pci(&["cuda:0 pci=41", "opencl:0 pci=41"], "gpu0 = cuda:0 + opencl:0")]
#[case::three_backends_in_three_orders(
    &["cuda:0 pci=41", "cuda:1 pci=c1", "opencl:0 pci=c1", "opencl:1 pci=41", "wgpu:0 pci=c1", "wgpu:1 pci=41"],
    "gpu0 = cuda:0 + opencl:1 + wgpu:1; gpu1 = cuda:1 + opencl:0 + wgpu:0"
)]
#[case::four_backends_by_mixed_evidence(
    &["cuda:0 pci=41 uuid=1", "opencl:0 uuid=1 luid=5", "wgpu:0 pci=41", "metal:0 luid=5"],
    "gpu0 = cuda:0 + metal:0 + opencl:0 + wgpu:0"
)]
#[case::twin_cards_share_a_name_only(&["cuda:0 pci=41", "cuda:1 pci=42"], "gpu0 = cuda:0; gpu1 = cuda:1")]
#[case::twins_across_backends_without_identity(&["cuda:0", "opencl:0"], "gpu0 = cuda:0; gpu1 = opencl:0")]
#[case::pci_beats_uuid(&["cuda:0 pci=41 uuid=1", "opencl:0 pci=42 uuid=1"], "gpu0 = cuda:0; gpu1 = opencl:0")]
#[case::uuid_where_pci_is_missing(&["cuda:0 pci=41 uuid=1", "wgpu:0 uuid=1"], "gpu0 = cuda:0 + wgpu:0")]
#[case::luid_last(&["cuda:0 luid=3", "wgpu:0 luid=3"], "gpu0 = cuda:0 + wgpu:0")]
#[case::different_uuids_beat_an_equal_luid(
    &["cuda:0 uuid=1 luid=3", "wgpu:0 uuid=2 luid=3"],
    "gpu0 = cuda:0; gpu1 = wgpu:0"
)]
#[case::mig_slices_share_an_address_and_are_told_apart_by_uuid(
    &["cuda:0 pci=41 uuid=11", "cuda:1 pci=41 uuid=12", "opencl:0 pci=41 uuid=12"],
    "gpu0 = cuda:0; gpu1 = cuda:1 + opencl:0"
)]
#[case::one_mig_slice_and_the_whole_card(
    &["cuda:0 pci=41 uuid=11 mem=10", "wgpu:0 pci=41 uuid=1 mem=80"],
    "gpu0 = cuda:0 + wgpu:0"
)]
#[case::a_uuid_repeated_by_a_sloppy_driver(
    &["cuda:0 uuid=1", "cuda:1 uuid=1", "opencl:0 uuid=1"],
    "gpu0 = cuda:0; gpu1 = cuda:1; gpu2 = opencl:0"
)]
#[case::a_repeated_uuid_does_not_undo_addresses(
    &["cuda:0 pci=41 uuid=1", "cuda:1 pci=42 uuid=1", "opencl:0 pci=42 uuid=1", "wgpu:0 uuid=1"],
    "gpu0 = cuda:0; gpu1 = cuda:1 + opencl:0; gpu2 = wgpu:0"
)]
#[case::software_never_merges(
    &["opencl:0 uuid=1 soft", "wgpu:0 uuid=1 soft", "wgpu:1 uuid=1 soft", "cpu:0 soft"],
    "cpu = cpu:0; soft0 = opencl:0; soft1 = wgpu:0; soft2 = wgpu:1"
)]
#[case::software_does_not_merge_with_hardware(
    &["cuda:0 uuid=1", "wgpu:0 uuid=1 soft"],
    "gpu0 = cuda:0; soft0 = wgpu:0"
)]
#[case::hardware_first_by_address(
    &["opencl:0 soft", "wgpu:0 pci=c1", "cuda:0 pci=41", "vulkan:0"],
    "gpu0 = cuda:0; gpu1 = wgpu:0; gpu2 = vulkan:0; soft0 = opencl:0"
)]
fn devices_unite(#[case] devices: &[&str], #[case] expected: &str) {
    assert_eq!(printed(&unite(devices)), expected);
}

#[test]
fn a_contradiction_is_told() {
    let survey = unite(&["cuda:0 uuid=1", "cuda:1 uuid=1", "opencl:0 uuid=1"]);
    assert_eq!(
        survey.notes,
        [
            "cuda:0, cuda:1, opencl:0 share UUID 01010101-0101-0101-0101-010101010101, \
          but cannot all be one device; not merged on that evidence"
        ]
    );
}

#[test]
fn a_card_claims_no_more_than_its_humblest_face() {
    let survey = unite(&[
        "cuda:0 pci=41 mem=10 name=L40-MIG",
        "wgpu:0 pci=41 mem=80 name=L40",
    ]);
    let card = &survey.devices[0];
    assert_eq!(card.total_memory, 10 << 30);
    assert_eq!(card.label, "L40-MIG");
    assert_eq!(card.ledger_key(), "pci-0000-41-00.0");
    assert!(card.face(BackendId::new("wgpu")).is_some());
    assert!(card.face(BackendId::new("opencl")).is_none());
}

#[test]
fn slices_of_one_card_have_ledgers_of_their_own() {
    let mut first = device("cuda:0 pci=41 uuid=11");
    let mut second = device("cuda:0 pci=41 uuid=12");
    (first.key.slice, second.key.slice) = (true, true);
    // As two processes see it, each with its own slice; one also reaches the whole card.
    let card = device("wgpu:0 pci=41 uuid=1");
    let key = |devices: Vec<DeviceInfo>| {
        let survey = Survey::unite(Vec::new(), devices);
        assert_eq!(survey.devices.len(), 1);
        survey.devices[0].ledger_key()
    };
    let uuid = |n: &str| format!("{n}{n}{n}{n}-{n}{n}-{n}{n}-{n}{n}-{n}{n}{n}{n}{n}{n}");
    assert_eq!(
        key(vec![first, card]),
        format!("pci-0000-41-00.0-{}", uuid("0b"))
    );
    assert_eq!(
        key(vec![second]),
        format!("pci-0000-41-00.0-{}", uuid("0c"))
    );
}

#[test]
fn cards_are_found_by_any_of_their_names() {
    let survey = unite(&["cuda:0 pci=41", "wgpu:3 pci=41", "cpu:0 soft"]);
    for name in ["gpu0", "cuda:0", "wgpu:3"] {
        assert_eq!(survey.find(name).unwrap().name, "gpu0");
    }
    assert!(survey.find("wgpu:0").is_none());
    assert_eq!(
        survey.usable().len(),
        1,
        "software is not used beside a GPU"
    );
}

#[test]
fn a_survey_survives_serde() {
    let survey = unite(&["cuda:0 pci=41 uuid=1", "opencl:0 uuid=1", "cpu:0 soft"]);
    let text = serde_json::to_string(&survey).unwrap();
    assert_eq!(serde_json::from_str::<Survey>(&text).unwrap(), survey);
}

/// Few identities, so that collisions and contradictions are the rule.
fn any_device(at: u32) -> impl Strategy<Value = DeviceInfo> {
    let backends = prop::sample::select(vec!["cuda", "opencl", "wgpu", "metal"]);
    let number = || prop::option::of(0_u8..4);
    (
        backends,
        number(),
        number(),
        number(),
        prop::bool::weighted(0.2),
    )
        .prop_map(move |(backend, pci, uuid, luid, software)| {
            let mut info = gpu(backend, at);
            info.key = PhysicalKey {
                pci: pci.map(|bus| format!("0000:{bus:02x}:00.0").parse().unwrap()),
                uuid: uuid.map(|n| Uuid([n; 16])),
                luid: luid.map(|n| Luid([n; 8])),
                slice: false,
            };
            info.software = software;
            info
        })
}

fn any_devices() -> impl Strategy<Value = (Vec<DeviceInfo>, Vec<DeviceInfo>)> {
    (0_usize..12)
        .prop_flat_map(|n| {
            (0..n)
                .map(|at| any_device(u32::try_from(at).unwrap()))
                .collect::<Vec<_>>()
        })
        .prop_flat_map(|devices| (Just(devices.clone()), Just(devices).prop_shuffle()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_order_gives_the_same_survey((devices, shuffled) in any_devices()) {
        prop_assert_eq!(
            Survey::unite(Vec::new(), devices),
            Survey::unite(Vec::new(), shuffled)
        );
    }

    #[test]
    fn every_device_is_a_face_of_exactly_one_card((devices, _) in any_devices()) {
        let survey = Survey::unite(Vec::new(), devices.clone());
        let mut faces: Vec<_> = survey.devices.iter().flat_map(|d| d.faces.iter().map(|f| f.id)).collect();
        let mut ids: Vec<_> = devices.iter().map(|d| d.id).collect();
        faces.sort_unstable();
        ids.sort_unstable();
        prop_assert_eq!(faces, ids);
    }

    #[test]
    fn two_devices_of_one_backend_are_never_one((devices, _) in any_devices()) {
        for card in Survey::unite(Vec::new(), devices).devices {
            let mut backends: Vec<_> = card.faces.iter().map(|f| f.id.backend).collect();
            let all = backends.len();
            backends.sort_unstable();
            backends.dedup();
            prop_assert_eq!(backends.len(), all);
        }
    }

    #[test]
    fn software_stands_alone((devices, _) in any_devices()) {
        for card in Survey::unite(Vec::new(), devices).devices {
            prop_assert!(!card.software || card.faces.len() == 1);
        }
    }

    #[test]
    fn a_card_has_one_address((devices, _) in any_devices()) {
        for card in Survey::unite(Vec::new(), devices).devices {
            let mut pci: Vec<_> = card.faces.iter().filter_map(|f| f.key.pci).collect();
            pci.sort_unstable();
            pci.dedup();
            prop_assert!(pci.len() <= 1, "{pci:?}");
        }
    }

    #[test]
    fn names_are_unique((devices, _) in any_devices()) {
        let survey = Survey::unite(Vec::new(), devices);
        let mut names: Vec<_> = survey.devices.iter().map(|d| &d.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        prop_assert_eq!(names.len(), all);
    }
}
