//! What detection finds on the machine that runs the tests.

use warploom::{BackendState, Coded, Options, Registry, registry};

#[test]
fn the_processor_is_always_there() {
    let status = registry().setup(&Options::default()).unwrap();
    let cpu = status.device("cpu").unwrap();
    assert_eq!(cpu.faces[0].id.to_string(), "cpu:0");
    assert!(cpu.total_memory > 0);
    assert!(status.max_pipelines(cpu) >= 1);
}

#[test]
fn what_is_not_there_has_a_reason() {
    let status = registry().setup(&Options::default()).unwrap();
    for backend in &status.survey.backends {
        assert_eq!(
            backend.reason.is_none(),
            backend.state == BackendState::Loaded,
            "{backend:?}"
        );
        eprintln!("{backend:?}");
    }
}

#[test]
fn software_devices_stand_alone_and_last() {
    let status = registry().setup(&Options::default()).unwrap();
    let software: Vec<bool> = status.survey.devices.iter().map(|d| d.software).collect();
    assert!(software.is_sorted(), "hardware first: {software:?}");
    for device in status.survey.devices.iter().filter(|d| d.software) {
        assert_eq!(device.faces.len(), 1, "{device:?}");
    }
}

#[test]
fn an_ordinal_that_does_not_exist_is_an_error() {
    let registry = Registry::linked();
    for backend in registry.backends() {
        let id = format!("{backend}:4711").parse().unwrap();
        let error = registry.open(id).unwrap_err();
        assert!(!error.to_string().is_empty());
        eprintln!("error[{}]: {error}", error.code());
    }
}
