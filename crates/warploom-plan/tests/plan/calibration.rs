//! What was measured, on its way through files to plans.

use proptest::prelude::*;
use warploom_core::DType;
use warploom_plan::calibration::{CalibrationError, identity};
use warploom_plan::{Calibration, Options, Pipeline, Sources, Speed, compile};

use crate::machine::{GIB, cpu, cuda, machine};

fn speed(by: f64) -> Speed {
    let mut speed = Speed::guess(true, false);
    speed.machine.bytes_per_second *= by;
    speed.machine.operations_per_second *= by;
    (speed.up, speed.down) = (speed.up * by, speed.down / by);
    speed
}

fn both() -> Calibration {
    let mut calibration = Calibration::default();
    calibration.add(&cuda(0, GIB), speed(0.37), 1_700_000_000);
    calibration.add(&cpu(), Speed::guess(false, true), 1_700_000_001);
    calibration
}

#[test]
fn what_was_written_is_read() {
    let calibration = both();
    let text = calibration.to_json();
    assert_eq!(Calibration::from_json(&text).unwrap(), calibration);
    insta::assert_snapshot!(text);
}

#[test]
fn a_device_is_known_by_its_identity_and_not_by_its_number() {
    let calibration = both();
    // The same card has another number now, and another card its old one.
    let mut moved = cuda(0, GIB);
    moved.id.ordinal = 5;
    let mut other = cuda(7, GIB);
    other.id.ordinal = 0;
    let status = machine([cpu(), moved.clone(), other]);
    let speeds = calibration.speeds(&status.survey);
    let names: Vec<&String> = speeds.keys().collect();
    assert_eq!(names, ["cpu:0", "cuda:5"]);
    assert_eq!(speeds["cuda:5"], speed(0.37));
    // Another driver is another device: it may be faster.
    moved.driver = "580.1".to_owned();
    assert_eq!(calibration.of(&moved), None);
    assert_ne!(identity(&moved), identity(&cuda(0, GIB)));
}

#[test]
fn measuring_again_replaces() {
    let mut calibration = both();
    calibration.add(&cuda(0, GIB), speed(2.0), 1_800_000_000);
    assert_eq!(calibration.devices.len(), 2);
    assert_eq!(calibration.of(&cuda(0, GIB)), Some(speed(2.0)));
    let mut older = both();
    older.merge(calibration.clone());
    assert_eq!(older, calibration);
}

#[test]
fn what_is_no_calibration_is_refused_with_the_reason() {
    let text = both().to_json();
    let refused = |text: &str| Calibration::from_json(text).unwrap_err();
    let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
    assert_eq!(refused(&newer), CalibrationError::Version { found: 2 });
    for wrong in ["0.0", "-3.0", "1e300", "null"] {
        let forged = text.replacen("\"up\": 4440000000.0", &format!("\"up\": {wrong}"), 1);
        assert_ne!(forged, text);
        let said = refused(&forged).to_string();
        assert!(said.contains("cuda:0") || said.contains("null"), "{said}");
    }
    assert!(
        refused("{\"colour\": \"blue\"}")
            .to_string()
            .contains("version")
    );
    assert!(refused("").to_string().contains("EOF"));
    let long = " ".repeat(2 << 20);
    assert_eq!(refused(&long), CalibrationError::TooLong { bytes: 2 << 20 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Half a file is none; a damaged one is none, or says what a device can be.
    #[test]
    fn damaged_files_are_refused_or_plausible(cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let text = both().to_json();
        let cut = cut.index(text.trim_end().len());
        prop_assert!(Calibration::from_json(&text[..cut]).is_err());
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = with;
        if let Ok(read) = Calibration::from_json(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(read.devices.iter().all(|device| device.speed.is_plausible()));
        }
    }
}

/// Every number that is measured decides something.
#[test]
fn every_measured_number_changes_the_estimate() {
    let text = "[[step]]\nop = \"gaussian\"\nsigma = 2\n[[step]]\nop = \"exp\"";
    let pipeline = Pipeline::from_toml(text).unwrap();
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::plane(DType::F32, 2048, 2048);
    let seconds = |change: fn(&mut Speed)| {
        let mut speed = Speed::guess(true, false);
        // Neither memory nor arithmetic alone limits: some passes go by one, some by the other.
        speed.machine.operations_per_second = 2e12;
        change(&mut speed);
        let mut options = Options::default();
        options.calibration.insert("cuda:0".to_owned(), speed);
        let plan = compile(&pipeline, &sources, Some(&status), &options).unwrap();
        assert_eq!(plan.device.faces, ["cuda:0"]);
        plan.estimate.seconds
    };
    let before = seconds(|_| ());
    for (name, after) in [
        (
            "memory",
            seconds(|speed| speed.machine.bytes_per_second /= 2.0),
        ),
        (
            "arithmetic",
            seconds(|speed| speed.machine.operations_per_second /= 1e3),
        ),
        ("up", seconds(|speed| speed.up /= 2.0)),
        ("down", seconds(|speed| speed.down /= 2.0)),
        ("launch", seconds(|speed| speed.launch *= 2.0)),
    ] {
        assert!(after > before, "{name}: {after} after {before}");
    }
    let up = seconds(|speed| speed.up /= 2.0) - before;
    let image = 2048.0 * 2048.0 * 4.0;
    let slower = image / Speed::guess(true, false).up;
    assert!((up - slower).abs() < slower * 1e-6, "{up} {slower}");
}

/// `cost` takes the processor where that is done first, and says so with both times.
#[test]
fn cost_may_choose_the_processor_and_says_why() {
    let text = "placement = \"cost\"\n[[step]]\nop = \"sqrt\"";
    let pipeline = Pipeline::from_toml(text).unwrap();
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::plane(DType::F32, 2048, 2048);
    let mut options = Options::default();
    let mut far = Speed::guess(true, false);
    (far.up, far.down) = (1e8, 1e8);
    options.calibration.insert("cuda:0".to_owned(), far);
    options
        .calibration
        .insert("cpu:0".to_owned(), Speed::guess(false, true));
    let plan = compile(&pipeline, &sources, Some(&status), &options).unwrap();
    assert_eq!(plan.device.faces, ["cpu:0"]);
    assert!(plan.estimate.measured);
    let why = &plan.reasons[0].why;
    insta::assert_snapshot!(crate::steady::steady(why));
}
