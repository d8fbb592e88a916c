//! Operands worth trying.

use crate::rig::Noise;

const EDGES: &[u64] = &[
    0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x7f, 0x80, 0xff, 0x100,
];

/// Integers of this width: small ones, those around the ends, and some in between.
pub(super) fn integers(bits: u32) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let mut values = EDGES.to_vec();
    for place in [bits / 2 - 1, bits / 2, bits - 2, bits - 1] {
        values.extend([(1 << place) - 1, 1 << place, (1 << place) + 1]);
    }
    values.extend([mask, mask - 1, mask - 2]);
    let mut noise = Noise::new(u64::from(bits));
    values.extend((0..6).map(|_| noise.next()));
    for value in &mut values {
        *value &= mask;
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// Singles: zeros, subnormal and extreme numbers, ties, and those that are none.
pub(super) fn singles() -> Vec<u64> {
    let mut values: Vec<u32> = [
        0.0,
        0.1,
        0.5,
        0.75,
        1.0,
        1.0 + f32::EPSILON,
        1.0 - f32::EPSILON / 2.0,
        1.5,
        2.0,
        2.5,
        3.0,
        std::f32::consts::PI,
        126.5,
        127.5,
        128.0,
        255.5,
        32767.5,
        65535.0,
        65535.5,
        1e10,
        1e-10,
        16_777_216.0,
        16_777_215.0,
        8_388_607.5,
        2_147_483_520.0,
        2_147_483_648.0,
        4_294_967_040.0,
        4_294_967_296.0,
        9.223_372e18,
        1.844_674_4e19,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        1e30,
        1e-30,
        3e-39,
    ]
    .iter()
    .map(|value: &f32| value.to_bits())
    .collect();
    values.extend([1, 2, 3, 0x007f_ffff, 0x0080_0001, 0x3f80_0001, 0x7f7f_fffe]);
    // Quiet and signalling, with and without a payload.
    values.extend([0x7fc0_0000, 0x7fff_ffff, 0x7f80_0001, 0x7fa0_beef]);
    let mut noise = Noise::new(32);
    values.extend((0..8).map(|_| (noise.next() >> 33) as u32));
    let negative: Vec<u32> = values.iter().map(|bits| bits | 1 << 31).collect();
    values.extend(negative);
    values.into_iter().map(u64::from).collect()
}

/// Doubles, likewise.
pub(super) fn doubles() -> Vec<u64> {
    let mut values: Vec<u64> = [
        0.0,
        0.1,
        0.5,
        1.0,
        1.0 + f64::EPSILON,
        1.5,
        2.5,
        3.0,
        std::f64::consts::E,
        127.5,
        65_535.5,
        1e10,
        1e-10,
        2_147_483_647.5,
        2_147_483_648.0,
        4_294_967_295.5,
        4_294_967_296.0,
        9_007_199_254_740_992.0,
        9.223_372_036_854_775e18,
        9.223_372_036_854_776e18,
        1.844_674_407_370_955e19,
        1.844_674_407_370_955_2e19,
        3.5e38,
        1e-40,
        1e-46,
        1e300,
        1e-300,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::INFINITY,
    ]
    .iter()
    .map(|value: &f64| value.to_bits())
    .collect();
    values.extend([1, 2, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0001]);
    values.extend([0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001]);
    let mut noise = Noise::new(64);
    values.extend((0..8).map(|_| noise.next() >> 1));
    let negative: Vec<u64> = values.iter().map(|bits| bits | 1 << 63).collect();
    values.extend(negative);
    values
}
