//! A case: a flow, what goes in, how close the results must be.

use warploom_core::DType;
use warploom_kernels::flow::{Flow, Prim, ValueId, ValueKind};
use warploom_kernels::{Boundary, ImageType};

use super::compare::numbers;
use super::reference::Picture;

/// Every element type that operations take.
pub(crate) const DTYPES: [DType; 7] = [
    DType::U8,
    DType::U16,
    DType::I16,
    DType::I32,
    DType::U32,
    DType::F32,
    DType::F64,
];

/// A flow and its inputs.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) flow: Flow,
    pub(crate) inputs: Vec<Vec<u8>>,
    /// What comes out by definition, where that was computed; otherwise the CPU is right.
    pub(crate) expected: Option<Vec<f64>>,
    /// How far wgpu may be off, in units in the last place of the largest expected value.
    pub(crate) ulps: f64,
    /// May the host do it where the device cannot?
    pub(crate) host: bool,
    /// Only for devices that give the same bits: what is compared in it may tip either way.
    pub(crate) strict: bool,
}

impl Case {
    /// A flow that is already built; inputs are noise.
    pub(crate) fn new(name: impl Into<String>, flow: Flow) -> Self {
        let inputs = flow
            .inputs()
            .iter()
            .enumerate()
            .map(|(at, id)| noise(&flow.kind(*id), 77 + at as u64))
            .collect();
        Self {
            name: name.into(),
            flow,
            inputs,
            expected: None,
            ulps: 4.0,
            host: false,
            strict: false,
        }
    }

    /// With NaN, infinities and a negative zero among the pixels of images that can hold them.
    #[must_use]
    pub(crate) fn with_holes(mut self) -> Self {
        for (id, bytes) in self.flow.inputs().iter().zip(&mut self.inputs) {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
            match self.flow.kind(*id).dtype() {
                DType::F32 => {
                    for (pixel, at) in bytes.chunks_exact_mut(4).step_by(23).zip(0..) {
                        pixel.copy_from_slice(&(odd[at % 4] as f32).to_ne_bytes());
                    }
                }
                DType::F64 => {
                    for (pixel, at) in bytes.chunks_exact_mut(8).step_by(23).zip(0..) {
                        pixel.copy_from_slice(&odd[at % 4].to_ne_bytes());
                    }
                }
                _ => {}
            }
        }
        self
    }

    /// One primitive over images of noise.
    pub(crate) fn one(prim: Prim, inputs: &[ImageType], gives: impl Into<Gives>) -> Self {
        let name = format!("{prim:?} of {inputs:?}");
        let mut flow = Flow::new();
        let ids: Vec<ValueId> = inputs
            .iter()
            .map(|image| flow.input(ValueKind::Image(*image)))
            .collect();
        let output = flow.add(prim, &ids, gives.into().0);
        flow.output(output);
        Self::new(shortened(&name), flow)
    }

    /// With another input in place of the noise.
    #[must_use]
    pub(crate) fn with_input<T: warploom_core::Element>(mut self, at: usize, pixels: &[T]) -> Self {
        self.inputs[at] = bytemuck::cast_slice(pixels).to_vec();
        self
    }

    /// An input, to compute with.
    pub(crate) fn picture(&self, at: usize) -> Picture {
        let kind = self.flow.image(self.flow.inputs()[at]);
        Picture {
            kind,
            pixels: numbers(kind.dtype, &self.inputs[at]),
        }
    }

    /// The output by definition.
    #[must_use]
    pub(crate) fn expecting(mut self, want: &Picture) -> Self {
        self.expected = Some(want.pixels.clone());
        self
    }

    /// With another bound for wgpu.
    #[must_use]
    pub(crate) fn within(mut self, ulps: f64) -> Self {
        self.ulps = ulps;
        self
    }

    /// Only where the same bits are promised.
    #[must_use]
    pub(crate) fn strictly(mut self) -> Self {
        self.strict = true;
        self
    }

    /// The host may do it where the device cannot.
    #[must_use]
    pub(crate) fn by_host(mut self) -> Self {
        self.host = true;
        self
    }
}

#[test]
fn a_case_by_way_of_the_host() {
    let kind = image(DType::U16, [1, 1, 3]);
    let prim = Prim::Window {
        axis: 2,
        radius: 1,
        combine: warploom_kernels::flow::Combine::Max,
        boundary: Boundary::Clamp,
    };
    let case = Case::one(prim, &[kind], kind);
    let case = case.with_input(0, &[5_u16, 7, 9]).within(0.0).by_host();
    super::devices::agree([case]);
}

/// What a primitive gives.
pub(crate) struct Gives(ValueKind);

impl From<ImageType> for Gives {
    fn from(image: ImageType) -> Self {
        Self(ValueKind::Image(image))
    }
}

impl From<ValueKind> for Gives {
    fn from(kind: ValueKind) -> Self {
        Self(kind)
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(240).collect()
}

/// Element type, extents and boundary of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    pub(crate) dtype: DType,
    pub(crate) dims: [u64; 3],
    pub(crate) boundary: Boundary,
}

impl Picked {
    pub(crate) fn new(dtype: DType, dims: [u64; 3], boundary: Boundary) -> Self {
        Self {
            dtype,
            dims,
            boundary,
        }
    }

    /// Every shape beyond every edge.
    pub(crate) fn every(dtype: DType, shapes: &[[u64; 3]]) -> impl Iterator<Item = Self> {
        let of = move |dims: [u64; 3]| Boundary::ALL.map(|rule| Self::new(dtype, dims, rule));
        shapes.iter().copied().flat_map(of)
    }

    /// The image.
    pub(crate) fn kind(&self) -> ImageType {
        image(self.dtype, self.dims)
    }

    /// An image like it of real numbers.
    pub(crate) fn real(&self) -> ImageType {
        let wide = self.dtype == DType::F64;
        image(if wide { DType::F64 } else { DType::F32 }, self.dims)
    }
}

/// A plane or, with more than one z, a stack.
pub(crate) fn image(dtype: DType, [z, y, x]: [u64; 3]) -> ImageType {
    if z > 1 {
        ImageType::stack(dtype, z, y, x)
    } else {
        ImageType::plane(dtype, y, x)
    }
}

/// Repeatable noise: whole numbers over much of their range, reals of both signs. Values repeat, so
/// that there are ties.
pub(crate) fn noise(kind: &ValueKind, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as u32
    };
    let mut bytes = Vec::new();
    for _ in 0..kind.elements() {
        let raw = next();
        let small = (raw >> 8) % 1000;
        match kind.dtype() {
            DType::U8 => bytes.push((raw >> 4) as u8),
            DType::U16 => bytes.extend(((raw >> 4) as u16).to_ne_bytes()),
            DType::I16 => bytes.extend(((raw >> 4) as i16).to_ne_bytes()),
            DType::I32 => bytes.extend((small.cast_signed() - 500).to_ne_bytes()),
            DType::U32 => bytes.extend(small.to_ne_bytes()),
            DType::F32 => bytes.extend((small as f32 / 64.0 - 4.1).to_ne_bytes()),
            DType::F64 => bytes.extend((f64::from(small) / 64.0 - 4.1).to_ne_bytes()),
            other => panic!("no operation takes {other}"),
        }
    }
    bytes
}
