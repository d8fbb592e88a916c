//! Threads that work together: barriers, shuffles, votes, atomics.

use super::{each, texts};
use crate::args;
use crate::rig::{Noise, Shape};

#[test]
fn histogram_by_shared_atomics() {
    let mut noise = Noise::new(3);
    let pixels: Vec<u8> = (0..9999).map(|_| noise.below(200) as u8).collect();
    let mut expected = [0u32; 256];
    for pixel in &pixels {
        expected[usize::from(*pixel)] += 1;
    }
    each(texts!("histogram"), |rig| {
        let from = rig.memory.buffer(&pixels);
        let bins = rig.memory.zeros::<u32>(256);
        let args = args!(from, bins, pixels.len() as i32);
        rig.run("histogram", Shape::line(5, 192), args);
        assert_eq!(rig.memory.read::<u32>(bins, 256), expected);
        let entry = rig.module.kernel("histogram").unwrap();
        assert_eq!(entry.entry().static_shared, 1024);
    });
}

#[test]
fn reduction_by_shuffles_and_dynamic_shared_memory() {
    let mut noise = Noise::new(4);
    let values: Vec<i32> = (0..5000).map(|_| noise.next() as i32 >> 8).collect();
    let expected = values
        .iter()
        .fold(0i32, |sum, value| sum.wrapping_add(*value));
    each(texts!("reduce"), |rig| {
        let from = rig.memory.buffer(&values);
        let sum = rig.memory.zeros::<i32>(1);
        let shape = Shape::line(3, 256).with_shared(32);
        rig.run("reduce", shape, args!(from, sum, values.len() as i32));
        assert_eq!(rig.memory.read::<i32>(sum, 1), [expected]);
    });
}

#[test]
fn lanes_of_a_warp_together() {
    let mut noise = Noise::new(6);
    let values: [i32; 32] = std::array::from_fn(|_| noise.below(100) as i32);
    let ballot = |wanted: &dyn Fn(i32) -> bool| {
        (0..32)
            .map(|lane| u32::from(wanted(values[lane])) << lane)
            .sum::<u32>()
    };
    let odd = ballot(&|value| value & 1 == 1);
    each(texts!("warps"), |rig| {
        let from = rig.memory.buffer(&values);
        let to = rig.memory.zeros::<u32>(384);
        rig.run("warps", Shape::line(1, 32), args!(from, to));
        let found: Vec<u32> = rig.memory.read(to, 384);
        let is_new = rig.module.header().target == "sm_120";
        for lane in 0..32 {
            let own = values[lane] as u32;
            let row = &found[lane * 10..lane * 10 + 10];
            assert_eq!(row[0], odd);
            assert_eq!(row[1], 1 + 2 * u32::from(values.contains(&7)));
            assert_eq!(row[2], values[lane / 8 * 8 + 5] as u32);
            assert_eq!(
                row[3],
                if lane < 3 {
                    own
                } else {
                    values[lane - 3] as u32
                }
            );
            assert_eq!(row[4], values[lane ^ 9] as u32);
            assert_eq!(row[5], ballot(&|value| value & 3 == values[lane] & 3));
            assert_eq!(row[6], 0);
            if is_new {
                assert_eq!(row[7], values.iter().sum::<i32>() as u32);
                let max = *values.iter().max().unwrap() as u32;
                let xor = values.iter().fold(0, |all, value| all ^ value) as u32;
                assert_eq!(row[8], max ^ xor);
            }
            assert_eq!(
                row[9],
                if lane < 30 {
                    values[lane + 2] as u32
                } else {
                    own
                }
            );
            let is_odd = own & 1 == 1;
            assert_eq!(found[320 + lane], if is_odd { odd } else { 0 });
            assert_eq!(found[352 + lane], odd.count_ones() + 100);
        }
    });
}

#[test]
fn atomics_of_all_kinds() {
    let n = 700i32;
    each(texts!("atomics"), |rig| {
        let mut words = vec![0u32; 16];
        words[1] = 5000;
        words[2] = u32::MAX;
        words[6] = u32::MAX;
        let u = rig.memory.buffer(&words);
        let s = rig.memory.buffer(&[0i32, 0]);
        let w = rig.memory.buffer(&[0u64, 0]);
        let f = rig.memory.buffer(&[1.0f32]);
        let d = rig.memory.buffer(&[2.0f64]);
        rig.run("atomics", Shape::line(6, 128), args!(u, s, w, f, d, n));
        let found: Vec<u32> = rig.memory.read(u, 16);
        let count = n as u32;
        assert_eq!(found[0], count * (count - 1) / 2);
        assert_eq!(found[1], 5000u32.wrapping_sub(3 * count));
        assert_eq!(found[2], 1000 - (count - 1));
        assert_eq!(found[3], count - 1);
        assert_eq!(found[4], count % 10);
        assert_eq!(found[5], (10 - count % 10) % 10);
        assert_eq!(found[6], 0);
        assert_eq!(found[7], u32::MAX);
        assert_eq!(found[8], (0..count).fold(0, |all, i| all ^ i));
        assert_eq!(found[9], 2 * count);
        // Each block starts its bins at their own number.
        for bin in 0..3 {
            let hits = (0..count).filter(|i| i % 4 == bin).count() as u32;
            assert_eq!(found[10 + bin as usize], 6 * bin + 10 * hits);
        }
        assert_eq!(rig.memory.read::<i32>(s, 2), [5 - (n - 1), n - 1 - 5]);
        let wide = [u64::from(count) << 33, u64::from(count - 1) << 40];
        assert_eq!(rig.memory.read::<u64>(w, 2), wide);
        assert_eq!(rig.memory.read::<f32>(f, 1), [1.0 + 0.5 * n as f32]);
        assert_eq!(rig.memory.read::<f64>(d, 1), [2.0 + 0.25 * f64::from(n)]);
    });
}

#[test]
fn a_thread_may_wait_for_another_without_a_barrier() {
    each(texts!("spin"), |rig| {
        let out = rig.memory.buffer(&[0i32, 0]);
        rig.run("spin", Shape::line(1, 64), args!(out));
        assert_eq!(rig.memory.read::<i32>(out, 2), [6, 5]);
    });
}
