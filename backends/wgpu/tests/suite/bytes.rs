//! Every byte goes where it should, whatever the offsets, and its neighbours stay.

use std::sync::Arc;

use warploom_core::memory::{WGPU_DEVICE, WGPU_PINNED};
use warploom_core::{Buffer, DeviceError, Queue, Slice};

use crate::rig::{Noise, content, device, filled, part, queue};

const KINDS: [warploom_core::MemoryKind; 2] = [WGPU_DEVICE, WGPU_PINNED];

fn range(start: u64, len: u64) -> std::ops::Range<usize> {
    let index = |n| usize::try_from(n).unwrap();
    index(start)..index(start + len)
}

#[test]
fn uploads_and_downloads_at_every_offset_and_length() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let mut noise = Noise(1);
    for kind in KINDS {
        // A size that is no multiple of a word, so that the last one is shared with nothing.
        let mut model = noise.bytes(29);
        let buffer = filled(&device, &mut queue, kind, &model);
        for start in 0..29 {
            for len in 1..=(29 - start).min(14) {
                let new = noise.bytes(range(0, len).len());
                queue.upload(&new, &part(&buffer, start, len)).unwrap();
                model[range(start, len)].copy_from_slice(&new);
                let mut back = vec![0; new.len()];
                queue
                    .download(&part(&buffer, start, len), &mut back)
                    .unwrap();
                assert_eq!(back, new, "{kind} {start}+{len}");
            }
            assert_eq!(content(&mut queue, &buffer), model, "{kind} {start}");
        }
    }
}

#[test]
fn copies_between_every_two_offsets_and_kinds() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let mut noise = Noise(2);
    for (from, to) in KINDS.iter().flat_map(|from| KINDS.map(|to| (*from, to))) {
        let source = noise.bytes(31);
        let src = filled(&device, &mut queue, from, &source);
        let mut model = noise.bytes(31);
        let dst = filled(&device, &mut queue, to, &model);
        for start in 0..5 {
            for target in 0..5 {
                for len in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 26] {
                    queue
                        .copy(&part(&src, start, len), &part(&dst, target, len))
                        .unwrap();
                    model[range(target, len)].copy_from_slice(&source[range(start, len)]);
                    let got = content(&mut queue, &dst);
                    assert_eq!(got, model, "{from} {start} to {to} {target}, {len} bytes");
                }
            }
        }
        assert_eq!(content(&mut queue, &src), source, "the source is changed");
    }
}

#[test]
fn copies_within_one_buffer_even_within_one_word() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let mut noise = Noise(3);
    for kind in KINDS {
        let mut model = noise.bytes(24);
        let buffer = filled(&device, &mut queue, kind, &model);
        for src in 0..20_u64 {
            for dst in 0..20 {
                let len = src.abs_diff(dst).min(24 - src.max(dst));
                if len == 0 {
                    continue;
                }
                queue
                    .copy(&part(&buffer, src, len), &part(&buffer, dst, len))
                    .unwrap();
                model.copy_within(range(src, len), range(dst, 0).start);
            }
            assert_eq!(content(&mut queue, &buffer), model, "{kind} {src}");
        }
    }
}

/// Many calls, one look at the end: order within a queue, without any help from waiting.
#[test]
fn a_long_list_of_random_calls_does_what_memory_would() {
    let Some(device) = device() else { return };
    for seed in 0..8 {
        let mut queue = queue(&device);
        let mut noise = Noise(seed);
        let kinds = [WGPU_DEVICE, WGPU_PINNED, WGPU_DEVICE];
        let mut models: Vec<Vec<u8>> = kinds.iter().map(|_| noise.bytes(1001)).collect();
        let buffers: Vec<Arc<dyn Buffer>> = kinds
            .iter()
            .zip(&models)
            .map(|(kind, model)| filled(&device, &mut queue, *kind, model))
            .collect();
        for _ in 0..400 {
            let (a, b) = (noise.below(3), noise.below(3));
            let (a, b) = (range(a, 0).start, range(b, 0).start);
            let len = 1 + noise.below(300);
            let (src, dst) = (noise.below(700), noise.below(700));
            if noise.below(3) == 0 {
                let new = noise.bytes(range(0, len).len());
                queue.upload(&new, &part(&buffers[a], dst, len)).unwrap();
                models[a][range(dst, len)].copy_from_slice(&new);
            } else if a != b || src.abs_diff(dst) >= len {
                queue
                    .copy(&part(&buffers[a], src, len), &part(&buffers[b], dst, len))
                    .unwrap();
                let bytes = models[a][range(src, len)].to_vec();
                models[b][range(dst, len)].copy_from_slice(&bytes);
            }
        }
        for (buffer, model) in buffers.iter().zip(&models) {
            assert_eq!(&content(&mut queue, buffer), model, "seed {seed}");
        }
        let pinned = &buffers[1];
        pinned
            .with_host(&mut |bytes| assert_eq!(bytes, models[1]))
            .unwrap();
    }
}

/// More than one piece of staging, and more than one launch of the byte kernel.
#[test]
fn large_transfers_at_odd_offsets() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let (len, odd) = (35 << 20, 3);
    let bytes: Vec<u8> = (0..len)
        .map(|n: u32| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let len = u64::from(len);
    let a = device.alloc(WGPU_DEVICE, len + 8).unwrap();
    let b = device.alloc(WGPU_DEVICE, len + 8).unwrap();
    queue.upload(&bytes, &part(&a, odd, len)).unwrap();
    queue
        .copy(&part(&a, odd, len), &part(&b, odd + 2, len))
        .unwrap();
    let mut back = vec![0; bytes.len()];
    queue.download(&part(&b, odd + 2, len), &mut back).unwrap();
    assert!(back == bytes, "the bytes differ");
}

/// More than the staging that may be in use at once.
#[test]
fn an_upload_larger_than_all_staging() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let bytes: Vec<u8> = (0..170_u32 << 20).map(|n| n.to_be_bytes()[1]).collect();
    let buffer = filled(&device, &mut queue, WGPU_DEVICE, &bytes);
    let mut back = vec![0; 1 << 20];
    for start in (0..170).step_by(13).map(|mib: u64| mib << 20) {
        queue
            .download(&part(&buffer, start, 1 << 20), &mut back)
            .unwrap();
        assert!(back == bytes[range(start, 1 << 20)], "at {start}");
    }
}

/// Each upload fills most of a chunk of staging, and none has run when the next comes.
#[test]
fn staging_is_not_used_again_before_it_was_read() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let (count, len) = (12_u8, 200 << 10);
    let buffer = device.alloc(WGPU_DEVICE, u64::from(count) * len).unwrap();
    for n in 0..count {
        let bytes = vec![n; range(0, len).len()];
        let slice = part(&buffer, u64::from(n) * len, len);
        queue.upload(&bytes, &slice).unwrap();
    }
    let got = content(&mut queue, &buffer);
    for n in 0..count {
        let got = &got[range(u64::from(n) * len, len)];
        assert!(got.iter().all(|byte| *byte == n), "upload {n}");
    }
}

#[test]
fn the_source_of_an_upload_is_free_at_once() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let buffer = device.alloc(WGPU_DEVICE, 4096).unwrap();
    let mut bytes = vec![1; 4096];
    queue.upload(&bytes, &Slice::whole(&buffer)).unwrap();
    bytes.fill(2);
    assert_eq!(content(&mut queue, &buffer), vec![1; 4096]);
}

#[test]
fn a_full_device_refuses_with_numbers_and_recovers() {
    let Some(device) = device() else { return };
    let total = device.memory().unwrap().total;
    if total == 0 || total > 8 << 30 {
        println!("skipped: filling {total} bytes would take long");
        return;
    }
    let block = total / 4;
    let mut held = Vec::new();
    let error = loop {
        match device.alloc(WGPU_DEVICE, block) {
            Ok(buffer) => held.push(buffer),
            Err(error) => break error,
        }
        assert!(held.len() <= 4);
    };
    let DeviceError::OutOfMemory { asked, free, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*asked, block);
    let held_bytes = held.len() as u64 * block;
    assert_eq!(device.memory().unwrap().ours, held_bytes);
    assert_eq!(*free, Some(total - held_bytes));
    held.clear();
    assert_eq!(device.memory().unwrap().ours, 0);
    assert!(device.alloc(WGPU_DEVICE, block).is_ok());
}
