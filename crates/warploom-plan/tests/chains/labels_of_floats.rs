//! Objects are numbered with whole numbers.
use warploom_plan::chain::{Chain, op};

fn main() {
    let chain = Chain::<f32>::new("p");
    let _ = chain.then("kept", op::clear_border());
}
