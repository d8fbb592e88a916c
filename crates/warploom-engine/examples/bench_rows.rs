//! Speed of the CPU engine: million pixels per second of each operation, best of several runs.
#![expect(
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "it is a report on small numbers"
)]

use std::time::Instant;

use warploom_core::DType;
use warploom_engine::rows::{Axis, RowEngine, RowGraph, Value};
use warploom_engine::taps::Taps;
use warploom_engine::window::Fold;
use warploom_engine::{View, ViewMut};
use warploom_flow::Boundary;

fn gaussian(sigma: f64) -> Taps<f64> {
    let radius = (4.0 * sigma + 0.5) as i32;
    let weight = |x: i32| (-0.5 * (f64::from(x) / sigma).powi(2)).exp();
    let sum: f64 = (-radius..=radius).map(weight).sum();
    Taps::Symmetric((0..=radius).map(|x| weight(x) / sum).collect())
}

fn engine(build: impl FnOnce(&mut RowGraph, Value) -> Value) -> RowEngine {
    let mut graph = RowGraph::new();
    let image = graph.input(DType::F32);
    let result = build(&mut graph, image);
    graph.output(result, DType::F32);
    graph.finish()
}

fn both(graph: &mut RowGraph, value: Value, fold: Fold, radius: usize) -> Value {
    let value = graph.window(value, Axis::Y, fold, radius, Boundary::Clamp);
    graph.window(value, Axis::X, fold, radius, Boundary::Clamp)
}

fn main() {
    let dims = [1, 2048, 2048];
    let pixels: usize = dims.iter().product();
    let src: Vec<f32> = (0..pixels).map(|i| (i * 7919 % 1013) as f32).collect();
    let mut dst = vec![0_f32; pixels];
    let two = |taps: Taps<f64>| {
        engine(move |g, v| {
            let v = g.taps(v, Axis::Y, &taps, Boundary::Clamp);
            g.taps(v, Axis::X, &taps, Boundary::Clamp)
        })
    };
    let cases: Vec<(String, RowEngine)> = vec![
        ("copy".into(), engine(|_, v| v)),
        (
            "gaussian 2 y".into(),
            engine(|g, v| g.taps(v, Axis::Y, &gaussian(2.0), Boundary::Clamp)),
        ),
        (
            "gaussian 2 x".into(),
            engine(|g, v| g.taps(v, Axis::X, &gaussian(2.0), Boundary::Clamp)),
        ),
        ("gaussian 2".into(), two(gaussian(2.0))),
        ("gaussian 8".into(), two(gaussian(6.1))),
        ("smooth 3".into(), two(Taps::Symmetric(vec![2.0, 1.0]))),
        ("mean 2".into(), engine(|g, v| both(g, v, Fold::Sum, 2))),
        ("mean 30".into(), engine(|g, v| both(g, v, Fold::Sum, 30))),
        ("max 3".into(), engine(|g, v| both(g, v, Fold::Max, 3))),
        (
            "max 30 y".into(),
            engine(|g, v| g.window(v, Axis::Y, Fold::Max, 30, Boundary::Clamp)),
        ),
        (
            "max 30 x".into(),
            engine(|g, v| g.window(v, Axis::X, Fold::Max, 30, Boundary::Clamp)),
        ),
        (
            "opening 5".into(),
            engine(|g, v| {
                let v = both(g, v, Fold::Min, 5);
                both(g, v, Fold::Max, 5)
            }),
        ),
    ];
    for (name, engine) in &cases {
        print!("{name:16}");
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads start");
            let best = pool.install(|| {
                (0..9)
                    .map(|_| {
                        let start = Instant::now();
                        engine.run(
                            &[View::packed(&src, dims).into()],
                            vec![ViewMut::packed(&mut dst, dims).into()],
                        );
                        start.elapsed().as_secs_f64()
                    })
                    .fold(f64::MAX, f64::min)
            });
            print!(" {:8.0}", pixels as f64 / best / 1e6);
        }
        println!();
    }
}
