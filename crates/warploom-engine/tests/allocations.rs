//! A pass keeps its memory: what a call after the first ones allocates is book-keeping, and as much
//! for a large image as for a small one.

mod counting;

use warploom_core::DType;
use warploom_engine::rows::{Axis, RowGraph};
use warploom_engine::taps::Taps;
use warploom_engine::window::Fold;
use warploom_engine::{Image, ImageMut, View, ViewMut};
use warploom_flow::Boundary;

/// What a call allocates at least, once a chain of sums, windows and casts has run a few times.
fn allocated(dims: [usize; 3], pool: &rayon::ThreadPool) -> usize {
    let mut graph = RowGraph::new();
    let weights = Taps::<f64>::centred(&[0.25, 0.5, 1.0, 0.5, 0.25]);
    let mut value = graph.input(DType::U16);
    for axis in [Axis::Y, Axis::X] {
        value = graph.taps(value, axis, &weights, Boundary::Reflect);
        value = graph.window(value, axis, Fold::Max, 7, Boundary::Reflect);
    }
    graph.output(value, DType::F32);
    let engine = graph.finish();
    let count = dims.iter().product();
    let from: Vec<u16> = (0..977).cycle().take(count).collect();
    let mut to = vec![0.0_f32; count];
    let mut call = || {
        let before = counting::bytes();
        let target = ImageMut::F32(ViewMut::packed(&mut to, dims));
        let source = Image::U16(View::packed(&from, dims));
        pool.install(|| engine.run(&[source], vec![target]));
        counting::bytes() - before
    };
    // A thread that comes late takes memory of its own then.
    let warm = (0..20).map(|_| call()).max();
    assert!(warm.unwrap_or(0) > 10_000, "the first call has to allocate");
    (0..20).map(|_| call()).min().unwrap_or(0)
}

#[test]
fn calls_allocate_the_same_little_for_any_image() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let pool = pool.expect("two threads");
    let [small, large] = [[1, 256, 300], [1, 1024, 1200]].map(|dims| allocated(dims, &pool));
    assert!(
        small < 10_000 && large < 10_000,
        "{small} and {large} bytes"
    );
    assert!(large <= 2 * small + 1000, "{small} and {large} bytes");
}
