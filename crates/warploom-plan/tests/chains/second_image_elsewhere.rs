//! Both images of an operation are in one memory.
use warploom_core::memory::CudaDevice;
use warploom_plan::chain::{Chain, op};

fn main() {
    let chain = Chain::<u16>::new("p");
    let here = chain.tap();
    let there = chain.to::<CudaDevice>();
    let _ = there.then("sum", op::add_images(&here));
}
