//! Memory set to one value.

use warploom_core::DType;

use crate::expr::Ty;
use crate::flow::Number;
use crate::kernel::{Access, Builder};

use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, launch_each};
use super::tuning::Tuning;

/// Sets `count` words to `value`.
pub(super) fn words(plan: &mut Plan, tuning: &Tuning, to: LaunchArg, count: u64, value: u32) {
    let k = Builder::new();
    let buffer = k.buffer("to", DType::U32, Access::Write);
    let length = k.scalar("count", Ty::I32);
    let word = k.scalar("word", Ty::U32);
    each(&k, tuning, length, |i| k.store(buffer, i, word));
    let args = Args::new()
        .buffer(to)
        .count(count)
        .number(Number::U32(value));
    launch_each(
        plan,
        tuning,
        k.finish("wl_fill", tuning.line()),
        count,
        args,
    );
}
