//! Whatever is written for parameters, the answer is a value or an error, and values survive being
//! written down.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use proptest::prelude::*;
use warploom_core::{Coded as _, DType};
use warploom_kernels::ImageType;
use warploom_kernels::op::{Given, GivenValue, OpCall, OpInfo, Params, find, ops};

fn any_op() -> impl Strategy<Value = &'static OpInfo> {
    let all: Vec<&'static OpInfo> = ops().collect();
    proptest::sample::select(all)
}

/// Texts that look like values, and texts that do not.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<f64>().prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        "-?[0-9]{1,3}(\\.[0-9])?([,;]-?[0-9]{1,3}){0,17}[,;]?",
        "(clamp|zero|wrap|reflect|u8|f32|f16|true|false|yes|nan|inf|-inf|1e400|box|diamond)",
        "\\PC{0,80}",
        any::<String>(),
    ]
}

fn any_given() -> impl Strategy<Value = GivenValue> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(GivenValue::Flag),
        any::<i64>().prop_map(GivenValue::Integer),
        any::<f64>().prop_map(GivenValue::Number),
        any_value().prop_map(GivenValue::Text),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop::collection::vec(inner, 0..6).prop_map(GivenValue::List)
    })
}

fn any_image() -> impl Strategy<Value = ImageType> {
    let dtype = proptest::sample::select(DType::ALL);
    let extent = || prop_oneof![0_u64..9, 0_u64..100_000, any::<u64>()];
    (dtype, extent(), extent(), extent(), 0_u8..3).prop_map(|(dtype, z, y, x, rank)| {
        if rank == 2 {
            ImageType::plane(dtype, y, x)
        } else {
            ImageType::stack(dtype, z, y, x)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(texts in prop::collection::vec(any::<String>(), 0..4)) {
        if let Err(error) = Given::parse(&texts) {
            prop_assert!(!error.to_string().contains('\n'));
            prop_assert!(error.help().is_some());
        }
    }

    #[test]
    fn any_values_on_any_images_are_a_call_or_an_error(
        op in any_op(),
        values in prop::collection::vec((any::<prop::sample::Index>(), any_given()), 0..6),
        images in prop::collection::vec(any_image(), 0..4),
    ) {
        let names: Vec<&str> = op.params().map(|param| param.name).chain(["sigm"]).collect();
        let mut given = Given::new();
        for (index, value) in values {
            given = given.with(names[index.index(names.len())], value);
        }
        match OpCall::new(op.name, &given, &images) {
            Ok(call) => {
                let text = call.output().to_string();
                prop_assert!(!text.is_empty());
            }
            Err(error) => {
                prop_assert!(error.to_string().chars().count() < 400, "{error}");
                prop_assert!(error.help().unwrap().contains(op.name), "{error:?}");
            }
        }
    }

    /// The same, but with values that are mostly right, so that calls are reached.
    #[test]
    fn values_survive_being_written_down(
        op in any_op(),
        values in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 0..4),
    ) {
        let names: Vec<&str> = op.params().map(|param| param.name).collect();
        let mut given = Given::new();
        for (index, value) in values {
            if let Some(name) = names.get(index.index(names.len().max(1))) {
                given = given.with(*name, value);
            }
        }
        if let Ok(params) = Params::read(op, &given) {
            let written = serde_json::to_string(&params).unwrap();
            let again: Given = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(Params::read(op, &again).unwrap(), params);
        }
    }
}

#[test]
fn typed_values_mean_the_same_as_texts() {
    let op = find("affine_linear").unwrap();
    let table = r#"{"matrix": [[1, 0, 0.5], [0, 1, -2]], "offset": [1, 2]}"#;
    let typed: Given = serde_json::from_str(table).unwrap();
    let text = Given::parse(["matrix=1,0,0.5;0,1,-2", "offset=1,2"]).unwrap();
    assert_eq!(Params::read(op, &typed), Params::read(op, &text));
    let built = Given::new()
        .with("matrix", [[1.0, 0.0, 0.5], [0.0, 1.0, -2.0]])
        .with("offset", [1, 2]);
    assert_eq!(Params::read(op, &built), Params::read(op, &text));
}

#[test]
fn a_name_given_twice_in_a_table_is_refused() {
    let op = find("gaussian").unwrap();
    let given: Given = serde_json::from_str(r#"{"sigma": 1, "sigma": 2}"#).unwrap();
    let error = Params::read(op, &given).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parameter `sigma` of gaussian is given twice"
    );
}
