//! The catalogue of operations.
