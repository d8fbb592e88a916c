//! What the checks in front of a backend refuse, with this device's own limits.

use std::sync::Arc;

use warploom_core::{Grid, Language, Queue, Slice, UsageError};

use super::stranger::stranger;
use crate::case::{Stop, Verdict, cases, ensure};
use crate::programs::{AFFINE, BLEND, CROWDED, HUGE};
use crate::rig::{Rig, content, refused, same};

cases! { Device "refusal":
    of_allocations = "An allocation of nothing, too much, or of another backend's kind is refused.";
    of_lengths = "Two lengths that must be equal and are not are refused.";
    of_strangers = "A buffer or kernel of another device is refused.";
    of_overlaps = "A copy onto itself is refused.";
    of_arguments = "Kernel arguments of a wrong number, type, place or kind are refused.";
    of_aliases = "A slice that is written and overlaps another argument is refused.";
    of_big_arguments = "A slice longer than kernels of this device can span is refused.";
    of_kernels = "A kernel with more slices, or larger groups, than the device takes is refused.";
    of_grids = "A launch with no groups, or more than the device takes, is refused.";
    leaves_the_queue_usable = "A refused call has no effect.";
}

fn of_allocations(rig: &Rig) -> Verdict {
    let (kind, limit) = (rig.local()?, rig.info().limits.max_alloc);
    let size: fn(&UsageError) -> bool = |error| matches!(error, UsageError::Size { .. });
    refused("0 bytes", rig.device.alloc(kind, 0), size)?;
    if let Some(more) = limit.checked_add(1) {
        refused(
            "more than one allocation can be",
            rig.device.alloc(kind, more),
            size,
        )?;
    }
    let theirs = stranger()?.info().memory[0];
    refused("a stranger's kind", rig.device.alloc(theirs, 8), |error| {
        matches!(error, UsageError::Kind { .. })
    })
}

fn of_lengths(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let (a, b) = (
        rig.holding(&mut queue, &[1u8; 16])?,
        rig.holding(&mut queue, &[2u8; 17])?,
    );
    let length: fn(&UsageError) -> bool = |error| matches!(error, UsageError::Length { .. });
    refused("15 bytes for 16", queue.upload(&[0; 15], &a), length)?;
    refused("17 bytes from 16", queue.download(&a, &mut [0; 17]), length)?;
    refused("a copy of 16 to 17", queue.copy(&a, &b), length)
}

fn of_strangers(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let other = stranger()?;
    let theirs = Slice::whole(&other.alloc(other.info().memory[0], 64)?);
    let ours = rig.holding(&mut queue, &[1u32; 16])?;
    let foreign: fn(&UsageError) -> bool = |error| matches!(error, UsageError::Foreign { .. });
    refused(
        "an upload to a stranger",
        queue.upload(&[0; 64], &theirs),
        foreign,
    )?;
    refused(
        "a download from a stranger",
        queue.download(&theirs, &mut [0; 64]),
        foreign,
    )?;
    refused("a copy to a stranger", queue.copy(&ours, &theirs), foreign)?;
    refused(
        "a copy from a stranger",
        queue.copy(&theirs, &ours),
        foreign,
    )?;
    let affine = rig.load(AFFINE)?;
    let args = [theirs.into(), 1u32.into(), 1u32.into()];
    refused(
        "a stranger's argument",
        affine.line(&mut queue, 16, &args),
        foreign,
    )?;
    let source = AFFINE
        .source(Language::Host)
        .ok_or_else(|| Stop::fail("the suite's kernels are host code too"))?;
    let kernel = other.kernel(&source)?;
    let args = affine.args(&[ours.into(), 1u32.into(), 1u32.into()]);
    let launched = queue.launch(&kernel, Grid::groups([1; 3]), &args);
    refused("a stranger's kernel", launched, foreign)
}

fn of_overlaps(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let whole = rig.holding(&mut queue, &[1u8; 100])?;
    let overlap: fn(&UsageError) -> bool = |error| matches!(error, UsageError::Overlap { .. });
    refused("a copy onto itself", queue.copy(&whole, &whole), overlap)?;
    let (a, b) = (whole.part(0..50)?, whole.part(49..99)?);
    refused("a copy over its last byte", queue.copy(&a, &b), overlap)?;
    refused("a copy over its first byte", queue.copy(&b, &a), overlap)?;
    Ok(queue.copy(&whole.part(0..50)?, &whole.part(50..100)?)?)
}

fn of_arguments(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let grid = Grid::groups([1; 3]);
    let kernel = Arc::clone(&affine.kernel);
    let slice = rig.holding(&mut queue, &[1u32; 16])?;
    let three = [slice.clone().into(), 1u32.into(), 1u32.into()];
    refused(
        "three arguments for four",
        queue.launch(&kernel, grid, &three),
        |error| matches!(error, UsageError::ArgCount { .. }),
    )?;
    let wrong_type: fn(&UsageError) -> bool = |e| matches!(e, UsageError::ArgType { .. });
    let args = affine.args(&[slice.clone().into(), 1.0f32.into(), 1u32.into()]);
    refused(
        "an f32 for a u32",
        queue.launch(&kernel, grid, &args),
        wrong_type,
    )?;
    let args = affine.args(&[1u32.into(), 1u32.into(), 1u32.into()]);
    refused(
        "a number for a slice",
        queue.launch(&kernel, grid, &args),
        wrong_type,
    )?;
    let args = affine.args(&[slice.clone().into(), slice.clone().into(), 1u32.into()]);
    refused(
        "a slice for a number",
        queue.launch(&kernel, grid, &args),
        wrong_type,
    )?;
    let align = rig.info().limits.slice_align;
    if align > 1 {
        let buffer = rig.buffer(u64::from(align) + 64)?;
        let aside = u64::from(align) / 2;
        let slice = Slice::new(buffer, aside..aside + 16)?;
        let args = [slice.into(), 1u32.into(), 1u32.into()];
        refused(
            "a slice that starts aside",
            affine.line(&mut queue, 4, &args),
            |error| matches!(error, UsageError::ArgAlign { .. }),
        )?;
    }
    for kind in rig.info().memory.clone() {
        if !kind.space().kernel_visible() {
            let slice = Slice::whole(&rig.device.alloc(kind, 64)?);
            let args = [slice.into(), 1u32.into(), 1u32.into()];
            let what = format!("a {kind} argument");
            refused(&what, affine.line(&mut queue, 16, &args), |error| {
                matches!(error, UsageError::ArgMemory { .. })
            })?;
        }
    }
    Ok(())
}

fn of_aliases(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let blend = rig.load(BLEND)?;
    let step = rig.aligned(4);
    let whole = rig.holding(
        &mut queue,
        &vec![1u8; usize::try_from(4 * step).unwrap_or(0)],
    )?;
    let (a, b) = (whole.part(0..2 * step)?, whole.part(step..3 * step)?);
    let alias: fn(&UsageError) -> bool = |error| matches!(error, UsageError::ArgAlias { .. });
    for (what, first, out) in [
        ("reading and writing one slice", &a, &a),
        ("writing over a part of an input", &a, &b),
        ("writing around an input", &b, &whole),
    ] {
        let args = [
            first.clone().into(),
            0u32.into(),
            first.clone().into(),
            out.clone().into(),
        ];
        refused(what, blend.line(&mut queue, 1, &args), alias)?;
    }
    Ok(())
}

fn of_big_arguments(rig: &Rig) -> Verdict {
    let limits = rig.info().limits;
    let bytes = limits.max_binding.saturating_add(4);
    // Nothing is written, but a processor that plays a device has to find the room.
    if bytes > limits.max_alloc.min(1 << 29) {
        return Err(Stop::skip("no buffer here is longer than a slice may be"));
    }
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slice = Slice::whole(&rig.buffer(bytes)?);
    let args = [slice.into(), 1u32.into(), 1u32.into()];
    refused(
        "a slice that is too long",
        affine.line(&mut queue, 1, &args),
        |error| matches!(error, UsageError::ArgSize { .. }),
    )
}

fn of_kernels(rig: &Rig) -> Verdict {
    let limit = rig.info().limits.max_slices as usize;
    if limit < CROWDED.params.len() {
        let crowded = rig.device.kernel(&CROWDED.pick(rig.info())?);
        refused("a kernel of too many slices", crowded, |error| {
            matches!(error, UsageError::Slices { .. })
        })?;
    }
    let huge = HUGE.pick(rig.info())?;
    // Host code has no groups.
    if huge.language() != Language::Host {
        refused(
            "a kernel of huge groups",
            rig.device.kernel(&huge),
            |error| matches!(error, UsageError::Group { .. }),
        )?;
    }
    Ok(())
}

fn of_grids(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slice = rig.holding(&mut queue, &[1u32; 16])?;
    let args = affine.args(&[slice.into(), 1u32.into(), 1u32.into()]);
    let grid: fn(&UsageError) -> bool = |error| matches!(error, UsageError::Grid { .. });
    let limit = rig.info().limits.max_groups;
    for axis in 0..3 {
        let mut groups = [1; 3];
        groups[axis] = 0;
        let launched = queue.launch(&affine.kernel, Grid::groups(groups), &args);
        refused("a grid of nothing", launched, grid)?;
        if let Some(more) = limit[axis].checked_add(1) {
            groups[axis] = more;
            let launched = queue.launch(&affine.kernel, Grid::groups(groups), &args);
            refused("a grid beyond the limit", launched, grid)?;
        }
    }
    Ok(())
}

fn leaves_the_queue_usable(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slice = rig.holding(&mut queue, &[3u32; 16])?;
    ensure!(queue.upload(&[0; 3], &slice).is_err(), "3 bytes filled 64");
    ensure!(queue.copy(&slice, &slice).is_err(), "a copy onto itself");
    let none = queue.launch(&affine.kernel, Grid::groups([0; 3]), &[]);
    ensure!(none.is_err(), "a launch of nothing");
    affine.line(
        &mut queue,
        16,
        &[slice.clone().into(), 2u32.into(), 1u32.into()],
    )?;
    same(
        "after three refusals",
        &content::<u32>(&mut queue, &slice)?,
        &[7; 16],
    )
}
