//! Primitives as they are defined, pixel by pixel: slow, and simple enough to be believed.

use warploom_core::DType;
use warploom_kernels::flow::{Combine, Footprint, Project, Tile};
use warploom_kernels::{Boundary, ImageType};

/// An image whose elements are kept as `f64`, which holds each of our types.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) kind: ImageType,
    pub(crate) pixels: Vec<f64>,
}

/// Arithmetic in `f32` or `f64`.
#[derive(Clone, Copy)]
struct Real {
    wide: bool,
}

impl Real {
    fn of(dtype: DType) -> Self {
        Self {
            wide: dtype == DType::F64,
        }
    }

    fn round(self, value: f64) -> f64 {
        if self.wide {
            value
        } else {
            f64::from(value as f32)
        }
    }

    fn add(self, a: f64, b: f64) -> f64 {
        // The exact sum of two f32 is not always an f64, but rounds to the same f32.
        self.round(a + b)
    }

    fn fma(self, a: f64, b: f64, c: f64) -> f64 {
        if self.wide {
            a.mul_add(b, c)
        } else {
            f64::from((a as f32).mul_add(b as f32, c as f32))
        }
    }
}

fn lesser(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

fn greater(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

impl Picture {
    fn dims(&self) -> [i64; 3] {
        self.kind.dims.map(u64::cast_signed)
    }

    /// A pixel by the boundary rule, or what is outside.
    fn at(&self, at: [i64; 3], boundary: Boundary) -> Option<f64> {
        let dims = self.dims();
        let mut index = 0;
        for axis in 0..3 {
            index = index * dims[axis] + boundary.source(at[axis], dims[axis])?;
        }
        Some(self.pixels[usize::try_from(index).unwrap()])
    }

    fn real(&self) -> Real {
        Real::of(self.kind.dtype)
    }

    /// A picture of these extents and elements, each pixel computed from its place.
    fn made(kind: ImageType, pixel: impl Fn([i64; 3]) -> f64) -> Self {
        let [nz, ny, nx] = kind.dims.map(u64::cast_signed);
        let mut pixels = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                for x in 0..nx {
                    pixels.push(pixel([z, y, x]));
                }
            }
        }
        Self { kind, pixels }
    }

    fn neighbours(&self, at: [i64; 3], footprint: &Footprint, boundary: Boundary) -> Vec<f64> {
        let offsets = footprint.offsets();
        let place = |offset: &[i32; 3]| [0, 1, 2].map(|axis| at[axis] + i64::from(offset[axis]));
        offsets
            .iter()
            .map(|offset| self.at(place(offset), boundary).unwrap_or(0.0))
            .collect()
    }

    pub(crate) fn around(
        &self,
        footprint: &Footprint,
        combine: Combine,
        boundary: Boundary,
        kind: ImageType,
    ) -> Self {
        let real = self.real();
        Self::made(kind, |at| {
            let values = self.neighbours(at, footprint, boundary);
            let numbers = values.into_iter();
            match combine {
                Combine::Sum => numbers
                    .map(|v| real.round(v))
                    .reduce(|a, b| real.add(a, b))
                    .unwrap(),
                Combine::Min => numbers.fold(f64::INFINITY, lesser),
                Combine::Max => numbers.fold(f64::NEG_INFINITY, greater),
            }
        })
    }

    pub(crate) fn rank(&self, footprint: &Footprint, rank: usize, boundary: Boundary) -> Self {
        Self::made(self.kind, |at| {
            let mut values = self.neighbours(at, footprint, boundary);
            sort(&mut values);
            values[rank]
        })
    }

    pub(crate) fn convolve(
        &self,
        kernel: &Self,
        mirrored: bool,
        boundary: Boundary,
        kind: ImageType,
    ) -> Self {
        let real = self.real();
        let n = kernel.dims();
        Self::made(kind, |at| {
            let mut sum = 0.0;
            for (j, weight) in kernel.pixels.iter().enumerate() {
                let j = j as i64;
                let j = [j / (n[1] * n[2]), j / n[2] % n[1], j % n[2]];
                let place = [0, 1, 2].map(|axis| {
                    let away = j[axis] - n[axis] / 2;
                    at[axis] + if mirrored { away } else { -away }
                });
                let pixel = self.at(place, boundary).unwrap_or(0.0);
                sum = real.fma(real.round(*weight), real.round(pixel), sum);
            }
            sum
        })
    }

    pub(crate) fn rolling_ball(&self, radius: f64, kind: ImageType) -> Self {
        let real = self.real();
        let reach = self
            .dims()
            .map(|n| if n > 1 { radius.floor() as i64 } else { 0 });
        Self::made(kind, |at| {
            let mut least = f64::INFINITY;
            for z in -reach[0]..=reach[0] {
                for y in -reach[1]..=reach[1] {
                    for x in -reach[2]..=reach[2] {
                        let square = (z * z + y * y + x * x) as f64;
                        let place = [at[0] + z, at[1] + y, at[2] + x];
                        if square.sqrt() > radius {
                            continue;
                        }
                        if let Some(pixel) = self.at(place, Boundary::Zero) {
                            let drop = radius - (radius * radius - square).max(0.0).sqrt();
                            let height = real.add(real.round(pixel), real.round(drop));
                            least = lesser(least, height);
                        }
                    }
                }
            }
            least
        })
    }

    pub(crate) fn project(&self, project: Project, kind: ImageType) -> Self {
        let real = self.real();
        Self::made(kind, |[_, y, x]| {
            let mut column: Vec<f64> = (0..self.dims()[0])
                .map(|z| self.at([z, y, x], Boundary::Clamp).unwrap())
                .collect();
            let count = column.len() as f64;
            let sum = |of: &dyn Fn(f64) -> f64| column.iter().fold(0.0, |a, b| a + of(*b));
            match project {
                Project::Sum => real.round(sum(&|v| v)),
                Project::Mean => real.round(sum(&|v| v) / count),
                Project::Std => {
                    let mean = sum(&|v| v) / count;
                    real.round((sum(&|v| (v - mean) * (v - mean)) / count).sqrt())
                }
                Project::Max => column.into_iter().fold(f64::NEG_INFINITY, greater),
                Project::Min => column.into_iter().fold(f64::INFINITY, lesser),
                Project::ArgMax => {
                    let mut best: Option<(f64, usize)> = None;
                    for (z, value) in column.into_iter().enumerate() {
                        if !value.is_nan() && best.is_none_or(|(most, _)| value > most) {
                            best = Some((value, z));
                        }
                    }
                    best.map_or(0, |(_, place)| place) as f64
                }
                Project::Median if column.iter().any(|v| v.is_nan()) => f64::NAN,
                Project::Median => {
                    sort(&mut column);
                    let middle = column.len() / 2;
                    let high = real.round(column[middle]);
                    if column.len() % 2 == 1 {
                        high
                    } else {
                        real.add(real.round(column[middle - 1]), high) * 0.5
                    }
                }
            }
        })
    }

    pub(crate) fn bin(&self, factor: [u32; 3], tile: Tile, kind: ImageType) -> Self {
        let real = self.real();
        let f = factor.map(i64::from);
        Self::made(kind, |[z, y, x]| {
            let mut values = Vec::new();
            for dz in 0..f[0] {
                for dy in 0..f[1] {
                    for dx in 0..f[2] {
                        let place = [z * f[0] + dz, y * f[1] + dy, x * f[2] + dx];
                        values.push(self.at(place, Boundary::Zero).unwrap());
                    }
                }
            }
            let count = values.len() as f64;
            match tile {
                Tile::Sum => real.round(values.iter().sum()),
                Tile::Mean => real.round(values.iter().sum::<f64>() / count),
                Tile::Max => values.into_iter().fold(f64::NEG_INFINITY, greater),
            }
        })
    }

    pub(crate) fn crop(
        &self,
        start: [i64; 3],
        boundary: Boundary,
        fill: f64,
        kind: ImageType,
    ) -> Self {
        Self::made(kind, |at| {
            let place = [0, 1, 2].map(|axis| at[axis] + start[axis]);
            self.at(place, boundary).unwrap_or(fill)
        })
    }

    /// Each output pixel is the pixel at the place that is given for it.
    pub(crate) fn moved(&self, kind: ImageType, place: impl Fn([i64; 3]) -> [i64; 3]) -> Self {
        Self::made(kind, |at| self.at(place(at), Boundary::Zero).unwrap())
    }

    /// The picture between pixels; nothing outside.
    fn between(&self, place: [f64; 3]) -> Option<f64> {
        let (real, dims) = (self.real(), self.dims());
        let mut ends = [[0; 2]; 3];
        let mut parts = [0.0; 3];
        for axis in 0..3 {
            let last = dims[axis] - 1;
            if !(place[axis] >= 0.0 && place[axis] <= last as f64) {
                return None;
            }
            let low = place[axis].floor();
            parts[axis] = real.round(place[axis] - low);
            ends[axis] = [low as i64, (low as i64 + 1).min(last)];
        }
        let mix = |axis: usize, a: f64, b: f64| {
            if axis < 2 && dims[axis] == 1 {
                a
            } else {
                real.fma(parts[axis], real.add(b, -a), a)
            }
        };
        let [z, y] = [0, 1].map(|axis| ends[axis]);
        let along_x = |z, y| {
            let [a, b] = ends[2].map(|x| {
                let pixel = self.at([z, y, x], Boundary::Zero).unwrap();
                real.round(pixel)
            });
            mix(2, a, b)
        };
        let along_y = |z| mix(1, along_x(z, y[0]), along_x(z, y[1]));
        Some(mix(0, along_y(z[0]), along_y(z[1])))
    }

    pub(crate) fn affine(&self, matrix: &[[f64; 4]; 3], kind: ImageType) -> Self {
        Self::made(kind, |at| {
            let [z, y, x] = at.map(|at| at as f64);
            let place = matrix.map(|m| ((m[3] + m[0] * z) + m[1] * y) + m[2] * x);
            self.between(place).unwrap_or(0.0)
        })
    }

    pub(crate) fn resize(&self, linear: bool, kind: ImageType) -> Self {
        let (from, to) = (self.dims(), kind.dims);
        Self::made(kind, |at| {
            let place = [0, 1, 2].map(|axis| {
                let p = ((at[axis] as f64 + 0.5) * from[axis] as f64) / to[axis] as f64;
                if linear {
                    (p - 0.5).clamp(0.0, (from[axis] - 1) as f64)
                } else {
                    p.floor()
                }
            });
            self.between(place).unwrap()
        })
    }
}

fn sort(values: &mut [f64]) {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(a.is_nan().cmp(&b.is_nan())));
}
