//! Numbers that look random and are the same in every run.

/// Marsaglia's xorshift; what matters here is only that neighbouring bytes differ.
#[derive(Clone, Debug)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        // A state of zero would stay zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut words = self.words(len.div_ceil(4));
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[..len].to_vec()
    }

    pub(crate) fn words(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| self.next_u32()).collect()
    }

    /// Small whole numbers, on which float arithmetic is exact whatever the compiler does.
    pub(crate) fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len)
            .map(|_| f32::from(u8::try_from(self.between(0, 200)).unwrap_or(0)) - 100.0)
            .collect()
    }
}
