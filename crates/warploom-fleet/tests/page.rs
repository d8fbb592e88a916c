//! The page about trouble names tests; they exist.

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust sources below a folder.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of tests") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&fs::read_to_string(path).expect("a text"));
            }
        }
    }
    text
}

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/fleet.md")).unwrap();
    let sources = ["warploom-fleet", "warploom-cli", "warploom-run"]
        .map(|name| sources(&root.join("crates").join(name)))
        .concat();
    let mut named = 0;
    // The last cell of a row has the tests.
    let rows = page.lines().filter_map(|line| line.strip_suffix(" |"));
    for cell in rows.filter_map(|row| row.rsplit(" | ").next()) {
        let quoted = cell.split('`').skip(1).step_by(2);
        let is_name =
            |name: &&str| name.matches('_').count() >= 2 && !name.contains(char::is_uppercase);
        for name in quoted.filter(is_name) {
            let is_there = sources.contains(&format!("fn {name}("))
                || sources.contains(&format!("\"{name}\""));
            assert!(is_there, "there is no `{name}`: {cell}");
            named += 1;
        }
    }
    assert!(named >= 50, "only {named} tests are named");
}
