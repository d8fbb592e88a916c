//! Tests for backends, and a backend for tests.
#![forbid(unsafe_code)]

use warploom_core::BackendEntry;

/// Runs the conformance suite.
pub fn main(_entries: &[BackendEntry]) {}
