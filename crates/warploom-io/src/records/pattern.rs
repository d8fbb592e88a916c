//! Patterns of names: `{plate}/{well}_{site}_{channel}.tif`, and globs.

use super::error::RecordError;

/// A pattern of paths, component by component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    text: String,
    pub(super) components: Vec<Component>,
}

/// One name of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Component {
    /// Any number of folders.
    Deep,
    Name(Vec<Token>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Text(String),
    /// `{name}`, or `{name:d}`, which takes digits only.
    Field {
        name: String,
        digits: bool,
    },
    /// `*`
    Any,
    /// `?`
    One,
}

impl Pattern {
    /// Reads a pattern. `{name}` is a part of a name that is kept, `{name:d}` one of digits, `*` and `?`
    /// are as in a shell, `**` is any number of folders, and `{{` and `}}` are braces.
    pub fn new(text: &str) -> Result<Self, RecordError> {
        let bad = |what: String| RecordError::Pattern {
            pattern: text.to_owned(),
            what,
        };
        let mut components = Vec::new();
        for part in text.split(['/', std::path::MAIN_SEPARATOR]) {
            match part {
                "" | "." => {}
                "**" => components.push(Component::Deep),
                part => components.push(Component::Name(tokens(part).map_err(bad)?)),
            }
        }
        let pattern = Self {
            text: text.to_owned(),
            components,
        };
        let names: Vec<&str> = pattern.fields().collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(bad(format!("the field `{name}` is there twice")));
            }
        }
        match pattern.components.last() {
            None => Err(bad("it is empty".into())),
            Some(Component::Deep) => Err(bad("it ends in `**`, which is folders only".into())),
            Some(Component::Name(_)) => Ok(pattern),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of its fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let names = self
            .components
            .iter()
            .filter_map(|component| match component {
                Component::Name(tokens) => Some(tokens),
                Component::Deep => None,
            });
        names.flatten().filter_map(|token| match token {
            Token::Field { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Does a text have anything but plain names?
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['{', '*', '?'])
}

fn tokens(part: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut text = String::new();
    let mut rest = part.chars().peekable();
    while let Some(letter) = rest.next() {
        let token = match letter {
            '{' | '}' if rest.peek() == Some(&letter) => {
                rest.next();
                text.push(letter);
                continue;
            }
            '{' => {
                let mut inside = String::new();
                loop {
                    match rest.next() {
                        Some('}') => break,
                        Some(letter) => inside.push(letter),
                        None => return Err("a `{` without a `}`".into()),
                    }
                }
                field(&inside)?
            }
            '}' => return Err("a `}` without a `{`".into()),
            '*' => Token::Any,
            '?' => Token::One,
            letter => {
                text.push(letter);
                continue;
            }
        };
        if !text.is_empty() {
            tokens.push(Token::Text(std::mem::take(&mut text)));
        }
        if let (Some(Token::Field { name: first, .. }), Token::Field { name, .. }) =
            (tokens.last(), &token)
        {
            return Err(format!(
                "nothing between the fields `{first}` and `{name}` says where one ends"
            ));
        }
        tokens.push(token);
    }
    if !text.is_empty() {
        tokens.push(Token::Text(text));
    }
    Ok(tokens)
}

fn field(inside: &str) -> Result<Token, String> {
    let (name, kind) = match inside.split_once(':') {
        Some((name, kind)) => (name, Some(kind)),
        None => (inside, None),
    };
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_name {
        return Err(format!(
            "`{{{inside}}}` is no field: a name has letters, digits and `_`"
        ));
    }
    match kind {
        None => Ok(Token::Field {
            name: name.to_owned(),
            digits: false,
        }),
        Some("d") => Ok(Token::Field {
            name: name.to_owned(),
            digits: true,
        }),
        Some(kind) => Err(format!("`{kind}` is no kind of field; `d` is, for digits")),
    }
}

/// What the fields of a name are.
pub(super) type Values = Vec<(String, String)>;

/// Two ways to read one name.
#[derive(Debug)]
pub(super) struct Twice(pub(super) Values, pub(super) Values);

/// The fields of a name, if it fits; an error where it fits in two ways that differ.
pub(super) fn fit(tokens: &[Token], name: &str) -> Result<Option<Values>, Twice> {
    let letters: Vec<char> = name.chars().collect();
    let Some(short) = Fit::new(tokens, &letters).run(true) else {
        return Ok(None);
    };
    let long = Fit::new(tokens, &letters)
        .run(false)
        .unwrap_or_else(|| short.clone());
    if short == long {
        Ok(Some(short))
    } else {
        Err(Twice(short, long))
    }
}

/// Tries parts of a name for each token, remembering what led nowhere, so that it takes time that grows
/// with tokens and letters and not with all ways to combine them.
struct Fit<'t> {
    tokens: &'t [Token],
    letters: &'t [char],
    failed: Vec<bool>,
}

impl<'t> Fit<'t> {
    fn new(tokens: &'t [Token], letters: &'t [char]) -> Self {
        Self {
            tokens,
            letters,
            failed: vec![false; (tokens.len() + 1) * (letters.len() + 1)],
        }
    }

    fn run(&mut self, shortest_first: bool) -> Option<Values> {
        let mut values = Vec::new();
        self.step(0, 0, shortest_first, &mut values)
            .then_some(values)
    }

    fn step(&mut self, token: usize, at: usize, shortest_first: bool, values: &mut Values) -> bool {
        let key = token * (self.letters.len() + 1) + at;
        if self.failed[key] {
            return false;
        }
        let tokens = self.tokens;
        let there = self.letters.len() - at;
        let fits = match tokens.get(token) {
            None => there == 0,
            Some(Token::Text(text)) => {
                let text: Vec<char> = text.chars().collect();
                self.letters[at..].starts_with(&text)
                    && self.step(token + 1, at + text.len(), shortest_first, values)
            }
            Some(Token::One) => there > 0 && self.step(token + 1, at + 1, shortest_first, values),
            Some(Token::Any) => {
                // What a star takes is not kept, but decides what fields beside it take.
                (0..=there).any(|count| {
                    let count = if shortest_first { count } else { there - count };
                    self.step(token + 1, at + count, shortest_first, values)
                })
            }
            Some(Token::Field { name, digits }) => {
                let most = if *digits {
                    let digits = self.letters[at..].iter();
                    digits.take_while(|letter| letter.is_ascii_digit()).count()
                } else {
                    there
                };
                (1..=most).any(|count| {
                    let count = if shortest_first {
                        count
                    } else {
                        most + 1 - count
                    };
                    let value = self.letters[at..at + count].iter().collect();
                    values.push((name.clone(), value));
                    let fits = self.step(token + 1, at + count, shortest_first, values);
                    if !fits {
                        values.pop();
                    }
                    fits
                })
            }
        };
        if !fits {
            self.failed[key] = true;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pattern: &str, name: &str) -> Result<Option<String>, Twice> {
        let pattern = Pattern::new(pattern).unwrap();
        let Some(Component::Name(tokens)) = pattern.components.last() else {
            panic!("no name");
        };
        let values = fit(tokens, name)?;
        Ok(values.map(|values| {
            let values = values.iter().map(|(name, value)| format!("{name}={value}"));
            values.collect::<Vec<_>>().join(" ")
        }))
    }

    #[rstest::rstest]
    #[case(
        "{well}_{site}_{channel}.tif",
        "A01_3_DAPI.tif",
        Some("well=A01 site=3 channel=DAPI")
    )]
    #[case("{well}_s{site:d}.tif", "A01_s12.tif", Some("well=A01 site=12"))]
    #[case("{well}_s{site:d}.tif", "A01_s1x.tif", None)]
    #[case("{well}.tif", ".tif", None)]
    #[case("*_{c}.tif", "x_y_z.tif", Some("c=z"))]
    #[case("img?.png", "img7.png", Some(""))]
    #[case("img?.png", "img77.png", None)]
    #[case("{{a}}{b}.tif", "{a}é.tif", Some("b=é"))]
    fn names_fit(#[case] pattern: &str, #[case] name: &str, #[case] wanted: Option<&str>) {
        let found = values(pattern, name);
        // A star takes what it needs, but a field beside it is not free to.
        if pattern.starts_with('*') {
            assert!(found.is_err(), "{found:?}");
        } else {
            assert_eq!(found.unwrap().as_deref(), wanted);
        }
    }

    #[test]
    fn a_name_that_fits_in_two_ways_is_an_error() {
        let Err(Twice(short, long)) = values("{well}_{site}.tif", "A_1_2.tif") else {
            panic!("it was read in one way");
        };
        assert_eq!(short[0].1, "A");
        assert_eq!(long[0].1, "A_1");
        assert!(values("{well}_{site:d}.tif", "A_1_2.tif").is_ok());
    }

    #[test]
    fn many_fields_take_little_time() {
        let pattern = "{a}x{b}x{c}x{d}x{e}x{f}x{g}x{h}x!";
        assert!(values(pattern, &"x".repeat(250)).unwrap().is_none());
    }

    #[rstest::rstest]
    #[case("", "it is empty")]
    #[case("a/**", "folders only")]
    #[case("{a}{b}.tif", "nothing between the fields `a` and `b`")]
    #[case("{a}_{a}.tif", "`a` is there twice")]
    #[case("{a/b}.tif", "without a `}`")]
    #[case("{a b}.tif", "is no field")]
    #[case("{}.tif", "is no field")]
    #[case("{a:x}.tif", "is no kind of field")]
    #[case("a}.tif", "without a `{`")]
    fn nonsense_is_named(#[case] pattern: &str, #[case] words: &str) {
        let error = Pattern::new(pattern).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
