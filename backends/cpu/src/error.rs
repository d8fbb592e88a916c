//! What the operating system and misuse become: [`DeviceError`]s, worded in one place.

use std::fmt;

use warploom_core::memory::HOST;
use warploom_core::{Buffer, DeviceError, DeviceId};

/// No room for `asked` bytes when `free` were left.
pub(crate) fn no_room(device: DeviceId, asked: u64, free: Option<u64>) -> DeviceError {
    DeviceError::OutOfMemory {
        device,
        kind: HOST,
        asked,
        free,
    }
}

/// A thread could not be started.
pub(crate) fn no_thread(device: DeviceId, what: &str, why: impl fmt::Display) -> DeviceError {
    DeviceError::driver(device, format!("starting {what}"), why)
}

/// A buffer this backend did not make. `CheckedQueue` refuses it; a bare queue must not guess.
pub(crate) fn foreign(device: DeviceId, buffer: &dyn Buffer) -> DeviceError {
    let owner = buffer.device();
    DeviceError::unsupported(device, format!("a buffer of {owner} from another backend"))
}

/// A slice that a kernel writes shares bytes with another argument. `CheckedQueue` refuses it; a
/// bare queue must not hand out two views.
pub(crate) fn overlap(device: DeviceId, kernel: &str, args: [usize; 2]) -> DeviceError {
    let [one, other] = args;
    let what = format!("overlapping arguments {one} and {other} of kernel `{kernel}`");
    DeviceError::unsupported(device, what)
}

/// Something panicked on a queue's thread outside the kernel, such as the destructor of what a
/// kernel had captured.
pub(crate) fn panicked(device: DeviceId) -> DeviceError {
    DeviceError::driver(device, "finishing a command", "a destructor panicked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ID;

    const DEVICE: DeviceId = DeviceId::new(ID, 0);

    #[test]
    fn messages_carry_the_numbers() {
        let texts = [
            no_room(DEVICE, 3 << 20, Some(1 << 20)),
            no_thread(DEVICE, "a queue", "try again"),
            overlap(DEVICE, "add", [0, 2]),
        ]
        .map(|error| error.to_string());
        assert_eq!(
            texts,
            [
                "cpu:0 has no room for 3.0 MiB of host, 1.0 MiB free",
                "starting a queue failed on cpu:0: try again",
                "cpu:0 does not support overlapping arguments 0 and 2 of kernel `add`",
            ]
        );
    }
}
