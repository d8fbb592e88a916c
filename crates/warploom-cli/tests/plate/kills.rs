//! Runs that are killed at any moment, and resumed.

use std::time::{Duration, Instant};

use super::{Bench, Files};

/// Kills at random moments of a run's time.
pub(crate) struct Kills {
    state: u64,
    took: Duration,
    /// The results of a run that nobody disturbed.
    pub(crate) whole: Files,
    pub(crate) count: usize,
    /// Those that some results were there at, and not all.
    pub(crate) amid: usize,
}

impl Kills {
    /// Lets a run come to its end, to see what it makes and how long it takes.
    pub(crate) fn new(bench: &Bench, seed: u64) -> Self {
        let began = Instant::now();
        assert_eq!(bench.run(&["-o", "whole", "-q"]).0, 0);
        Self {
            state: seed,
            took: began.elapsed(),
            whole: bench.results("whole"),
            count: 0,
            amid: 0,
        }
    }

    fn moment(&mut self) -> Instant {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let share = f64::from(u32::try_from(self.state >> 40).unwrap()) / f64::from(1 << 24);
        Instant::now() + self.took.mul_f64(share)
    }

    /// Starts a run and kills it, resumes it and kills it, until it comes to its end. `look` sees the results
    /// after each kill.
    pub(crate) fn until_done(
        &mut self,
        bench: &Bench,
        output: &str,
        first: &[&str],
        look: impl Fn(&Files, &Files),
    ) {
        let mut how = first;
        loop {
            let mut child = bench.start(&[&["-o", output, "-q"], how].concat());
            how = &["--resume"];
            let end = self.moment();
            let mut done = None;
            while done.is_none() && Instant::now() < end {
                done = child.try_wait().unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            if let Some(status) = done {
                assert!(status.success());
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            self.count += 1;
            let found = bench.results(output);
            self.amid += usize::from(!found.is_empty() && found.len() < self.whole.len());
            look(&found, &self.whole);
        }
        assert!(bench.results(output) == self.whole, "{output}");
    }
}
