//! A blur of u16 gives f32.
use warploom_plan::chain::{Chain, op};

fn main() {
    let chain = Chain::<u16>::new("p").then("soft", op::gaussian());
    let _ = chain.then("mid", op::median_box::<u16, _>());
}
