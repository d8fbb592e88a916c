//! The bytes of a journal: a header, then frames of length, check sum and payload.

/// What a journal begins with: a name and the version of the format.
pub(crate) const HEADER: [u8; 12] = *b"WLJOURNAL\0\0\x02";

/// The most a payload has. What claims to be longer is damage.
pub(crate) const MAX_PAYLOAD: usize = 1 << 24;

/// Length and check sum.
#[cfg(test)]
const PREFIX: usize = 8;

/// Puts a payload at the end of `out`.
///
/// The check sum covers the length too, so that a flipped length is found even where the file happens
/// to go on long enough.
pub(crate) fn push(out: &mut Vec<u8>, payload: &[u8]) {
    debug_assert!(payload.len() <= MAX_PAYLOAD);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a payload is at most MAX_PAYLOAD bytes, which its writer checks"
    )]
    let length = (payload.len() as u32).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&check_sum(length, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

fn check_sum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// Why reading stopped before the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tear {
    /// The last frame is incomplete: its writer died over it.
    Cut,
    /// A frame has bytes that nobody wrote like that.
    Damaged,
}

/// The payloads of the bytes after the header, up to the first that is not whole.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    rest: &'a [u8],
    tear: Option<Tear>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self {
            rest: body,
            tear: None,
        }
    }

    /// How many bytes have not been read: when it is over, those of the tear.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Why it ended before the bytes did.
    pub(crate) fn tear(&self) -> Option<Tear> {
        self.tear
    }

    fn stop(&mut self, tear: Tear) -> Option<&'a [u8]> {
        self.tear = Some(tear);
        None
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() || self.tear.is_some() {
            return None;
        }
        let Some((length, after)) = self.rest.split_first_chunk::<4>() else {
            return self.stop(Tear::Cut);
        };
        let Some((sum, after)) = after.split_first_chunk::<4>() else {
            return self.stop(Tear::Cut);
        };
        let bytes = u32::from_le_bytes(*length) as usize;
        if bytes > MAX_PAYLOAD {
            return self.stop(Tear::Damaged);
        }
        if after.len() < bytes {
            return self.stop(Tear::Cut);
        }
        let (payload, rest) = after.split_at(bytes);
        if check_sum(*length, payload) != u32::from_le_bytes(*sum) {
            return self.stop(Tear::Damaged);
        }
        self.rest = rest;
        Some(payload)
    }
}

/// The bytes that a payload of this length takes in the file.
#[cfg(test)]
pub(crate) const fn framed(payload: usize) -> usize {
    PREFIX + payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in [&b"one"[..], b"", b"three"] {
            push(&mut bytes, payload);
        }
        bytes
    }

    #[test]
    fn a_cut_anywhere_loses_the_frame_it_is_in_and_no_other() {
        let bytes = three();
        let ends = [framed(3), framed(3) + framed(0), bytes.len()];
        for cut in 0..=bytes.len() {
            let mut frames = Frames::new(&bytes[..cut]);
            let whole = frames.by_ref().count();
            assert_eq!(whole, ends.iter().filter(|&&end| end <= cut).count());
            let at_an_end = cut == 0 || ends.contains(&cut);
            assert_eq!(frames.tear(), (!at_an_end).then_some(Tear::Cut), "{cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = three();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut frames = Frames::new(&flipped);
            let read: Vec<_> = frames.by_ref().collect();
            assert!(frames.tear().is_some(), "bit {bit}");
            let whole = [&b"one"[..], b"", b"three"];
            assert!(read.len() < 3 && read[..] == whole[..read.len()], "{bit}");
        }
    }
}
