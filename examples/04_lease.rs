//! Sharing a device: the right to use slots and bytes, waited for in order.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

fn main() {}
