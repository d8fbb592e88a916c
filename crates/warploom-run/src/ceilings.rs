//! How many records at once devices have room for, as earlier runs found out: a small file for each plan and model.
//!
//! Whoever runs out of memory finds a size that fits by halving, which costs work each time. It is kept where the
//! program says, beside what was measured of the devices. Memory that was short because somebody else had it is not
//! short for ever: what is older than a month is not believed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use warploom_io::Header;

/// How long a size is believed.
const BELIEVED: Duration = Duration::from_hours(30 * 24);

/// The sizes of one plan.
#[derive(Debug)]
pub(crate) struct Ceilings<'a> {
    folder: Option<&'a Path>,
    plan: String,
}

/// A file.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Known {
    plan: String,
    model: String,
    records: u32,
}

impl<'a> Ceilings<'a> {
    /// Those of what is computed, for images like these.
    pub(crate) fn new(folder: Option<&'a Path>, recipe: &str, header: &Header) -> Self {
        let plan = format!("{recipe} of {} {}", header.shape, header.dtype);
        Self { folder, plan }
    }

    /// The most records at once that this model has room for, if that had a say.
    pub(crate) fn known(&self, model: &str) -> Option<u32> {
        let path = self.path(model)?;
        let age = fs::metadata(&path).ok()?.modified().ok()?;
        let age = SystemTime::now().duration_since(age).unwrap_or_default();
        if age > BELIEVED {
            return None;
        }
        let known: Known = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let is_it = known.plan == self.plan && known.model == model && known.records > 0;
        is_it.then_some(known.records)
    }

    /// Keeps what was found out. What cannot be kept will be found out again.
    pub(crate) fn keep(&self, model: &str, records: u32) {
        let Some(path) = self.path(model) else {
            return;
        };
        let known = Known {
            plan: self.plan.clone(),
            model: model.to_owned(),
            records,
        };
        if let Err(error) = write(&path, &known) {
            tracing::warn!(path = %path.display(), %error, "how much fits cannot be kept");
        }
    }

    fn path(&self, model: &str) -> Option<PathBuf> {
        let name = format!("{:016x}.json", hash(&format!("{}\0{model}", self.plan)));
        Some(self.folder?.join(name))
    }
}

/// Writes a file that appears when it is whole.
fn write(path: &Path, known: &Known) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let draft = path.with_extension(format!("{}.part", std::process::id()));
    let written = fs::write(&draft, serde_json::to_vec(known)?);
    let written = written.and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // What is left of it is of no use; should that fail too, the first error is the one to tell.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// FNV-1a: the same in every release.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use warploom_core::{DType, Shape};

    use super::*;

    fn header(side: u64) -> Header {
        Header::new(DType::U16, Shape::new(&[side, side]).unwrap())
    }

    #[test]
    fn sizes_are_kept_for_a_plan_and_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("ceilings");
        let of = |recipe: &str, side| Ceilings::new(Some(&folder), recipe, &header(side));
        let own = of("blur", 64);
        assert_eq!(own.known("A4000"), None);
        own.keep("A4000", 16);
        own.keep("H100", 200);
        own.keep("A4000", 8);
        assert_eq!(of("blur", 64).known("A4000"), Some(8));
        assert_eq!(of("blur", 64).known("H100"), Some(200));
        // Neither of another plan, nor of images of another size.
        assert_eq!(of("label", 64).known("A4000"), None);
        assert_eq!(of("blur", 65).known("A4000"), None);
        // Who has no place for it keeps nothing.
        let nowhere = Ceilings::new(None, "blur", &header(64));
        nowhere.keep("A4000", 4);
        assert_eq!(nowhere.known("A4000"), None);
        assert_eq!(own.known("A4000"), Some(8));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn what_is_old_or_damaged_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let own = Ceilings::new(Some(folder.path()), "blur", &header(64));
        own.keep("A4000", 16);
        let path = own.path("A4000").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let age = |age| file.set_modified(SystemTime::now() - age).unwrap();
        age(BELIEVED / 2);
        assert_eq!(own.known("A4000"), Some(16));
        age(BELIEVED * 2);
        assert_eq!(own.known("A4000"), None);
        own.keep("A4000", 12);
        assert_eq!(own.known("A4000"), Some(12));
        for text in ["", "{}", "nonsense"] {
            fs::write(&path, text).unwrap();
            assert_eq!(own.known("A4000"), None);
        }
        // A file of another plan under the same name.
        let other = Known {
            plan: "other".into(),
            model: "A4000".into(),
            records: 3,
        };
        fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
        assert_eq!(own.known("A4000"), None);
    }
}
