//! The background under a rolling ball, on a processor.
//!
//! A ball falls as far on the left as on the right, so the lower one of two pixels tells of both. An item has a
//! tile of the result. It reads each line that the tile sees once, makes the lower ones of all pairs, and
//! drops them below every row of the tile that sees the line: half as many sums as the ball has pixels, of
//! numbers that lie as vectors want them.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, real};
use crate::kernel::{Access, Buf, Builder, Img, Space, Work};

use super::lanes::at_once;
use super::launch::{Args, Plan};
use super::rolling_ball;
use super::tuning::Tuning;

/// Columns of a tile, and its rows.
const COLUMNS: i32 = 64;
const ROWS: i32 = 64;
/// How far a ball reaches at most.
const REACH: i32 = 64;
/// A line with what lies beyond its ends.
const LINE: u32 = (COLUMNS + 2 * REACH).unsigned_abs();

/// A ball as half lines, from the middle on.
struct Halves {
    /// For each line, in C order, the place of its first drop and how many it has.
    lines: Vec<[i32; 2]>,
    /// How far the surface lies below the top.
    drops: Vec<f64>,
    reach: [i32; 3],
}

impl Halves {
    /// `None` where there is no room for them.
    fn of(dims: [u64; 3], radius: f64) -> Option<Self> {
        let (offsets, heights) = rolling_ball::covered(dims, radius);
        let reach = [0, 1, 2].map(|axis| {
            let along = offsets.iter().map(|offset| offset[axis]);
            along.max().unwrap_or(0)
        });
        if reach[2] > REACH {
            return None;
        }
        let (mut lines, mut drops) = (Vec::new(), Vec::new());
        let mut next = offsets.iter().zip(&heights).peekable();
        for z in -reach[0]..=reach[0] {
            for y in -reach[1]..=reach[1] {
                let first = drops.len();
                while let Some((offset, drop)) = next.next_if(|next| next.0[..2] == [z, y]) {
                    drops.extend((offset[2] >= 0).then_some(*drop));
                }
                let [first, count] = [first, drops.len() - first].map(i32::try_from);
                lines.push([first.ok()?, count.ok()?]);
            }
        }
        Some(Self {
            lines,
            drops,
            reach,
        })
    }
}

/// The tile an item makes.
struct Tile<'k> {
    k: &'k Builder,
    src: Img<'k>,
    dims: [Ex<'k>; 3],
    reach: [Ex<'k>; 3],
    left: Ex<'k>,
    line: Buf,
    /// The lower ones of pixels so far from each column, one line for each distance.
    lower: Buf,
    /// How high the ball is.
    heights: Buf,
}

impl<'k> Tile<'k> {
    fn columns(&self, body: impl FnOnce(Ex<'k>)) {
        let int = |value: i32| self.k.graph().int(value);
        self.k.for_(int(0), int(COLUMNS), body);
    }

    /// Reads a line inside of the image, with what the ball reaches on both sides; what is no number, or not
    /// there, is never touched. Then makes the lower ones.
    fn read(&self, z: Ex<'k>, y: Ex<'k>) {
        let (k, nx) = (self.k, self.dims[2]);
        let int = |value: i32| k.graph().int(value);
        let ty = self.line.ty();
        let nothing = k.graph().number(ty, f64::INFINITY);
        let row = k.let_(k.index(self.src, [z, y, int(0)]));
        let first = k.let_(self.left - self.reach[2]);
        let length = k.let_(self.reach[2] + self.reach[2] + COLUMNS);
        let before = k.let_((-first).max(0));
        let behind = k.let_((nx - first).min(length));
        let none = |at: Ex<'k>| k.store(self.line, at, nothing);
        k.for_(int(0), before, none);
        let from = k.let_(row + first);
        k.for_(before, behind, |at| {
            let pixel = k.load(self.src.buf, from + at).cast(ty);
            k.store(self.line, at, k.let_(nothing.min(pixel)));
        });
        k.for_(behind, length, none);
        k.for_(int(0), self.reach[2] + 1, |far| {
            let left = k.let_(self.reach[2] - far);
            let right = k.let_(self.reach[2] + far);
            let to = k.let_(far * COLUMNS);
            self.columns(|column| {
                let pixels = [left, right].map(|at| k.load(self.line, at + column));
                let lower = k.let_(pixels[0].min(pixels[1]));
                k.store(self.lower, to + column, lower);
            });
        });
    }

    /// Lowers the ball below a row of the tile to what the line's pixels allow, so many of them on one side.
    fn touch(&self, row: Ex<'k>, drops: Buf, first: Ex<'k>, count: Ex<'k>) {
        let k = self.k;
        let to = k.let_(row * COLUMNS);
        at_once(k, true, count, |far, many| {
            let drops: Vec<Ex<'k>> = (0..many)
                .map(|on| k.load(drops, first + far + on))
                .collect();
            self.columns(|column| {
                let height = k.load(self.heights, to + column);
                let height = (0..many).zip(&drops).fold(height, |height, (on, drop)| {
                    let lower = k.load(self.lower, (far + on) * COLUMNS + column);
                    k.let_(height.min(lower + *drop))
                });
                k.store(self.heights, to + column, height);
            });
        });
    }
}

/// Writes the kernel.
fn write(k: &Builder, from: DType, to: DType) {
    let real = real(from);
    let ty = Ty::of(real).expect("a real type");
    let src = k.image("src", from, Access::Read);
    let lines = k.buffer("lines", DType::I32, Access::Read);
    let drops = k.buffer("drops", real, Access::Read);
    let dst = k.image("dst", to, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let reach = ["rz", "ry", "rx"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: i32| k.graph().int(value);
    let plane = k.work(Work::Global(2));
    let top = k.let_(k.work(Work::Global(1)) * ROWS);
    let left = k.let_(k.work(Work::Global(0)) * COLUMNS);
    let inside = plane.lt(dims[0]) & top.lt(dims[1]) & left.lt(dims[2]);
    k.if_(inside, || {
        let array = |length: i32| k.array(ty, length.unsigned_abs(), Space::Private);
        let tile = Tile {
            k,
            src,
            dims,
            reach,
            left,
            line: k.array(ty, LINE, Space::Private),
            lower: array(COLUMNS * (REACH + 1)),
            heights: array(COLUMNS * ROWS),
        };
        let end = k.let_((top + ROWS).min(dims[1]));
        k.for_(int(0), end - top, |row| {
            let nothing = k.graph().number(ty, f64::INFINITY);
            tile.columns(|column| k.store(tile.heights, row * COLUMNS + column, nothing));
        });
        let height = k.let_(reach[1] + reach[1] + 1);
        let planes = [
            k.let_((plane - reach[0]).max(0)),
            k.let_((plane + reach[0] + 1).min(dims[0])),
        ];
        k.for_(planes[0], planes[1], |z| {
            let above = k.let_((top - reach[1]).max(0));
            let below = k.let_((end + reach[1]).min(dims[1]));
            k.for_(above, below, |y| {
                tile.read(z, y);
                let from = k.let_((y - reach[1]).max(top));
                let to = k.let_((y + reach[1] + 1).min(end));
                k.for_(from, to, |row| {
                    let line = (z - plane + reach[0]) * height + (y - row + reach[1]);
                    let line = k.let_(line * 2);
                    let (first, count) = (k.load(lines, line), k.load(lines, line + 1));
                    tile.touch(row - top, drops, first, count);
                });
            });
        });
        let columns = k.let_((dims[2] - left).min(COLUMNS));
        k.for_(top, end, |row| {
            let from = k.let_((row - top) * COLUMNS);
            let at = k.let_(k.index(dst, [plane, row, left]));
            let put = |column: Ex<'_>| {
                let height = k.load(tile.heights, from + column);
                k.store(dst.buf, at + column, k.let_(height.saturate(to)));
            };
            k.if_else(
                columns.is(COLUMNS),
                || tile.columns(put),
                || k.for_(int(0), columns, put),
            );
        });
    });
}

/// The launch, where there is room for the ball.
pub(super) fn plan(flow: &Flow, node: &Node, radius: f64, tuning: &Tuning) -> Option<Plan> {
    if !tuning.is_processor() {
        return None;
    }
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let halves = Halves::of(from.dims(), radius)?;
    let k = Builder::new();
    write(&k, from.dtype(), to.dtype());
    let def = k.finish("wl_ball", tuning.group);
    let mut plan = Plan::default();
    let lines = plan.constant::<i32>(halves.lines.as_flattened());
    let drops = plan.reals(real(from.dtype()), &halves.drops);
    let args = Args::new()
        .image(flow, input)
        .buffer(lines)
        .buffer(drops)
        .image(flow, output)
        .dims(to);
    let args = halves.reach.into_iter().fold(args, Args::int);
    let [nz, ny, nx] = to.dims();
    let tiles = |extent: u64, size: i32| extent.div_ceil(u64::from(size.unsigned_abs()));
    plan.launch(def, [tiles(nx, COLUMNS), tiles(ny, ROWS), nz], args);
    Some(plan)
}
