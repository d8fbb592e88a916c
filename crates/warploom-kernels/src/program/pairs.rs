//! Numbers computed on devices without `f64`: pairs of `f32` whose sum is meant.

/// Pairs of `f32`, as devices without `f64` keep such numbers, to `f64`, in place.
pub fn to_wide(bytes: &mut [u8]) {
    for chunk in bytes.chunks_exact_mut(8) {
        let high: f32 = bytemuck::pod_read_unaligned(&chunk[..4]);
        let low: f32 = bytemuck::pod_read_unaligned(&chunk[4..]);
        let sum = if high.is_finite() {
            f64::from(high) + f64::from(low)
        } else {
            f64::from(high)
        };
        chunk.copy_from_slice(&sum.to_ne_bytes());
    }
}

/// `f64` to the pairs of `f32` that devices without `f64` keep, in place.
#[expect(clippy::cast_possible_truncation, reason = "split into two on purpose")]
pub fn to_pairs(bytes: &mut [u8]) {
    for chunk in bytes.chunks_exact_mut(8) {
        let value: f64 = bytemuck::pod_read_unaligned(chunk);
        let high = value as f32;
        let low = if high.is_finite() {
            (value - f64::from(high)) as f32
        } else {
            0.0
        };
        chunk[..4].copy_from_slice(&high.to_ne_bytes());
        chunk[4..].copy_from_slice(&low.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_there_comes_back() {
        for value in [0.0, -1.5, 1.0 / 3.0, 65_535.0 * 4096.0] {
            let mut bytes = f64::to_ne_bytes(value);
            to_pairs(&mut bytes);
            to_wide(&mut bytes);
            let back = f64::from_ne_bytes(bytes);
            assert!((back - value).abs() <= value.abs() * 1e-14, "{value}");
        }
    }
}
