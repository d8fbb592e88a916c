//! Every message that the compiler can give is seen by people in some snapshot, word for word.

use std::path::Path;

/// The texts of quoted strings in code.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // A character, which may be a quote.
            '\'' if letters.peek() == Some(&'"') => drop(letters.next()),
            '/' if letters.peek() == Some(&'/') => drop(letters.find(|letter| *letter == '\n')),
            '"' => {
                let mut text = String::new();
                while let Some(letter) = letters.next() {
                    match letter {
                        '"' => break,
                        '\\' => text.extend(letters.next()),
                        other => text.push(other),
                    }
                }
                found.push(text);
            }
            _ => {}
        }
    }
    found
}

/// What stands in a message whatever its numbers and names are.
fn fixed(message: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = message.chars().peekable();
    while let Some(letter) = letters.next() {
        let double = letters.peek() == Some(&letter);
        match letter {
            '{' | '}' if double => {
                letters.next();
                parts.last_mut().unwrap().push(letter);
            }
            '{' => {
                letters.find(|letter| *letter == '}');
                parts.push(String::new());
            }
            other => parts.last_mut().unwrap().push(other),
        }
    }
    parts
}

fn says(line: &str, parts: &[String]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The code that makes the message of a finding: up to the call's end, from where the message begins.
fn making(code: &str, call: usize) -> &str {
    let mut depth = 0;
    let end = code[call..].find(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        letter == ')' && depth == 0
    });
    let end = call + end.unwrap();
    let named = code[call..end].contains(", message");
    let begin = named.then(|| {
        code[..call]
            .rfind("let message")
            .or(code[..call].rfind("let (message"))
    });
    &code[begin.flatten().unwrap_or(call)..end]
}

fn sources(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else {
            let code = std::fs::read_to_string(&path).unwrap();
            let code = code.split("#[cfg(test)]").next().unwrap().to_owned();
            all.push((path.display().to_string(), code));
        }
    }
}

#[test]
fn every_message_has_a_snapshot() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut lines = Vec::new();
    let folders = ["tests/plan/snapshots", "tests/snapshots"];
    let files = folders.map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    for entry in files.into_iter().flatten() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        // What it was made of comes first.
        let text = text.splitn(3, "---\n").nth(2).unwrap();
        lines.extend(text.lines().map(str::to_owned));
    }
    let mut all = Vec::new();
    sources(&root.join("src"), &mut all);
    let (mut count, mut unseen) = (0, Vec::new());
    for (file, code) in &all {
        for call in ["Diagnostic::error(", "Diagnostic::warning("] {
            for (at, _) in code.match_indices(call) {
                for message in literals(making(code, at)) {
                    let parts = fixed(&message);
                    // Single words are parts of messages.
                    if parts.iter().map(String::len).sum::<usize>() < 12 {
                        continue;
                    }
                    count += 1;
                    if !lines.iter().any(|line| says(line, &parts)) {
                        unseen.push(format!("{file}: {message}"));
                    }
                }
            }
        }
    }
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
    assert!(count > 60, "{count}");
}
