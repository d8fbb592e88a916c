//! Which folders and files there are, and what each crate promises at its top.

use super::Finding;
use super::sources::Sources;

/// The folders of the top level; files and dotted folders may join.
const FOLDERS: &[&str] = &["crates", "backends", "tests", "examples", "docs", "xtask"];

/// Crates that reach devices only through safe traits.
const SAFE: &[&str] = &[
    "crates/warploom",
    "crates/warploom-cli",
    "crates/warploom-plan",
    "crates/warploom-run",
    "crates/warploom-sched",
    "crates/warploom-io",
    "crates/warploom-watch",
    "examples/custom-backend",
    "xtask",
];

/// What every backend is made of: who has read one knows where to look in the next.
const BACKEND_FILES: &[&str] = &[
    "lib", "backend", "device", "queue", "event", "buffer", "kernel", "probe", "error",
];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "manager", "managers", "helper", "helpers", "misc",
];

/// The longest a backend from outside may be, to be worth showing.
const CUSTOM_BACKEND_LINES: usize = 100;
const CUSTOM_BACKEND: &str = "examples/custom-backend/src/lib.rs";

pub(super) fn top_level(sources: &Sources) -> Vec<Finding> {
    let mut folders: Vec<&str> = sources
        .files
        .iter()
        .filter_map(|file| file.path.split_once('/'))
        .map(|(folder, _)| folder)
        .filter(|folder| !folder.starts_with('.') && !FOLDERS.contains(folder))
        .collect();
    folders.dedup();
    let help = format!("only {} and dotted folders", FOLDERS.join(", "));
    let finding = |folder| Finding::new(folder, "a new folder at the top level", help.clone());
    folders.into_iter().map(finding).collect()
}

pub(super) fn unsafe_forbidden(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in SAFE.iter().filter(|folder| sources.has_folder(folder)) {
        let roots = ["src/lib.rs", "src/main.rs"].map(|name| format!("{folder}/{name}"));
        for root in roots.iter().filter_map(|path| sources.file(path)) {
            if !root
                .text
                .lines()
                .any(|line| line.trim() == "#![forbid(unsafe_code)]")
            {
                let what = "`unsafe` is not forbidden";
                findings.push(Finding::new(
                    &*root.path,
                    what,
                    "add `#![forbid(unsafe_code)]`",
                ));
            }
        }
    }
    if let Some(example) = sources.file(CUSTOM_BACKEND) {
        let lines = example.text.lines().count();
        if lines > CUSTOM_BACKEND_LINES {
            let what =
                format!("{lines} lines; a custom backend takes at most {CUSTOM_BACKEND_LINES}");
            let help = "if the contract grew, `warploom_core::host` has to take up the difference";
            findings.push(Finding::new(&*example.path, what, help));
        }
    }
    findings
}

pub(super) fn backend_files(sources: &Sources) -> Vec<Finding> {
    let mut folders: Vec<&str> = sources
        .files
        .iter()
        .filter_map(|file| file.path.strip_prefix("backends/")?.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    folders.dedup();
    let mut findings = Vec::new();
    for folder in folders {
        let src = format!("backends/{folder}/src");
        let is_there = |name: &str| {
            let candidates = [format!("{src}/{name}.rs"), format!("{src}/{name}/mod.rs")];
            candidates.iter().any(|path| sources.file(path).is_some())
        };
        for name in BACKEND_FILES.iter().filter(|name| !is_there(name)) {
            let what = format!("no {name}.rs and no {name}/mod.rs");
            let help = format!("every backend has: {}", BACKEND_FILES.join(" "));
            findings.push(Finding::new(&*src, what, help));
        }
    }
    findings
}

pub(super) fn file_names(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources.rust_files() {
        let stem = file.path.trim_end_matches(".rs");
        if let Some(part) = stem.split('/').find(|part| EMPTY_NAMES.contains(part)) {
            let what = format!("`{part}` says nothing about what is inside");
            findings.push(Finding::new(
                &*file.path,
                what,
                "name it after the thing it defines",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| &*finding.place).collect()
    }

    #[test]
    fn new_folders_are_noticed_once() {
        let sources = Sources::of(&[
            (".ci/run", ""),
            ("README.md", ""),
            ("crates/a/src/lib.rs", ""),
            ("scripts/a", ""),
            ("scripts/b", ""),
        ]);
        assert_eq!(places(&top_level(&sources)), ["scripts"]);
    }

    #[test]
    fn crates_that_forbid_unsafe_code_go_on_doing_so() {
        let sources = Sources::of(&[
            (
                "crates/warploom/src/lib.rs",
                "//! Doc.\n#![forbid(unsafe_code)]\n",
            ),
            (
                "crates/warploom-cli/src/main.rs",
                "// #![forbid(unsafe_code)]\n",
            ),
            ("backends/cuda/src/lib.rs", ""),
        ]);
        assert_eq!(
            places(&unsafe_forbidden(&sources)),
            ["crates/warploom-cli/src/main.rs"]
        );
    }

    #[test]
    fn a_custom_backend_stays_short() {
        let head = "#![forbid(unsafe_code)]\n";
        let fits = format!("{head}{}", "\n".repeat(99));
        assert!(unsafe_forbidden(&Sources::of(&[(CUSTOM_BACKEND, &fits)])).is_empty());
        let long = format!("{head}{}", "\n".repeat(100));
        let findings = unsafe_forbidden(&Sources::of(&[(CUSTOM_BACKEND, &long)]));
        assert_eq!(
            findings[0].what,
            "101 lines; a custom backend takes at most 100"
        );
    }

    #[test]
    fn a_folder_is_as_good_as_a_file() {
        let mut files: Vec<(String, &str)> = BACKEND_FILES
            .iter()
            .map(|name| (format!("backends/cuda/src/{name}.rs"), ""))
            .collect();
        files[3].0 = "backends/cuda/src/queue/mod.rs".into();
        let list = |files: &[(String, &'static str)]| {
            let files: Vec<_> = files
                .iter()
                .map(|(path, text)| (path.as_str(), *text))
                .collect();
            backend_files(&Sources::of(&files))
        };
        assert_eq!(list(&files), []);
        files.remove(7);
        let findings = list(&files);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].what, "no probe.rs and no probe/mod.rs");
    }

    #[test]
    fn empty_names_are_refused_for_files_and_folders() {
        let sources = Sources::of(&[
            ("crates/a/src/common/mod.rs", ""),
            ("crates/a/src/commons.rs", ""),
            ("crates/a/src/utils.rs", ""),
        ]);
        assert_eq!(
            places(&file_names(&sources)),
            ["crates/a/src/common/mod.rs", "crates/a/src/utils.rs"]
        );
    }
}
