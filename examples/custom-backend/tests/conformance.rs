//! The same suite that Warploom's own backends pass.

fn main() {
    warploom_testkit::main(&[custom_backend::ENTRY]);
}
