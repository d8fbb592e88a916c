//! Promises of `Device` and `DeviceInfo`.

use warploom_core::{Queue, QueueClass, QueueDesc, Slice};

use crate::case::{Verdict, cases, ensure};
use crate::noise::Noise;
use crate::programs::AFFINE;
use crate::rig::{PATIENCE, Rig, content, load, same};

cases! { Device "device":
    info_is_whole = "`DeviceInfo` tells a name, memory for kernels, a language and usable limits.";
    info_keeps_what_was_probed = "`info` is what was probed, refined by what only an open device knows.";
    opening_twice_gives_two = "Opening twice is allowed and gives two independent devices on the same hardware.";
    a_twins_buffer_does_no_harm = "Handles of another opening work or are an error; they break nothing.";
    outlives_its_handle = "Dropping the last handle to it, its buffers, queues and kernels closes it.";
    opens_again_after_closing = "A closed device can be opened again.";
    hints_do_not_forbid = "A queue's class is a hint.";
}

fn info_is_whole(rig: &Rig) -> Verdict {
    let info = rig.info();
    ensure!(!info.name.trim().is_empty(), "{} has no name", info.id);
    ensure!(!info.languages.is_empty(), "it takes no kernel language");
    ensure!(
        info.local_kind().is_some(),
        "no memory kind is for kernels: {:?}",
        info.memory
    );
    for (at, kind) in info.memory.iter().enumerate() {
        ensure!(!info.memory[..at].contains(kind), "{kind} is listed twice");
    }
    for (at, language) in info.languages.iter().enumerate() {
        ensure!(
            !info.languages[..at].contains(language),
            "{language} is listed twice"
        );
    }
    if let (Some(free), total @ 1..) = (info.free_memory, info.total_memory) {
        ensure!(free <= total, "{free} bytes are free of {total}");
    }
    let limits = info.limits;
    let align = limits.slice_align;
    ensure!(
        align.is_power_of_two(),
        "slices start at multiples of {align}"
    );
    for (what, value) in [
        ("max_alloc", limits.max_alloc),
        ("max_binding", limits.max_binding),
        ("max_slices", u64::from(limits.max_slices)),
        ("max_group_items", u64::from(limits.max_group_items)),
        ("compute_units", u64::from(limits.compute_units)),
    ] {
        ensure!(value > 0, "{what} is 0");
    }
    for axis in 0..3 {
        ensure!(
            limits.max_group[axis] > 0,
            "max_group is {:?}",
            limits.max_group
        );
        ensure!(
            limits.max_groups[axis] > 0,
            "max_groups is {:?}",
            limits.max_groups
        );
    }
    Ok(())
}

fn info_keeps_what_was_probed(rig: &Rig) -> Verdict {
    let (probed, opened) = (&rig.probed, rig.info());
    ensure!(probed.id == opened.id, "{} became {}", probed.id, opened.id);
    ensure!(
        probed.name == opened.name,
        "{} became {}",
        probed.name,
        opened.name
    );
    ensure!(
        probed.kind == opened.kind,
        "{} became {}",
        probed.kind,
        opened.kind
    );
    ensure!(
        probed.software == opened.software,
        "software became {}",
        opened.software
    );
    let (before, after) = (&probed.memory, &opened.memory);
    ensure!(before == after, "memory kinds {before:?} became {after:?}");
    // Refined: what was told stays, what was unknown may be known now.
    let refined = probed.key.or(opened.key);
    ensure!(
        refined == opened.key,
        "{:?} became {:?}",
        probed.key,
        opened.key
    );
    Ok(())
}

fn opening_twice_gives_two(rig: &Rig) -> Verdict {
    let twin = rig.reopen()?;
    let kind = rig.local()?;
    let before = twin.memory()?.ours;
    let mut queue = rig.queue()?;
    let bytes = Noise::new(1).bytes(100_003);
    let mine = rig.holding(&mut queue, &bytes)?;
    let after = twin.memory()?.ours;
    ensure!(
        after == before,
        "the second opening counts {before} bytes, then {after}"
    );
    let mut twin_queue = twin.queue(&QueueDesc::named("twin"))?;
    let theirs = Slice::whole(&twin.alloc(kind, 64)?);
    twin_queue.upload(&[7; 64], &theirs)?;
    same(
        "the second opening",
        &content::<u8>(&mut twin_queue, &theirs)?,
        &[7; 64],
    )?;
    drop((theirs, twin_queue, twin));
    same(
        "the first opening after the second closed",
        &content::<u8>(&mut queue, &mine)?,
        &bytes,
    )
}

fn a_twins_buffer_does_no_harm(rig: &Rig) -> Verdict {
    // The checks compare device ids, which two openings share; so this gets through to the backend.
    let twin = rig.reopen()?;
    let mut theirs_queue = twin.queue(&QueueDesc::named("twin"))?;
    let theirs = Slice::whole(&twin.alloc(rig.local()?, 64)?);
    theirs_queue.upload(&[3; 64], &theirs)?;
    crate::rig::done(&theirs_queue.record()?)?;
    let mut queue = rig.queue()?;
    let ours = rig.holding(&mut queue, &[1u8; 64])?;
    let mut bytes = [0; 64];
    if queue.download(&theirs, &mut bytes).is_ok() {
        same("a twin's bytes", &bytes, &[3; 64])?;
    }
    // Refused at once or later, or done: each is an answer.
    if queue.copy(&theirs, &ours).is_ok() {
        let _ = queue.record().and_then(|event| event.wait(Some(PATIENCE)));
    }
    drop(queue);
    let mut fresh = rig.queue()?;
    let slice = rig.holding(&mut fresh, &[5u8; 64])?;
    same(
        "a fresh queue",
        &content::<u8>(&mut fresh, &slice)?,
        &[5; 64],
    )?;
    same(
        "the twin",
        &content::<u8>(&mut theirs_queue, &theirs)?,
        &[3; 64],
    )
}

fn outlives_its_handle(rig: &Rig) -> Verdict {
    let device = rig.reopen()?;
    let affine = load(&device, AFFINE)?;
    let mut queue = device.queue(&QueueDesc::default())?;
    let slice = Slice::whole(&device.alloc(rig.local()?, 400)?);
    drop(device);
    queue.upload(bytemuck::cast_slice(&[5u32; 100]), &slice)?;
    let args = [slice.clone().into(), 3u32.into(), 2u32.into()];
    affine.line(&mut queue, 100, &args)?;
    drop(affine);
    same(
        "without a device handle",
        &content::<u32>(&mut queue, &slice)?,
        &[17; 100],
    )
}

fn opens_again_after_closing(rig: &Rig) -> Verdict {
    for round in 0..4u8 {
        let device = rig.reopen()?;
        let mut queue = device.queue(&QueueDesc::default())?;
        let slice = Slice::whole(&device.alloc(rig.local()?, 33)?);
        queue.upload(&[round; 33], &slice)?;
        same(
            "a reopened device",
            &content::<u8>(&mut queue, &slice)?,
            &[round; 33],
        )?;
    }
    Ok(())
}

fn hints_do_not_forbid(rig: &Rig) -> Verdict {
    let affine = rig.load(AFFINE)?;
    for class in [
        QueueClass::Compute,
        QueueClass::Upload,
        QueueClass::Download,
    ] {
        let desc = QueueDesc::named("hinted").with_class(class);
        let mut queue = rig.device.queue(&desc)?;
        let slice = rig.holding(&mut queue, &[1u32; 65])?;
        let copy = Slice::whole(&rig.buffer(slice.len())?);
        affine.line(
            &mut queue,
            65,
            &[slice.clone().into(), 10u32.into(), 1u32.into()],
        )?;
        queue.copy(&slice, &copy)?;
        same(
            "work on a hinted queue",
            &content::<u32>(&mut queue, &copy)?,
            &[11; 65],
        )?;
    }
    Ok(())
}
