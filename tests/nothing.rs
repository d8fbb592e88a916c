//! Cargo wants a target that is no test; the tests are in `suite/`.
