//! Masks as drivers read them, and what is made of them.

use rstest::rstest;

use super::*;
use crate::crew::FleetDevice;

fn cards() -> Vec<Card> {
    let card = |uuid: &str, slices: &[&str]| Card {
        uuid: Some(uuid.into()),
        slices: slices.iter().map(|&name| name.to_owned()).collect(),
    };
    vec![
        card("GPU-aa11", &[]),
        card("GPU-aa22", &[]),
        card("GPU-bb33", &["MIG-x1", "MIG-x2"]),
        card("GPU-cc44", &[]),
    ]
}

fn inherited(values: &[(&str, &str)]) -> Inherited {
    Inherited::new(values.iter().copied())
}

/// Test 8 of the acceptance list.
#[rstest]
#[case::unset(&[], "0 1 2 3")]
#[case::empty(&[("CUDA_VISIBLE_DEVICES", "")], "")]
#[case::index(&[("CUDA_VISIBLE_DEVICES", "2")], "2")]
#[case::order(&[("CUDA_VISIBLE_DEVICES", "3, 1")], "3 1")]
#[case::uuid(&[("CUDA_VISIBLE_DEVICES", "GPU-bb33")], "2")]
#[case::prefix(&[("CUDA_VISIBLE_DEVICES", "GPU-cc,GPU-aa2")], "3 1")]
#[case::prefix_in_capitals(&[("CUDA_VISIBLE_DEVICES", "GPU-CC,GPU-aA2")], "3 1")]
#[case::mig_in_capitals(&[("CUDA_VISIBLE_DEVICES", "MIG-X2")], "2/1")]
#[case::duplicate_in_capitals(&[("CUDA_VISIBLE_DEVICES", "GPU-CC44,GPU-cc44")], "")]
#[case::ambiguous(&[("CUDA_VISIBLE_DEVICES", "GPU-cc,GPU-aa,0")], "3")]
#[case::mig(&[("CUDA_VISIBLE_DEVICES", "MIG-x2")], "2/1")]
#[case::duplicate(&[("CUDA_VISIBLE_DEVICES", "1,0,1")], "")]
#[case::duplicate_in_disguise(&[("CUDA_VISIBLE_DEVICES", "1,GPU-aa22")], "")]
#[case::bad_entry(&[("CUDA_VISIBLE_DEVICES", "1,x,0")], "1")]
#[case::beyond(&[("CUDA_VISIBLE_DEVICES", "1,9,0")], "1")]
#[case::none(&[("CUDA_VISIBLE_DEVICES", "-1")], "")]
#[case::the_others_do_not_matter(
    &[("CUDA_VISIBLE_DEVICES", "1"), ("ROCR_VISIBLE_DEVICES", "0"), ("ZE_AFFINITY_MASK", "3")], "1"
)]
fn cuda_shows(#[case] values: &[(&str, &str)], #[case] expected: &str) {
    assert_eq!(shown(Stack::Cuda, values, &cards()), expected);
}

#[rstest]
#[case::unset(&[], "0 1 2 3")]
#[case::lowest(&[("ROCR_VISIBLE_DEVICES", "2,GPU-aa11")], "2 0")]
#[case::layered(&[("ROCR_VISIBLE_DEVICES", "2,3"), ("HIP_VISIBLE_DEVICES", "1")], "3")]
#[case::the_trap(&[("ROCR_VISIBLE_DEVICES", "2"), ("HIP_VISIBLE_DEVICES", "2")], "")]
#[case::slurm_sets_both(&[("ROCR_VISIBLE_DEVICES", "2"), ("CUDA_VISIBLE_DEVICES", "2")], "2")]
#[case::cuda_alone(&[("CUDA_VISIBLE_DEVICES", "2")], "2")]
#[case::opencl_alone(&[("GPU_DEVICE_ORDINAL", "1,3")], "1 3")]
#[case::slurm_sets_all(
    &[("ROCR_VISIBLE_DEVICES", "2"), ("GPU_DEVICE_ORDINAL", "2"), ("CUDA_VISIBLE_DEVICES", "2")], "2"
)]
fn rocm_shows(#[case] values: &[(&str, &str)], #[case] expected: &str) {
    assert_eq!(shown(Stack::Rocm, values, &cards()), expected);
}

/// Two cards, the first with two tiles.
fn tiled() -> Vec<Card> {
    let card = |tiles: &[&str]| Card {
        uuid: None,
        slices: tiles.iter().map(|&name| name.to_owned()).collect(),
    };
    vec![card(&["a", "b"]), card(&[])]
}

#[rstest]
#[case::unset(&[], "0 1 2 3")]
#[case::index(&[("ZE_AFFINITY_MASK", "2")], "2")]
#[case::the_driver_keeps_its_order(&[("ZE_AFFINITY_MASK", "3, 1,3")], "1 3")]
#[case::only_tile_of_a_card(&[("ZE_AFFINITY_MASK", "1.0")], "1")]
#[case::selector_of_all(&[("ZE_AFFINITY_MASK", "1"), ("ONEAPI_DEVICE_SELECTOR", "level_zero:*")], "1")]
#[case::selector_counts_in_what_is_left(
    &[("ZE_AFFINITY_MASK", "1,3"), ("ONEAPI_DEVICE_SELECTOR", "level_zero:1")], "3"
)]
#[case::the_others_do_not_matter(&[("CUDA_VISIBLE_DEVICES", "1"), ("ZE_AFFINITY_MASK", "3")], "3")]
fn level_zero_shows(#[case] values: &[(&str, &str)], #[case] expected: &str) {
    let whole = |_| Card::default();
    let cards: Vec<Card> = (0..4).map(whole).collect();
    assert_eq!(shown(Stack::LevelZero, values, &cards), expected);
}

#[rstest]
#[case::cards("COMPOSITE", None, "0 1")]
#[case::a_card("COMPOSITE", Some("0"), "0")]
#[case::a_tile_is_not_its_card("COMPOSITE", Some("0.1"), "0/1")]
#[case::both_tiles("COMPOSITE", Some("0.1,0.0"), "0/0 0/1")]
#[case::a_card_and_its_tile("COMPOSITE", Some("0.1,0"), "0")]
#[case::tiles("FLAT", None, "0/0 0/1 1")]
#[case::the_second_tile("FLAT", Some("1"), "0/1")]
#[case::the_second_card("COMBINED", Some("2"), "1")]
fn level_zero_counts_cards_or_tiles(
    #[case] hierarchy: &str,
    #[case] mask: Option<&str>,
    #[case] expected: &str,
) {
    let mut values = vec![("ZE_FLAT_DEVICE_HIERARCHY", hierarchy)];
    values.extend(mask.map(|mask| ("ZE_AFFINITY_MASK", mask)));
    assert_eq!(shown(Stack::LevelZero, &values, &tiled()), expected);
}

#[rstest]
#[case::who_counts_what(&[("ZE_AFFINITY_MASK", "1")], "does not say whether")]
#[case::a_tile_where_tiles_are_counted(
    &[("ZE_FLAT_DEVICE_HIERARCHY", "FLAT"), ("ZE_AFFINITY_MASK", "0.1")], "`0.1` means nothing"
)]
#[case::a_tile_that_is_not_there(
    &[("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE"), ("ZE_AFFINITY_MASK", "0.2")], "`0.2` means nothing"
)]
#[case::empty(
    &[("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE"), ("ZE_AFFINITY_MASK", "")], "`` means nothing"
)]
#[case::another_selector(
    &[("ZE_FLAT_DEVICE_HIERARCHY", "FLAT"), ("ONEAPI_DEVICE_SELECTOR", "opencl:0")],
    "say it with ZE_AFFINITY_MASK"
)]
fn level_zero_refuses_what_it_cannot_tell(#[case] values: &[(&str, &str)], #[case] why: &str) {
    let refused = inherited(values).shown(Stack::LevelZero, &tiled());
    let text = refused.expect_err("it cannot be told").to_string();
    assert!(text.contains(why), "{text}");
}

/// What workers get, by device.
#[rstest]
#[case::a_tile("COMPOSITE", "0.1,1", &[("level-zero:0.1", "0.1"), ("level-zero:1", "1")])]
#[case::flat("FLAT", "1,2", &[("level-zero:1", "1"), ("level-zero:2", "2")])]
fn level_zero_workers_get_what_was_given(
    #[case] hierarchy: &str,
    #[case] mask: &str,
    #[case] expected: &[(&str, &str)],
) {
    let values = [
        ("ZE_FLAT_DEVICE_HIERARCHY", hierarchy),
        ("ZE_AFFINITY_MASK", mask),
    ];
    let devices = inherited(&values).devices(Stack::LevelZero, &tiled());
    let devices = devices.expect("it can be told");
    let ids: Vec<&str> = devices.iter().map(FleetDevice::id).collect();
    assert_eq!(ids, expected.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for (device, (_, value)) in devices.iter().zip(expected) {
        let variables = device.mask.variables();
        assert!(variables.contains(&("ZE_AFFINITY_MASK", Some((*value).to_owned()))));
        assert!(variables.contains(&("ZE_FLAT_DEVICE_HIERARCHY", Some(hierarchy.to_owned()))));
        assert!(variables.contains(&("ONEAPI_DEVICE_SELECTOR", None)));
    }
}

fn shown(stack: Stack, values: &[(&str, &str)], cards: &[Card]) -> String {
    text(
        &inherited(values)
            .shown(stack, cards)
            .expect("it can be told"),
    )
}

fn text(shown: &[Shown]) -> String {
    let each = shown.iter().map(|shown| match shown.slice {
        None => shown.card.to_string(),
        Some(slice) => format!("{}/{slice}", shown.card),
    });
    each.collect::<Vec<_>>().join(" ")
}

fn whole(card: usize) -> Shown {
    Shown { card, slice: None }
}

#[test]
fn a_worker_sees_one_variable_of_one_vendor() {
    let slurm = inherited(&[
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("ROCR_VISIBLE_DEVICES", "1"),
        ("GPU_DEVICE_ORDINAL", "1"),
        ("ZE_AFFINITY_MASK", "1"),
    ]);
    let mask = Mask::only(Stack::Cuda, whole(1), &cards(), &slurm).expect("shown");
    let set: Vec<_> = mask
        .variables()
        .iter()
        .filter(|(_, value)| value.is_some())
        .collect();
    assert_eq!(
        set,
        [
            &("CUDA_VISIBLE_DEVICES", Some("GPU-aa22".to_owned())),
            &("CUDA_DEVICE_ORDER", Some("PCI_BUS_ID".to_owned())),
        ]
    );
    let removed = mask.variables().iter().filter(|(_, value)| value.is_none());
    assert_eq!(removed.count(), VARIABLES.len() - 1);

    let mask = Mask::only(Stack::Rocm, whole(1), &cards(), &slurm).expect("shown");
    assert!(
        mask.variables()
            .contains(&("ROCR_VISIBLE_DEVICES", Some("GPU-aa22".into())))
    );
    assert!(mask.variables().contains(&("CUDA_VISIBLE_DEVICES", None)));
}

#[test]
fn seven_breakages_an_allocation_is_never_left() {
    let given = inherited(&[("CUDA_VISIBLE_DEVICES", "2,3")]);
    let error = Mask::only(Stack::Cuda, whole(0), &cards(), &given).expect_err("not shown");
    assert_eq!(
        error.to_string(),
        "GPU-aa11 cannot be given to a worker: CUDA_VISIBLE_DEVICES was inherited as `2,3`, \
         which does not show it"
    );
    assert!(Mask::only(Stack::Cuda, whole(3), &cards(), &given).is_ok());
    // A card in slices is used by the slice.
    assert!(Mask::only(Stack::Cuda, whole(2), &cards(), &given).is_err());
    let slice = Shown {
        card: 2,
        slice: Some(0),
    };
    let mask = Mask::only(Stack::Cuda, slice, &cards(), &given).expect("shown");
    assert!(
        mask.variables()
            .contains(&("CUDA_VISIBLE_DEVICES", Some("MIG-x1".into())))
    );
    let slice_only = inherited(&[("CUDA_VISIBLE_DEVICES", "MIG-x2")]);
    assert!(Mask::only(Stack::Cuda, slice, &cards(), &slice_only).is_err());
}
