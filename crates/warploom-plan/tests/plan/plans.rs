//! What plans look like.

use proptest::prelude::*;
use warploom_core::DType;
use warploom_plan::pipeline::Policy;
use warploom_plan::plan::PlanStep;
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, Speed, compile};

use crate::machine::{GIB, cpu, cuda, machine, opencl};
use crate::steady::steady;

const NUCLEI: &str = include_str!("../../../../examples/pipelines/nuclei.toml");

fn plane() -> Sources {
    Sources::plane(DType::U16, 2048, 2048)
}

#[test]
fn the_processor_needs_no_detection() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let plan = compile(&pipeline, &plane(), None, &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.explanation()));
}

#[test]
fn a_card_is_explained() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let status = machine([cpu(), cuda(0, 8 * GIB), opencl(0, 0, 8 * GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.explanation()));
}

#[test]
fn two_backends_on_one_card_meet_in_the_host() {
    let text = include_str!("../../../../examples/pipelines/two_backends.toml");
    let pipeline = Pipeline::from_toml(text).unwrap();
    let status = machine([cpu(), cuda(0, 8 * GIB), opencl(0, 0, 8 * GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.summary()));
}

#[test]
fn branches_have_types_of_their_own() {
    let text = include_str!("../../../../examples/pipelines/two_channels.toml");
    let pipeline = Pipeline::from_toml(text).unwrap();
    let sources = Sources::stack(DType::U16, 16, 512, 512).channels(["1", "2"]);
    let plan = compile(&pipeline, &sources, None, &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.summary()));
}

/// Every pipeline that comes with the project, on the processor and on a card, drawn and sent.
#[test]
fn every_example_compiles() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let status = machine([cpu(), cuda(0, 8 * GIB), opencl(0, 0, 8 * GIB)]);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let pipeline = Pipeline::from_toml(&text).unwrap();
        let mut sources = Sources::stack(DType::U16, 8, 128, 128).channels(["1", "2"]);
        if !text.contains("channel") {
            sources.record.channels.clear();
        }
        for constant in &pipeline.constants {
            let [z, y, x] = if constant.name.value == "psf" {
                [5, 9, 9]
            } else {
                [8, 128, 128]
            };
            let image = warploom_kernels::ImageType::stack(DType::F32, z, y, x);
            sources = sources.constant(&constant.name.value, image);
        }
        let plan = compile(&pipeline, &sources, Some(&status), &Options::default());
        let plan = plan.unwrap_or_else(|found| panic!("{}: {}", path.display(), found[0]));
        assert!(
            plan.warnings.is_empty(),
            "{}: {:?}",
            path.display(),
            plan.warnings
        );
        assert_eq!(ExecutionPlan::from_json(&plan.to_json()).unwrap(), plan);
        let drawn = plan.dot();
        for op in plan
            .variants
            .iter()
            .flat_map(|v| &v.steps)
            .flat_map(PlanStep::ops)
        {
            assert!(drawn.contains(&format!("/{}\"", op.name)), "{}", op.name);
        }
        count += 1;
    }
    assert!(count >= 6, "{count} pipelines");
}

/// Does a value have the shape that a schema says? As far as our schemas go: types, properties,
/// required ones, items, references and choices.
fn conforms(
    value: &serde_json::Value,
    schema: &serde_json::Value,
    root: &serde_json::Value,
) -> bool {
    use serde_json::Value;
    if let Some(name) = schema["$ref"].as_str() {
        let found = root.pointer(name.trim_start_matches('#'));
        return conforms(value, found.unwrap(), root);
    }
    let matching = |of: &str| {
        let choices = schema[of].as_array()?.iter();
        Some(
            choices
                .filter(|choice| conforms(value, choice, root))
                .count(),
        )
    };
    if matching("oneOf").is_some_and(|count| count != 1) || matching("anyOf") == Some(0) {
        return false;
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return false;
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        return false;
    }
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    let typed = match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        _ => true,
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let complete = required
        .clone()
        .all(|name| value.get(name.as_str().unwrap()).is_some());
    let known = schema["properties"].as_object();
    let others = value.as_object().into_iter().flatten();
    let others = others.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
    let allowed = match &schema["additionalProperties"] {
        Value::Null | Value::Bool(true) => true,
        Value::Bool(false) => others.clone().count() == 0,
        schema => others
            .clone()
            .all(|(_, value)| conforms(value, schema, root)),
    };
    let properties = known.into_iter().flatten();
    let inside = properties.clone().all(|(name, schema)| {
        value
            .get(name)
            .is_none_or(|value| conforms(value, schema, root))
    });
    let items = value.as_array().into_iter().flatten();
    let items = items
        .clone()
        .all(|item| schema["items"].is_null() || conforms(item, &schema["items"], root));
    typed && complete && inside && allowed && items
}

/// The schema that editors get says yes to every example, and no where the reader does.
#[test]
fn pipeline_files_are_what_their_schema_says() {
    let schema = warploom_plan::language::schema();
    let fits = |text: &str| {
        let data: serde_json::Value = toml::from_str(text).unwrap();
        conforms(&data, &schema, &schema)
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(fits(&text), "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 6, "{count} pipelines");
    let placed = "[[step]]\nchain = [{ op = \"sqrt\", memory = \"cupy\" }, \"abs\"]";
    assert!(fits(placed));
    for wrong in [
        "name = \"x\"",
        "nmae = \"x\"\n[[step]]\nop = \"sqrt\"",
        "foreach = \"plain\"\n[[step]]\nop = \"sqrt\"",
        "[[step]]\nop = \"sqrt_of_all\"",
        "[[step]]\nname = \"nothing\"",
        "[[step]]\nop = \"sqrt\"\nchain = [\"sqrt\"]",
        "[[step]]\nop = \"sqrt\"\nbranch = { by = \"channel\", 1 = [] }",
        "[[step]]\nbranch = { by = \"well\", 1 = [] }",
        "[[step]]\nchain = [{ memory = \"cupy\" }]",
        "[[step]]\nop = \"sqrt\"\n[[output]]\nof = \"sqrt\"",
    ] {
        assert!(!fits(wrong), "{wrong}");
        assert!(
            Pipeline::from_toml(wrong).is_err() || wrong.contains("sqrt_of_all"),
            "{wrong}"
        );
    }
}

#[test]
fn plans_are_what_their_schema_says() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let status = machine([cpu(), cuda(0, 8 * GIB)]);
    let schema = ExecutionPlan::schema();
    for status in [None, Some(&status)] {
        let plan = compile(&pipeline, &plane(), status, &Options::default()).unwrap();
        let mut data: serde_json::Value = serde_json::from_str(&plan.to_json()).unwrap();
        assert!(conforms(&data, &schema, &schema));
        // The schema does not say yes to everything.
        data["memory"]["depth"] = "two".into();
        assert!(!conforms(&data, &schema, &schema));
        data["memory"].as_object_mut().unwrap().remove("depth");
        assert!(!conforms(&data, &schema, &schema));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any machine, any policy, any order of devices and backends: the same plan, to the byte.
    #[test]
    fn i5_a_plan_is_a_pure_function_of_what_goes_in(
        cards in proptest::collection::vec((0..3_u32, 1..9_u64), 1..5),
        policy in 0..5_usize,
        order in any::<u64>(),
        measured in any::<bool>(),
    ) {
        let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
        let mut devices = vec![cpu()];
        for (at, (backend, memory)) in (0_u32..).zip(&cards) {
            devices.push(match backend {
                0 => cuda(at, memory * GIB),
                1 => opencl(at, at, memory * GIB),
                // A second face of the card before it.
                _ => opencl(at, at.saturating_sub(1), memory * GIB),
            });
        }
        let mut options = Options::default();
        options.placement = [None, Some(Policy::First), Some(Policy::Spread), Some(Policy::Fit), Some(Policy::Cost)][policy];
        if measured {
            options.calibration = devices.iter().map(|d| (d.id.to_string(), Speed::guess(true, false))).collect();
        }
        let before = (pipeline.clone(), options.clone());
        let first = compile(&pipeline, &plane(), Some(&machine(devices.clone())), &options).unwrap();
        let mut shuffled = devices.clone();
        let mut state = order;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
        }
        let mut status = machine(shuffled);
        let turns = usize::try_from(order % 4).unwrap();
        status.survey.backends.rotate_left(turns);
        let again = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
        prop_assert_eq!(&again.hash, &first.hash);
        prop_assert_eq!(again, first);
        prop_assert_eq!((pipeline, options), before);
    }
}

#[test]
fn cost_goes_by_what_was_measured() {
    let text = "placement = \"cost\"\n[[step]]\nop = \"median_box\"\nradius = 3";
    let pipeline = Pipeline::from_toml(text).unwrap();
    let status = machine([cpu(), cuda(0, GIB), cuda(1, GIB)]);
    let mut options = Options::default();
    let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
    told_as(&plan, false);
    let slow = Speed::guess(false, true);
    let fast = Speed::guess(true, false);
    for (winner, others) in [
        ("cpu:0", ["cuda:0", "cuda:1"]),
        ("cuda:1", ["cpu:0", "cuda:0"]),
    ] {
        options.calibration.clear();
        options.calibration.insert(winner.to_owned(), fast);
        for other in others {
            options.calibration.insert(other.to_owned(), slow);
        }
        let plan = compile(&pipeline, &plane(), Some(&status), &options).unwrap();
        assert_eq!(plan.device.faces, [winner], "{}", plan.explanation());
        told_as(&plan, true);
    }
}

fn told_as(plan: &ExecutionPlan, measured: bool) {
    assert_eq!(plan.estimate.measured, measured);
    let said = if measured {
        "measured)"
    } else {
        "was not measured)"
    };
    assert!(plan.summary().contains(said), "{}", plan.summary());
}

#[test]
fn plans_survive_the_journey_and_changes_show() {
    let pipeline = Pipeline::from_toml(NUCLEI).unwrap();
    let plan = compile(&pipeline, &plane(), None, &Options::default()).unwrap();
    let text = plan.to_json();
    assert_eq!(ExecutionPlan::from_json(&text).unwrap(), plan);
    let forged = text.replacen("\"depth\": 3", "\"depth\": 9", 1);
    assert_ne!(forged, text);
    insta::assert_snapshot!(ExecutionPlan::from_json(&forged).unwrap_err());
    let older = text.replacen("\"version\": 2", "\"version\": 0", 1);
    insta::assert_snapshot!(ExecutionPlan::from_json(&older).unwrap_err());
    assert!(ExecutionPlan::from_json("{").is_err());
    assert!(plan.dot().starts_with("digraph"));
    assert!(ExecutionPlan::schema()["properties"]["variants"].is_object());
}

/// What is in names stands for itself: a backslash was the start of whatever followed it.
#[test]
fn pictures_show_names_as_they_are() {
    let text = "name = 'a\\n\"b\\'\n[[step]]\nop = \"sqrt\"";
    let pipeline = Pipeline::from_toml(text).unwrap();
    assert_eq!(pipeline.name.value, "a\\n\"b\\");
    let plan = compile(&pipeline, &plane(), None, &Options::default()).unwrap();
    insta::assert_snapshot!(plan.dot());
}

#[test]
fn file_and_builder_say_the_same() {
    use warploom_plan::pipeline::{OpUse, Step};
    let text = r#"
        name = "p"
        [[step]]
        name = "limits"
        op = "percentiles"
        q = [1, 99]
        [[step]]
        name = "bright"
        op = "greater"
        input = "image"
        value = { from = "limits", item = 1 }
    "#;
    let built = Pipeline::new("p")
        .step(Step::new(
            "limits",
            OpUse::new("percentiles").with("q", [1_i64, 99]),
        ))
        .step(
            Step::new(
                "bright",
                OpUse::new("greater").with_computed("value", "limits", "1"),
            )
            .reads(["image"]),
        );
    assert_eq!(Pipeline::from_toml(text).unwrap(), built);
    let plan = compile(&built, &plane(), None, &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.summary()));
}
