//! What an expression gives for one pixel, computed node by node as it is written.
//!
//! Slow, and simple enough to be believed: the tests hold every engine against it, and the CPU
//! engine uses it where pixels are read at computed positions.

use warploom_core::DType;

use super::dag::{Dag, Output};
use super::datum::{Datum, binary, cast, fused, unary};
use super::node::{Id, Node, Ty};
use crate::Boundary;
use crate::image::Dims;

/// An image whose rows have no gaps inside.
#[derive(Clone, Copy, Debug)]
pub struct Pixels<'a> {
    bytes: &'a [u8],
    dtype: DType,
    dims: [i64; 3],
    pitch: [usize; 2],
}

impl<'a> Pixels<'a> {
    /// An image without gaps.
    ///
    /// # Panics
    /// When `bytes` are too few.
    pub fn packed(bytes: &'a [u8], dtype: DType, dims: Dims) -> Self {
        let [_, y, x] = dims.map(|extent| usize::try_from(extent).expect("it is in memory"));
        Self::pitched(bytes, dtype, dims, [y * x, x])
    }

    /// An image whose planes and rows start `pitch` elements apart.
    ///
    /// # Panics
    /// When `bytes` are too few.
    pub fn pitched(bytes: &'a [u8], dtype: DType, dims: Dims, pitch: [usize; 2]) -> Self {
        let dims = dims.map(|extent| i64::try_from(extent).expect("it is in memory"));
        let image = Self {
            bytes,
            dtype,
            dims,
            pitch,
        };
        let last = image.element(dims.map(|extent| extent - 1));
        let needs = if dims.contains(&0) { 0 } else { last + 1 };
        let there = bytes.len() / image.width();
        assert!(
            there >= needs,
            "{dims:?} at {pitch:?} needs {needs} elements, got {there}"
        );
        image
    }

    fn width(&self) -> usize {
        usize::try_from(self.dtype.bytes()).expect("a few bytes")
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions inside an image in memory"
    )]
    fn element(&self, at: [i64; 3]) -> usize {
        let [z, y, x] = at.map(|at| at as usize);
        (z.wrapping_mul(self.pitch[0]))
            .wrapping_add(y.wrapping_mul(self.pitch[1]))
            .wrapping_add(x)
    }

    /// The element at a position, by the rule outside the image.
    fn at(&self, at: [i64; 3], boundary: Boundary) -> Option<Datum> {
        let mut inside = [0; 3];
        for axis in 0..3 {
            inside[axis] = boundary.source(at[axis], self.dims[axis])?;
        }
        Datum::read(
            self.dtype,
            &self.bytes[self.element(inside) * self.width()..],
        )
    }
}

/// An input of an expression.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// An image.
    Image(Pixels<'a>),
    /// Numbers computed earlier.
    List(&'a [f64]),
}

/// An expression with everything it reads.
#[derive(Debug)]
pub struct Evaluator<'a> {
    dag: &'a Dag,
    numbers: &'a [Datum],
    sources: &'a [Source<'a>],
    dims: Dims,
    values: Vec<Datum>,
}

impl<'a> Evaluator<'a> {
    /// The expression with its numbers and inputs, for images of these extents.
    pub fn new(dag: &'a Dag, numbers: &'a [Datum], sources: &'a [Source<'a>], dims: Dims) -> Self {
        Self {
            dag,
            numbers,
            sources,
            dims,
            values: Vec::with_capacity(dag.nodes().len()),
        }
    }

    /// The results for the pixel at z, y, x, in the order of the expression's outputs.
    ///
    /// # Panics
    /// When the expression reads what it was not given, or holds variables of a kernel.
    pub fn pixel(&mut self, at: [i32; 3]) -> impl Iterator<Item = (Datum, DType)> {
        self.values.clear();
        for (node, ty) in self.dag.nodes() {
            let value = self.node(*node, *ty, at);
            self.values.push(value);
        }
        let result = |output: &Output| (self.values[output.id as usize], output.dtype);
        self.dag.outputs().iter().map(result)
    }

    /// Every pixel of every result, packed.
    ///
    /// # Panics
    /// As [`Evaluator::pixel`].
    pub fn all(&mut self) -> Vec<Vec<u8>> {
        let [nz, ny, nx] = self
            .dims
            .map(|extent| i32::try_from(extent).expect("below 2^31"));
        let mut results = vec![Vec::new(); self.dag.outputs().len()];
        for z in 0..nz {
            for y in 0..ny {
                for x in 0..nx {
                    for ((value, dtype), result) in self.pixel([z, y, x]).zip(&mut results) {
                        let start = result.len();
                        let width = usize::try_from(dtype.bytes()).expect("a few bytes");
                        result.resize(start + width, 0);
                        value.write(dtype, &mut result[start..]);
                    }
                }
            }
        }
        results
    }

    fn of(&self, id: Id) -> Datum {
        self.values[id as usize]
    }

    fn node(&self, node: Node, ty: Ty, at: [i32; 3]) -> Datum {
        let extent = |dims: &[i64; 3], axis: u8| {
            Datum::I32(i32::try_from(dims[usize::from(axis)]).expect("below 2^31"))
        };
        let value = match node {
            Node::Const(ty, bits) => Some(Datum::of(ty, bits)),
            Node::Param { index, .. } => Some(self.numbers[index as usize]),
            Node::Coord(axis) => Some(Datum::I32(at[usize::from(axis)])),
            Node::Extent(axis) => Some(extent(&self.dims.map(u64::cast_signed), axis)),
            Node::InputExtent { image, axis } => match &self.sources[image as usize] {
                Source::Image(pixels) => Some(extent(&pixels.dims, axis)),
                Source::List(_) => panic!("a list of numbers has no extents"),
            },
            Node::Load {
                image,
                at,
                boundary,
            } => match &self.sources[image as usize] {
                Source::Image(pixels) => {
                    let at = at.map(|id| match self.of(id) {
                        Datum::I32(at) => i64::from(at),
                        other => panic!("a position is a whole number, not {other:?}"),
                    });
                    Some(pixels.at(at, boundary).unwrap_or_else(|| Datum::zero(ty)))
                }
                Source::List(_) => panic!("a list of numbers has no pixels"),
            },
            Node::Scalar { list, index } => match &self.sources[list as usize] {
                Source::List(numbers) => Some(Datum::F64(numbers[index as usize])),
                Source::Image(_) => panic!("an image is no list of numbers"),
            },
            Node::Local(..) => panic!("variables belong to kernels"),
            Node::Un(op, a) => unary(op, self.of(a)),
            // What divides by zero in whole numbers has no result; zero will do.
            Node::Bin(op, a, b) => {
                Some(binary(op, self.of(a), self.of(b)).unwrap_or_else(|| Datum::zero(ty)))
            }
            Node::Fma(a, b, c) => fused(self.of(a), self.of(b), self.of(c)),
            Node::Select(cond, a, b) => match self.of(cond) {
                Datum::Bool(true) => Some(self.of(a)),
                _ => Some(self.of(b)),
            },
            Node::Cast(to, a) => cast(to, self.of(a)),
        };
        value.unwrap_or_else(|| panic!("{node:?} has operands of another type"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Graph;

    #[test]
    fn loads_follow_boundary_and_pitch() {
        let graph = Graph::new();
        let image = graph.input(DType::I16);
        let left = graph.near(image, [0, 0, -1], Boundary::Wrap);
        let above = graph.near(image, [0, -1, 0], Boundary::Zero);
        let dag = Dag::new(&graph, &[(left, DType::I16), (above, DType::I16)]);
        // Two rows of three, five elements apart.
        let data: [i16; 8] = [1, -2, 3, 99, 99, 4, 5, 6];
        let bytes = bytemuck::cast_slice(&data);
        let sources = [Source::Image(Pixels::pitched(
            bytes,
            DType::I16,
            [1, 2, 3],
            [10, 5],
        ))];
        let results = Evaluator::new(&dag, &[], &sources, [1, 2, 3]).all();
        let results: Vec<&[i16]> = results.iter().map(|r| bytemuck::cast_slice(r)).collect();
        assert_eq!(results[0], [3, 1, -2, 6, 4, 5]);
        assert_eq!(results[1], [0, 0, 0, 1, -2, 3]);
    }

    #[test]
    fn positions_extents_numbers_and_lists() {
        let graph = Graph::new();
        let list = graph.input(DType::F64);
        let [_, y, x] = graph.coords();
        let number = graph.param(Ty::F32);
        let sum = (y * 10 + x + graph.extent(2)).cast(Ty::F32) + number;
        let sum = sum + graph.scalar(list, 1).cast(Ty::F32);
        let dag = Dag::new(&graph, &[(sum, DType::U8)]);
        let numbers = [Datum::F32(0.5)];
        let sources = [Source::List(&[7.0, 100.0])];
        let results = Evaluator::new(&dag, &numbers, &sources, [1, 2, 2]).all();
        // Halves go to the even neighbour.
        assert_eq!(results[0], [102, 104, 112, 114]);
    }

    #[test]
    fn casts_saturate() {
        let graph = Graph::new();
        let image = graph.input(DType::F32);
        let a = graph.pixel(image);
        let types = [DType::U8, DType::U32, DType::I32, DType::I16];
        let dag = Dag::new(&graph, &types.map(|dtype| (a, dtype)));
        let data = [f32::NAN, -1e20, 1e20, 254.5, 4_294_967_296.0];
        let sources = [Source::Image(Pixels::packed(
            bytemuck::cast_slice(&data),
            DType::F32,
            [1, 1, 5],
        ))];
        let results = Evaluator::new(&dag, &[], &sources, [1, 1, 5]).all();
        assert_eq!(results[0], [0, 0, 255, 254, 255]);
        let wide: &[u32] = bytemuck::cast_slice(&results[1]);
        assert_eq!(wide, [0, 0, u32::MAX, 254, u32::MAX]);
        let wide: &[i32] = bytemuck::cast_slice(&results[2]);
        assert_eq!(wide, [0, i32::MIN, i32::MAX, 254, i32::MAX]);
        let wide: &[i16] = bytemuck::cast_slice(&results[3]);
        assert_eq!(wide, [0, i16::MIN, i16::MAX, 254, i16::MAX]);
    }
}
