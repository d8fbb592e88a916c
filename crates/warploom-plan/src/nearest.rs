//! What was probably meant.

/// The known word that differs least, if it differs little.
pub(crate) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = text.chars().count().div_ceil(3).min(3);
    let scored = known.map(|word| (distance(text, word), word));
    scored
        .filter(|(steps, _)| *steps <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// Insertions, deletions and replacements from one text to the other.
fn distance(a: &str, b: &str) -> usize {
    // Far too long to be a slip; and texts come from files, so time must be bounded.
    if a.len() > 128 || b.len() > 128 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_seen_and_strangers_are_not() {
        let known = || ["backend", "memory", "device", "dtype"].into_iter();
        assert_eq!(nearest("backed", known()), Some("backend"));
        assert_eq!(nearest("devise", known()), Some("device"));
        assert_eq!(nearest("colour", known()), None);
        assert_eq!(nearest(&"x".repeat(10_000), known()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
