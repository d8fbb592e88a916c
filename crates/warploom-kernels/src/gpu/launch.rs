//! Launches as plain data.

use std::sync::Arc;

use warploom_core::{DType, Element};

use crate::flow::{Flow, Number, ValueId, ValueKind};
use crate::kernel::KernelDef;

/// An argument of a launch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LaunchArg {
    /// A value of the flow.
    Value(ValueId),
    /// Memory of the plan's own, by its number.
    Scratch(u32),
    /// Elements known now, by their number.
    Constant(u32),
    /// A number.
    Number(Number),
}

/// A kernel, how many work groups, and its arguments.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The node of the flow that it is of.
    pub node: usize,
    /// The kernel.
    pub def: Arc<KernelDef>,
    /// Work groups in x, y, z.
    pub groups: [u32; 3],
    /// Buffers, then numbers, in the kernel's order.
    pub args: Vec<LaunchArg>,
}

/// What a node becomes on a device.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// In order.
    pub launches: Vec<Launch>,
    /// Bytes of each piece of memory only these launches use.
    pub scratch: Vec<u64>,
    /// Elements known now: weights, offsets, tables.
    pub constants: Vec<Constant>,
}

/// Elements that are known before anything runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// Their type.
    pub dtype: DType,
    /// Their bytes.
    pub bytes: Arc<[u8]>,
}

impl Plan {
    /// Asks for scratch memory; gives its argument.
    ///
    /// # Panics
    /// When there are 2^32 pieces.
    pub fn scratch(&mut self, bytes: u64) -> LaunchArg {
        self.scratch.push(bytes.max(4));
        LaunchArg::Scratch(u32::try_from(self.scratch.len() - 1).expect("few pieces"))
    }

    /// Keeps elements known now; gives their argument.
    ///
    /// # Panics
    /// When there are 2^32 lists.
    pub fn constant<T: Element>(&mut self, elements: &[T]) -> LaunchArg {
        self.constants.push(Constant {
            dtype: T::DTYPE,
            bytes: Arc::from(bytemuck::cast_slice::<T, u8>(elements)),
        });
        LaunchArg::Constant(u32::try_from(self.constants.len() - 1).expect("few lists"))
    }

    /// Keeps real numbers in the type an image's results are computed in, each rounded once.
    #[expect(clippy::cast_possible_truncation, reason = "rounded once on purpose")]
    pub fn reals(&mut self, dtype: DType, numbers: &[f64]) -> LaunchArg {
        if dtype == DType::F64 {
            return self.constant(numbers);
        }
        let numbers: Vec<f32> = numbers.iter().map(|v| *v as f32).collect();
        self.constant(&numbers)
    }

    /// Adds a launch that covers `items` work items in x, y, z.
    pub fn launch(&mut self, def: KernelDef, items: [u64; 3], args: Args) {
        let groups = [0, 1, 2].map(|axis| {
            let count = items[axis].div_ceil(u64::from(def.group[axis]));
            u32::try_from(count).unwrap_or(u32::MAX)
        });
        self.launches.push(Launch {
            node: 0,
            def: Arc::new(def),
            groups,
            args: args.finish(),
        });
    }
}

/// Collects arguments in the order in which [`Builder`](crate::kernel::Builder) declares them:
/// buffers and numbers separately.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Args {
    buffers: Vec<LaunchArg>,
    numbers: Vec<LaunchArg>,
}

impl Args {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer.
    #[must_use]
    pub fn buffer(mut self, arg: LaunchArg) -> Self {
        self.buffers.push(arg);
        self
    }

    /// A value as a plain buffer.
    #[must_use]
    pub fn value(self, id: ValueId) -> Self {
        self.buffer(LaunchArg::Value(id))
    }

    /// A value as an image: its buffer, where it starts and its pitches.
    #[must_use]
    pub fn image(self, flow: &Flow, id: ValueId) -> Self {
        self.packed(LaunchArg::Value(id), flow.kind(id))
    }

    /// A value as an image whose planes and rows have changed places when the axis is z: a kernel
    /// for y then goes along z.
    #[must_use]
    pub fn image_along(self, flow: &Flow, id: ValueId, axis: u8) -> Self {
        let [_, ny, nx] = flow.kind(id).dims();
        let [pz, py] = if axis == 0 {
            [nx, ny * nx]
        } else {
            [ny * nx, nx]
        };
        self.value(id).int(0).count(pz).count(py)
    }

    /// Extents as [`image_along`](Self::image_along) has them.
    #[must_use]
    pub fn dims_along(self, kind: ValueKind, axis: u8) -> Self {
        along(kind.dims(), axis).into_iter().fold(self, Self::count)
    }

    /// Any memory as an image without gaps of a value's extents.
    #[must_use]
    pub fn packed(self, arg: LaunchArg, kind: ValueKind) -> Self {
        let [_, ny, nx] = kind.dims();
        self.buffer(arg).int(0).int(index(ny * nx)).int(index(nx))
    }

    /// A whole number.
    #[must_use]
    pub fn int(self, value: i32) -> Self {
        self.number(Number::I32(value))
    }

    /// An extent, or another count that fits.
    #[must_use]
    pub fn count(self, value: u64) -> Self {
        self.int(index(value))
    }

    /// The extents of a value in z, y, x.
    #[must_use]
    pub fn dims(self, kind: ValueKind) -> Self {
        kind.dims().into_iter().fold(self, Self::count)
    }

    /// A number.
    #[must_use]
    pub fn number(mut self, number: Number) -> Self {
        self.numbers.push(LaunchArg::Number(number));
        self
    }

    fn finish(mut self) -> Vec<LaunchArg> {
        self.buffers.append(&mut self.numbers);
        self.buffers
    }
}

/// Extents with z and y exchanged when the axis is z.
pub(super) fn along([nz, ny, nx]: [u64; 3], axis: u8) -> [u64; 3] {
    if axis == 0 {
        [ny, nz, nx]
    } else {
        [nz, ny, nx]
    }
}

/// Values have at most 2^31 - 1 elements, which is checked when a call is made.
fn index(value: u64) -> i32 {
    i32::try_from(value).expect("a value has under 2^31 elements")
}
