//! Passes come after what they read, whatever is joined.

use proptest::prelude::*;
use warploom_core::DType;

use super::super::maps::fuse;
use super::*;
use crate::Boundary;
use crate::expr::Ty;
use crate::flow::{Prim, ValueKind, Weights};
use crate::image::ImageType;

/// Nodes of any sort over any values so far.
fn build(recipes: &[(u8, usize, usize)], wanted: &[usize]) -> Flow {
    let mut flow = Flow::new();
    let image = ImageType::plane(DType::F32, 8, 9);
    let mut images = vec![flow.input(ValueKind::Image(image))];
    let mut lists = vec![flow.constant(&[1.0_f64, 2.0])];
    for (sort, a, b) in recipes {
        let list = lists[b % lists.len()];
        let (a, b) = (images[a % images.len()], images[b % images.len()]);
        match sort {
            0 => lists.push(flow.add(Prim::Totals, &[a], ValueKind::scalars(5))),
            1 => images.push(flow.taps(a, 2, Weights::Even(vec![0.5, 0.2]), Boundary::Clamp)),
            2 => images.push(flow.add(Prim::Flip { axis: 1 }, &[a], ValueKind::Image(image))),
            3 => images.push(flow.map(&[a, list], a, DType::F32, &[], |g, inputs, _| {
                g.pixel(inputs[0]) - g.scalar(inputs[1], 1).cast(Ty::F32)
            })),
            _ => images.push(flow.map(&[a, b], a, DType::F32, &[], |g, inputs, _| {
                g.pixel(inputs[0]) * g.pixel(inputs[1])
            })),
        }
    }
    let all: Vec<ValueId> = images[1..].iter().chain(&lists[1..]).copied().collect();
    for at in wanted {
        if let Some(id) = all.get(at % all.len().max(1))
            && !flow.is_output(*id)
        {
            flow.output(*id);
        }
    }
    flow
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn passes_come_after_what_they_read(
        recipes in prop::collection::vec((0..6_u8, any::<usize>(), any::<usize>()), 1..24),
        wanted in prop::collection::vec(any::<usize>(), 1..5),
        buffers in 4..20_usize,
        processor in any::<bool>(),
    ) {
        let flow = build(&recipes, &wanted);
        let tuning = if processor { Tuning::processor() } else { Tuning::gpu(crate::kernel::Target::Cuda) };
        let options = Options { buffers, holes: Some(tuning), ..Options::default() };
        let fused = fuse(&flow, &options);
        let flow = &fused.flow;
        let mut ready: Vec<bool> = flow.values().iter().map(|value| value.constant.is_some()).collect();
        for id in flow.inputs() {
            ready[*id as usize] = true;
        }
        let mut ran = vec![0; flow.nodes().len()];
        for pass in &fused.passes {
            for id in &pass.inputs {
                prop_assert!(ready[*id as usize], "value {} is not there yet: {:?}", id, fused);
            }
            for id in &pass.outputs {
                prop_assert!(!std::mem::replace(&mut ready[*id as usize], true), "value {} twice", id);
            }
            for at in &pass.nodes {
                ran[*at] += 1;
            }
            let plan = crate::gpu::plan_pass(flow, pass, &tuning);
            prop_assert!(plan.is_some(), "no plan for {:?}", pass);
            let most = plan.iter().flat_map(|plan| &plan.launches).map(|it| it.def.buffers.len()).max();
            prop_assert!(pass.nodes.len() == 1 || most <= Some(buffers), "{:?} buffers", most);
        }
        prop_assert!(ran.iter().all(|times| *times > 0));
        prop_assert!(flow.outputs().iter().all(|id| ready[*id as usize]));
    }
}
