//! Calls of any operation.

use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_kernels::op::{Fallback, Given, OpInfo, Role};

/// A value for each parameter that must be given.
pub(crate) fn given(op: &OpInfo, rank: u8) -> Given {
    let required = op.params().filter(|p| p.fallback == Fallback::Required);
    let given = required.fold(Given::new(), |given, param| {
        let text = match param.name {
            "radius" | "factor" | "overlap" | "before" => "2",
            "sigma" | "sigma1" => "1.5",
            "sigma2" => "2.5",
            "exponent" | "gamma" => "1.7",
            "value" | "minimum" | "low" => "3",
            "maximum" | "high" => "7",
            "type" => "i16",
            "q" => "30",
            "degrees" => "10",
            "matrix" if rank == 2 => "1,0.1,0,1",
            "matrix" => "1,0,0,0,1,0.1,0,0,1",
            other => panic!("a test value for {other} of {}", op.name),
        };
        given.with(param.name, text)
    });
    match op.name {
        "richardson_lucy" => given.with("sigma", 1.5),
        _ => given,
    }
}

/// Images that an operation can be called with.
pub(crate) fn images(op: &OpInfo, dtype: DType, dims: [u64; 3], rank: u8) -> Vec<ImageType> {
    let needed = op.inputs.iter().filter(|input| !input.optional);
    let images = needed.map(|input| {
        let small = input.role == Role::Kernel;
        let dims = dims.map(|extent| if small { extent.min(3) } else { extent });
        let takes = input.takes().contains(&dtype);
        let dtype = if takes { dtype } else { DType::U32 };
        ImageType { dtype, dims, rank }
    });
    images.collect()
}
