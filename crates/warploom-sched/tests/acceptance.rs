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

/// The names of benches that have a target.
fn targets(root: &Path) -> Vec<String> {
    let file = root.join("xtask/src/targets.rs");
    let text = std::fs::read_to_string(file).expect("the benches' targets");
    let (_, table) = text.split_once("const TARGETS").expect("a table");
    let (table, _) = table.split_once("];").expect("its end");
    let names = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\""));
    names
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect()
}

/// How many examples of a file of this crate must not compile.
fn uncompilable(file: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.matches("/// ```compile_fail").count()
}

#[test]
fn every_point_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = String::new();
    for folder in ["crates", "tests", "xtask"] {
        sources(&root.join(folder), &mut text);
    }
    let targets = targets(&root);
    let mut points = Vec::new();
    for row in LIST.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let numbers: Vec<u32> = cells[1].split(", ").flat_map(str::parse).collect();
        if numbers.is_empty() {
            continue;
        }
        points.extend(numbers);
        let quoted: Vec<&str> = cells[3].split('`').skip(1).step_by(2).collect();
        let is_name = |name: &&str| name.contains('_') && !name.contains([' ', '/', '.', '(']);
        let mut shown = 0;
        for name in quoted.iter().copied().filter(is_name) {
            if name.starts_with("sched_") {
                // A number that is printed and has a target.
                let is_held = targets.iter().any(|target| target == name);
                let is_printed = text.contains(&format!("println!(\"{name} "))
                    || text.contains(&format!("\"{name} {{"));
                assert!(is_held && is_printed, "{row}: there is no bench `{name}`");
            } else {
                let is_test = text.contains(&format!("fn {name}("));
                let is_listed = text.contains(&format!("(\"{name}\","));
                assert!(is_test || is_listed, "{row}: there is no `{name}`");
            }
            shown += 1;
        }
        // Examples that must not compile are counted, file by file.
        for part in cells[3]
            .split(';')
            .filter(|part| part.contains("must not compile"))
        {
            let count = part.split_whitespace().find_map(|word| word.parse().ok());
            let file = quoted.iter().find(|quoted| part.contains(**quoted));
            let file = file.unwrap_or_else(|| panic!("{row}: which file?"));
            assert_eq!(Some(uncompilable(file)), count, "{row}: {file}");
            shown += 1;
        }
        let is_reasoned = cells[3].starts_with("- : ");
        assert!(shown > 0 || is_reasoned, "{row}");
    }
    points.sort_unstable();
    assert_eq!(points, (1..=42).collect::<Vec<_>>());
}
