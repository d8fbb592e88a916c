//! Reports, opened in a browser: `browser CHROMIUM FOLDER [REPORT...]` checks made-up ones, and those of
//! real runs that are named, and leaves pages and pictures in the folder. `cargo xtask test --only report`
//! does it with the Chromium it finds.

mod chromium;
mod fleet;
mod look;
mod nuclei;
mod real;
mod sample;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use chromium::Chromium;
use libtest_mimic::{Arguments, Failed, Trial};
use look::{
    IMAGES_ARE_WHOLE, lanes_are_busy, lightness, number, place_of, readable, shot, variety,
};
use serde_json::json;
use warploom_watch::{Recording, report, trace};

/// Where the browser is, and where things go.
struct Place {
    program: PathBuf,
    folder: PathBuf,
}

/// One thing to look at.
type Case = fn(&Place) -> Result<(), Failed>;

fn main() -> ExitCode {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, folder, reports @ ..] = words.as_slice() else {
        use std::io::Write as _;
        let _ = writeln!(
            std::io::stderr(),
            "usage: browser CHROMIUM FOLDER [REPORT...]"
        );
        return ExitCode::from(2);
    };
    let place = Arc::new(Place {
        program: program.clone(),
        folder: folder.clone(),
    });
    let cases: [(&str, Case); 10] = [
        ("report_renders_in_light", |place| renders(place, "light")),
        ("report_renders_in_dark", |place| renders(place, "dark")),
        ("report_is_steered_by_keys", keys),
        ("report_is_steered_by_the_mouse", mouse),
        ("report_lists_and_filters_records", records),
        ("report_compares_pictures", compares),
        ("report_of_hostile_names_does_no_harm", harmless),
        ("report_of_100_000_spans_stays_usable", large),
        ("report_of_several_devices_has_lanes_for_each", several),
        ("report_of_nothing_is_a_page", empty),
    ];
    let made_up = cases.map(|(name, case)| {
        let place = Arc::clone(&place);
        Trial::test(name, move || case(&place))
    });
    let real = reports.iter().map(|file| {
        let (place, file) = (Arc::clone(&place), file.clone());
        let name = format!("report_of_a_run_is_drawn {}", file.display());
        Trial::test(name, move || real::run(&place, &file))
    });
    let trials: Vec<Trial> = made_up.into_iter().chain(real).collect();
    let arguments = Arguments {
        test_threads: Some(1),
        ..Arguments::default()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Writes a report and opens it.
fn opened(
    place: &Place,
    name: &str,
    recording: &Recording,
    scheme: &str,
) -> Result<Chromium, Failed> {
    std::fs::create_dir_all(&place.folder)?;
    let file = place.folder.join(format!("{name}.html"));
    std::fs::write(&file, report(recording))?;
    browsed(place, &file, scheme)
}

/// Opens a report, and waits for its script.
fn browsed(place: &Place, file: &Path, scheme: &str) -> Result<Chromium, Failed> {
    let mut browser = Chromium::start(&place.program)?;
    browser.open(file, [1280, 900], scheme)?;
    let ready = browser.value("document.documentElement.dataset.ready ?? null")?;
    if ready.is_null() {
        return Err(format!("the script did not end: {:?}", browser.complaints()).into());
    }
    Ok(browser)
}

fn silent(browser: &mut Chromium) -> Result<(), Failed> {
    match browser.complaints().as_slice() {
        [] => Ok(()),
        complaints => Err(complaints.join("\n").into()),
    }
}

/// Lanes, charts and thumbnails are really drawn, in the colours of the scheme.
fn renders(place: &Place, scheme: &str) -> Result<(), Failed> {
    let recording = sample::plate(384);
    let flaws = recording.flaws();
    assert!(flaws.is_empty(), "{flaws:?}");
    let mut browser = opened(place, scheme, &recording, scheme)?;
    let shot = shot(&place.folder, &mut browser, scheme)?;
    let corner = lightness(&shot.part([2, 2, 10, 10]));
    let expected = if scheme == "dark" {
        corner < 60.0
    } else {
        corner > 220.0
    };
    assert!(expected, "the page's corner is {corner} light in {scheme}");
    for selector in ["#gantt", "#brush", ".chart canvas", ".tile .meter"] {
        let part = place_of(&mut browser, selector)?;
        let (colours, most) = variety(&shot.part(part));
        assert!(
            colours > 1 && most < 0.97,
            "{selector} at {part:?}: {colours} colours, {most} alike"
        );
    }
    lanes_are_busy(&mut browser, &shot)?;
    let pictures = number(&browser.value("document.querySelectorAll('.pair img').length")?);
    assert!((pictures - 8.0).abs() < 0.1, "{pictures} pictures");
    assert_eq!(browser.value(IMAGES_ARE_WHOLE)?, true);
    let (before, after) = (".pair img", ".pair img + img");
    let before = shot.part(place_of(&mut browser, before)?);
    let after = shot.part(place_of(&mut browser, after)?);
    let is_gray =
        |colour: &&[u8; 3]| colour[0].abs_diff(colour[1]) < 3 && colour[1].abs_diff(colour[2]) < 3;
    let gray = |part: &[[u8; 3]]| part.iter().filter(is_gray).count() as f64 / part.len() as f64;
    assert!(
        gray(&before) > 0.95 && gray(&after) < 0.8,
        "{} and {}",
        gray(&before),
        gray(&after)
    );
    assert!(variety(&before).0 > 20, "a picture has many shades");
    let trace_file = std::fs::File::create(place.folder.join("trace.json"))?;
    trace(&recording, trace_file)?;
    readable(&mut browser)?;
    silent(&mut browser)
}

fn shown(browser: &mut Chromium) -> Result<(f64, f64), Failed> {
    let window = browser.value("[gantt.dataset.from, gantt.dataset.to]")?;
    Ok((number(&window[0]), number(&window[1])))
}

/// The text of the picked batch.
const TOLD: &str = "document.getElementById('selected').textContent";

fn keys(place: &Place) -> Result<(), Failed> {
    let recording = sample::plate(384);
    let mut browser = opened(place, "keys", &recording, "light")?;
    let whole = (0.0, recording.wall as f64);
    assert_eq!(shown(&mut browser)?, whole);
    browser.value("gantt.scrollIntoView({ block: 'center' }), gantt.focus()")?;
    browser.press("+")?;
    browser.press("+")?;
    let (from, to) = shown(&mut browser)?;
    assert!(
        to - from < 0.4 * whole.1 && from > 0.0,
        "{from} to {to} after +"
    );
    browser.press("ArrowRight")?;
    assert!(
        shown(&mut browser)?.0 > from,
        "later after an arrow to the right"
    );
    browser.press("-")?;
    let (from, farther) = shown(&mut browser)?;
    assert!(farther - from > to - from, "{from} to {farther} after -");
    browser.press("0")?;
    assert_eq!(shown(&mut browser)?, whole);
    browser.press("n")?;
    let first = browser.value(TOLD)?;
    browser.press("n")?;
    let second = browser.value(TOLD)?;
    assert!(
        first
            .as_str()
            .is_some_and(|told| told.starts_with("Batch 0, A01_s1: read")),
        "{first}"
    );
    assert!(
        second
            .as_str()
            .is_some_and(|told| told.starts_with("Batch 1, A01_s2: read")),
        "{second}"
    );
    browser.press("p")?;
    assert_eq!(browser.value(TOLD)?, first);
    browser.press("Escape")?;
    assert_eq!(browser.value(TOLD)?, "");
    silent(&mut browser)
}

fn mouse(place: &Place) -> Result<(), Failed> {
    let recording = sample::plate(384);
    let mut browser = opened(place, "mouse", &recording, "light")?;
    browser.value("gantt.scrollIntoView({ block: 'center' })")?;
    let wall = recording.wall as f64;
    let box_of =
        browser.value("(({ x, y, width }) => [x, y, width])(gantt.getBoundingClientRect())")?;
    let (left, top, width) = (number(&box_of[0]), number(&box_of[1]), number(&box_of[2]));
    // The compute queue of the second card, which is always busy: below the axis there are three
    // headings and seven lanes before it.
    let point = [
        left + 150.0 + (width - 150.0) / 2.0,
        top + 26.0 + 22.0 * 10.5,
    ];
    browser.mouse(
        "mouseWheel",
        point,
        &json!({ "deltaX": 0, "deltaY": -600, "modifiers": 2 }),
    )?;
    let (from, to) = shown(&mut browser)?;
    assert!(to - from < 0.2 * wall, "{from} to {to} after the wheel");
    assert!(
        (0.4 * wall..0.6 * wall).contains(&f64::midpoint(from, to)),
        "around the pointer"
    );
    browser.mouse("mouseMoved", point, &json!({}))?;
    let tip =
        "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent";
    let tip = browser.value(tip)?;
    let tip = tip.as_str().unwrap_or_default();
    assert!(
        tip.contains("segment") && tip.contains("times of the device"),
        "the tip says {tip:?}"
    );
    for kind in ["mousePressed", "mouseReleased"] {
        browser.mouse(kind, point, &json!({ "button": "left", "clickCount": 1 }))?;
    }
    let told = browser.value(TOLD)?;
    for word in [
        "Batch", "read", "upload", "segment", "download", "write", "in all",
    ] {
        assert!(
            told.as_str().is_some_and(|told| told.contains(word)),
            "{told}"
        );
    }
    browser.picture(&place.folder.join("mouse.png"))?;
    let dragged = [point[0] - 200.0, point[1]];
    browser.mouse(
        "mousePressed",
        point,
        &json!({ "button": "left", "clickCount": 1 }),
    )?;
    browser.mouse(
        "mouseMoved",
        dragged,
        &json!({ "button": "left", "buttons": 1 }),
    )?;
    browser.mouse(
        "mouseReleased",
        dragged,
        &json!({ "button": "left", "clickCount": 1 }),
    )?;
    assert!(
        shown(&mut browser)?.0 > from,
        "dragging to the left shows what is later"
    );
    assert_eq!(browser.value(TOLD)?, told, "dragging picks nothing");
    browser.value("document.getElementById('zoom-all').click()")?;
    browser.frame()?;
    let seen = |browser: &mut Chromium, name: &str| -> Result<usize, Failed> {
        let [x, y, width, height] = place_of(browser, "#gantt")?;
        let shot = browser.picture(&place.folder.join(name))?;
        Ok(variety(&shot.part([x + 160, y + 30, width - 170, height - 40])).0)
    };
    let before = seen(&mut browser, "stages.png")?;
    browser
        .value("document.querySelectorAll('#legend button').forEach((button) => button.click())")?;
    browser.frame()?;
    let after = seen(&mut browser, "no-stages.png")?;
    assert!(
        after < before,
        "{before} colours with stages, {after} without"
    );
    let theme =
        "document.getElementById('theme').click(), getComputedStyle(document.body).backgroundColor";
    assert_ne!(browser.value(theme)?, browser.value(theme)?);
    silent(&mut browser)
}

fn records(place: &Place) -> Result<(), Failed> {
    let mut browser = opened(place, "records", &sample::plate(384), "light")?;
    let rows = "document.querySelectorAll('#list tbody tr').length";
    let found = "document.getElementById('found').textContent";
    assert_eq!(browser.value(rows)?, 50);
    assert_eq!(browser.value(found)?, "384 of 384");
    let find = |text: &str| {
        format!(
            "document.getElementById('find').value = {}, document.getElementById('find').dispatchEvent(new Event('input')), {found}",
            json!(text)
        )
    };
    assert_eq!(browser.value(&find("a01"))?, "4 of 384");
    assert_eq!(browser.value(&find("wl0705"))?, "7 of 384");
    assert_eq!(browser.value(&find("nothing like it"))?, "0 of 384");
    assert_eq!(browser.value(rows)?, 0);
    browser.value(&find(""))?;
    let click = |outcome: &str| {
        format!("document.querySelector('[data-outcome={outcome}]').click(), {found}")
    };
    assert_eq!(browser.value(&click("ok"))?, "7 of 384");
    let all_failed = "[...document.querySelectorAll('#list tbody .outcome')].every((cell) => cell.textContent === 'failed')";
    assert_eq!(browser.value(all_failed)?, true);
    assert_eq!(browser.value(&click("ok"))?, "384 of 384");
    let first = "document.querySelector('#list tbody th').firstChild.data";
    let sort = format!("document.querySelector('[data-sort=name]').click(), {first}");
    assert_eq!(browser.value(&sort)?, "A01_s1");
    assert_ne!(browser.value(&sort)?, "A01_s1");
    let on =
        "document.getElementById('page-on').click(), document.getElementById('page').textContent";
    assert_eq!(browser.value(on)?, "page 2 of 8");
    silent(&mut browser)
}

fn compares(place: &Place) -> Result<(), Failed> {
    let mut browser = opened(place, "compares", &sample::plate(60), "light")?;
    browser.value("document.querySelector('button.pair').focus()")?;
    browser.press("Enter")?;
    let is_open = "document.getElementById('wipe').open";
    if browser.value(is_open)? != true {
        browser.value("document.querySelector('button.pair').click()")?;
    }
    assert_eq!(browser.value(is_open)?, true);
    browser.frame()?;
    let part = place_of(&mut browser, ".stack")?;
    let scroll = browser.value("scrollY")?;
    let shot = browser.picture(&place.folder.join("compares.png"))?;
    let (colours, _) = variety(&shot.part(part));
    assert!(
        colours > 20,
        "{colours} colours at {part:?}, scrolled by {scroll}"
    );
    browser.press("Escape")?;
    browser.value("document.getElementById('wipe').close()")?;
    assert_eq!(browser.value(is_open)?, false);
    silent(&mut browser)
}

fn harmless(place: &Place) -> Result<(), Failed> {
    let mut browser = opened(place, "hostile", &sample::hostile(), "light")?;
    browser.value("gantt.focus()")?;
    browser.press("n")?;
    browser.value("document.querySelector('button.pair').click()")?;
    browser.frame()?;
    let harmed = browser.value("document.title.startsWith('harmed')")?;
    assert_eq!(harmed, false);
    let scripts = browser.value("document.scripts.length")?;
    assert_eq!(scripts, 2, "scripts of the page");
    assert_eq!(
        browser.value(
            "[...document.images].filter((image) => image.getAttribute('src') === 'x').length"
        )?,
        0
    );
    assert_eq!(
        browser.value("document.querySelectorAll('[onerror]').length")?,
        0
    );
    // All of the text is there, as text.
    assert_eq!(
        browser.value("document.querySelector('h1').textContent.includes('onerror=')")?,
        true
    );
    browser.picture(&place.folder.join("hostile.png"))?;
    silent(&mut browser)
}

fn large(place: &Place) -> Result<(), Failed> {
    let recording = sample::plate(20_000);
    assert_eq!(recording.spans.len(), 100_000);
    let mut browser = opened(place, "large", &recording, "light")?;
    let ready = number(&browser.value("document.documentElement.dataset.ready")?);
    assert!(ready < 4_000.0, "{ready} ms until it could be used");
    let mut slowest = 0.0_f64;
    browser.value("gantt.focus()")?;
    for key in ["+", "+", "ArrowRight", "+", "-", "0"] {
        browser.press(key)?;
        slowest = slowest.max(number(&browser.value("gantt.dataset.ms")?));
    }
    assert!(slowest < 250.0, "{slowest} ms for one drawing");
    let boxes = number(&browser.value("gantt.dataset.boxes")?);
    assert!(boxes >= 100_000.0, "{boxes} spans were looked at");
    let find = "(() => { const start = performance.now(); document.getElementById('find').value = 'c07', document.getElementById('find').dispatchEvent(new Event('input')); return performance.now() - start; })()";
    let took = number(&browser.value(find)?);
    assert!(took < 1_000.0, "{took} ms to filter");
    browser.picture(&place.folder.join("large.png"))?;
    let size = std::fs::metadata(place.folder.join("large.html"))?.len();
    let figures = format!(
        "ready after {ready} ms, at most {slowest} ms a drawing, {took} ms to filter, {size} bytes\n"
    );
    std::fs::write(place.folder.join("large.txt"), figures)?;
    silent(&mut browser)
}

/// Lanes of four cards with two workers each, their balance, and what happened to the third.
fn several(place: &Place) -> Result<(), Failed> {
    let recording = fleet::run(160);
    let flaws = recording.flaws();
    assert!(flaws.is_empty(), "{flaws:?}");
    assert_eq!((recording.devices.len(), recording.lanes.len()), (4, 8));
    let mut browser = opened(place, "several", &recording, "light")?;
    let text = |browser: &mut Chromium, selector: &str| {
        let told = browser.value(&format!("document.querySelector('{selector}').textContent"))?;
        Ok::<String, Failed>(told.as_str().unwrap_or_default().to_owned())
    };
    let verdict = text(&mut browser, ".verdict")?;
    assert!(verdict.starts_with("all 960"), "{verdict}");
    let devices = text(&mut browser, "section[aria-labelledby=devices]")?;
    for word in [
        "cuda:0",
        "cuda:3",
        "Imbalance",
        "1 lost",
        "1 quarantined",
        "tried again",
    ] {
        assert!(devices.contains(word), "{word} in {devices}");
    }
    let notes = text(&mut browser, "section.notes")?;
    for word in [
        "lost",
        "retry",
        "quarantine",
        "readmitted",
        "cuda:2",
        "signal 11",
    ] {
        assert!(notes.contains(word), "{word} in {notes}");
    }
    // Every lane is drawn, and the slow card's batches are the longest.
    let height = number(&browser.value("gantt.getBoundingClientRect().height")?);
    assert!(height > 22.0 * 8.0, "{height} pixels for eight lanes");
    browser.value("gantt.scrollIntoView({ block: 'center' }), gantt.focus()")?;
    browser.frame()?;
    let shot = browser.picture(&place.folder.join("several.png"))?;
    let (colours, most) = variety(&shot.part(place_of(&mut browser, "#gantt")?));
    assert!(
        colours > 1 && most < 0.97,
        "{colours} colours, {most} alike"
    );
    browser.press("n")?;
    let told = browser.value(TOLD)?;
    assert!(
        told.as_str().is_some_and(|told| told.contains("batch")),
        "{told}"
    );
    silent(&mut browser)
}

fn empty(place: &Place) -> Result<(), Failed> {
    let mut browser = opened(place, "empty", &Recording::default(), "dark")?;
    assert_eq!(
        browser.value("document.querySelector('.verdict').textContent")?,
        "no records"
    );
    assert_eq!(
        browser.value("document.getElementById('records-section').hidden")?,
        true
    );
    browser.value("gantt.focus()")?;
    for key in ["+", "n", "p", "ArrowLeft", "0", "Escape"] {
        browser.press(key)?;
    }
    browser.picture(&place.folder.join("empty.png"))?;
    silent(&mut browser)
}
