//! Promises about what errors say.

use warploom_core::{Coded, DeviceError};

use crate::case::{Verdict, cases, ensure};
use crate::programs::broken;
use crate::rig::Rig;

cases! { Device "error":
    names_the_device = "An error says what was asked, and of whom.";
    has_a_code_and_a_way_out = "An error has a stable code and says what to do.";
    is_about_the_ordinal_asked = "An error about an unknown device says which.";
}

/// Errors every device of this sort can be made to give.
fn provoked(rig: &Rig) -> Verdict<Vec<DeviceError>> {
    let info = rig.info();
    let mut errors = Vec::new();
    for kind in &info.memory {
        if !kind.space().host_visible() {
            let buffer = rig.device.alloc(*kind, 16)?;
            errors.extend(buffer.with_host(&mut |_| ()).err());
        }
    }
    if let Some(source) = info.languages.iter().find_map(|language| broken(*language)) {
        errors.extend(rig.device.kernel(&source).err());
    }
    let most = info.limits.max_alloc.min(1 << 50);
    if most >= 1 << 45 {
        errors.extend(rig.device.alloc(rig.local()?, most).err());
    }
    errors.extend(rig.device.alloc(rig.local()?, 0).err());
    Ok(errors)
}

fn names_the_device(rig: &Rig) -> Verdict {
    let id = rig.id().to_string();
    for error in provoked(rig)? {
        let text = error.to_string();
        ensure!(text.contains(&id), "`{text}` does not name {id}");
        ensure!(!text.ends_with('.'), "`{text}` is a clause, not a sentence");
    }
    Ok(())
}

fn has_a_code_and_a_way_out(rig: &Rig) -> Verdict {
    for error in provoked(rig)? {
        let code = error.code();
        ensure!(code.0 > 0, "`{error}` has no code");
        if !matches!(error, DeviceError::Usage(_)) {
            let help = error.help().unwrap_or_default();
            ensure!(!help.is_empty(), "{code} offers no help");
        }
    }
    Ok(())
}

fn is_about_the_ordinal_asked(rig: &Rig) -> Verdict {
    match rig.bench.backend().open(4_000_000) {
        Ok(_) => ensure!(false, "device 4000000 opened"),
        Err(error) => {
            let text = error.to_string();
            ensure!(
                text.contains("4000000"),
                "`{text}` does not say which device was asked for"
            );
        }
    }
    Ok(())
}
