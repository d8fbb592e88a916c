//! What kernels print.

use std::fmt::Write as _;

use super::checks::{read, read_text};
use super::context::ThreadContext;
use super::worker::Worker;
use crate::engine::FaultKind;

/// Longest text of one argument, and of a format.
const LONGEST: u64 = 4096;

/// Flags, width and precision of one conversion.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own in the text"
)]
struct Directive {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// `l`, `ll`, `z`, `j`, `t`: eight bytes.
    wide: bool,
}

/// Arguments lie one behind the other, each aligned to its size.
struct Arguments<'a> {
    worker: &'a Worker<'a>,
    context: &'a ThreadContext,
    address: u64,
    taken: u32,
}

impl Arguments<'_> {
    fn next(&mut self, bytes: u64) -> Result<u64, FaultKind> {
        self.address = self.address.next_multiple_of(bytes);
        let found = read(self.worker, self.context, self.address, bytes)?;
        self.address += bytes;
        self.taken += 1;
        let mut value = [0; 8];
        value[..found.len()].copy_from_slice(&found);
        Ok(u64::from_le_bytes(value))
    }
}

/// The text, and how many arguments it took: what `vprintf` returns.
pub(super) fn format(
    worker: &Worker<'_>,
    context: &ThreadContext,
    format: u64,
    arguments: u64,
) -> Result<(String, u32), FaultKind> {
    let format = read_text(worker, context, format, LONGEST)?;
    let mut arguments = Arguments {
        worker,
        context,
        address: arguments,
        taken: 0,
    };
    let mut text = String::new();
    let mut rest = format.chars().peekable();
    while let Some(first) = rest.next() {
        if first != '%' {
            text.push(first);
            continue;
        }
        let directive = directive(&mut rest, &mut arguments)?;
        match rest.next() {
            Some('%') | None => text.push('%'),
            Some(conversion) => text += &convert(conversion, &directive, &mut arguments)?,
        }
    }
    Ok((text, arguments.taken))
}

fn directive(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    arguments: &mut Arguments<'_>,
) -> Result<Directive, FaultKind> {
    let mut found = Directive::default();
    while let Some(flag) = rest.next_if(|next| "-+ #0".contains(*next)) {
        match flag {
            '-' => found.left = true,
            '+' => found.plus = true,
            ' ' => found.space = true,
            '#' => found.alternate = true,
            _ => found.zero = true,
        }
    }
    found.width = number(rest, arguments)?.unwrap_or(0);
    if rest.next_if_eq(&'.').is_some() {
        found.precision = Some(number(rest, arguments)?.unwrap_or(0));
    }
    while let Some(length) = rest.next_if(|next| "hlLzjt".contains(*next)) {
        found.wide |= length != 'h';
    }
    Ok(found)
}

fn number(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    arguments: &mut Arguments<'_>,
) -> Result<Option<usize>, FaultKind> {
    if rest.next_if_eq(&'*').is_some() {
        let value = arguments.next(4)?;
        return Ok(usize::try_from(value).ok().map(|value| value.min(1000)));
    }
    let mut value = None;
    while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
        rest.next();
        value = Some((value.unwrap_or(0) * 10 + digit as usize).min(1000));
    }
    Ok(value)
}

fn convert(
    conversion: char,
    directive: &Directive,
    arguments: &mut Arguments<'_>,
) -> Result<String, FaultKind> {
    let bytes = if directive.wide { 8 } else { 4 };
    Ok(match conversion {
        'd' | 'i' => {
            let raw = arguments.next(bytes)?;
            let value = if directive.wide {
                raw.cast_signed()
            } else {
                i64::from(u32::try_from(raw).unwrap_or(0).cast_signed())
            };
            let digits = digits(&value.unsigned_abs().to_string(), directive);
            directive.pad(sign(value < 0, directive), &digits)
        }
        'u' => {
            let digits = digits(&arguments.next(bytes)?.to_string(), directive);
            directive.pad("", &digits)
        }
        'x' | 'X' | 'o' => {
            let raw = arguments.next(bytes)?;
            let (prefix, text) = match conversion {
                'x' => ("0x", format!("{raw:x}")),
                'X' => ("0X", format!("{raw:X}")),
                _ => ("0", format!("{raw:o}")),
            };
            let prefix = if directive.alternate && raw != 0 {
                prefix
            } else {
                ""
            };
            directive.pad(prefix, &digits(&text, directive))
        }
        'p' => {
            let raw = arguments.next(8)?;
            directive.pad("0x", &format!("{raw:x}"))
        }
        'c' => {
            let raw = arguments.next(4)?;
            let byte = raw.to_le_bytes()[0];
            directive.pad_text(&char::from(byte).to_string())
        }
        's' => {
            let address = arguments.next(8)?;
            let limit = directive.precision.map_or(LONGEST, |limit| limit as u64);
            let text = read_text(arguments.worker, arguments.context, address, limit)?;
            directive.pad_text(&text)
        }
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' => {
            let value = f64::from_bits(arguments.next(8)?);
            float(conversion, value, directive)
        }
        other => format!("%{other}"),
    })
}

fn sign(negative: bool, directive: &Directive) -> &'static str {
    match (negative, directive.plus, directive.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

/// At least as many digits as the precision says.
fn digits(text: &str, directive: &Directive) -> String {
    let missing = directive.precision.unwrap_or(1).saturating_sub(text.len());
    "0".repeat(missing) + text
}

fn float(conversion: char, value: f64, directive: &Directive) -> String {
    let sign = sign(value.is_sign_negative() && !value.is_nan(), directive);
    let size = value.abs();
    let precision = directive.precision.unwrap_or(6);
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return directive.pad_text(&format!("{sign}{name}"));
    }
    let text = match conversion.to_ascii_lowercase() {
        'f' => format!("{size:.precision$}"),
        'e' => exponential(size, precision),
        // Hexadecimal output is rare enough that its digits are given as bits.
        'a' => format!("bits:{:#018x}", value.to_bits()),
        _ => general(size, precision.max(1), directive.alternate),
    };
    let text = if conversion.is_ascii_uppercase() {
        text.to_ascii_uppercase()
    } else {
        text
    };
    directive.pad(sign, &text)
}

/// `1.5e+03`, with at least two digits of exponent.
fn exponential(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g`: whichever of the two forms is shorter, without zeros at the end.
fn general(size: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponential(size, precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if keep_zeros || !text.contains('.') {
            return text.to_owned();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    if power < -4 || power >= limit {
        return format!("{}e{exponent}", trim(digits));
    }
    let places = usize::try_from(limit - 1 - power).unwrap_or(0);
    trim(&format!("{size:.places$}"))
}

impl Directive {
    /// A number with what stands before it.
    fn pad(&self, before: &str, digits: &str) -> String {
        let missing = self.width.saturating_sub(before.len() + digits.len());
        let mut text = String::new();
        if self.left {
            text.push_str(before);
            text.push_str(digits);
            text.push_str(&" ".repeat(missing));
        } else if self.zero {
            text.push_str(before);
            text.push_str(&"0".repeat(missing));
            text.push_str(digits);
        } else {
            text.push_str(&" ".repeat(missing));
            text.push_str(before);
            text.push_str(digits);
        }
        text
    }

    fn pad_text(&self, text: &str) -> String {
        let mut padded = String::new();
        let width = self.width;
        let written = if self.left {
            write!(padded, "{text:<width$}")
        } else {
            write!(padded, "{text:>width$}")
        };
        debug_assert!(written.is_ok(), "writing to a String does not fail");
        padded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_c_prints_them() {
        let plain = Directive::default();
        let three = Directive {
            precision: Some(3),
            ..Directive::default()
        };
        let wide = Directive {
            width: 9,
            zero: true,
            plus: true,
            precision: Some(2),
            ..Directive::default()
        };
        let cases = [
            ('f', 1.5, &plain, "1.500000"),
            ('f', -0.0005, &three, "-0.001"),
            ('f', 2.125, &wide, "+00002.12"),
            ('e', 12345.678, &plain, "1.234568e+04"),
            ('E', 0.000_012, &three, "1.200E-05"),
            ('g', 0.0001, &plain, "0.0001"),
            ('g', 0.000_01, &plain, "1e-05"),
            ('g', 123_456.0, &plain, "123456"),
            ('g', 1_234_567.0, &plain, "1.23457e+06"),
            ('g', 100.0, &plain, "100"),
            ('g', 0.0, &plain, "0"),
            ('f', f64::INFINITY, &plain, "inf"),
            ('f', f64::NEG_INFINITY, &plain, "-inf"),
            ('g', f64::NAN, &plain, "nan"),
        ];
        for (conversion, value, directive, wanted) in cases {
            assert_eq!(
                float(conversion, value, directive),
                wanted,
                "%{conversion} {value}"
            );
        }
    }

    #[test]
    fn padding() {
        let with = |left, zero, width| Directive {
            left,
            zero,
            width,
            ..Directive::default()
        };
        assert_eq!(with(false, false, 6).pad("-", "42"), "   -42");
        assert_eq!(with(false, true, 6).pad("-", "42"), "-00042");
        assert_eq!(with(true, true, 6).pad("-", "42"), "-42   ");
        assert_eq!(with(true, false, 4).pad_text("ab"), "ab  ");
        assert_eq!(with(false, false, 4).pad_text("ab"), "  ab");
        let long = Directive {
            precision: Some(5),
            ..Directive::default()
        };
        assert_eq!(digits("42", &long), "00042");
    }
}
