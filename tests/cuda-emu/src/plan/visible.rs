//! `CUDA_VISIBLE_DEVICES`, with the rules of the CUDA programming guide.

use super::device::{DeviceSpec, Uuid};

/// Which devices of the machine the process sees, in its order.
///
/// Enumeration ends at the first entry that names nothing; an entry given twice makes the whole
/// list void. Entries are indices, or `GPU-` or `MIG-` and enough digits to name one device only.
pub(super) fn choose(mask: Option<&str>, machine: &[DeviceSpec]) -> Vec<usize> {
    let Some(mask) = mask else {
        return (0..machine.len()).collect();
    };
    let mut chosen = Vec::new();
    for entry in mask.split(',') {
        let Some(index) = find(entry.trim(), machine) else {
            break;
        };
        if chosen.contains(&index) {
            return Vec::new();
        }
        chosen.push(index);
    }
    chosen
}

fn find(entry: &str, machine: &[DeviceSpec]) -> Option<usize> {
    if let Some(digits) = entry.strip_prefix("GPU-") {
        return only(digits, machine, |device| {
            device.mig.is_none().then_some(device.uuid)
        });
    }
    if let Some(digits) = entry.strip_prefix("MIG-") {
        return only(digits, machine, |device| device.mig);
    }
    entry.parse().ok().filter(|index| *index < machine.len())
}

/// The one device whose UUID starts so.
fn only(
    digits: &str,
    machine: &[DeviceSpec],
    uuid: impl Fn(&DeviceSpec) -> Option<Uuid>,
) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    let digits = digits.to_ascii_lowercase();
    let matches = |device| uuid(device).is_some_and(|uuid| uuid.to_string().starts_with(&digits));
    let mut found = (0..machine.len()).filter(|index| matches(&machine[*index]));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
