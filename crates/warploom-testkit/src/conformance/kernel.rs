//! Promises of `Kernel` and of compiling.

use std::sync::Arc;

use warploom_core::{DeviceError, KernelSource, Language, Math, Queue};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::programs::{AFFINE, BLEND, EXACT, SAXPY, broken};
use crate::rig::{Rig, content, load, refused, same};

cases! { Device "kernel":
    keeps_its_declaration = "A kernel tells its name, its parameters, its group and its device.";
    compiles_twice = "Compiling the same source twice gives two kernels.";
    compiles_fast_math_too = "A source may ask for fast math.";
    errors_come_with_a_log = "A kernel that does not compile is a `Build` error with the compiler's words.";
    a_failed_build_harms_nothing = "After a `Build` error the device goes on.";
    other_languages_are_refused = "A kernel in a language the device does not take is refused.";
    compiles_on_many_threads = "A device is shared between threads.";
}

fn keeps_its_declaration(rig: &Rig) -> Verdict {
    for program in [AFFINE, BLEND, EXACT, SAXPY] {
        let source = program.pick(rig.info())?;
        let kernel = rig.device.kernel(&source)?;
        let (name, group) = (kernel.name(), kernel.group());
        ensure!(name == source.name(), "`{}` became `{name}`", source.name());
        let params = kernel.params();
        ensure!(
            params == source.params(),
            "{:?} became {params:?}",
            source.params()
        );
        ensure!(
            group == source.group(),
            "{:?} became {group:?}",
            source.group()
        );
        let owner = kernel.device();
        ensure!(
            owner == rig.id(),
            "a kernel of {} says it is of {owner}",
            rig.id()
        );
    }
    Ok(())
}

fn compiles_twice(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let (first, second) = (rig.load(AFFINE)?, rig.load(AFFINE)?);
    let slice = rig.holding(&mut queue, &[1u32; 70])?;
    first.line(
        &mut queue,
        70,
        &[slice.clone().into(), 2u32.into(), 1u32.into()],
    )?;
    second.line(
        &mut queue,
        70,
        &[slice.clone().into(), 2u32.into(), 1u32.into()],
    )?;
    drop(first);
    second.line(
        &mut queue,
        70,
        &[slice.clone().into(), 2u32.into(), 1u32.into()],
    )?;
    same(
        "after both",
        &content::<u32>(&mut queue, &slice)?,
        &[15; 70],
    )
}

fn compiles_fast_math_too(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let source = SAXPY.pick(rig.info())?.with_math(Math::Fast);
    let kernel = rig.device.kernel(&source)?;
    let fast = crate::kernels::Loaded {
        program: SAXPY,
        kernel,
    };
    let x = rig.holding(&mut queue, &[2.0f32; 99])?;
    let y = rig.holding(&mut queue, &[1.0f32; 99])?;
    fast.line(&mut queue, 99, &[x.into(), y.clone().into(), 4.0f32.into()])?;
    // Small whole numbers come out right however they are computed.
    same("fast math", &content::<f32>(&mut queue, &y)?, &[9.0; 99])
}

/// A text that does not compile, in this device's language.
fn bad(rig: &Rig) -> Verdict<KernelSource<'static>> {
    let languages = &rig.info().languages;
    languages
        .iter()
        .find_map(|language| broken(*language))
        .ok_or_else(|| Stop::skip("host code is compiled before it gets here"))
}

fn errors_come_with_a_log(rig: &Rig) -> Verdict {
    match rig.device.kernel(&bad(rig)?) {
        Err(DeviceError::Build {
            device,
            kernel,
            log,
        }) => {
            ensure!(device == rig.id(), "the error is about {device}");
            ensure!(kernel == "broken", "the error is about kernel `{kernel}`");
            let names = log.contains("undeclared_thing") || log.contains("broken");
            ensure!(names, "the log does not name what is wrong: `{log}`");
            Ok(())
        }
        Err(other) => Err(Stop::fail(format!("not a build error, but: {other}"))),
        Ok(_) => Err(Stop::fail("a broken text compiled")),
    }
}

fn a_failed_build_harms_nothing(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let slice = rig.holding(&mut queue, &[1u32; 33])?;
    let bad = bad(rig)?;
    for _ in 0..2 {
        ensure!(rig.device.kernel(&bad).is_err(), "a broken text compiled");
    }
    let affine = rig.load(AFFINE)?;
    affine.line(
        &mut queue,
        33,
        &[slice.clone().into(), 6u32.into(), 1u32.into()],
    )?;
    same(
        "after a failed build",
        &content::<u32>(&mut queue, &slice)?,
        &[7; 33],
    )
}

fn other_languages_are_refused(rig: &Rig) -> Verdict {
    let mut tried = 0;
    for language in [
        Language::Host,
        Language::Wgsl,
        Language::OpenClC,
        Language::CudaC,
    ] {
        if rig.info().languages.contains(&language) {
            continue;
        }
        if let Some(source) = AFFINE.source(language) {
            let what = format!("{language} on {}", rig.id());
            refused(&what, rig.device.kernel(&source), |error| {
                matches!(error, warploom_core::UsageError::Language { .. })
            })?;
            tried += 1;
        }
    }
    ensure!(tried > 0, "it takes every language, which no device does");
    Ok(())
}

fn compiles_on_many_threads(rig: &Rig) -> Verdict {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u32)
            .map(|number| {
                scope.spawn(move || {
                    let affine = load(&rig.device, AFFINE)?;
                    let mut queue = rig.queue()?;
                    let slice = rig.holding(&mut queue, &[number; 80])?;
                    let args = [slice.clone().into(), 3u32.into(), 1u32.into()];
                    affine.line(&mut queue, 80, &args)?;
                    let event = queue.record()?;
                    queue.wait(&Arc::clone(&event))?;
                    let want = [number * 3 + 1; 80];
                    same(
                        "a thread's kernel",
                        &content::<u32>(&mut queue, &slice)?,
                        &want,
                    )
                })
            })
            .collect();
        for thread in threads {
            thread
                .join()
                .map_err(|_| Stop::fail("a thread panicked"))??;
        }
        Ok(())
    })
}
