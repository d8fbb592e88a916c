//! Kernels of every template, for compilers that check without running.

use std::sync::Arc;

use warploom_core::DType;

use super::{Tuning, plan, plan_pass};
use crate::Boundary;
use crate::cpu::Pass;
use crate::expr::Ty;
use crate::flow::{
    Combine, Connectivity, Flow, Footprint, Number, Prim, Project, Taps, ThresholdMethod, Tile,
    ValueId, ValueKind, Weights,
};
use crate::image::ImageType;
use crate::kernel::{KernelDef, Target};

/// One kernel for each way a template can be written, each with a name of its own, as a GPU gets
/// them.
pub fn samples() -> Vec<(String, KernelDef)> {
    let tuning = Tuning::gpu(Target::Cuda);
    let (mut kernels, mut seen) = (Vec::new(), Vec::new());
    let alone = flows().into_iter().map(|(name, flow)| {
        let plans = flow.nodes().iter();
        let plans = plans.filter_map(|node| plan(&flow, node, &tuning));
        (name, plans.collect::<Vec<_>>())
    });
    let joined = joined().into_iter().map(|(name, flow)| {
        let pass = Pass {
            nodes: (0..flow.nodes().len()).collect(),
            inputs: flow.inputs().to_vec(),
            outputs: flow.outputs().to_vec(),
        };
        (name, plan_pass(&flow, &pass, &tuning).into_iter().collect())
    });
    for (name, plans) in alone.chain(joined) {
        let launches: Vec<_> = plans.into_iter().flat_map(|plan| plan.launches).collect();
        for (at, launch) in launches.iter().enumerate() {
            let name = match launches.len() {
                1 => name.clone(),
                _ => format!("{name}_{at}"),
            };
            // Primitives share steps, such as making memory empty.
            if seen.contains(&launch.def) {
                continue;
            }
            seen.push(Arc::clone(&launch.def));
            let mut def = KernelDef::clone(&launch.def);
            def.name.clone_from(&name);
            kernels.push((name, def));
        }
    }
    kernels
}

/// One primitive with images of these element types; all have the same extents.
fn one(prim: Prim, inputs: &[DType], gives: DType) -> Flow {
    let image = |dtype: DType| ValueKind::Image(ImageType::stack(dtype, 8, 64, 64));
    let mut flow = Flow::new();
    let ids: Vec<ValueId> = inputs
        .iter()
        .map(|dtype| flow.input(image(*dtype)))
        .collect();
    let output = flow.add(prim, &ids, image(gives));
    flow.output(output);
    flow
}

fn flows() -> Vec<(String, Flow)> {
    let mut flows = filters();
    flows.extend(places());
    flows.extend(wholes());
    flows.extend(objects());
    flows
}

/// One primitive over planes that gives something else than an image.
fn giving(prim: Prim, inputs: &[DType], gives: ValueKind) -> Flow {
    let mut flow = Flow::new();
    let ids: Vec<ValueId> = inputs
        .iter()
        .map(|dtype| flow.input(ValueKind::Image(ImageType::plane(*dtype, 300, 400))))
        .collect();
    let output = flow.add(prim, &ids, gives);
    flow.output(output);
    flow
}

/// Expressions in the kernels of others, and kernels beside each other.
fn joined() -> Vec<(String, Flow)> {
    let image = ValueKind::Image(ImageType::plane(DType::U16, 300, 400));
    let root = |flow: &mut Flow, id: ValueId| {
        flow.map(
            &[id],
            id,
            DType::F32,
            &[Number::F32(0.5)],
            |g, images, n| (g.pixel(images[0]).cast(Ty::F32) * n[0]).sqrt(),
        )
    };
    let start = || {
        let mut flow = Flow::new();
        let input = flow.input(image);
        let value = root(&mut flow, input);
        (flow, input, value)
    };
    let mut flows = Vec::new();
    let table = ValueKind::List {
        dtype: DType::U32,
        length: 256,
    };
    let histogram = Prim::Histogram {
        bins: 256,
        low: Some(0.0),
        high: Some(250.0),
    };
    let percentiles = Prim::Percentiles { q: vec![1.0, 99.9] };
    let reductions = [
        ("totals", Prim::Totals, ValueKind::scalars(5)),
        ("histogram", histogram, table),
        ("percentiles", percentiles, ValueKind::scalars(2)),
    ];
    for (name, prim, gives) in reductions {
        let (mut flow, _, value) = start();
        let list = flow.add(prim, &[value], gives);
        flow.output(list);
        flows.push((format!("hole_{name}"), flow));
    }
    let (mut flow, input, value) = start();
    let blurred = flow.taps(value, 1, Weights::Even(vec![0.5, 0.25]), Boundary::Clamp);
    let sharp = flow.map(&[input, blurred], input, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]).cast(Ty::F32) - g.pixel(images[1])
    });
    flow.output(sharp);
    flows.push(("hole_taps".into(), flow));
    let (mut flow, input, value) = start();
    for id in [input, value] {
        let list = flow.add(Prim::Totals, &[id], ValueKind::scalars(5));
        flow.output(list);
    }
    flows.push(("beside_totals".into(), flow));
    flows
}

/// Whole images: numbers, tables and thresholds.
fn wholes() -> Vec<(String, Flow)> {
    let mut flows = Vec::new();
    for dtype in [DType::U8, DType::F32, DType::F64] {
        let flow = giving(Prim::Totals, &[dtype], ValueKind::scalars(5));
        flows.push((format!("totals_{dtype}"), flow));
    }
    for (name, bins, dtype) in [
        ("few", 256, DType::U8),
        ("few", 256, DType::F32),
        ("many", 70_000, DType::U16),
    ] {
        let prim = Prim::Histogram {
            bins,
            low: Some(0.0),
            high: Some(250.0),
        };
        let gives = ValueKind::List {
            dtype: DType::U32,
            length: u64::from(bins),
        };
        let name = format!("histogram_{name}_{dtype}");
        flows.push((name, giving(prim, &[dtype], gives)));
    }
    for dtype in [DType::U8, DType::U16, DType::I32, DType::F32, DType::F64] {
        let prim = Prim::Percentiles {
            q: vec![1.0, 50.0, 99.9],
        };
        let flow = giving(prim, &[dtype], ValueKind::scalars(3));
        flows.push((format!("percentiles_{dtype}"), flow));
    }
    let methods = [
        ThresholdMethod::Otsu,
        ThresholdMethod::Triangle,
        ThresholdMethod::Yen,
        ThresholdMethod::Isodata,
        ThresholdMethod::Mean,
    ];
    for method in methods {
        for dtype in [DType::U8, DType::F32] {
            let prim = Prim::Threshold { method, bins: 256 };
            let name = format!("threshold_{method:?}_{dtype}").to_lowercase();
            flows.push((name, giving(prim, &[dtype], ValueKind::scalars(1))));
        }
    }
    flows
}

/// Masks and labels.
fn objects() -> Vec<(String, Flow)> {
    let mut flows = Vec::new();
    let labels = DType::U32;
    for connectivity in [Connectivity::Diamond, Connectivity::Box] {
        let name = format!("label_{connectivity:?}").to_lowercase();
        let prim = Prim::Label(connectivity);
        flows.push((name, one(prim, &[DType::U8], labels)));
    }
    let flow = one(Prim::ClearBorder, &[labels], labels);
    flows.push(("clear_border".into(), flow));
    let prim = Prim::KeepSizes { least: 3, most: 99 };
    flows.push(("keep_sizes".into(), one(prim, &[labels], labels)));
    flows.push(("relabel".into(), one(Prim::Relabel, &[labels], labels)));
    for dtype in [DType::U16, DType::F32, DType::F64] {
        let prim = Prim::Statistics { columns: 13 };
        let gives = ValueKind::scalars(1 + 50 * 13);
        let flow = giving(prim, &[labels, dtype], gives);
        flows.push((format!("statistics_{dtype}"), flow));
    }
    for dtype in [DType::F32, DType::F64] {
        let flow = one(Prim::Distance, &[DType::U8], dtype);
        flows.push((format!("distance_{dtype}"), flow));
    }
    let prim = Prim::Expand { distance: 3.5 };
    flows.push(("expand".into(), one(prim, &[labels], labels)));
    flows
}

fn filters() -> Vec<(String, Flow)> {
    let mut flows = Vec::new();
    let taps = |axis: u8, weights: Weights, boundary: Boundary| {
        Prim::Taps(Taps {
            axis,
            weights,
            boundary,
        })
    };
    let even = || Weights::Even(vec![0.5, 0.25]);
    let forms = [
        ("even", even()),
        ("odd", Weights::Odd(vec![0.5])),
        ("any", Weights::Any(vec![0.1, 0.2, 0.3])),
    ];
    for (form, weights) in forms {
        for (way, axis) in [("across", 1), ("along", 2)] {
            let prim = taps(axis, weights.clone(), Boundary::Clamp);
            let name = format!("taps_{form}_{way}");
            flows.push((name, one(prim, &[DType::U16], DType::F32)));
        }
    }
    let prim = taps(2, even(), Boundary::Zero);
    flows.push(("taps_f64".into(), one(prim, &[DType::F64], DType::F64)));
    for boundary in Boundary::ALL {
        for (way, axis) in [("across", 1), ("along", 2)] {
            let prim = Prim::Window {
                axis,
                radius: 3,
                combine: Combine::Max,
                boundary,
            };
            let name = format!("window_{boundary}_{way}");
            flows.push((name, one(prim, &[DType::U8], DType::U8)));
        }
    }
    let prim = Prim::Window {
        axis: 1,
        radius: 3,
        combine: Combine::Sum,
        boundary: Boundary::Reflect,
    };
    flows.push(("window_sum".into(), one(prim, &[DType::F32], DType::F64)));
    for combine in [Combine::Sum, Combine::Min] {
        let prim = Prim::Around {
            footprint: Footprint::Ball([2.0; 3]),
            combine,
            boundary: Boundary::Reflect,
        };
        let name = format!("around_{combine:?}").to_lowercase();
        flows.push((name, one(prim, &[DType::F32], DType::F32)));
    }
    let ranks = [
        ("sorted_u8", Footprint::Box([0, 1, 1]), DType::U8),
        ("sorted_f32", Footprint::Box([0, 2, 2]), DType::F32),
        ("sorted_f64", Footprint::Box([0, 1, 1]), DType::F64),
        ("halved_f32", Footprint::Box([0, 5, 5]), DType::F32),
        ("compared_f64", Footprint::Box([0, 5, 5]), DType::F64),
    ];
    for (name, footprint, dtype) in ranks {
        let prim = Prim::Rank {
            footprint,
            rank: 4,
            boundary: Boundary::Clamp,
        };
        flows.push((format!("rank_{name}"), one(prim, &[dtype], dtype)));
    }
    let prim = Prim::Convolve {
        mirrored: false,
        boundary: Boundary::Wrap,
    };
    let flow = one(prim, &[DType::F32, DType::F32], DType::F32);
    flows.push(("convolve".into(), flow));
    let prim = Prim::RollingBall { radius: 5.0 };
    flows.push(("rolling_ball".into(), one(prim, &[DType::U16], DType::F32)));
    flows
}

fn places() -> Vec<(String, Flow)> {
    let mut flows = Vec::new();
    let projects = [
        Project::Sum,
        Project::Max,
        Project::Std,
        Project::Median,
        Project::ArgMax,
    ];
    for project in projects {
        let gives = match project {
            Project::ArgMax => DType::U32,
            _ => DType::F32,
        };
        let name = format!("project_{project:?}").to_lowercase();
        flows.push((name, one(Prim::Project(project), &[DType::F32], gives)));
    }
    for tile in [Tile::Mean, Tile::Max] {
        let prim = Prim::Bin {
            factor: [1, 2, 2],
            tile,
        };
        let name = format!("bin_{tile:?}").to_lowercase();
        flows.push((name, one(prim, &[DType::F32], DType::F32)));
    }
    let prim = Prim::Crop {
        start: [0; 3],
        boundary: Boundary::Zero,
        fill: 0.0,
    };
    flows.push(("crop".into(), one(prim, &[DType::I16], DType::I16)));
    for (name, axis) in [("flip_rows", 1), ("flip", 2)] {
        let prim = Prim::Flip { axis };
        flows.push((name.into(), one(prim, &[DType::U8], DType::U8)));
    }
    let prim = Prim::Transpose { axes: [1, 2] };
    flows.push(("transpose".into(), one(prim, &[DType::F32], DType::F32)));
    let matrix = [[1.0, 0.0, 0.0, 0.5]; 3];
    let prim = Prim::Affine { matrix };
    flows.push(("affine".into(), one(prim, &[DType::U16], DType::F32)));
    for linear in [true, false] {
        let prim = Prim::Resize { linear };
        let name = if linear {
            "resize_linear"
        } else {
            "resize_nearest"
        };
        flows.push((name.into(), one(prim, &[DType::F32], DType::F32)));
    }
    let mut flow = Flow::new();
    let image = flow.input(ValueKind::Image(ImageType::plane(DType::U16, 64, 64)));
    let scaled = flow.map(&[image], image, DType::U8, &[], |graph, images, _| {
        let near = graph.near(images[0], [0, 1, -1], Boundary::Reflect);
        let both = graph.pixel(images[0]) + near;
        (both.cast(Ty::F32) * 0.3).sqrt()
    });
    flow.output(scaled);
    flows.push(("map".into(), flow));
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_done_by_kernels() {
        let tuning = Tuning::gpu(Target::Cuda);
        for (name, flow) in flows() {
            for node in flow.nodes() {
                assert!(plan(&flow, node, &tuning).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn every_sample_has_a_name_of_its_own_and_a_text() {
        let samples = samples();
        let mut names: Vec<&str> = samples.iter().map(|(name, _)| name.as_str()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for (name, def) in &samples {
            assert!(
                def.text(Target::Cuda).contains(&format!(" {name}(")),
                "{name}"
            );
            assert!(
                def.text(Target::OpenCl).contains(&format!(" {name}(")),
                "{name}"
            );
            assert!(
                def.text(Target::Wgsl).contains(&format!("fn {name}(")),
                "{name}"
            );
        }
    }
}
