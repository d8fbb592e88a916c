//! What the catalogue says of backends is what programs do.

use warploom_core::DType;
use warploom_kernels::fuse::Fused;
use warploom_kernels::gpu::Tuning;
use warploom_kernels::kernel::Target;
use warploom_kernels::lower::lower;
use warploom_kernels::op::{Backends, Given, OpCall};
use warploom_kernels::program::Program;

use super::case::image;

/// Operations on whole images and objects, with what they must be given.
const CALLS: [&str; 26] = [
    "totals",
    "histogram",
    "histogram low=3 high=9",
    "percentiles q=1,50,99",
    "minmax_normalize",
    "percentile_normalize low=1 high=99",
    "threshold_otsu",
    "threshold_triangle",
    "threshold_li",
    "threshold_yen",
    "threshold_isodata",
    "threshold_mean",
    "fill_holes",
    "distance_transform",
    "label_box",
    "label_diamond",
    "remove_small_labels minimum=3",
    "remove_large_labels maximum=3 relabel=true",
    "clear_border",
    "expand_labels distance=3",
    "relabel_sequential",
    "binary_not",
    "watershed",
    "label_statistics",
    "fft_convolve",
    "phase_shift",
];

fn tunings() -> [Tuning; 4] {
    let on = |target, lanes, run| Tuning {
        target,
        run,
        rows: 1,
        group: if lanes == 1 { [1, 1, 1] } else { [32, 4, 1] },
        lanes,
        wide: true,
    };
    [
        on(Target::OpenCl, 1, 64),
        on(Target::OpenCl, 128, 1),
        on(Target::Cuda, 128, 1),
        on(Target::Wgsl, 128, 1),
    ]
}

#[test]
fn only_what_the_catalogue_names_takes_the_way_over_the_host() {
    for text in CALLS {
        let mut words = text.split_whitespace();
        let name = words.next().expect("a name");
        let given = Given::parse(words).expect("parameters");
        let inputs = [image(DType::U16, [1, 40, 50]); 3];
        let call = (1..=3).find_map(|count| OpCall::new(name, &given, &inputs[..count]).ok());
        let call = call.unwrap_or_else(|| panic!("{text} is no call"));
        let by_cpu = matches!(call.op.backends, Backends::CpuOnly { .. });
        for tuning in tunings() {
            let program = Program::tuned(Fused::none(&lower(&call)), Some(tuning), 256);
            let detours = program.detours();
            assert_eq!(
                by_cpu,
                !detours.is_empty(),
                "{text}: {tuning:?}: {detours:?}"
            );
        }
    }
}
