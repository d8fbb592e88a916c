//! Memory is named by a marker.
use warploom_plan::chain::Chain;

fn main() {
    let _ = Chain::<u16>::new("p").to::<String>();
}
