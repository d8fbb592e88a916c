//! Promises of `Queue::launch`.

use warploom_core::{Arg, Caps, Queue, Slice};

use crate::case::{Stop, Verdict, cases, ensure};
use crate::noise::Noise;
use crate::programs::{AFFINE, BLEND, DOUBLE, EIGHT, LONG, NUMBERS, PLACES, SAXPY, TURN};
use crate::rig::{Rig, content, part, same};

cases! { Device "launch":
    reads_and_writes = "A kernel reads, writes and takes numbers as its parameters say.";
    any_number_of_items = "A grid covers items that are not a multiple of the group.";
    two_dimensions = "Work groups count in x and y.";
    three_dimensions = "Work groups count in x, y and z.";
    many_groups = "A launch may have as many groups as the limit says.";
    numbers_of_every_type = "Numbers arrive by value, in the order of the parameters.";
    doubles = "`F64` devices take 64-bit numbers and compute with them.";
    long_integers = "`I64` devices compute with 64-bit integers.";
    numbers_between_slices = "Arguments arrive in the order of the parameters.";
    slices_of_one_slab = "Slices of one buffer can meet in one launch.";
    readers_share_bytes = "Slices that are only read may overlap.";
    a_part_and_the_whole = "A slice starts at its first byte and ends at its last.";
    eight_slices = "A launch takes as many slices as the limit says.";
    groups_share_memory = "The items of a work group share memory and meet at barriers.";
    arguments_are_taken_at_once = "Arguments belong to the launch: the next one may differ.";
}

fn reads_and_writes(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let saxpy = rig.load(SAXPY)?;
    let mut noise = Noise::new(51);
    let (x, y) = (noise.floats(5000), noise.floats(5000));
    let on_x = rig.holding(&mut queue, &x)?;
    let on_y = rig.holding(&mut queue, &y)?;
    let args = [on_x.clone().into(), on_y.clone().into(), Arg::F32(-3.0)];
    saxpy.line(&mut queue, 5000, &args)?;
    let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y - 3.0 * x).collect();
    same("y", &content::<f32>(&mut queue, &on_y)?, &want)?;
    same(
        "x, which is only read",
        &content::<f32>(&mut queue, &on_x)?,
        &x,
    )
}

fn any_number_of_items(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    for items in [1usize, 2, 63, 64, 65, 127, 1000, 4096, 10_007] {
        // The buffer is longer than the slice, to see what is written past it.
        let before = Noise::new(items as u64).words(items + 200);
        let whole = rig.holding(&mut queue, &before)?;
        let args = [
            whole.part(0..4 * items as u64)?.into(),
            5u32.into(),
            9u32.into(),
        ];
        affine.line(&mut queue, items as u64, &args)?;
        let mut want = before.clone();
        for value in &mut want[..items] {
            *value = value.wrapping_mul(5).wrapping_add(9);
        }
        let what = format!("a launch over {items} items");
        same(&what, &content::<u32>(&mut queue, &whole)?, &want)?;
    }
    Ok(())
}

/// Every item of a box writes where it is.
fn places(rig: &Rig, [w, h, d]: [u32; 3]) -> Verdict {
    let mut queue = rig.queue()?;
    let places = rig.load(PLACES)?;
    let items = [w, h, d].map(u64::from);
    let count = usize::try_from(items.iter().product::<u64>()).unwrap_or(0);
    let slice = rig.holding(&mut queue, &vec![u32::MAX; count])?;
    let args = [slice.clone().into(), w.into(), h.into()];
    places.launch(&mut queue, items, &args)?;
    let mut want = Vec::new();
    for z in 0..d {
        for y in 0..h {
            want.extend((0..w).map(|x| x + (y << 11) + (z << 22)));
        }
    }
    let what = format!("a grid over {w} x {h} x {d}");
    same(&what, &content::<u32>(&mut queue, &slice)?, &want)
}

fn two_dimensions(rig: &Rig) -> Verdict {
    for (w, h) in [(1, 1), (4, 4), (5, 3), (1, 77), (300, 211), (1023, 9)] {
        places(rig, [w, h, 1])?;
    }
    Ok(())
}

fn three_dimensions(rig: &Rig) -> Verdict {
    for size in [[1, 1, 1], [4, 4, 4], [5, 6, 7], [1, 1, 50], [33, 17, 9]] {
        places(rig, size)?;
    }
    Ok(())
}

fn many_groups(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let groups = rig.info().limits.max_groups[0].min(65_535);
    let count = groups as usize * 64 - 5;
    let words = Noise::new(52).words(count);
    let slice = rig.holding(&mut queue, &words)?;
    let args = [slice.clone().into(), 3u32.into(), 1u32.into()];
    affine.line(&mut queue, count as u64, &args)?;
    let want: Vec<u32> = words
        .iter()
        .map(|value| value.wrapping_mul(3).wrapping_add(1))
        .collect();
    let what = format!("a launch of {groups} groups");
    same(&what, &content::<u32>(&mut queue, &slice)?, &want)
}

fn numbers_of_every_type(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let numbers = rig.load(NUMBERS)?;
    let slice = rig.holding(&mut queue, &[0u32; 6])?;
    for (a, b, c, d, e, f) in [
        (1u32, -2i32, 3.5f32, -0.0f32, i32::MIN, u32::MAX),
        (0xdead_beef, i32::MAX, 1e-38, f32::MAX, 0, 7),
    ] {
        let args = [
            slice.clone().into(),
            a.into(),
            b.into(),
            c.into(),
            d.into(),
            e.into(),
            f.into(),
        ];
        numbers.line(&mut queue, 1, &args)?;
        let want = [
            a,
            b.cast_unsigned(),
            c.to_bits(),
            d.to_bits(),
            e.cast_unsigned(),
            f,
        ];
        same("six numbers", &content::<u32>(&mut queue, &slice)?, &want)?;
    }
    Ok(())
}

fn doubles(rig: &Rig) -> Verdict {
    if !rig.info().caps.contains(Caps::F64) {
        return Err(Stop::skip("it has no 64-bit floats"));
    }
    let mut queue = rig.queue()?;
    let double = rig.load(DOUBLE)?;
    // Beyond what 32 bits hold, and exact in 64.
    let values: Vec<f64> = (0..300u32).map(|i| f64::from(i) * 16_777_217.0).collect();
    let slice = rig.holding(&mut queue, &values)?;
    let (a, b) = (3.0, 4_294_967_297.0);
    let args = [slice.clone().into(), Arg::F64(a), Arg::F64(b)];
    double.line(&mut queue, 300, &args)?;
    let want: Vec<f64> = values.iter().map(|v| v * a + b).collect();
    same("64-bit floats", &content::<f64>(&mut queue, &slice)?, &want)
}

fn long_integers(rig: &Rig) -> Verdict {
    if !rig.info().caps.contains(Caps::I64) {
        return Err(Stop::skip("it has no 64-bit integers"));
    }
    let mut queue = rig.queue()?;
    let long = rig.load(LONG)?;
    let mut noise = Noise::new(59);
    let values: Vec<u64> = (0..300).map(|_| noise.next()).collect();
    let slice = rig.holding(&mut queue, &values)?;
    long.line(&mut queue, 300, &[slice.clone().into()])?;
    let square = |v: &u64| v.wrapping_mul(*v).wrapping_add(1);
    let want: Vec<u64> = values.iter().map(square).collect();
    same(
        "64-bit integers",
        &content::<u64>(&mut queue, &slice)?,
        &want,
    )
}

fn blended(a: &[u32], k: u32, b: &[u32]) -> Vec<u32> {
    let blend = |(a, b): (&u32, &u32)| a.wrapping_mul(3).wrapping_add(*b).wrapping_add(k);
    a.iter().zip(b).map(blend).collect()
}

fn numbers_between_slices(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let blend = rig.load(BLEND)?;
    let mut noise = Noise::new(53);
    let (a, b) = (noise.words(500), noise.words(500));
    let (on_a, on_b) = (rig.holding(&mut queue, &a)?, rig.holding(&mut queue, &b)?);
    let out = Slice::whole(&rig.buffer(2000)?);
    let args = [on_a.into(), 99u32.into(), on_b.into(), out.clone().into()];
    blend.line(&mut queue, 500, &args)?;
    let want = blended(&a, 99, &b);
    same("a blend", &content::<u32>(&mut queue, &out)?, &want)
}

fn slices_of_one_slab(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let blend = rig.load(BLEND)?;
    let (mut noise, len) = (Noise::new(54), 333usize);
    let step = rig.aligned(4 * len as u64);
    let slab = rig.buffer(3 * step)?;
    let at = |place: u64| part(&slab, place * step..place * step + 4 * len as u64);
    // The slab's three places, in every role.
    for (a, b, out) in [(0, 1, 2), (2, 0, 1), (1, 2, 0)] {
        let (words_a, words_b) = (noise.words(len), noise.words(len));
        queue.upload(bytemuck::cast_slice(&words_a), &at(a)?)?;
        queue.upload(bytemuck::cast_slice(&words_b), &at(b)?)?;
        let args = [at(a)?.into(), 1u32.into(), at(b)?.into(), at(out)?.into()];
        blend.line(&mut queue, len as u64, &args)?;
        let want = blended(&words_a, 1, &words_b);
        let what = format!("places {a} and {b} of a slab, blended into {out}");
        same(&what, &content::<u32>(&mut queue, &at(out)?)?, &want)?;
    }
    Ok(())
}

fn readers_share_bytes(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let blend = rig.load(BLEND)?;
    let shift = usize::try_from(rig.aligned(4) / 4).unwrap_or(1);
    let words = Noise::new(55).words(shift + 100);
    let whole = rig.holding(&mut queue, &words)?;
    let (head, tail) = (
        0..whole.len() - 4 * shift as u64,
        4 * shift as u64..whole.len(),
    );
    let out = Slice::whole(&rig.buffer(400)?);
    let args = [
        whole.part(head)?.into(),
        0u32.into(),
        whole.part(tail)?.into(),
        out.clone().into(),
    ];
    blend.line(&mut queue, 100, &args)?;
    let want = blended(&words[..100], 0, &words[shift..]);
    same(
        "two views of one buffer",
        &content::<u32>(&mut queue, &out)?,
        &want,
    )
}

fn a_part_and_the_whole(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let start = usize::try_from(rig.aligned(4) / 4).unwrap_or(1);
    let mut want = Noise::new(56).words(3 * start + 10);
    let whole = rig.holding(&mut queue, &want)?;
    let middle = start..2 * start;
    let range = 4 * middle.start as u64..4 * middle.end as u64;
    // More items than the part has: its end is the kernel's end.
    let args = [whole.part(range)?.into(), 2u32.into(), 1u32.into()];
    affine.line(&mut queue, 10 * start as u64, &args)?;
    for value in &mut want[middle] {
        *value = value.wrapping_mul(2).wrapping_add(1);
    }
    same("a part", &content::<u32>(&mut queue, &whole)?, &want)
}

fn eight_slices(rig: &Rig) -> Verdict {
    let limit = rig.info().limits.max_slices;
    if limit < 8 {
        return Err(Stop::skip(format!("it binds {limit} slices at most")));
    }
    let mut queue = rig.queue()?;
    let eight = rig.load(EIGHT)?;
    let mut noise = Noise::new(57);
    let inputs: Vec<Vec<u32>> = (0..7).map(|_| noise.words(130)).collect();
    let mut args: Vec<Arg> = Vec::new();
    for words in &inputs {
        args.push(rig.holding(&mut queue, words)?.into());
    }
    let out = Slice::whole(&rig.buffer(520)?);
    args.push(out.clone().into());
    eight.line(&mut queue, 130, &args)?;
    let weigh = |i: usize| {
        (1u32..).zip(&inputs).fold(0u32, |sum, (weight, words)| {
            sum.wrapping_add(words[i].wrapping_mul(weight))
        })
    };
    let want: Vec<u32> = (0..130).map(weigh).collect();
    same("eight slices", &content::<u32>(&mut queue, &out)?, &want)
}

fn groups_share_memory(rig: &Rig) -> Verdict {
    let needed = 4 * 64;
    let limit = rig.info().limits.local_memory;
    if limit < needed {
        return Err(Stop::skip(format!(
            "a group shares {limit} bytes, not {needed}"
        )));
    }
    let mut queue = rig.queue()?;
    let turn = rig.load(TURN)?;
    for items in [64usize, 640, 1000] {
        let mut want = Noise::new(58).words(items);
        let slice = rig.holding(&mut queue, &want)?;
        turn.line(&mut queue, items as u64, &[slice.clone().into()])?;
        want.chunks_mut(64).for_each(<[u32]>::reverse);
        let what = format!("{items} items turned around in groups");
        same(&what, &content::<u32>(&mut queue, &slice)?, &want)?;
    }
    Ok(())
}

fn arguments_are_taken_at_once(rig: &Rig) -> Verdict {
    let mut queue = rig.queue()?;
    let affine = rig.load(AFFINE)?;
    let slices: Vec<Slice> = (0..20)
        .map(|_| rig.holding(&mut queue, &[1u32; 64]))
        .collect::<Verdict<_>>()?;
    // One kernel, launched with other arguments before the first has run.
    for (number, slice) in (0u32..).zip(&slices) {
        let args = [slice.clone().into(), number.into(), (100 + number).into()];
        affine.line(&mut queue, 64, &args)?;
    }
    for (number, slice) in (0u32..).zip(&slices) {
        let got = content::<u32>(&mut queue, slice)?;
        ensure!(got.len() == 64, "{} elements", got.len());
        same("one of twenty launches", &got, &[100 + 2 * number; 64])?;
    }
    Ok(())
}
