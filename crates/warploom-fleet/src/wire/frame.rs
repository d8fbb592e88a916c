//! Messages as bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{MAX_FRAME, PREAMBLE, Violation};

/// Puts a message at the end of `out`.
///
/// # Errors
/// The length of a message that is too long; nothing was put there then.
pub(crate) fn push(out: &mut Vec<u8>, message: &impl Serialize) -> Result<(), usize> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let whole = std::mem::take(out);
    // Writing to memory fails for no message that can be serialised at all.
    let Ok(mut whole) = postcard::to_extend(message, whole) else {
        return Err(0);
    };
    let length = whole.len() - start - 4;
    match u32::try_from(length) {
        Ok(short) if length <= MAX_FRAME => {
            whole[start..start + 4].copy_from_slice(&short.to_le_bytes());
            *out = whole;
            Ok(())
        }
        _ => {
            whole.truncate(start);
            *out = whole;
            Err(length)
        }
    }
}

/// Bytes that came, and the messages in them.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// How many of them have been read.
    read: usize,
    greeted: bool,
}

impl Inbox {
    /// An inbox of a side whose preamble has been read elsewhere.
    pub(crate) fn after_greeting() -> Self {
        Self {
            greeted: true,
            ..Self::default()
        }
    }

    /// More bytes came.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, Violation> {
        let rest = &self.bytes[self.read..];
        let rest = if self.greeted {
            rest
        } else {
            let seen = rest.len().min(PREAMBLE.len());
            if rest[..seen] != PREAMBLE[..seen] {
                return Err(Violation::Preamble(rest[..seen].to_vec()));
            }
            if seen < PREAMBLE.len() {
                return Ok(None);
            }
            self.greeted = true;
            self.read += seen;
            &rest[seen..]
        };
        let Some((length, body)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(Violation::Length(length));
        }
        let Some(body) = body.get(..length) else {
            return Ok(None);
        };
        let told = postcard::take_from_bytes::<M>(body);
        let Ok((message, [])) = told else {
            return Err(Violation::Message(length));
        };
        self.read += 4 + length;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Body, FromWorker};
    use super::*;

    fn message() -> impl Strategy<Value = FromWorker> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            any::<u64>().prop_map(|progress| FromWorker::Beat { progress }),
            any::<u64>().prop_map(|batch| FromWorker::Begun { batch }),
            (any::<u64>(), any::<u64>(), bytes).prop_map(|(batch, record, bytes)| {
                let body = Body::Here(bytes);
                FromWorker::Done {
                    batch,
                    record,
                    body,
                }
            }),
        ]
    }

    /// Everything there is to read, or what was wrong.
    fn all(inbox: &mut Inbox) -> Result<Vec<FromWorker>, Violation> {
        let mut found = Vec::new();
        while let Some(message) = inbox.next()? {
            found.push(message);
        }
        Ok(found)
    }

    proptest! {
        /// However the bytes are cut on their way, the messages are the same.
        #[test]
        fn pieces_make_messages(
            messages in proptest::collection::vec(message(), 0..20),
            pieces in proptest::collection::vec(1_usize..30, 1..20),
        ) {
            let mut bytes = PREAMBLE.to_vec();
            for message in &messages {
                push(&mut bytes, message).unwrap();
            }
            let mut inbox = Inbox::default();
            let (mut found, mut rest, mut turn) = (Vec::new(), bytes.as_slice(), 0);
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(pieces[turn % pieces.len()].min(rest.len()));
                inbox.put(piece);
                found.extend(all(&mut inbox).unwrap());
                (rest, turn) = (after, turn + 1);
            }
            prop_assert_eq!(found, messages);
        }

        /// Rubbish is an error or nothing, and never a panic or a lot of memory.
        #[test]
        fn rubbish_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut fresh = Inbox::default();
            fresh.put(&bytes);
            let _ = all(&mut fresh);
            let mut greeted = Inbox::after_greeting();
            greeted.put(&bytes);
            let _ = all(&mut greeted);
            prop_assert!(greeted.bytes.capacity() <= 1024);
        }

        /// A byte changed in a good stream changes messages or is an error, and nothing before it.
        #[test]
        fn a_changed_byte_is_harmless(
            messages in proptest::collection::vec(message(), 1..8),
            at in any::<proptest::sample::Index>(),
            flip in 1_u8..,
        ) {
            let mut bytes = PREAMBLE.to_vec();
            for message in &messages {
                push(&mut bytes, message).unwrap();
            }
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let mut inbox = Inbox::default();
            inbox.put(&bytes);
            let found = all(&mut inbox);
            if at < PREAMBLE.len() {
                prop_assert!(matches!(found, Err(Violation::Preamble(_))));
            }
        }
    }

    #[test]
    fn lengths_are_capped_on_both_sides() {
        let mut inbox = Inbox::after_greeting();
        inbox.put(&u32::MAX.to_le_bytes());
        let found = inbox.next::<FromWorker>();
        assert_eq!(found, Err(Violation::Length(u32::MAX as usize)));
        let body = Body::Here(vec![0; MAX_FRAME]);
        let long = FromWorker::Done {
            batch: 0,
            record: 0,
            body,
        };
        let mut out = b"before".to_vec();
        assert!(push(&mut out, &long).is_err());
        assert_eq!(out, b"before");
    }

    #[test]
    fn a_message_with_something_behind_it_is_none() {
        let mut out = Vec::new();
        push(&mut out, &(FromWorker::Beat { progress: 1 }, 7_u8)).unwrap();
        let mut inbox = Inbox::after_greeting();
        inbox.put(&out);
        assert!(matches!(
            inbox.next::<FromWorker>(),
            Err(Violation::Message(_))
        ));
    }
}
