//! The list of the ancestor's defects speaks the truth.

use std::path::Path;

const LIST: &str = include_str!("../../../../ANCESTOR.md");

/// All Rust text below a folder, beside what builds left there.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_defect_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = String::new();
    for folder in ["crates", "backends", "tests"] {
        sources(&root.join(folder), &mut text);
    }
    let rows: Vec<&str> = LIST
        .lines()
        .filter(|line| line.starts_with("| W"))
        .collect();
    assert_eq!(rows.len(), 40);
    for (number, row) in (1..).zip(rows) {
        assert!(row.starts_with(&format!("| W{number} |")), "{row}");
        let said = row.split('|').nth(3).unwrap();
        let tests: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        assert!(
            !tests.is_empty() || said.contains("cannot occur: "),
            "{row}"
        );
        for test in tests {
            let exists =
                text.contains(&format!("fn {test}(")) || text.contains(&format!("{test}: \""));
            assert!(exists, "W{number} names {test}, and there is no such test");
        }
    }
}
