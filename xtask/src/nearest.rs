//! What was probably meant by a name that does not exist.

/// The known name closest to what was typed, if it is close enough to be a slip.
pub(crate) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = typed.chars().count().max(3) / 3;
    known
        .into_iter()
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, name)| *distance <= limit || name.starts_with(typed))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance, by rows.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("te", ["test", "tidy"]), Some("test"));
    }
}
