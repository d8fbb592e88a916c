//! Error codes: each has one definition, the documentation of one variant that ends in its code.

use std::collections::BTreeMap;

use super::Finding;
use super::sources::Sources;

pub(super) fn check(sources: &Sources) -> Vec<Finding> {
    let mut defined: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in sources.rust_files() {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(code) = definition(line) {
                let place = format!("{}:{}", file.path, number + 1);
                defined.entry(code).or_default().push(place);
            }
        }
    }
    let known: Vec<(String, String)> = defined
        .iter()
        .filter_map(|(code, places)| Some(((*code).to_owned(), places.first()?.clone())))
        .collect();
    let mut findings = Vec::new();
    for (code, places) in defined {
        if let [first, others @ ..] = places.as_slice() {
            for place in others {
                let what = format!("{code} is already defined at {first}");
                findings.push(Finding::new(
                    place.clone(),
                    what,
                    "take the next free number",
                ));
            }
        }
    }
    if let Some(pages) = sources.file(PAGES) {
        findings.extend(unexplained(&pages.text, &known));
    }
    findings
}

/// Where people read what a code means, beside the compiler's own, which are with the compiler.
const PAGES: &str = "crates/warploom-cli/src/cmd/explain/pages.txt";

/// Codes without a page.
fn unexplained(pages: &str, known: &[(String, String)]) -> Vec<Finding> {
    let has_page = |code: &str| {
        let mut lines = pages.lines();
        lines.any(|line| line.split_once(' ').is_some_and(|(of, _)| of == code))
    };
    let lacking = known
        .iter()
        .filter(|(code, place)| !place.contains("warploom-plan/") && !has_page(code));
    lacking
        .map(|(code, place)| {
            let what = format!("{code} has no page for `warploom explain`");
            Finding::new(place.clone(), what, format!("add a line to {PAGES}"))
        })
        .collect()
}

/// The code in `/// The device has no room. (WL0401)`.
fn definition(line: &str) -> Option<&str> {
    let doc = line.trim().strip_prefix("///")?;
    let code = doc.strip_suffix(')')?.rsplit_once(" (")?.1;
    let digits = code.strip_prefix("WL")?;
    let is_code = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_code.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_ends_a_doc_line() {
        assert_eq!(definition("    /// No room. (WL0401)"), Some("WL0401"));
        assert_eq!(definition("/// Prints (WL0401) as text."), None);
        assert_eq!(definition("// No room. (WL0401)"), None);
        assert_eq!(definition("/// No room. (WL041)"), None);
        assert_eq!(definition("/// No room. (see WL0401)"), None);
    }

    #[test]
    fn two_meanings_are_one_too_many() {
        let sources = Sources::of(&[
            ("a.rs", "/// One. (WL0101)\n/// Two. (WL0102)\n"),
            ("b.rs", "\n/// Three. (WL0102)\n"),
        ]);
        let findings = check(&sources);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "b.rs:2");
        assert_eq!(findings[0].what, "WL0102 is already defined at a.rs:2");
    }
}
