//! Work that takes long, whatever the device.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use warploom_core::{Arg, CheckedDevice, Queue, QueueDesc, Slice};

use crate::case::Verdict;
use crate::kernels::Loaded;
use crate::programs::SPIN;
use crate::rig::{Rig, done, load};

/// The least that counts as long.
const ENOUGH: Duration = Duration::from_millis(50);

/// How much work takes a device about a tenth of a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    rounds: u32,
    groups: u32,
    /// Is it the groups that make it longer?
    wide: bool,
}

impl Pace {
    fn times(self, factor: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and the factor is positive"
        )]
        let scaled = |value: u32| (f64::from(value) * factor) as u32;
        if self.wide {
            // Every known device takes so many groups.
            let groups = scaled(self.groups).clamp(1, 65_535);
            return Self { groups, ..self };
        }
        let rounds = scaled(self.rounds).max(1);
        Self { rounds, ..self }
    }
}

/// A kernel that keeps its device busy for about a tenth of a second.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    spin: Loaded,
    pace: Pace,
}

impl Slow {
    /// For `device`, an opening of the rig's device. The pace is found once per device.
    pub(crate) fn load(rig: &Rig, device: &CheckedDevice) -> Verdict<Self> {
        let spin = load(device, SPIN)?;
        let paces = &rig.bench.session.paces;
        let known = paces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&rig.id())
            .copied();
        let pace = match known {
            Some(pace) => pace,
            None => find(device, &spin)?,
        };
        paces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(rig.id(), pace);
        Ok(Self { spin, pace })
    }

    /// Keeps `queue` busy for about `tenths` of a second, then writes `tag` as the second word.
    pub(crate) fn start(
        &self,
        queue: &mut dyn Queue,
        words: &Slice,
        tenths: u32,
        tag: u32,
    ) -> Verdict {
        launch(
            &self.spin,
            queue,
            words,
            self.pace.times(f64::from(tenths)),
            tag,
        )
    }
}

fn launch(spin: &Loaded, queue: &mut dyn Queue, words: &Slice, pace: Pace, tag: u32) -> Verdict {
    let items = u64::from(pace.groups) * 64;
    let args = [
        words.clone().into(),
        Arg::U32(pace.rounds),
        Arg::U32(pace.groups * 64 - 1),
        Arg::U32(tag),
    ];
    Ok(spin.line(queue, items, &args)?)
}

/// Turns the slow kernel more and more often until it takes long enough.
fn find(device: &CheckedDevice, spin: &Loaded) -> Verdict<Pace> {
    let mut queue = device.queue(&QueueDesc::named("pace"))?;
    let kind = spin_kind(device)?;
    let words = Slice::whole(&device.alloc(kind, 8)?);
    let mut time = |pace: Pace| -> Verdict<Duration> {
        let begun = Instant::now();
        launch(spin, &mut queue, &words, pace, 1)?;
        done(&queue.record()?)?;
        Ok(begun.elapsed())
    };
    let long = Pace {
        rounds: 1 << 8,
        groups: 1,
        wide: false,
    };
    // Mesa's llvmpipe leaves every loop after 65535 turns, so more rounds take no longer there.
    // Many items do; but they may fill a device so that nothing runs beside them, so they come
    // second.
    let wide = Pace {
        rounds: 1 << 13,
        groups: 1,
        wide: true,
    };
    let mut last = (wide, ENOUGH);
    for (mut pace, steps) in [(long, 10), (wide, 8)] {
        for _ in 0..steps {
            // The first launch may compile, and any launch may be unlucky: the faster counts.
            let took = time(pace)?.min(time(pace)?);
            last = (pace, took);
            if took >= ENOUGH {
                return Ok(pace.times((0.1 / took.as_secs_f64()).clamp(0.25, 2.0)));
            }
            pace = pace.times(4.0);
        }
    }
    Ok(last.0)
}

fn spin_kind(device: &CheckedDevice) -> Verdict<warploom_core::MemoryKind> {
    let kind = device.info().local_kind();
    kind.ok_or_else(|| crate::case::Stop::fail("no memory kind that kernels can use"))
}
