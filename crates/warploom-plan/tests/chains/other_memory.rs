//! What one step leaves on a card cannot be read from the host without saying so.
use warploom_core::memory::{CudaDevice, Host};
use warploom_plan::chain::{Chain, op};

fn main() {
    let chain = Chain::<u16>::new("p").to::<CudaDevice>();
    let chain = chain.then("soft", op::gaussian());
    let _ = chain.then("mask", op::threshold_otsu::<f32, Host>());
}
