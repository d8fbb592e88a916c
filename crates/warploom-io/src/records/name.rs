//! Names: in the order that people expect, safe on every disk, and made of patterns.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::error::RecordError;
use super::pattern::{Component, Pattern, Token};
use super::record::Record;

/// Compares names as people do: `z2` before `z10`.
pub fn natural(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one, other);
    loop {
        let (text_a, text_b) = (head(&mut a, false), head(&mut b, false));
        let by_text = text_a.cmp(text_b);
        if by_text != Ordering::Equal {
            return by_text;
        }
        let (digits_a, digits_b) = (head(&mut a, true), head(&mut b, true));
        if digits_a.is_empty() && digits_b.is_empty() {
            // Equal but for zeros in front of numbers.
            return one.cmp(other);
        }
        let (short_a, short_b) = (
            digits_a.trim_start_matches('0'),
            digits_b.trim_start_matches('0'),
        );
        let by_number = digits_a
            .is_empty()
            .cmp(&digits_b.is_empty())
            .reverse()
            .then(short_a.len().cmp(&short_b.len()))
            .then(short_a.cmp(short_b));
        if by_number != Ordering::Equal {
            return by_number;
        }
    }
}

/// Takes digits, or everything up to the next digit, off the front.
fn head<'t>(text: &mut &'t str, digits: bool) -> &'t str {
    let end = text
        .find(|letter: char| letter.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    *text = rest;
    head
}

/// Names that Windows keeps for devices.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// A name that every file system takes, in which nothing means anything; two texts never become one.
pub fn safe(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let escape = |letter: char, name: &mut String| {
        let mut bytes = [0; 4];
        for byte in letter.encode_utf8(&mut bytes).bytes() {
            // Writing to a text cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    };
    let last = text.chars().count().saturating_sub(1);
    for (at, letter) in text.chars().enumerate() {
        let is_plain = letter.is_alphanumeric()
            || matches!(letter, '_' | '-' | '+')
            || (letter == '.' && at > 0 && at < last);
        if is_plain {
            name.push(letter);
        } else {
            escape(letter, &mut name);
        }
    }
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_port = (stem.starts_with("com") || stem.starts_with("lpt"))
        && stem.len() == 4
        && stem.ends_with(|letter: char| letter.is_ascii_digit());
    if DEVICES.contains(&stem.as_str()) || is_port {
        let first = name.remove(0);
        let mut escaped = String::new();
        escape(first, &mut escaped);
        name.insert_str(0, &escaped);
    }
    if name.is_empty() {
        name.push('%');
    }
    name
}

/// What the files that come out are called: a pattern of a record's fields, `{id}` and `{output}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputNames {
    pattern: Pattern,
}

impl OutputNames {
    /// Reads a pattern such as `{plate}/{well}_{site}_{output}.tif` or `{id}.zarr`.
    pub fn new(text: &str) -> Result<Self, RecordError> {
        let pattern = Pattern::new(text)?;
        let bad = |what: &str| RecordError::Pattern {
            pattern: text.to_owned(),
            what: what.to_owned(),
        };
        for component in &pattern.components {
            let Component::Name(tokens) = component else {
                return Err(bad("a name that is written has no `**`"));
            };
            let is_plain = |token: &Token| matches!(token, Token::Text(_) | Token::Field { .. });
            if !tokens.iter().all(is_plain) {
                return Err(bad("a name that is written has no `*` and no `?`"));
            }
            if tokens == &[Token::Text("..".into())] {
                return Err(bad("it leaves the folder of results"));
            }
        }
        if text.starts_with('/') {
            return Err(bad("it leaves the folder of results"));
        }
        Ok(Self { pattern })
    }

    /// The path, below the folder of results, of one output of a record.
    pub fn path(&self, record: &Record, output: &str) -> Result<PathBuf, RecordError> {
        self.path_with(record, &[("output", output)])
    }

    /// The same with other words that have a meaning, such as `channel`, before the record's own. Also
    /// `{record}` is the record's id.
    pub fn path_with(
        &self,
        record: &Record,
        words: &[(&str, &str)],
    ) -> Result<PathBuf, RecordError> {
        let own = |field: &str| words.iter().find(|(word, _)| *word == field);
        let mut path = PathBuf::new();
        for component in &self.pattern.components {
            let Component::Name(tokens) = component else {
                continue;
            };
            let mut name = String::new();
            for token in tokens {
                match token {
                    Token::Text(text) => name.push_str(text),
                    Token::Field { name: field, .. } if field == "id" || field == "record" => {
                        // An id is safe already, and has folders.
                        name.push_str(record.id());
                    }
                    Token::Field { name: field, .. } => {
                        let word = own(field).map(|(_, value)| *value);
                        let Some(value) = word.or_else(|| record.field(field)) else {
                            return Err(RecordError::Field {
                                field: field.clone(),
                                known: known(record, words),
                            });
                        };
                        name.push_str(&safe(value));
                    }
                    Token::Any | Token::One => {}
                }
            }
            path.push(name);
        }
        Ok(path)
    }

    /// Whether all outputs of all records have names of their own, also where large and small letters
    /// are the same.
    pub fn check<'r>(
        &self,
        records: impl IntoIterator<Item = &'r Record>,
        outputs: &[&str],
    ) -> Result<(), RecordError> {
        let mut taken: HashMap<String, String> = HashMap::new();
        for record in records {
            for output in outputs {
                let path = self.path(record, output)?;
                let key = path.to_string_lossy().to_lowercase();
                let own = format!("`{output}` of `{}`", record.id());
                if let Some(first) = taken.insert(key, own.clone()) {
                    return Err(RecordError::Clash {
                        name: path.display().to_string(),
                        first,
                        second: own,
                    });
                }
            }
        }
        Ok(())
    }
}

fn known(record: &Record, words: &[(&str, &str)]) -> Vec<String> {
    let fields = record.fields().iter().map(|(name, _)| format!("`{name}`"));
    let words = words.iter().map(|(word, _)| format!("`{word}`"));
    fields.chain(["`record`".into()]).chain(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = [
            "z10", "z2", "z1", "z02", "a", "z", "z2b", "z2a1", "10", "9", "",
        ];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            [
                "", "9", "10", "a", "z", "z1", "z02", "z2", "z2a1", "z2b", "z10"
            ]
        );
    }

    #[test]
    fn safe_names_are_readable() {
        assert_eq!(safe("A01_s-3.5"), "A01_s-3.5");
        assert_eq!(safe("../../etc"), "%2E.%2F..%2Fetc");
        assert_eq!(safe(".."), "%2E%2E");
        assert_eq!(safe("con"), "%63on");
        assert_eq!(safe("COM1.tif"), "%43OM1.tif");
        assert_eq!(safe("a b%"), "a%20b%25");
        assert_eq!(safe("end."), "end%2E");
        assert_eq!(safe(""), "%");
        assert_eq!(safe("Größe"), "Größe");
    }

    proptest! {
        #[test]
        fn the_order_is_one(a in "[a-c0-2]{0,5}", b in "[a-c0-2]{0,5}", c in "[a-c0-2]{0,5}") {
            prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            prop_assert_eq!(natural(&a, &b) == Ordering::Equal, a == b);
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                prop_assert!(natural(&a, &c).is_le());
            }
        }

        #[test]
        fn safe_names_say_nothing_else(text in any::<String>()) {
            let name = safe(&text);
            prop_assert!(!name.is_empty() && !name.starts_with('.') && !name.ends_with(['.', ' ']));
            let means_something = ['/', '\\', ':', '*', '?', '"', '<', '>', '|', '\0', '{'];
            prop_assert!(!name.contains(means_something));
            // What was escaped can be told back, so no two texts have one name.
            let mut bytes = Vec::new();
            let mut rest = name.as_str();
            while let Some(letter) = rest.chars().next() {
                if letter == '%' && rest.len() >= 3 {
                    bytes.push(u8::from_str_radix(&rest[1..3], 16).unwrap());
                    rest = &rest[3..];
                } else if letter == '%' {
                    rest = &rest[1..];
                } else {
                    let size = letter.len_utf8();
                    bytes.extend(rest[..size].bytes());
                    rest = &rest[size..];
                }
            }
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), text);
        }
    }
}
