//! Reports of runs that really happened.

use std::path::Path;

use libtest_mimic::Failed;

use crate::look::{IMAGES_ARE_WHOLE, coloured, number, place_of, shot, variety};
use crate::{Place, browsed, silent};

/// Lanes of stages with their work in them, and pictures.
pub(crate) fn run(place: &Place, file: &Path) -> Result<(), Failed> {
    let mut browser = browsed(place, file, "light")?;
    let shot = shot(&place.folder, &mut browser, "run")?;
    let busy = coloured(&mut browser, &shot)?;
    let busy = busy.iter().filter(|share| **share > 0.002).count();
    // Reading, work and writing at least.
    assert!(busy >= 3, "{busy} rows of pixels are coloured");
    let pictures = number(&browser.value("document.querySelectorAll('.pair img').length")?);
    assert!(pictures >= 2.0, "{pictures} pictures");
    assert_eq!(browser.value(IMAGES_ARE_WHOLE)?, true);
    let before = shot.part(place_of(&mut browser, ".pair img")?);
    assert!(variety(&before).0 > 20, "a picture has many shades");
    silent(&mut browser)
}
