//! An expression for each pixel.

use crate::expr::{Dag, Ex, Node as Term, Ty};
use crate::flow::{Flow, Node, Number, ValueId};
use crate::kernel::{Access, Buf, Builder, Img, Work};

use super::lanes::{each_long, long_items, long_share};
use super::launch::{Args, Plan};
use super::line::{wide_number, wide_scalar};
use super::tuning::Tuning;

/// The buffers and extents of a map's kernel.
struct Frame<'k> {
    images: Vec<Option<Img<'k>>>,
    extents: Vec<[Ex<'k>; 3]>,
    numbers: Vec<Ex<'k>>,
    /// Numbers computed earlier, loaded once.
    scalars: Vec<(u32, u32, Ex<'k>)>,
    dims: [Ex<'k>; 3],
}

/// The launch of an expression. Of each pair in `over` the first, an input, lies where the second, an
/// output, is written: the kernel then has one buffer for both.
pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (dag, numbers): (&Dag, &[Number]),
    over: &[(ValueId, ValueId)],
    tuning: &Tuning,
) -> Plan {
    let lies = |id: ValueId| over.iter().find(|(from, _)| *from == id);
    let reach = reach_x(dag);
    let k = Builder::new();
    let mut args = Args::new();
    let mut lists: Vec<Option<Buf>> = Vec::new();
    let (mut images, mut extents) = (Vec::new(), Vec::new());
    for (at, id) in node.inputs.iter().enumerate() {
        let kind = flow.kind(*id);
        let name = format!("in{at}");
        if lies(*id).is_some() {
            images.push(None);
            lists.push(None);
        } else if kind.image().is_some() {
            images.push(Some(k.image(&name, kind.dtype(), Access::Read)));
            lists.push(None);
            args = args.image(flow, *id);
        } else {
            lists.push(Some(k.buffer(&name, kind.dtype(), Access::Read)));
            images.push(None);
            args = args.value(*id);
        }
    }
    let outputs = results(&k, flow, node, over);
    args = node
        .outputs
        .iter()
        .fold(args, |args, id| args.image(flow, *id));
    for (image, id) in images.iter_mut().zip(&node.inputs) {
        let output = lies(*id).and_then(|(_, to)| node.outputs.iter().position(|o| o == to));
        if let Some(output) = output {
            *image = Some(outputs[output]);
        }
    }
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let out = flow.kind(node.outputs[0]);
    args = args.dims(out);
    for (at, id) in node.inputs.iter().enumerate() {
        // Extents are asked for only where an input's may differ from the output's.
        let kind = flow.kind(*id);
        if kind.image().is_some() && kind.dims() != out.dims() {
            extents.push(["z", "y", "x"].map(|axis| k.scalar(&format!("in{at}_n{axis}"), Ty::I32)));
            args = args.dims(kind);
        } else {
            extents.push(dims);
        }
    }
    let params: Vec<Ex<'_>> = numbers
        .iter()
        .enumerate()
        .map(|(at, number)| match number {
            Number::F64(_) => wide_scalar(&k, tuning, &format!("n{at}")),
            number => k.scalar(&format!("n{at}"), number.ty()),
        })
        .collect();
    args = numbers.iter().fold(args, |args, number| match number {
        Number::F64(value) => wide_number(args, tuning, *value),
        number => args.number(*number),
    });

    let (z, y) = (k.work(Work::Global(2)), k.work(Work::Global(1)));
    let start = k.let_(k.work(Work::Global(0)) * long_share(tuning.run).cast_signed());
    let inside = z.lt(dims[0]) & y.lt(dims[1]) & start.lt(dims[2]);
    k.if_(inside, || {
        let scalars = load_scalars(&k, dag, &lists);
        let frame = Frame {
            images,
            extents,
            numbers: params,
            scalars,
            dims,
        };
        let pixel = |x: Ex<'_>, checked: bool| {
            let values = frame.values(&k, dag, [z, y, x], checked);
            for (output, value) in outputs.iter().zip(values) {
                k.put(*output, [z, y, x], value);
            }
        };
        if tuning.run == 1 {
            pixel(start, true);
            return;
        }
        let run = tuning.run.cast_signed();
        each_long(&k, tuning.run, (start, dims[2]), |first| match reach {
            // Where no load leaves the row, the loop has no conditions and becomes vector code.
            Some(reach) => {
                let (nx, int) = (dims[2], |v| k.graph().int(v));
                let clear = first.ge(reach) & (first + (run + reach)).le(nx);
                k.if_else(
                    clear,
                    || k.for_(int(0), int(run), |i| pixel(first + i, false)),
                    || k.for_(first, (first + run).min(nx), |x| pixel(x, true)),
                );
            }
            None => k.for_(first, (first + run).min(dims[2]), |x| pixel(x, true)),
        });
    });
    let def = k.finish("wl_map", tuning.group);
    let mut plan = Plan::default();
    plan.launch(def, long_items(out.dims(), tuning.run), args);
    plan
}

/// What the kernel writes; what lies over an input is read, too.
fn results<'k>(
    k: &'k Builder,
    flow: &Flow,
    node: &Node,
    over: &[(ValueId, ValueId)],
) -> Vec<Img<'k>> {
    let outputs = node.outputs.iter().enumerate();
    let outputs = outputs.map(|(at, id)| {
        let is_read = over.iter().any(|(_, to)| to == id);
        let access = if is_read {
            Access::ReadWrite
        } else {
            Access::Write
        };
        k.image(&format!("out{at}"), flow.kind(*id).dtype(), access)
    });
    outputs.collect()
}

/// How far loads reach along x; `None` when some load is not at a fixed offset.
fn reach_x(dag: &Dag) -> Option<i32> {
    let loads = dag.stencil()?;
    Some(
        loads
            .iter()
            .map(|(_, offset)| offset[2].abs())
            .max()
            .unwrap_or(0),
    )
}

fn load_scalars<'k>(k: &'k Builder, dag: &Dag, lists: &[Option<Buf>]) -> Vec<(u32, u32, Ex<'k>)> {
    let mut scalars: Vec<(u32, u32, Ex<'k>)> = Vec::new();
    for (node, _) in dag.nodes() {
        if let Term::Scalar { list, index } = *node
            && let Some(buf) = lists[list as usize]
        {
            let at = k.graph().int(index.cast_signed());
            scalars.push((list, index, k.load(buf, at)));
        }
    }
    scalars
}

impl<'k> Frame<'k> {
    /// The results for one pixel. Unchecked along x means that no load leaves the row.
    fn values(&self, k: &'k Builder, dag: &Dag, at: [Ex<'k>; 3], checked: bool) -> Vec<Ex<'k>> {
        k.graph().inline(dag, |node| match node {
            Term::Coord(axis) => Some(at[usize::from(axis)]),
            Term::Extent(axis) => Some(self.dims[usize::from(axis)]),
            Term::InputExtent { image, axis } => {
                Some(self.extents[image as usize][usize::from(axis)])
            }
            Term::Param { index, .. } => Some(self.numbers[index as usize]),
            Term::Scalar { list, index } => {
                let mut known = self.scalars.iter();
                known
                    .find(|(l, i, _)| (*l, *i) == (list, index))
                    .map(|(.., ex)| *ex)
            }
            Term::Load {
                image,
                at: place,
                boundary,
            } => {
                let img = self.images[image as usize].expect("a load is from an image");
                let place = place.map(|id| k.graph().ex(id));
                let extents = self.extents[image as usize];
                let same = (0..3).all(|axis| extents[axis].id() == self.dims[axis].id());
                let here = same && (0..3).all(|axis| place[axis].id() == at[axis].id());
                if here {
                    return Some(k.pixel(img, place));
                }
                let mut bounds = [Some(extents[0]), Some(extents[1]), Some(extents[2])];
                for axis in 0..3 {
                    let free = same && place[axis].id() == at[axis].id();
                    if free || (axis == 2 && same && !checked) {
                        bounds[axis] = None;
                    }
                }
                Some(k.near_within(img, place, bounds, boundary))
            }
            _ => None,
        })
    }
}
