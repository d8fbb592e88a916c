//! Code that a caller hands over, and what is said about it.

use super::device::Device;
use super::ffi::{In, Out, Text, TextRoom};
use super::status::{Result, Status};
use crate::engine::{Header, Module, Options};
use crate::plan::Plan;

/// Why code is not taken.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    /// What the driver's compiler would log.
    pub(crate) log: String,
}

impl Refusal {
    fn new(status: Status, log: impl Into<String>) -> Self {
        Self {
            status,
            log: log.into(),
        }
    }
}

/// Compiles an image for a device.
pub(crate) fn compile(
    plan: &Plan,
    device: &Device,
    image: In<u8>,
) -> std::result::Result<Module, Refusal> {
    let text = read(image)?;
    let header = Header::read(&text)
        .map_err(|error| Refusal::new(Status::INVALID_PTX, error.to_string()))?;
    check_header(plan, device, &header)?;
    Module::load(&text, &Options::default())
        .map_err(|error| Refusal::new(Status::INVALID_PTX, error.to_string()))
}

/// The PTX, if it is PTX.
fn read(image: In<u8>) -> std::result::Result<String, Refusal> {
    let magic = |bytes: &[u8]| {
        let mut positions = bytes.iter().enumerate();
        positions.all(|(i, byte)| image.at(i) == Ok(*byte))
    };
    if image.is_null() {
        return Err(Refusal::new(Status::INVALID_VALUE, "no image"));
    }
    if magic(b"\x7fELF") {
        let log = "this is machine code; the emulator takes PTX only";
        return Err(Refusal::new(Status::NO_BINARY_FOR_GPU, log));
    }
    if magic(&0xba55_ed50_u32.to_le_bytes()) || magic(&0x4662_43b1_u32.to_le_bytes()) {
        let log = "this is a fat binary; the emulator takes PTX only";
        return Err(Refusal::new(Status::NO_BINARY_FOR_GPU, log));
    }
    Text::at(image)
        .read()
        .map_err(|_| Refusal::new(Status::INVALID_IMAGE, "this is neither PTX nor any binary"))
}

/// Refuses what a driver of this version, or a device of this capability, would not take.
fn check_header(plan: &Plan, device: &Device, header: &Header) -> std::result::Result<(), Refusal> {
    let newest = newest_ptx(plan.driver);
    if plan.driver_is_limit && header.version > newest {
        let ((major, minor), (a, b), (driver, point)) = (header.version, newest, plan.driver);
        return Err(Refusal::new(
            Status::UNSUPPORTED_PTX_VERSION,
            format!(
                "the PTX is of version {major}.{minor}; CUDA {driver}.{point} knows up to {a}.{b}"
            ),
        ));
    }
    let (major, minor) = device.spec().capability;
    if !runs_on(&header.target, major * 10 + minor) {
        return Err(Refusal::new(
            Status::INVALID_PTX,
            format!(
                "SM version specified by .target {} is higher than that of the device, sm_{major}{minor}",
                header.target
            ),
        ));
    }
    Ok(())
}

/// Whether PTX for `target` runs on a capability: a plain target on all later ones, an `a` target on
/// its own only, an `f` target on later ones of its family. An unknown target is the compiler's
/// business.
fn runs_on(target: &str, capability: u32) -> bool {
    let Some(rest) = target.strip_prefix("sm_") else {
        return true;
    };
    let (digits, letter) = match rest.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let Ok(number) = digits.parse::<u32>() else {
        return true;
    };
    match letter {
        "a" => number == capability,
        "f" => number <= capability && number / 10 == capability / 10,
        _ => number <= capability,
    }
}

/// The newest PTX a driver of some version takes.
fn newest_ptx(driver: (u32, u32)) -> (u32, u32) {
    match driver {
        (11, minor) => (7, minor),
        (12, minor @ 0..=5) => (8, minor),
        (12, 6) => (8, 5),
        (12, 7) => (8, 6),
        (12, minor) => (8, minor - 1),
        (major, minor) => (major - 4, minor),
    }
}

/// `CUjit_option` and its values, of which the logs matter here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JitOptions {
    pub(crate) count: u32,
    pub(crate) options: In<u32>,
    /// Each is a number or a pointer, as its option says.
    pub(crate) values: *mut usize,
}

/// Where one log goes.
#[derive(Debug, Default, Clone, Copy)]
struct LogRoom {
    place: usize,
    bytes: usize,
    /// Which value is told how much was written.
    size_index: Option<usize>,
}

/// Number of the first option a driver does not know.
const UNKNOWN_OPTION: u32 = 36;

impl JitOptions {
    pub(crate) const NONE: Self = Self {
        count: 0,
        options: In::null(),
        values: std::ptr::null_mut(),
    };

    /// Refuses options nobody knows.
    pub(crate) fn check(self) -> Result {
        for i in 0..self.count as usize {
            if self.options.at(i)? >= UNKNOWN_OPTION || self.values.is_null() {
                return Err(Status::INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Tells the caller what went wrong, where it asked for it, and that nothing else happened.
    pub(crate) fn log(self, error: &str) -> Result {
        let (mut info, mut errors) = (LogRoom::default(), LogRoom::default());
        for i in 0..self.count as usize {
            let value = In::new(self.values.cast_const()).at(i)?;
            match self.options.at(i)? {
                3 => info.place = value,
                4 => (info.bytes, info.size_index) = (value & 0xffff_ffff, Some(i)),
                5 => errors.place = value,
                6 => (errors.bytes, errors.size_index) = (value & 0xffff_ffff, Some(i)),
                _ => {}
            }
        }
        self.fill(info, "")?;
        self.fill(errors, error)
    }

    fn fill(self, room: LogRoom, text: &str) -> Result {
        let mut written = 0;
        if room.place != 0 && room.bytes != 0 {
            let place = TextRoom::new(std::ptr::with_exposed_provenance_mut(room.place));
            written = place.put(room.bytes, text)? - 1;
        }
        if let Some(index) = room.size_index {
            Out::new(self.values.wrapping_add(index)).put(written)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_run_on_what_can_run_them() {
        assert!(runs_on("sm_75", 80) && runs_on("sm_80", 80) && !runs_on("sm_86", 80));
        assert!(runs_on("sm_90a", 90) && !runs_on("sm_90a", 100));
        assert!(runs_on("sm_100f", 103) && !runs_on("sm_100f", 120));
        assert!(runs_on("sm_120", 121));
    }

    #[test]
    fn drivers_know_the_ptx_of_their_time() {
        let cases = [
            ((11, 4), (7, 4)),
            ((12, 0), (8, 0)),
            ((12, 6), (8, 5)),
            ((12, 8), (8, 7)),
            ((12, 9), (8, 8)),
            ((13, 0), (9, 0)),
            ((13, 4), (9, 4)),
        ];
        for (driver, ptx) in cases {
            assert_eq!(newest_ptx(driver), ptx);
        }
    }
}
