//! Byte counts as people read them.

use std::fmt;
use std::str::FromStr;

/// A byte count that prints as `47.5 GiB` and parses from `47.5GiB`, `2GB` or `1024`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // What would print as 1024.0 is one of the next unit.
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.1} {}", UNITS[unit]))
    }
}

/// Why a text is not a byte count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a number of bytes; write `512MiB`, `2GB` or `1073741824`")]
pub struct BytesError {
    text: String,
}

impl FromStr for Bytes {
    type Err = BytesError;
    fn from_str(text: &str) -> Result<Self, BytesError> {
        let bad = || BytesError {
            text: text.to_owned(),
        };
        let plain = text.trim();
        let digits = plain
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(plain.len());
        let (number, unit) = plain.split_at(digits);
        let (base, power) = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => (1_u64, 0),
            "k" | "kib" => (1024, 1),
            "m" | "mib" => (1024, 2),
            "g" | "gib" => (1024, 3),
            "t" | "tib" => (1024, 4),
            "kb" => (1000, 1),
            "mb" => (1000, 2),
            "gb" => (1000, 3),
            "tb" => (1000, 4),
            _ => return Err(bad()),
        };
        let scale = base.pow(power);
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(scale).map(Self).ok_or_else(bad);
        }
        let value = number.parse::<f64>().map_err(|_| bad())? * scale as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to lie between 0 and 2^64 right here"
        )]
        if (0.0..18_446_744_073_709_551_616.0).contains(&value) {
            Ok(Self(value.round() as u64))
        } else {
            Err(bad())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(0, "0 B")]
    #[case(1023, "1023 B")]
    #[case(1024, "1.0 KiB")]
    #[case(1024 * 1024 - 1, "1.0 MiB")]
    #[case(51_002_736_640, "47.5 GiB")]
    #[case(u64::MAX, "16.0 EiB")]
    fn bytes_print(#[case] count: u64, #[case] text: &str) {
        assert_eq!(Bytes(count).to_string(), text);
    }

    #[rstest::rstest]
    #[case("1024", Some(1024))]
    #[case("4GiB", Some(4 << 30))]
    #[case("4 g", Some(4 << 30))]
    #[case("1.5MiB", Some(3 << 19))]
    #[case("2GB", Some(2_000_000_000))]
    #[case("", None)]
    #[case("-1", None)]
    #[case("4 apples", None)]
    #[case("99999999999TiB", None)]
    #[case("1.2.3", None)]
    fn bytes_parse(#[case] text: &str, #[case] count: Option<u64>) {
        assert_eq!(text.parse::<Bytes>().ok().map(|b| b.0), count);
    }
}
