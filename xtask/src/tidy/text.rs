//! What is written in the files, line by line.

use super::Finding;
use super::sources::{File, Sources};

/// From here on a file is listed, and from there on it has to be split.
const LONG: usize = 500;
const TOO_LONG: usize = 600;

pub(super) fn lengths(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources.rust_files() {
        let lines = file.text.lines().count();
        let what = format!("{lines} lines");
        if lines > TOO_LONG {
            let help = format!("split it by idea; {TOO_LONG} lines are the limit");
            findings.push(Finding::new(&*file.path, what, help));
        } else if lines > LONG {
            findings.push(Finding::new(&*file.path, what, "").remark());
        }
    }
    findings
}

/// Folders that exist on somebody's machine and on nobody else's.
pub(super) fn machine_paths(sources: &Sources) -> Vec<Finding> {
    // Put together here, because this file is looked at too.
    let prefixes = ["home", "root", "work", "Users", "workspace"].map(|name| format!("/{name}/"));
    let help = "write it relative to the repository, or find it at run time";
    on_lines(sources, &|line| {
        let prefix = prefixes.iter().find(|prefix| starts_a_path(line, prefix))?;
        Some((format!("the absolute path {prefix}…"), help))
    })
}

/// Whether `prefix` occurs in `line` as the beginning of a path and not inside one.
fn starts_a_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/}*)>$".contains(c))
    })
}

/// Marks that promise a later change. A thing is done or it is absent.
pub(super) fn unfinished(sources: &Sources) -> Vec<Finding> {
    let marks = [["TO", "DO"], ["FIX", "ME"]].map(|halves| halves.concat());
    on_lines(sources, &|line| {
        let mark = marks.iter().find(|mark| has_word(line, mark))?;
        let help = "finish it, or leave it out and say so where decisions are recorded";
        Some((format!("a {mark}"), help))
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

/// Asks about every line of every file that people write.
fn on_lines(
    sources: &Sources,
    wrong: &dyn Fn(&str) -> Option<(String, &'static str)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources.files.iter().filter(|file| is_written(file)) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some((what, help)) = wrong(line) {
                let place = format!("{}:{}", file.path, number + 1);
                findings.push(Finding::new(place, what, help));
            }
        }
    }
    findings
}

/// Cargo writes its lock file itself.
fn is_written(file: &File) -> bool {
    file.path != "Cargo.lock"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_listed_and_longer_ones_refused() {
        let (fine, long, longer) = ("x\n".repeat(500), "x\n".repeat(600), "x\n".repeat(601));
        let sources = Sources::of(&[
            ("a.rs", &fine),
            ("b.rs", &long),
            ("c.rs", &longer),
            ("d.md", &longer),
        ]);
        let findings = lengths(&sources);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].remark && findings[0].place == "b.rs");
        assert!(!findings[1].remark && findings[1].what == "601 lines");
    }

    #[test]
    fn machine_paths_are_told_from_paths_that_contain_them() {
        let home = ["/ho", "me/someone/x"].concat();
        let text = format!("see {home}\nok: a{home}\nok: https://x.org{home}\n\"{home}\"\n");
        let sources = Sources::of(&[("a.md", &text), ("Cargo.lock", &text)]);
        let places: Vec<String> = machine_paths(&sources)
            .into_iter()
            .map(|f| f.place)
            .collect();
        assert_eq!(places, ["a.md:1", "a.md:4"]);
    }

    #[test]
    fn marks_are_words() {
        let (todo, fixme) = (["TO", "DO"].concat(), ["FIX", "ME"].concat());
        let text = format!("// {todo}: later\n// {todo}S\n// {fixme}\nlet x{todo}_y = 1;\n");
        let findings = unfinished(&Sources::of(&[("a.rs", &text)]));
        let places: Vec<&str> = findings.iter().map(|finding| &*finding.place).collect();
        assert_eq!(places, ["a.rs:1", "a.rs:3"]);
    }
}
