//! The list of what a scheduler has to pass speaks the truth.

use std::path::Path;

const LIST: &str = include_str!("ACCEPTANCE.md");

/// All Rust text below a folder, beside what builds left there.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn every_point_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = String::new();
    for folder in ["crates", "tests", "xtask"] {
        sources(&root.join(folder), &mut text);
    }
    let mut points = Vec::new();
    for row in LIST.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let numbers: Vec<u32> = cells[1].split(", ").flat_map(str::parse).collect();
        if numbers.is_empty() {
            continue;
        }
        points.extend(numbers);
        let quoted: Vec<&str> = cells[3].split('`').skip(1).step_by(2).collect();
        let exists = |name: &&str| {
            text.contains(&format!("fn {name}(")) || text.contains(&format!("(\"{name}\","))
        };
        let is_test = |name: &&&str| name.contains('_') && !name.contains([' ', '/', '.']);
        let named: Vec<&&str> = quoted.iter().filter(is_test).collect();
        for name in &named {
            assert!(exists(name), "{row}: there is no `{name}`");
        }
        let is_reasoned = ["- : ", "compile", "the test of", "bench"].iter();
        let is_reasoned = is_reasoned.into_iter().any(|word| cells[3].contains(word));
        assert!(!named.is_empty() || is_reasoned, "{row}");
    }
    points.sort_unstable();
    assert_eq!(points, (1..=42).collect::<Vec<_>>());
}
