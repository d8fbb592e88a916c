//! Pipelines that nobody would write but to see what happens. Used by the tests, and by the benchmark
//! that holds them to their second.

use std::fmt::Write as _;

/// As many steps as there may be.
const MOST: usize = 2_000;

/// So many steps, each written by `step`.
fn steps(step: impl Fn(usize) -> String) -> String {
    some(MOST, step)
}

fn some(count: usize, step: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let _ = writeln!(text, "[[step]]\nname = \"s{at}\"\n{}", step(at));
        text
    })
}

/// Files that are wrong, each with a name.
pub(crate) fn wrong() -> Vec<(&'static str, String)> {
    let big = "9223372036854775807";
    vec![
        ("too many", some(10_000, |_| "op = \"sqrt\"".into())),
        ("garbage", "\u{1}\u{7f}]][[=\"'".repeat(130_000)),
        (
            "deep",
            format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        ),
        (
            "deep tables",
            format!(
                "[[step]]\nop = \"sqrt\"\nsigma = {}",
                "{ a = ".repeat(50_000)
            ),
        ),
        ("dotted", format!("{} = 1", vec!["a"; 50_000].join("."))),
        (
            "duplicate names",
            "[[step]]\nop = \"sqrt\"\n".repeat(10_000),
        ),
        (
            "slips",
            steps(|at| format!("op = \"sqrt\"\ninput = \"t{at}\"")),
        ),
        (
            "unknown operations",
            steps(|at| format!("op = \"gausian{at}\"")),
        ),
        (
            "memories",
            steps(|at| format!("op = \"sqrt\"\nmemory = \"m{at}\"")),
        ),
        (
            "cycle",
            steps(|at| format!("op = \"sqrt\"\ninput = \"s{}\"", (at + 1) % MOST)),
        ),
        (
            "self",
            steps(|at| format!("op = \"sqrt\"\ninput = \"s{at}\"")),
        ),
        (
            "inputs",
            format!(
                "[[step]]\nop = \"add_images\"\ninput = [{}]",
                "\"image\", ".repeat(100_000)
            ),
        ),
        (
            "long names",
            format!(
                "[[step]]\nname = \"{}\"\nop = \"{}\"",
                "n".repeat(400_000),
                "o".repeat(400_000)
            ),
        ),
        (
            "huge number",
            format!(
                "[[step]]\nop = \"gaussian\"\nsigma = {}",
                "9".repeat(100_000)
            ),
        ),
        (
            "huge sigma",
            "[[step]]\nop = \"gaussian\"\nsigma = 1e300".to_owned(),
        ),
        (
            "huge pad",
            format!("[[step]]\nop = \"pad\"\nbefore = {big}\nafter = {big}"),
        ),
        (
            "huge radius",
            format!("[[step]]\nop = \"median_box\"\nradius = {big}"),
        ),
        (
            "huge resize",
            "[[step]]\nop = \"resize_linear\"\nfactor = 1e300".to_owned(),
        ),
        (
            "unicode",
            "[[step]]\nname = \"\u{202e}\u{e9}vil\u{0}\"\nop = \"gau\u{df}\"".to_owned(),
        ),
        (
            "unicode names",
            "[[step]]\nname = \"\u{1f52c}\u{301}\"\nop = \"sqrt\"".repeat(5_000),
        ),
        ("words", "name = ".repeat(150_000)),
        (
            "branches",
            steps(|_| "branch = { by = \"channel\", 1 = [\"sqrt\"], 7 = [] }".to_owned()),
        ),
        (
            "numbers of nobody",
            steps(|at| {
                format!(
                    "op = \"greater\"\ninput = \"image\"\nvalue = {{ from = \"s{at}\", item = 0 }}"
                )
            }),
        ),
    ]
}

/// Files that are right, of so many steps.
pub(crate) fn right(count: usize) -> Vec<(&'static str, String)> {
    let steps = |step: &dyn Fn(usize) -> String| some(count, step);
    let filters = [
        "op = \"gaussian\"\nsigma = 2",
        "op = \"median_box\"\nradius = 1",
        "op = \"sobel\"",
        "op = \"mean_box\"\nradius = 3",
        "op = \"gamma\"\ngamma = 0.5",
    ];
    vec![
        ("chain", steps(&|_| "op = \"sqrt\"".to_owned())),
        (
            "filters",
            steps(&|at| filters[at % filters.len()].to_owned()),
        ),
        // All read the record, and the next two of those; only the last is written.
        (
            "fan",
            steps(&|at| match at.checked_sub(count / 2) {
                None => format!(
                    "op = \"affine_intensity\"\ninput = \"image\"\nscale = {}.5",
                    at + 1
                ),
                Some(at) => format!("op = \"add_images\"\ninput = [\"s{at}\", \"s{}\"]", at + 1),
            }),
        ),
        // Every step reads the one before and one far back.
        (
            "bush",
            steps(&|at| match at {
                0 => "op = \"sqrt\"".to_owned(),
                _ => format!(
                    "op = \"add_images\"\ninput = [\"s{}\", \"s{}\"]",
                    at - 1,
                    at / 2
                ),
            }),
        ),
        // Every step is written.
        (
            "outputs",
            (0..count).fold(
                steps(&|at| format!("op = \"power\"\ninput = \"image\"\nexponent = 1.{}", at + 1)),
                |mut text, at| {
                    let _ = writeln!(text, "[[output]]\nof = \"s{at}\"\nwrite = \"s{at}.tif\"");
                    text
                },
            ),
        ),
        (
            "long chain",
            format!("[[step]]\nchain = [{}]", "\"sqrt\", ".repeat(count)),
        ),
    ]
}
