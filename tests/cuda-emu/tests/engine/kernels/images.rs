//! Image operations.

use super::{each, texts};
use crate::args;
use crate::rig::{Noise, Shape};

const WIDTH: usize = 53;
const HEIGHT: usize = 30;

fn image() -> Vec<f32> {
    let mut noise = Noise::new(5);
    (0..WIDTH * HEIGHT)
        .map(|_| noise.below(1000) as f32 / 8.0)
        .collect()
}

fn clamped(image: &[f32], x: isize, y: isize) -> f32 {
    let x = x.clamp(0, WIDTH as isize - 1) as usize;
    let y = y.clamp(0, HEIGHT as isize - 1) as usize;
    image[y * WIDTH + x]
}

fn tiles(side: u32) -> Shape {
    Shape {
        grid: [
            (WIDTH as u32).div_ceil(side),
            (HEIGHT as u32).div_ceil(side),
            1,
        ],
        block: [side, side, 1],
        shared: 0,
    }
}

#[test]
fn convolution_with_a_shared_tile() {
    let image = image();
    let weights = [0.5f32, -1.0, 0.25, 2.0, 1.0, -0.5, 0.125, 3.0, -2.0];
    let expected: Vec<f32> = (0..HEIGHT * WIDTH)
        .map(|at| {
            let (x, y) = ((at % WIDTH) as isize, (at / WIDTH) as isize);
            let taps = (0..9).map(|k| (k % 3 - 1, k / 3 - 1, weights[k as usize]));
            // NVRTC contracts each product and sum to one rounding.
            taps.fold(0.0, |sum, (i, j, weight)| {
                f32::mul_add(weight, clamped(&image, x + i, y + j), sum)
            })
        })
        .collect();
    each(texts!("conv2d"), |rig| {
        let from = rig.memory.buffer(&image);
        let to = rig.memory.zeros::<f32>(WIDTH * HEIGHT);
        let taps = rig.memory.buffer(&weights);
        let args = args!(from, to, taps, WIDTH as i32, HEIGHT as i32);
        rig.run("conv2d", tiles(8), args);
        assert_eq!(rig.memory.read::<f32>(to, WIDTH * HEIGHT), expected);
    });
}

#[test]
fn median_in_local_memory() {
    let image = image();
    let expected: Vec<f32> = (0..HEIGHT * WIDTH)
        .map(|at| {
            let (x, y) = ((at % WIDTH) as isize, (at / WIDTH) as isize);
            let mut window: Vec<f32> = (0..9)
                .map(|k| clamped(&image, x + k % 3 - 1, y + k / 3 - 1))
                .collect();
            window.sort_by(f32::total_cmp);
            window[4]
        })
        .collect();
    each(texts!("median"), |rig| {
        let from = rig.memory.buffer(&image);
        let to = rig.memory.zeros::<f32>(WIDTH * HEIGHT);
        rig.run(
            "median",
            tiles(16),
            args!(from, to, WIDTH as i32, HEIGHT as i32),
        );
        assert_eq!(rig.memory.read::<f32>(to, WIDTH * HEIGHT), expected);
        let kernel = rig.module.kernel("median").unwrap();
        assert!(kernel.entry().local_bytes >= 36);
    });
}

#[test]
fn filter_in_constant_memory() {
    let image = image();
    let taps = [0.25f32, -0.5, 1.0, 0.75, 2.0];
    let table = [1.0f32, -2.0, 300.0, -400.0];
    let last = image.len() as isize - 1;
    let expected: Vec<f32> = (0..image.len())
        .map(|at| {
            let sum = (0..5).fold(0.0, |sum, k| {
                let from = (at as isize + k - 2).clamp(0, last);
                f32::mul_add(taps[k as usize], image[from as usize], sum)
            });
            sum + table[at & 3]
        })
        .collect();
    each(texts!("constant"), |rig| {
        let from = rig.memory.buffer(&image);
        let to = rig.memory.zeros::<f32>(image.len());
        rig.memory
            .write(rig.global("taps"), bytemuck::bytes_of(&taps));
        let blocks = (image.len() as u32).div_ceil(128);
        let args = args!(from, to, image.len() as i32);
        rig.run("constant", Shape::line(blocks, 128), args);
        assert_eq!(rig.memory.read::<f32>(to, image.len()), expected);
        // A variable that another one points to was changed through that pointer.
        assert_eq!(rig.memory.read::<i32>(rig.global("counter"), 1), [49]);
        let constants: Vec<_> = rig.module.globals().iter().filter(|v| v.constant).collect();
        assert_eq!(constants.len(), 2);
    });
}

#[test]
fn vectors_of_pixels() {
    let n = 1000;
    let mut noise = Noise::new(9);
    let floats: Vec<[f32; 4]> = (0..n)
        .map(|_| std::array::from_fn(|_| noise.below(100) as f32))
        .collect();
    let bytes: Vec<[u8; 4]> = (0..n)
        .map(|_| (noise.next() as u32).to_le_bytes())
        .collect();
    let doubles: Vec<[f64; 2]> = (0..n)
        .map(|_| std::array::from_fn(|_| noise.below(60_000) as f64 / 4.0 - 7000.0))
        .collect();
    each(texts!("vectors"), |rig| {
        let a = rig.memory.buffer(&floats);
        let b = rig.memory.zeros::<[f32; 4]>(n);
        let p = rig.memory.buffer(&bytes);
        let q = rig.memory.zeros::<[u8; 4]>(n);
        let d = rig.memory.buffer(&doubles);
        let s = rig.memory.zeros::<[i16; 2]>(n);
        rig.run(
            "vectors",
            Shape::line(8, 128),
            args!(a, b, p, q, d, s, n as i32),
        );
        let b: Vec<[f32; 4]> = rig.memory.read(b, n);
        let q: Vec<[u8; 4]> = rig.memory.read(q, n);
        let s: Vec<[i16; 2]> = rig.memory.read(s, n);
        for i in 0..n {
            let [x, y, z, w] = floats[i];
            assert_eq!(b[i], [x + w, y * 2.0, z, w]);
            let [x, y, z, w] = bytes[i];
            assert_eq!(q[i], [w, z, y, x.saturating_add(100)]);
            let [x, y] = doubles[i];
            assert_eq!(s[i], [x as i16, y.round_ties_even() as i16]);
        }
    });
}
