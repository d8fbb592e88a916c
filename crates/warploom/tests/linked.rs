//! I9: no backend is linked that no feature named, and each that was named is.

use warploom::{BackendId, Registry};

#[test]
fn i9_exactly_the_features_are_linked() {
    let named = [
        (cfg!(feature = "cpu"), "cpu"),
        (cfg!(feature = "cuda"), "cuda"),
        (cfg!(feature = "opencl"), "opencl"),
        (cfg!(feature = "wgpu"), "wgpu"),
    ];
    let expected: Vec<&str> = named
        .iter()
        .filter_map(|(on, name)| on.then_some(*name))
        .collect();
    let linked = Registry::linked().backends();
    let linked: Vec<&str> = linked.iter().map(BackendId::as_str).collect();
    assert_eq!(linked, expected);
    println!("features: {expected:?}, linked: {linked:?}");
}
