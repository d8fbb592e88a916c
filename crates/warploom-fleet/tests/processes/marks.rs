//! What workers leave in a folder, for each other and for tests.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Leaves a mark with the name of this process, unless there is one; true if there was none.
pub(crate) fn leave(marks: &Path, name: &str) -> bool {
    let path = marks.join(name);
    if path.exists() {
        return false;
    }
    // It appears with all that is in it, and only once.
    let draft = marks.join(format!("{name}-{}", std::process::id()));
    let own = process(std::process::id()).expect("ourselves");
    fs::write(&draft, own).expect("a mark");
    let first = fs::hard_link(&draft, path).is_ok();
    fs::remove_file(draft).expect("the draft of a mark");
    first
}

/// Waits until a mark is there; and until whoever left it has been waited for, if that is asked.
pub(crate) fn wait_for(marks: &Path, name: &str, buried: bool) {
    let pause = || thread::sleep(Duration::from_millis(1));
    let owner = loop {
        match fs::read_to_string(marks.join(name)) {
            Ok(owner) => break owner,
            Err(_) => pause(),
        }
    };
    let number = owner.split(' ').next().and_then(|pid| pid.parse().ok());
    while buried && number.and_then(process).as_ref() == Some(&owner) {
        pause();
    }
}

/// A process by its number and when it began, because numbers are used again.
pub(crate) fn process(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let begun = status.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{pid} {begun}"))
}
