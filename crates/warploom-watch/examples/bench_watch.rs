//! What watching costs: collecting a span, writing trace and report of 100 000 of them, replacing a
//! notice. `cargo xtask bench watch` runs it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "browser/nuclei.rs"]
mod nuclei;
#[expect(dead_code, reason = "only the plate is needed here")]
#[path = "browser/sample.rs"]
mod sample;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use warploom_watch::board::{Board, Notice};
use warploom_watch::recording::Span;
use warploom_watch::{metrics, report, trace};

/// The best of some rounds, in seconds: what the code costs when nothing else runs.
fn best(mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    };
    (0..7).map(round).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn Error>> {
    let recording = sample::plate(20_000);
    let spans = recording.spans.clone();
    let collecting = best(|| {
        let mut collected: Vec<Span> = Vec::new();
        for span in &spans {
            collected.push(black_box(*span));
        }
        black_box(collected);
    });
    println!(
        "span_collect_ns {:.1}",
        collecting * 1e9 / spans.len() as f64
    );
    let mut file = Vec::new();
    let writing = best(|| {
        file.clear();
        // A vector takes everything.
        let _ = trace(black_box(&recording), &mut file);
    });
    println!("trace_100000_spans_ms {:.1}", writing * 1e3);
    println!("trace_100000_spans_bytes {}", file.len());
    let reporting = best(|| drop(black_box(report(black_box(&recording)))));
    println!("report_100000_spans_ms {:.1}", reporting * 1e3);
    println!("report_100000_spans_bytes {}", report(&recording).len());
    let measuring = best(|| drop(black_box(metrics(black_box(&recording)))));
    println!("metrics_100000_spans_ms {:.1}", measuring * 1e3);
    let dir = tempfile::tempdir()?;
    let notice = Notice::new("bench", "bench", 1);
    let mut pin = Board::in_folder(dir.path().join("board")).pin(&notice)?;
    let mut failed = None;
    let updating = best(|| {
        for _ in 0..100 {
            failed = pin.update(&notice).err().or(failed.take());
        }
    });
    println!("notice_update_us {:.1}", updating * 1e6 / 100.0);
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
