//! A name is no step: a chain needs its types.
use warploom_plan::chain::Chain;

fn main() {
    let _ = Chain::<u16>::new("p").then("soft", "gaussian");
}
