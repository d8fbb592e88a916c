//! Texts of plans without what changes whenever a kernel is written better: sizes of scratch, and
//! so offsets, times and fingerprints. What such numbers must satisfy is asserted elsewhere.

/// The text with every number of bytes, duration, offset, count of passes and fingerprint replaced.
pub(crate) fn steady(text: &str) -> String {
    let lines = text.lines().map(line);
    lines.collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (word, next) = (words[at], words.get(at + 1).copied().unwrap_or(""));
        let number = is_number(word);
        let unit = next.trim_end_matches([',', ';', ')']);
        if number && is_unit(unit) {
            let rest = &next[unit.len()..];
            let what = if unit.ends_with('B') {
                "[bytes]"
            } else {
                "[time]"
            };
            out.push(format!("{}{what}{rest}", opening(word)));
            at += 2;
        } else if number && (unit == "pass" || unit == "passes") {
            out.push("[some] passes".to_owned());
            at += 2;
        } else if is_fingerprint(word) {
            out.push("[fingerprint]".to_owned());
            at += 1;
        } else if is_moment(word) {
            out.push("[moment]".to_owned());
            at += 1;
        } else if number
            && word.len() > 2
            && line.starts_with("  ")
            && at < 20
            && out.iter().all(String::is_empty)
        {
            out.push("[offset]".to_owned());
            at += 1;
        } else if number && unit == "%" {
            out.push("([share] %".to_owned());
            at += 2;
        } else {
            out.push(word.to_owned());
            at += 1;
        }
    }
    // Columns were aligned by what is no longer there.
    let indent = line.len() - line.trim_start().len();
    let kept = out.into_iter().filter(|word| !word.is_empty());
    let text = kept.collect::<Vec<_>>().join(" ");
    format!("{}{text}", " ".repeat(indent.min(8)))
}

fn opening(word: &str) -> &str {
    if word.starts_with('(') { "(" } else { "" }
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('(');
    !digits.is_empty() && digits.parse::<f64>().is_ok()
}

fn is_unit(word: &str) -> bool {
    matches!(
        word,
        "B" | "KiB" | "MiB" | "GiB" | "TiB" | "s" | "ms" | "us"
    )
}

fn is_fingerprint(word: &str) -> bool {
    word.len() == 32 && word.chars().all(|letter| letter.is_ascii_hexdigit())
}

/// `2.13`: a step and one of its passes.
fn is_moment(word: &str) -> bool {
    let parts = word.split_once('.');
    parts.is_some_and(|(step, pass)| step.parse::<u32>().is_ok() && pass.parse::<u32>().is_ok())
}

#[test]
fn only_what_changes_is_hidden() {
    let text = "  1048576   4.0 MiB    1.1 to 2.13   soft (scratch)";
    assert_eq!(
        steady(text),
        "  [offset] [bytes] [moment] to [moment] soft (scratch)"
    );
    let text = "about 1.2 ms a record (2 units, 8.0 us when), in 3 passes";
    assert_eq!(
        steady(text),
        "about [time] a record (2 units, [time] when), in [some] passes"
    );
}
