//! Leases on the devices that are really there.

use std::time::Duration;

use warploom::{LeaseRequest, LeaseScope, Options, Registry};

#[test]
fn two_registries_agree_through_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let registry = || {
        let registry = Registry::linked();
        let mut options = Options::cpu_only();
        options.leases = LeaseScope::Folder(folder.path().join("ledger"));
        registry.initialize(&options).unwrap();
        registry
    };
    let (first, second) = (registry(), registry());
    let desk = first.desk().unwrap();
    let all = desk.devices()[0].capacity;
    let everything = LeaseRequest::new(all.slots, all.bytes).label("everything");
    let lease = first.lease(&everything).unwrap();

    let refused = second.lease(&LeaseRequest::new(1, 0).within(Duration::from_millis(50)));
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("everything"),
        "it says who holds it: {error}"
    );

    drop(lease);
    assert_eq!(second.lease(&everything).unwrap().device(), "cpu");
}
