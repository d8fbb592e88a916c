//! Images of 64-bit whole numbers are not worked on.
use warploom_plan::chain::Chain;

fn main() {
    let _ = Chain::<u64>::new("p");
}
