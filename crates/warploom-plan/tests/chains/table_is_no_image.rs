//! Tables can be written, not filtered.
use warploom_core::memory::Host;
use warploom_plan::chain::{Chain, op};

fn main() {
    let chain = Chain::<u16>::new("p");
    let image = chain.tap();
    let chain = chain.then("labels", op::label_box());
    let chain = chain.then("cells", op::label_statistics(&image));
    let _ = chain.then("soft", op::gaussian::<f32, Host>());
}
