//! Kernels as NVRTC compiles them: an old version for an old architecture, a new one for a new one.

mod arithmetic;
mod blocks;
mod calls;
mod images;

use crate::rig::Rig;

/// The compiled texts of a source.
macro_rules! texts {
    ($name:literal) => {
        [
            include_str!(concat!("../../kernels/", $name, ".sm_75.ptx")),
            include_str!(concat!("../../kernels/", $name, ".sm_120.ptx")),
        ]
    };
}
use texts;

/// Runs `test` for both texts, each with several orders of blocks and threads.
fn each(texts: [&str; 2], test: impl Fn(&Rig)) {
    for text in texts {
        for seed in [0, 1, 77] {
            let mut rig = Rig::new(text).with_seed(seed);
            rig.rules.workers = 1 + usize::from(seed == 77);
            test(&rig);
        }
    }
}
