//! The contract, case by case, on every device this backend finds.

fn main() {
    warploom_testkit::main(&[warploom_wgpu::ENTRY]);
}
