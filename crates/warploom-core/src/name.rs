//! Short names that are plain values: `Copy`, ordered, printable, sendable.
//!
//! Backends and memory kinds are named by code *and* by files, plans and other processes. A
//! `&'static str` could not be read back from a plan; a `String` could not be a constant. So a
//! [`Name`] stores its bytes inline.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name, in bytes. Long enough for `my-company-fpga.device`.
pub const MAX_NAME: usize = 30;

/// A short lower-case name stored inline.
///
/// Allowed are `a`-`z`, `0`-`9`, `-`, `_` and `.`; the first character is a letter. The rules keep
/// names usable unquoted in shells, TOML keys and file names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    // The derived order compares bytes first, and unused bytes are zero: that is text order.
    bytes: [u8; MAX_NAME],
    len: u8,
}

/// Why a text is not a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a name: 1 to {MAX_NAME} of a-z, 0-9, `-`, `_`, `.` are needed, the first a letter"
)]
pub struct NameError {
    text: String,
}

impl NameError {
    /// `text` is not a name.
    pub(crate) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }
}

impl Name {
    /// A name known at compile time.
    ///
    /// # Panics
    /// When the text breaks the rules; in a `const` that is a compile error.
    pub const fn new(text: &str) -> Self {
        match Self::parse(text.as_bytes()) {
            Some(name) => name,
            None => panic!("a name is 1 to 30 of a-z, 0-9, `-`, `_`, `.`, the first a letter"),
        }
    }

    const fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.len() > MAX_NAME || !text[0].is_ascii_lowercase() {
            return None;
        }
        let mut bytes = [0; MAX_NAME];
        let mut at = 0;
        while at < text.len() {
            let c = text[at];
            if !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_' | b'.')) {
                return None;
            }
            bytes[at] = c;
            at += 1;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most MAX_NAME, checked above"
        )]
        Some(Self {
            bytes,
            len: text.len() as u8,
        })
    }

    /// The name as bytes, for constants.
    pub(crate) const fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.len as usize).0
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        // Only ASCII ever gets in, so this cannot fail; an empty text beats a panic all the same.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text.as_bytes()).ok_or_else(|| NameError {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The known name nearest to `text`, for "did you mean" in errors; `None` when all are far off.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = text.chars().count();
    let allowed = (length / 3).max(1);
    // Comparing takes the product of both lengths; nobody mistypes a text of that length.
    let near = |name: &&str| name.chars().count().abs_diff(length) <= allowed;
    known
        .into_iter()
        .filter(|name| length <= LONGEST && near(name))
        .map(|name| (edits(text, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// The longest text that may be a mistyped name, in characters.
const LONGEST: usize = 100;

/// Characters to add, leave out, replace or exchange with their neighbour, which is what fast fingers do
/// to short names; texts here are a few characters long.
fn edits(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<char>>());
    let (mut before, mut above) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replace = above[j] + usize::from(a[i] != b[j]);
            let mut least = replace.min(row[j] + 1).min(above[j + 1] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                let exchange: usize = before[j - 1];
                least = least.min(exchange + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_order_as_texts_do() {
        let mut names = ["wgpu", "cpu", "cuda", "cu", "opencl"].map(Name::new);
        names.sort_unstable();
        assert_eq!(
            names.map(|n| n.to_string()),
            ["cpu", "cu", "cuda", "opencl", "wgpu"]
        );
    }

    #[rstest::rstest]
    #[case("")]
    #[case("Cuda")]
    #[case("0cuda")]
    #[case("cuda device")]
    #[case("a-name-that-is-far-too-long-to-fit")]
    fn bad_names_are_refused(#[case] text: &str) {
        assert!(text.parse::<Name>().is_err());
    }

    #[test]
    fn near_misses_are_found_and_strangers_are_not() {
        let known = ["cuda", "opencl", "wgpu", "cpu"];
        assert_eq!(nearest("opncl", known), Some("opencl"));
        assert_eq!(nearest("cudaa", known), Some("cuda"));
        assert_eq!(nearest("metal", known), None);
        // Exchanged neighbours are one slip, also in names too short for two.
        assert_eq!(nearest("wgup", known), Some("wgpu"));
        assert_eq!(nearest("sigam", ["sigma", "radius"]), Some("sigma"));
        assert_eq!(nearest("adcu", known), None);
    }

    #[test]
    fn a_name_survives_serde() {
        let text = serde_json::to_string(&Name::new("cuda.device")).unwrap();
        assert_eq!(text, "\"cuda.device\"");
        assert_eq!(
            serde_json::from_str::<Name>(&text).unwrap(),
            Name::new("cuda.device")
        );
        assert!(serde_json::from_str::<Name>("\"No Name\"").is_err());
    }
}
