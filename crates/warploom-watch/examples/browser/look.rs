//! What is to be seen on a page: places, colours, contrast.

use std::path::Path;

use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::chromium::{Chromium, Pixels};

pub(crate) fn number(value: &Value) -> f64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    value.as_f64().or(text).unwrap_or(f64::NAN)
}

/// Where an element is in the whole page.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places on a page"
)]
pub(crate) fn place_of(browser: &mut Chromium, selector: &str) -> Result<[usize; 4], Failed> {
    let box_of = format!(
        "(() => {{ const box = document.querySelector({}).getBoundingClientRect(); return [box.x, box.y + scrollY, box.width, box.height]; }})()",
        json!(selector)
    );
    let sides = browser.value(&box_of)?;
    let side = |at: usize| number(&sides[at]).max(0.0) as usize;
    Ok([0, 1, 2, 3].map(side))
}

/// How many different colours there are, and the share of the most frequent one.
pub(crate) fn variety(colours: &[[u8; 3]]) -> (usize, f64) {
    let mut counts = std::collections::HashMap::new();
    for colour in colours {
        *counts.entry(colour).or_insert(0_usize) += 1;
    }
    let most = counts.values().max().copied().unwrap_or(0);
    (counts.len(), most as f64 / colours.len().max(1) as f64)
}

pub(crate) fn lightness(colours: &[[u8; 3]]) -> f64 {
    let sum: u64 = colours.iter().flatten().map(|&part| u64::from(part)).sum();
    sum as f64 / (colours.len() * 3).max(1) as f64
}

/// In each lane of the drawing there are pixels in the colours of stages.
pub(crate) fn lanes_are_busy(browser: &mut Chromium, shot: &Pixels) -> Result<(), Failed> {
    let [_, _, _, height] = place_of(browser, "#gantt")?;
    // Nine lanes of 22 pixels under an axis and three headings.
    assert!(
        height >= 26 + 9 * 22 + 3 * 22,
        "the drawing is {height} high"
    );
    let busy = coloured(browser, shot)?;
    let busy = busy.iter().filter(|share| **share > 0.25).count();
    assert!(busy >= 9, "{busy} rows of pixels are coloured");
    Ok(())
}

/// The share of pixels in the colours of stages, of rows of pixels of which each lane has two.
pub(crate) fn coloured(browser: &mut Chromium, shot: &Pixels) -> Result<Vec<f64>, Failed> {
    let [x, y, width, height] = place_of(browser, "#gantt")?;
    let rows = (y + 30..y + height).step_by(11).map(|row| {
        let line = shot.part([x + 150, row, width - 160, 1]);
        let is_coloured = |colour: &&[u8; 3]| {
            let (low, high) = (colour.iter().min(), colour.iter().max());
            low.zip(high).is_some_and(|(low, high)| high - low > 60)
        };
        line.iter().filter(is_coloured).count() as f64 / line.len().max(1) as f64
    });
    Ok(rows.collect())
}

/// Text has the contrast that WCAG AA asks for, wherever the page has text of its own.
pub(crate) fn readable(browser: &mut Chromium) -> Result<(), Failed> {
    let script = r"(() => {
      const parse = (text) => text.match(/[\d.]+/g).map(Number);
      const shade = ([r, g, b]) => { const c = [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
      const behind = (at) => { for (; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
      const poor = [];
      for (const at of document.querySelectorAll('body *')) {
        const own = [...at.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'DIALOG'].includes(at.tagName) || at.closest('dialog, :disabled') || !at.offsetParent) continue;
        const [a, b] = [shade(parse(getComputedStyle(at).color)), shade(behind(at))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) poor.push(at.tagName + '.' + at.className + ' ' + contrast.toFixed(2));
      }
      const nameless = [...document.querySelectorAll('button, input, canvas:not([aria-hidden]), svg[role=img]')].filter((at) => !(at.textContent.trim() || at.ariaLabel || at.labels?.length));
      return [...new Set(poor), ...nameless.map((at) => 'no name: ' + at.outerHTML.slice(0, 80))];
    })()";
    let poor = browser.value(script)?;
    assert_eq!(
        poor,
        json!([]),
        "text that is hard to read, or controls without a name"
    );
    Ok(())
}

/// The whole page as a picture, kept under this name.
pub(crate) fn shot(folder: &Path, browser: &mut Chromium, name: &str) -> Result<Pixels, Failed> {
    let height = number(&browser.value("document.documentElement.scrollHeight")?);
    let metrics =
        json!({ "width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": false });
    browser.ask("Emulation.setDeviceMetricsOverride", &metrics)?;
    browser.frame()?;
    browser.picture(&folder.join(format!("{name}.png")))
}

/// Has every image that has something to show shown it?
pub(crate) const IMAGES_ARE_WHOLE: &str = "[...document.images].every((image) => !image.src || (image.complete && image.naturalWidth > 0))";
