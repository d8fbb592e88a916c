//! Errors on order: calls that fail, devices that die.

use crate::driver::Status;

/// A call that fails, once or from then on.
///
/// `WARPLOOM_EMU_FAIL` holds such rules separated by semicolons: `cuMemAlloc_v2#3=OUT_OF_MEMORY`
/// makes the third call fail, `cuMemAlloc_v2#3+=OUT_OF_MEMORY` that one and all later ones. The call
/// then does nothing. A name without its suffix stands for every version of the function. An error
/// that leaves a context unusable on hardware does so here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Name of the function, with or without suffixes.
    pub function: String,
    /// Which call, counted from one.
    pub nth: u64,
    /// Whether later calls fail too.
    pub onwards: bool,
    /// What it answers.
    pub status: Status,
}

/// A device that dies.
///
/// `WARPLOOM_EMU_LOSE` holds such rules separated by semicolons: `0@5` makes device 0 of the machine
/// die when five kernels have run on it. What waits in its streams is dropped, and every call that
/// concerns the device answers `CUDA_ERROR_ECC_UNCORRECTABLE`, or what the rule says behind a `=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Its place in the machine, before `CUDA_VISIBLE_DEVICES`.
    pub device: usize,
    /// Launches that still work.
    pub launches: u64,
    /// What calls answer from then on.
    pub status: Status,
}

pub(super) fn parse_failures(
    text: &str,
    known: &dyn Fn(&str) -> bool,
) -> Result<Vec<Failure>, String> {
    rules(text)
        .map(|rule| parse_failure(rule, known).map_err(|why| format!("rule `{rule}`: {why}")))
        .collect()
}

pub(super) fn parse_losses(text: &str, devices: usize) -> Result<Vec<Loss>, String> {
    rules(text)
        .map(|rule| parse_loss(rule, devices).map_err(|why| format!("rule `{rule}`: {why}")))
        .collect()
}

fn rules(text: &str) -> impl Iterator<Item = &str> {
    text.split(';')
        .map(str::trim)
        .filter(|rule| !rule.is_empty())
}

fn parse_failure(rule: &str, known: &dyn Fn(&str) -> bool) -> Result<Failure, String> {
    let shape = "expected `function#number=ERROR`";
    let (call, status) = rule.split_once('=').ok_or(shape)?;
    let (function, number) = call.split_once('#').ok_or(shape)?;
    let function = function.trim();
    if !known(function) {
        return Err(format!("there is no driver call `{function}`"));
    }
    let number = number.trim();
    let (number, onwards) = match number.strip_suffix('+') {
        Some(number) => (number, true),
        None => (number, false),
    };
    let nth = number.parse().ok().filter(|nth| *nth > 0);
    Ok(Failure {
        function: function.to_owned(),
        nth: nth.ok_or("calls are counted from 1")?,
        onwards,
        status: parse_status(status)?,
    })
}

fn parse_loss(rule: &str, devices: usize) -> Result<Loss, String> {
    let (place, status) = match rule.split_once('=') {
        Some((place, status)) => (place, parse_status(status)?),
        None => (rule, Status::ECC_UNCORRECTABLE),
    };
    let (device, launches) = place
        .split_once('@')
        .and_then(|(device, launches)| {
            Some((device.trim().parse().ok()?, launches.trim().parse().ok()?))
        })
        .ok_or("expected `device@launches`")?;
    if device >= devices {
        return Err(format!("there are {devices} devices, counted from 0"));
    }
    Ok(Loss {
        device,
        launches,
        status,
    })
}

fn parse_status(text: &str) -> Result<Status, String> {
    Status::parse(text.trim())
        .filter(|status| *status != Status::SUCCESS)
        .ok_or_else(|| format!("`{}` is no CUDA error", text.trim()))
}
